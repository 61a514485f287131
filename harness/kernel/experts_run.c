#include "harness/kernel/experts_run.h"

#include "harness/core/clock.h"
#include "harness/kernel/experts_slab.h"

#include <string.h>

static const char *const step_names[STEP_COUNT] = {"enter", "gate_up", "activate", "quantize",
                                                   "down",  "order",   "sum"};

const char *experts_step_name(enum experts_step step)
{
    return step_names[step];
}

bool experts_has(const struct experts *x, enum experts_step step)
{
    switch (step) {
    case STEP_ENTER:
        return experts_quantizes(x) || x->type != HUM_GEMM_INDEXED;
    case STEP_QUANTIZE:
        return experts_quantizes(x);
    case STEP_ORDER:
        return x->type == HUM_GEMM_GROUPED_CONTIGUOUS;
    case STEP_SUM:
        return !experts_batched(x);
    case STEP_GATE_UP:
    case STEP_ACTIVATE:
    case STEP_DOWN:
        return true;
    case STEP_COUNT:
        break;
    }
    return false;
}

enum experts_step experts_last(const struct experts *x)
{
    return experts_has(x, STEP_SUM) ? STEP_SUM : STEP_DOWN;
}

enum experts_step experts_before(const struct experts *x, enum experts_step step)
{
    for (int i = (int)step - 1; i >= 0; i--)
        if (experts_has(x, (enum experts_step)i))
            return (enum experts_step)i;
    return STEP_COUNT;
}

/* ---- a run ----------------------------------------------------------------------------------- */

struct run {
    struct experts_trial *t;
    const struct run_options *o;
    const struct experts *x;
    const struct batch *b;
    struct hum_buffer_meta metas[HUM_BUFFER_COUNT];
    struct run_slab slab;
    struct device device;
    bool *slot_live; /* m x top_k: the slot has a row */
    struct run_out *out;
    struct finding *f;
};

/* Where a buffer of enum hum_buffer lies in the slab. */
static size_t buffer_at(const struct run *r, int buffer)
{
    int last = experts_batched(r->x) ? HUM_BUFFER_DOWN_OUTPUT : HUM_BUFFER_OUTPUT;

    if (buffer == last && !(r->o->shared && r->o->result_in_shared))
        return r->slab.place[SLAB_RESULT].at;
    if (r->o->shared)
        return r->slab.place[SLAB_WORKSPACE + r->metas[buffer].workspace - 1].at;
    return r->slab.place[SLAB_BUFFER + buffer].at;
}

static void *address(const struct run *r, size_t at)
{
    return r->slab.device + at;
}

/* rows x cols numbers of format t at `at`; two 4-bit ones a byte. */
static struct hum_tensor matrix(const struct run *r, size_t at, int64_t rows, int64_t cols,
                                const struct dtype *t)
{
    int64_t stored = t->bits == 4 ? cols / 2 : cols;
    size_t size = t->bits == 4 ? 1 : t->bits / 8u;

    return (struct hum_tensor){.data = address(r, at),
                               .dtype = dtype_id(t),
                               .rank = 2,
                               .shape = {rows, stored},
                               .bytes = (size_t)(rows * stored) * size};
}

static struct hum_tensor vector(const struct run *r, int place, int32_t dtype, int64_t n)
{
    return (struct hum_tensor){.data = address(r, r->slab.place[place].at),
                               .dtype = dtype,
                               .rank = 1,
                               .shape = {n},
                               .bytes = (size_t)n * (size_t)hum_dtype_bits(dtype) / 8};
}

/* A host tensor of the slab as the device has it. */
static struct hum_tensor placed(const struct run *r, int place, struct hum_tensor host)
{
    if (host.data)
        host.data = address(r, r->slab.place[place].at);
    return host;
}

/* ---- after a step ---------------------------------------------------------------------------- */

static uint32_t code_at(const uint8_t *bytes, size_t i, int bits)
{
    uint32_t code = 0;

    if (bits == 4)
        return i % 2 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15u;
    memcpy(&code, bytes + i * (size_t)bits / 8, (size_t)bits / 8);
    return code;
}

static uint32_t *codes_of(struct run *r, size_t at, int64_t count, int bits)
{
    uint32_t *codes = (uint32_t *)(void *)device_host(&r->device, (size_t)count * sizeof *codes);

    for (int64_t i = 0; codes && i < count; i++)
        codes[i] = code_at(r->slab.image + at, (size_t)i, bits);
    return codes;
}

static bool refused(struct run *r, enum experts_step step, enum hum_code code, const char *reason)
{
    bool lost = code == HUM_DEVICE_LOST || code == HUM_NO_MEMORY;
    bool skips = code == HUM_UNSUPPORTED && step != STEP_GATE_UP && step != STEP_DOWN;

    r->out->refused = true;
    finding_give(r->f,
                 lost    ? VERDICT_INFRA
                 : skips ? VERDICT_SKIP
                         : VERDICT_FAIL,
                 "%s: %s%s", step_names[step],
                 lost || skips ? "" : "refused a legal call: ", reason);
    return false;
}

static size_t offset(const struct run *r, const struct hum_tensor *t)
{
    return (size_t)((const uint8_t *)t->data - r->slab.device);
}

static size_t row_bytes(const struct hum_tensor *t)
{
    return t->shape[0] ? t->bytes / (size_t)t->shape[0] : 0;
}

/* What a step writes: rows of `outputs` (and of token scales) by `writes`; those of `live` mean
 * something. NULL: all. */
struct written {
    struct hum_tensor outputs, scales;
    int64_t cols;
    const struct dtype *t;
    const bool *writes, *live;
};

static void allow(struct run *r, const struct written *w)
{
    run_slab_allow(&r->slab, offset(r, &w->outputs), w->outputs.shape[0], row_bytes(&w->outputs),
                   w->writes);
    if (w->scales.data)
        run_slab_allow(&r->slab, offset(r, &w->scales), w->scales.shape[0], sizeof(float),
                       w->writes);
}

/* Workspaces hold what earlier steps have left: a step finds poison in its outputs, so that what it
 * does not write shows. */
static bool begin(struct run *r, const struct written *w)
{
    const struct hum_tensor *all[] = {&w->outputs, &w->scales};

    for (int i = 0; i < 2; i++)
        if (all[i]->data && !run_slab_poison(&r->slab, &r->device, offset(r, all[i]), all[i]->bytes,
                                             r->o->poison)) {
            finding_give(r->f, VERDICT_INFRA, "%s", r->device.reason);
            return false;
        }
    return true;
}

/* Looks at the slab and keeps what the step has left. */
static bool finish(struct run *r, enum experts_step step, const struct written *w,
                   enum hum_code code, const char *reason)
{
    struct step_data *s = &r->out->step[step];
    const char *damage;
    char buf[160];
    bool lost;

    if (code != HUM_OK)
        return refused(r, step, code, reason);
    allow(r, w);
    damage = run_slab_look(&r->slab, &r->device, buf, sizeof buf, &lost);
    if (damage)
        finding_give(r->f, VERDICT_FAIL, "%s: %s", step_names[step], damage);
    *s = (struct step_data){
        .there = true, .rows = w->outputs.shape[0], .cols = w->cols, .t = w->t, .live = w->live};
    if (!lost)
        s->codes = codes_of(r, offset(r, &w->outputs), s->rows * s->cols, w->t->bits);
    if (!lost && w->scales.data)
        s->scales = codes_of(r, offset(r, &w->scales), s->rows, 32);
    if (!s->codes || (w->scales.data && !s->scales))
        finding_give(r->f, VERDICT_INFRA, "%s", r->device.reason);
    return r->f->verdict == VERDICT_PASS;
}

/* ---- steps that are process_input ------------------------------------------------------------ */

static bool process(struct run *r, enum experts_step step, struct hum_process_input_args *args,
                    struct written *w)
{
    char reason[HUM_REASON_BYTES] = "";
    double start;
    enum hum_code code;

    if (!begin(r, w))
        return false;
    args->precise = true;
    args->outputs = w->outputs;
    args->token_scales = w->scales;
    if (w->scales.data) {
        args->quant_mode = HUM_QUANT_DYNAMIC_TOKEN;
        args->quant_dtype = w->outputs.dtype;
    }
    start = clock_us();
    code = r->t->provider->ops->process_input(r->t->handle, args, reason);
    r->t->kernel_us += clock_us() - start;
    return finish(r, step, w, code, reason);
}

static struct hum_tensor expert_layout(const struct run *r)
{
    return placed(r, SLAB_EXPERT_LAYOUT, r->out->routing[LAYER_GATE_UP].expert_layout);
}

static struct hum_tensor token_scales(const struct run *r, int layer, int64_t rows)
{
    return vector(r, SLAB_TOKEN_SCALES + layer, HUM_F32, rows);
}

static struct hum_tensor tokens(const struct run *r)
{
    return matrix(r, r->slab.place[SLAB_INPUTS].at, r->b->m, r->x->hidden, r->x->c);
}

/* The rows of A of gate_up. */
static struct hum_tensor entered(const struct run *r)
{
    size_t at = experts_quantizes(r->x) ? buffer_at(r, HUM_BUFFER_QUANTED_GATE_UP_INPUT)
                                        : r->slab.place[SLAB_ENTERED].at;

    if (!experts_has(r->x, STEP_ENTER))
        return tokens(r);
    return matrix(r, at, r->b->entered, r->x->hidden, r->x->a);
}

static bool run_enter(struct run *r)
{
    struct hum_process_input_args args = {.inputs = tokens(r)};
    struct written w = {.outputs = entered(r),
                        .cols = r->x->hidden,
                        .t = r->x->a,
                        .writes = r->b->entered_live,
                        .live = r->b->entered_live};

    if (experts_quantizes(r->x))
        w.scales = token_scales(r, LAYER_GATE_UP, r->b->entered);
    if (r->x->type == HUM_GEMM_GROUPED_CONTIGUOUS) {
        args.layout = HUM_LAYOUT_SCATTER;
        args.indices = vector(r, SLAB_SCATTER, HUM_INT64, r->b->m * r->x->top_k);
        args.indices.rank = 2;
        args.indices.shape[0] = r->b->m;
        args.indices.shape[1] = r->x->top_k;
    }
    if (experts_batched(r->x)) {
        args.layout = HUM_LAYOUT_GROUPED_PADDED;
        args.expert_layout = expert_layout(r);
        args.max_tokens = r->x->max_tokens;
    }
    return process(r, STEP_ENTER, &args, &w);
}

/* Grouped rows beyond the last expert's are not written; indexed and batched rows that no expert
 * has are computed from whatever lies there. */
static const bool *processed(const struct run *r, struct hum_process_input_args *args)
{
    if (r->x->type != HUM_GEMM_GROUPED_CONTIGUOUS)
        return NULL;
    args->layout = HUM_LAYOUT_GROUPED;
    args->expert_layout = expert_layout(r);
    return r->b->live;
}

static struct hum_tensor routed(const struct run *r, int buffer, int64_t cols,
                                const struct dtype *t)
{
    return matrix(r, buffer_at(r, buffer), r->b->rows, cols, t);
}

static bool run_activate(struct run *r)
{
    const struct experts *x = r->x;
    struct hum_process_input_args args = {.inputs =
                                              routed(r, HUM_BUFFER_GATE_UP_OUTPUT, x->width, x->c)};
    struct written w = {.outputs = routed(r, HUM_BUFFER_ACTIVATION_OUTPUT, x->inter, x->c),
                        .cols = x->inter,
                        .t = x->c,
                        .live = r->b->live};
    struct hum_experts_config config;

    experts_config(x, r->b->m, &config);
    args.activation = config.activation;
    args.form = config.form;
    args.alpha = x->activation.alpha;
    args.beta = x->activation.beta;
    args.limit = x->activation.limit;
    w.writes = processed(r, &args);
    return process(r, STEP_ACTIVATE, &args, &w);
}

static bool run_quantize(struct run *r)
{
    const struct experts *x = r->x;
    struct hum_process_input_args args = {
        .inputs = routed(r, HUM_BUFFER_ACTIVATION_OUTPUT, x->inter, x->c)};
    struct written w = {.outputs = routed(r, HUM_BUFFER_QUANTED_DOWN_INPUT, x->inter, x->a),
                        .scales = token_scales(r, LAYER_DOWN, r->b->rows),
                        .cols = x->inter,
                        .t = x->a,
                        .live = r->b->live};

    w.writes = processed(r, &args);
    return process(r, STEP_QUANTIZE, &args, &w);
}

/* From routed rows, sorted by expert, to slots. */
static bool run_order(struct run *r)
{
    const struct experts *x = r->x;
    struct hum_process_input_args args = {.inputs =
                                              routed(r, HUM_BUFFER_DOWN_OUTPUT, x->hidden, x->c),
                                          .layout = HUM_LAYOUT_PERMUTE,
                                          .indices = vector(r, SLAB_BACK, HUM_INT32, r->b->rows)};
    struct written w = {.outputs =
                            matrix(r, r->slab.place[SLAB_ORDERED].at, r->b->rows, x->hidden, x->c),
                        .cols = x->hidden,
                        .t = x->c,
                        .writes = r->slot_live,
                        .live = r->slot_live};

    return process(r, STEP_ORDER, &args, &w);
}

/* ---- the other steps ------------------------------------------------------------------------- */

static struct hum_weights kernel_form(const struct run *r, int layer)
{
    struct hum_weights w = r->t->kernel_form[layer];
    struct hum_tensor *all[] = {&w.weight, &w.weight_scale, &w.zero_point, &w.weight_scale_2,
                                &w.bias};

    for (int i = 0; i < 5; i++)
        *all[i] = placed(r, SLAB_KERNEL_FORM + 5 * layer + i, *all[i]);
    return w;
}

static bool multiply(struct run *r, int layer, struct hum_tensor inputs, struct written *w)
{
    const struct routing_tensors *from = &r->out->routing[layer];
    struct hum_weights weights = kernel_form(r, layer);
    struct hum_gemm_args args = {
        .layer = &r->x->layer[layer].config,
        .compute = &r->t->compute,
        .tuning = &r->t->tuning[layer],
        .inputs = inputs,
        .weights = &weights,
        .outputs = w->outputs,
        .sorted_ids = placed(r, SLAB_SORTED_IDS + layer, from->sorted_ids),
        .expert_ids = placed(r, SLAB_EXPERT_IDS + layer, from->expert_ids),
        .num_tokens_padded = placed(r, SLAB_NUM_TOKENS_PADDED + layer, from->num_tokens_padded),
        .expert_layout = placed(r, SLAB_EXPERT_LAYOUT, from->expert_layout),
        .top_k = (int32_t)r->b->routing[layer].top_k};
    enum experts_step step = layer == LAYER_GATE_UP ? STEP_GATE_UP : STEP_DOWN;
    char reason[HUM_REASON_BYTES] = "";
    double start;
    enum hum_code code;

    if (!begin(r, w))
        return false;
    if (experts_quantizes(r->x)) { /* one scale a row: a matrix of one column */
        args.input_scale = token_scales(r, layer, inputs.shape[0]);
        args.input_scale.rank = 2;
        args.input_scale.shape[1] = 1;
    }
    start = clock_us();
    code = r->t->provider->forward(r->t->handle, &args, reason);
    r->t->kernel_us += clock_us() - start;
    return finish(r, step, w, code, reason);
}

static bool run_gate_up(struct run *r)
{
    struct written w = {.outputs = routed(r, HUM_BUFFER_GATE_UP_OUTPUT, r->x->width, r->x->c),
                        .cols = r->x->width,
                        .t = r->x->c,
                        .writes = r->b->live,
                        .live = r->b->live};

    return multiply(r, LAYER_GATE_UP, entered(r), &w);
}

static bool run_down(struct run *r)
{
    int from =
        experts_quantizes(r->x) ? HUM_BUFFER_QUANTED_DOWN_INPUT : HUM_BUFFER_ACTIVATION_OUTPUT;
    struct written w = {.outputs = routed(r, HUM_BUFFER_DOWN_OUTPUT, r->x->hidden, r->x->c),
                        .cols = r->x->hidden,
                        .t = r->x->c,
                        .writes = r->b->live,
                        .live = r->b->live};

    return multiply(r, LAYER_DOWN, routed(r, from, r->x->inter, r->x->a), &w);
}

static bool run_sum(struct run *r)
{
    const struct experts *x = r->x;
    size_t from = experts_has(x, STEP_ORDER) ? r->slab.place[SLAB_ORDERED].at
                                             : buffer_at(r, HUM_BUFFER_DOWN_OUTPUT);
    struct hum_moe_fused_mul_sum_args args = {
        .inputs = matrix(r, from, r->b->m * x->top_k, x->hidden, x->c),
        .weights = vector(r, SLAB_TOPK_WEIGHTS, HUM_F32, r->b->m * x->top_k),
        .topk_ids = vector(r, SLAB_TOPK_IDS, HUM_INT32, r->b->m * x->top_k),
        .outputs = matrix(r, buffer_at(r, HUM_BUFFER_OUTPUT), r->b->m, x->hidden, x->c)};
    struct written w = {.outputs = args.outputs, .cols = x->hidden, .t = x->c};
    char reason[HUM_REASON_BYTES] = "";
    double start;
    enum hum_code code;

    if (!begin(r, &w))
        return false;
    args.inputs.rank = 3;
    args.inputs.shape[0] = args.weights.shape[0] = args.topk_ids.shape[0] = r->b->m;
    args.inputs.shape[1] = args.weights.shape[1] = args.topk_ids.shape[1] = x->top_k;
    args.inputs.shape[2] = x->hidden;
    args.weights.rank = args.topk_ids.rank = 2;
    start = clock_us();
    code = r->t->provider->ops->moe_fused_mul_sum(r->t->handle, &args, reason);
    r->t->kernel_us += clock_us() - start;
    return finish(r, STEP_SUM, &w, code, reason);
}

static bool run_step(struct run *r, enum experts_step step)
{
    static bool (*const steps[STEP_COUNT])(struct run *) = {
        run_enter, run_gate_up, run_activate, run_quantize, run_down, run_order, run_sum};

    r->t->hooks->stage(r->t->hooks->context, r->t->index, STAGE_LAUNCH);
    return !experts_has(r->x, step) || steps[step](r);
}

bool experts_run(struct experts_trial *t, const struct run_options *o, struct run_out *out,
                 struct finding *f)
{
    struct run r = {.t = t, .o = o, .x = t->x, .b = o->batch, .out = out, .f = f};
    bool fine = true;

    t->kernel_us = 0.0;
    memset(out, 0, sizeof *out);
    r.device = (struct device){.provider = t->provider, .handle = t->handle, .arena = t->arena};
    if (!experts_metas(t, experts_batched(t->x) ? t->x->capacity : o->batch->m, 1, r.metas, f))
        return false;
    if (!run_slab_fill(&r.slab, t, o, r.metas, &r.device, out, &r.slot_live)) {
        finding_give(f, VERDICT_INFRA, "%s", r.device.reason);
        fine = false;
    }
    for (int step = 0; step < STEP_COUNT && fine; step++)
        fine = run_step(&r, (enum experts_step)step);
    device_release(&r.device, 0);
    return fine;
}
