#include "harness/kernel/trial.h"

#include "harness/core/clock.h"
#include "harness/kernel/trial_slab.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A kernel may want more than one a tile: upstream 0.1.19 has one for each 128 threads of a thread
 * block, and a tenth more than that (132 SMs, two blocks of 1024 threads each: 2320). */
enum { USUAL_LOCKS = 4096 };

/* ---- tuning ---------------------------------------------------------------------------------- */

/* All that a provider's code does counts as the launch. */
void trial_enter(const struct trial *t, enum stage stage)
{
    t->hooks->stage(t->hooks->context, t->index, stage);
}

enum hum_code trial_supports(const struct trial *t, const struct hum_layer_config *layer,
                             const struct hum_compute_config *compute,
                             const struct hum_tuning_config *tuning, char reason[HUM_REASON_BYTES])
{
    enum hum_code code;

    trial_enter(t, STAGE_LAUNCH);
    code = t->provider->supports(t->handle, layer, compute, tuning, reason);
    trial_enter(t, STAGE_JUDGE);
    return code;
}

static bool supported(const struct trial *t, const struct hum_tuning_config *tuning,
                      struct finding *f)
{
    char reason[HUM_REASON_BYTES] = "";
    enum hum_code code = trial_supports(t, &t->shared->tensors.layer, &t->compute, tuning, reason);

    if (code == HUM_OK)
        return true;
    if (code == HUM_UNSUPPORTED)
        finding_give(f, VERDICT_SKIP, "%s", reason);
    else
        finding_give(f, VERDICT_FAIL, "the provider calls a legal configuration invalid: %s",
                     reason);
    return false;
}

bool trial_tuning(const struct trial *t, int64_t m, struct hum_tuning_config *out,
                  struct finding *f)
{
    struct hum_tuning_config base = {.num_stages = 2,
                                     .num_ctas_per_sm = 1,
                                     .num_write_splits = 1,
                                     .multi_cast_size_a = 1,
                                     .multi_cast_size_b = 1,
                                     .raster_group_m = 1};
    char reason[HUM_REASON_BYTES] = "";
    enum hum_code code = HUM_OK;

    if (!layer_states_tile(t->v)) {
        if (!t->provider->heuristics) {
            finding_give(f, VERDICT_SKIP,
                         "the provider has no heuristics and the case states no tile");
            return false;
        }
        trial_enter(t, STAGE_LAUNCH);
        code = t->provider->heuristics(t->handle, &t->shared->tensors.layer, &t->compute, m, &base,
                                       reason);
    }
    if (code != HUM_OK) {
        finding_give(f, code == HUM_UNSUPPORTED ? VERDICT_SKIP : VERDICT_FAIL, "heuristics: %s",
                     reason);
        return false;
    }
    layer_tuning(t->v, &base, out);
    return supported(t, out, f);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* A launch before this one may hold memory above the mark. */
void trial_forget_launch(struct trial *t)
{
    if (!t->mark)
        return;
    t->shared->device.arena->used = t->mark;
    device_release(&t->shared->device, t->held);
}

static void mark(struct trial *t)
{
    t->mark = t->shared->device.arena->used;
    t->held = t->shared->device.held_count;
}

/* What is there now lives as long as the problem. */
static void keep(struct trial_problem *p)
{
    p->used = p->device.arena->used;
    p->held = p->device.held_count;
}

const char *trial_prepare(struct trial_problem *p, const struct problem *q, struct arena *arena,
                          const struct hum_provider *provider, void *handle)
{
    const char *why;

    *p = (struct trial_problem){.q = q,
                                .device = {.provider = provider, .handle = handle, .arena = arena}};
    why = problem_tensors_make(q, arena, &p->tensors);
    keep(p);
    p->bare_used = p->used;
    p->bare_held = p->held;
    return why;
}

void trial_forget(struct trial_problem *p)
{
    device_release(&p->device, 0);
}

static bool infra(const struct trial *t, struct finding *f)
{
    finding_give(f, VERDICT_INFRA, "%s", t->shared->device.reason);
    return false;
}

bool trial_transform(struct trial *t, const struct hum_weights *standard, struct hum_weights *out,
                     struct finding *f)
{
    struct hum_tensor *all[] = {&out->weight, &out->weight_scale, &out->zero_point,
                                &out->weight_scale_2, &out->bias};
    struct device *d = &t->shared->device;
    const struct hum_layer_config *layer = &t->shared->tensors.layer;
    char reason[HUM_REASON_BYTES] = "";
    struct hum_weights on;

    trial_enter(t, STAGE_LAUNCH);
    trial_forget_launch(t);
    if (!device_upload(d, &standard->weight, &on.weight) ||
        !device_upload(d, &standard->weight_scale, &on.weight_scale) ||
        !device_upload(d, &standard->zero_point, &on.zero_point) ||
        !device_upload(d, &standard->weight_scale_2, &on.weight_scale_2) ||
        !device_upload(d, &standard->bias, &on.bias))
        return infra(t, f);
    if (t->provider->transform_shapes(t->handle, layer, out, reason) != HUM_OK) {
        finding_give(f, VERDICT_FAIL, "transform_shapes refused a supported layer: %s", reason);
        return false;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!device_alloc(d, all[i]))
            return infra(t, f);
    if (t->provider->transform(t->handle, layer, &on, out, reason) != HUM_OK) {
        finding_give(f, VERDICT_FAIL, "transform refused a supported layer: %s", reason);
        return false;
    }
    mark(t);
    return true;
}

/* The kernel form of another mma_type goes. */
static void forget_kernel_form(struct trial_problem *p)
{
    device_release(&p->device, p->bare_held);
    p->device.arena->used = p->bare_used;
    keep(p);
    p->ready = false;
}

bool trial_open(struct trial *t, struct finding *f)
{
    struct trial_problem *p = t->shared;

    t->mark = 0;
    layer_config(t->v, &p->tensors.layer); /* mma_type may differ from case to case */
    if (p->ready && p->made_for != p->tensors.layer.mma_type)
        forget_kernel_form(p);
    layer_compute(t->v, &t->compute);
    if (!trial_tuning(t, t->v[AX_M], &t->tuning, f))
        return false;
    if (!p->ready && !trial_transform(t, &p->tensors.standard, &p->kernel_form, f))
        return false;
    if (!p->ready)
        keep(p);
    p->ready = true;
    p->made_for = p->tensors.layer.mma_type;
    mark(t);
    return true;
}

void trial_close(struct trial *t)
{
    t->shared->device.arena->used = t->shared->used;
    device_release(&t->shared->device, t->shared->held);
}

struct launch trial_describe(const struct trial *t, const struct hum_tuning_config *tuning,
                             int64_t m)
{
    bool dense = t->shared->q->routing.type == HUM_GEMM_DENSE;

    return (struct launch){.provider = t->provider,
                           .handle = t->handle,
                           .layer = &t->shared->tensors.layer,
                           .compute = &t->compute,
                           .tuning = tuning,
                           .m = m,
                           .routing = dense ? NULL : &t->routing};
}

int64_t trial_tiles(const struct trial *t, const struct hum_tuning_config *tuning, int64_t m)
{
    bool dense = t->shared->q->routing.type == HUM_GEMM_DENSE;
    int64_t rows = dense ? (m + tuning->block_m - 1) / tuning->block_m : t->routing.row_tiles;

    return rows * ((t->shared->tensors.layer.shape_n + tuning->block_n - 1) / tuning->block_n);
}

/* ---- the call -------------------------------------------------------------------------------- */

struct trial_options trial_plain(int64_t m)
{
    return (struct trial_options){
        .m = m, .poison = 0xff, .gap = 256, .margin = 256, .outputs_at = PART_COUNT};
}

static struct hum_tensor make_locks(const struct trial *t, const struct trial_options *o,
                                    const struct hum_tuning_config *tuning)
{
    int64_t tiles = trial_tiles(t, tuning, o->m);
    int64_t count = tiles > USUAL_LOCKS ? tiles : USUAL_LOCKS;

    if (o->locks == LOCKS_ABSENT || (o->locks == LOCKS_AS_NEEDED && !tuning->use_stream_k))
        return (struct hum_tensor){0};
    if (o->locks == LOCKS_SMALL)
        count = tiles - 1;
    return (struct hum_tensor){
        .dtype = HUM_INT32, .rank = 1, .shape = {count}, .bytes = (size_t)count * 4};
}

/* The routing tensors for the launch's block_m. */
static bool make_routing(struct trial *t, const struct trial_options *o)
{
    const struct hum_tuning_config *tuning = o->tuning ? o->tuning : &t->tuning;
    struct device *d = &t->shared->device;

    t->routed = o->routing ? o->routing : &t->shared->q->routing;
    if (!routing_tensors_make(t->routed, tuning->block_m, layer_layout_dtype(t->v), d->arena,
                              &t->routing)) {
        (void)snprintf(d->reason, sizeof d->reason, "no memory for the routing tensors");
        return false;
    }
    if (o->spoil)
        o->spoil(&t->routing, o->context);
    return true;
}

static void call_routing(const struct trial *t, struct hum_gemm_args *args)
{
    const struct routing_tensors *from = &t->routing;

    args->top_k = (int32_t)t->shared->q->routing.top_k;
    args->sorted_ids = from->sorted_ids;
    args->expert_ids = from->expert_ids;
    args->num_tokens_padded = from->num_tokens_padded;
    args->expert_layout = from->expert_layout;
    args->sorted_ids.data = args->expert_ids.data = NULL;
    args->num_tokens_padded.data = args->expert_layout.data = NULL;
}

/* M-major: a column of the scales stands together, padded to a multiple of four rows. */
static struct hum_tensor call_scales(const struct trial *t, int64_t m)
{
    struct hum_tensor scales = tensor_rows(t->shared->tensors.input_scale, m);

    if (scales.data && t->compute.use_m_major_input_scale) {
        scales.shape[0] = scales.shape[1];
        scales.shape[1] = trial_m_major_rows(m);
        scales.bytes = (size_t)(scales.shape[0] * scales.shape[1]) * sizeof(float);
    }
    return scales;
}

/* Descriptors; what lies in the slab has no data yet. */
static void make_call(const struct trial *t, const struct trial_options *o, struct trial_call *call)
{
    const struct trial_problem *p = t->shared;
    bool dense = t->routed->type == HUM_GEMM_DENSE;
    int64_t n = p->q->ref.n, rows = dense ? o->m : t->routed->rows;

    memset(call, 0, sizeof *call);
    call->layer = p->tensors.layer;
    call->compute = t->compute;
    call->tuning = o->tuning ? *o->tuning : t->tuning;
    call->weights = o->weights ? *o->weights : p->kernel_form;
    call->args = (struct hum_gemm_args){.layer = &call->layer,
                                        .compute = &call->compute,
                                        .tuning = &call->tuning,
                                        .inputs = tensor_rows(p->tensors.inputs, o->m),
                                        .input_scale = call_scales(t, o->m),
                                        .weights = &call->weights,
                                        .locks = make_locks(t, o, &call->tuning)};
    call->args.outputs = (struct hum_tensor){.dtype = call->layer.c_dtype,
                                             .rank = 2,
                                             .shape = {rows, n},
                                             .bytes = (size_t)(rows * n) * 2};
    call->args.inputs.data = call->args.input_scale.data = NULL;
    call_routing(t, &call->args);
}

bool trial_make_call(struct trial *t, const struct trial_options *o, struct trial_call *call)
{
    if (!make_routing(t, o))
        return false;
    make_call(t, o, call);
    return true;
}

/* ---- launches -------------------------------------------------------------------------------- */

bool trial_launch(struct trial *t, const struct trial_options *o, struct trial_out *out)
{
    struct slab s = {0};
    struct trial_call call;
    double start;

    trial_forget_launch(t);
    memset(out, 0, sizeof *out);
    if (!trial_make_call(t, o, &call) || !slab_make(t, o, &call, &s))
        return false;
    if (o->change)
        o->change(&call, o->context);
    trial_enter(t, STAGE_LAUNCH);
    start = clock_us();
    out->code = t->provider->forward(t->handle, call.without_args ? NULL : &call.args, out->reason);
    out->kernel_us = clock_us() - start;
    trial_enter(t, STAGE_JUDGE);
    if (out->code == HUM_DEVICE_LOST) /* and with it what the launch wrote */
        return true;
    return slab_look(t, &s, out);
}

bool trial_mix(const struct trial *t, const struct mix *b, struct arena *arena,
               struct mix_launch *l, struct trial_options *o, struct finding *f)
{
    if (!mix_to_launch(&t->shared->q->routing, b, ROW_NAN, arena, l)) {
        finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
        return false;
    }
    *o = trial_plain(l->m);
    o->rows = l->rows;
    o->routing = &l->routing;
    return true;
}

bool trial_run(struct trial *t, const struct trial_options *o, struct trial_out *out,
               struct finding *f)
{
    if (!trial_launch(t, o, out))
        return infra(t, f);
    if (out->code == HUM_OK && !out->damage[0])
        return true;
    if (out->damage[0])
        finding_give(f, VERDICT_FAIL, "%s", out->damage);
    else if (out->code == HUM_NO_MEMORY || out->code == HUM_DEVICE_LOST)
        finding_give(f, out->code == HUM_NO_MEMORY ? VERDICT_INFRA : VERDICT_FAIL,
                     "the launch failed: %s", out->reason);
    else
        finding_give(f, VERDICT_FAIL, "forward refused a supported configuration: %s", out->reason);
    return false;
}

bool trial_refuses(struct trial *t, const struct trial_options *o, bool unsupported,
                   const char *what, struct finding *f)
{
    struct trial_out out;
    const char *why;

    if (!trial_launch(t, o, &out))
        return infra(t, f);
    f->compared++;
    why = out.code == HUM_OK ? "forward accepted it"
          : out.damage[0]    ? out.damage
                             : refusal_fault(out.code, out.reason, unsupported);
    if (!why)
        return true;
    f->wrong++;
    finding_give(f, VERDICT_FAIL, "%s must be refused: %s", what, why);
    return false;
}
