/* What a trial of the pipeline needs before it runs: functions, tunings, kernel forms, buffers. */
#include "harness/kernel/experts_run.h"

#include "harness/kernel/layer.h"

#include <inttypes.h>
#include <string.h>

static const char *const buffer_names[HUM_BUFFER_COUNT] = {
    "quanted_gate_up_input", "gate_up_output", "activation_output",
    "quanted_down_input",    "down_output",    "output"};

static bool has_functions(const struct experts_trial *t, struct finding *f)
{
    const struct hum_ops *ops = t->provider->ops;
    const char *lacks = NULL;

    if (!ops || !ops->buffer_metas)
        lacks = "buffer_metas";
    else if (!ops->process_input)
        lacks = "process_input";
    else if (!experts_batched(t->x) && !ops->moe_fused_mul_sum)
        lacks = "moe_fused_mul_sum";
    if (lacks)
        finding_give(f, VERDICT_SKIP, "the provider has no %s", lacks);
    return !lacks;
}

/* A layer's tuning: the provider's own for that many rows of A. */
static bool choose_tuning(struct experts_trial *t, int layer, struct finding *f)
{
    const struct experts_layer *l = &t->x->layer[layer];
    struct hum_tuning_config base = {.num_stages = 2};
    char reason[HUM_REASON_BYTES] = "";
    const char *name = layer == LAYER_GATE_UP ? "gate_up" : "down";
    enum hum_code code;

    if (!t->provider->heuristics) {
        finding_give(f, VERDICT_SKIP, "the provider has no heuristics");
        return false;
    }
    code = t->provider->heuristics(t->handle, &l->config, &t->compute, l->v[AX_M], &base, reason);
    if (code == HUM_OK) {
        layer_tuning(l->v, &base, &t->tuning[layer]);
        code = t->provider->supports(t->handle, &l->config, &t->compute, &t->tuning[layer], reason);
    }
    if (code != HUM_OK)
        finding_give(f, code == HUM_UNSUPPORTED ? VERDICT_SKIP : VERDICT_FAIL, "%s: %s", name,
                     reason);
    return code == HUM_OK;
}

/* ---- kernel forms ---------------------------------------------------------------------------- */

static struct hum_tensor *tensor_of(struct hum_weights *w, int i)
{
    struct hum_tensor *all[] = {&w->weight, &w->weight_scale, &w->zero_point, &w->weight_scale_2,
                                &w->bias};

    return all[i];
}

/* The standard form uploaded, transformed and read back. */
static bool transform(struct experts_trial *t, int layer, struct device *d, struct finding *f)
{
    struct hum_weights standard = t->x->layer[layer].standard, on = standard, out;
    const struct hum_layer_config *config = &t->x->layer[layer].config;
    char reason[HUM_REASON_BYTES] = "";

    for (int i = 0; i < 5; i++)
        if (!device_upload(d, tensor_of(&standard, i), tensor_of(&on, i)))
            return false;
    if (t->provider->transform_shapes(t->handle, config, &out, reason) != HUM_OK) {
        finding_give(f, VERDICT_FAIL, "transform_shapes refused a supported layer: %s", reason);
        return true;
    }
    for (int i = 0; i < 5; i++)
        if (!device_alloc(d, tensor_of(&out, i)))
            return false;
    if (t->provider->transform(t->handle, config, &on, &out, reason) != HUM_OK) {
        finding_give(f, VERDICT_FAIL, "transform refused a supported layer: %s", reason);
        return true;
    }
    t->kernel_form[layer] = out;
    for (int i = 0; i < 5; i++) {
        struct hum_tensor *host = tensor_of(&t->kernel_form[layer], i);

        if (!host->bytes)
            continue;
        host->data = device_host(d, host->bytes);
        if (!host->data || !device_read(d, host->data, tensor_of(&out, i)->data, host->bytes))
            return false;
    }
    return true;
}

static bool make_kernel_forms(struct experts_trial *t, struct arena *arena, struct finding *f)
{
    struct device d = {.provider = t->provider, .handle = t->handle, .arena = arena};
    bool fine = true;

    for (int layer = 0; layer < LAYER_COUNT && fine && f->verdict == VERDICT_PASS; layer++)
        fine = transform(t, layer, &d, f);
    device_release(&d, 0);
    if (!fine)
        finding_give(f, VERDICT_INFRA, "%s", d.reason);
    return f->verdict == VERDICT_PASS;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* False: `got` is not what the contract says. Of a buffer that is not needed only bytes count. */
static bool same_buffer(const char *name, const struct hum_buffer_meta *got,
                        const struct ref_buffer *want, struct finding *f)
{
    const struct {
        const char *what;
        int64_t got, want;
    } fields[] = {
        {"bytes", (int64_t)got->bytes, (int64_t)want->bytes},
        {"rows", got->rows, want->rows},
        {"columns", got->cols, want->cols},
        {"format", got->dtype, want->t ? dtype_id(want->t) : 0},
        {"workspace", got->workspace, want->workspace},
    };
    size_t count = want->t ? sizeof fields / sizeof fields[0] : 1;

    for (size_t i = 0; i < count; i++)
        if (fields[i].got != fields[i].want) {
            finding_give(f, VERDICT_FAIL,
                         "buffer_metas: %s of %s is %" PRId64 ", expected %" PRId64, fields[i].what,
                         name, fields[i].got, fields[i].want);
            return false;
        }
    return true;
}

bool experts_metas(const struct experts_trial *t, int64_t m, int64_t dispatchers,
                   struct hum_buffer_meta out[HUM_BUFFER_COUNT], struct finding *f)
{
    struct ref_buffer want[REF_BUFFER_COUNT];
    struct hum_experts_config config;
    char reason[HUM_REASON_BYTES] = "";
    struct ref_experts ref;
    const char *why;

    experts_config(t->x, m, &config);
    experts_reference(t->x, m, &ref);
    config.dispatchers = ref.dispatchers = dispatchers;
    why = ref_buffers(&ref, want);
    if (why) {
        finding_give(f, VERDICT_INFRA, "the oracle refuses the buffers: %s", why);
        return false;
    }
    memset(out, 0xff, HUM_BUFFER_COUNT * sizeof *out);
    if (t->provider->ops->buffer_metas(t->handle, &config, out, reason) != HUM_OK) {
        finding_give(f, VERDICT_FAIL, "buffer_metas refused layers that fit: %s", reason);
        return false;
    }
    for (int i = 0; i < HUM_BUFFER_COUNT; i++)
        if (!same_buffer(buffer_names[i], &out[i], &want[i], f))
            return false;
    return true;
}

bool experts_open(struct experts_trial *t, struct arena *arena, struct finding *f)
{
    layer_compute(t->x->layer[LAYER_GATE_UP].v, &t->compute);
    t->hooks->stage(t->hooks->context, t->index, STAGE_LAUNCH);
    if (!has_functions(t, f) || !experts_metas(t, t->x->capacity, 1, t->metas, f))
        return false;
    for (int layer = 0; layer < LAYER_COUNT; layer++)
        if (!choose_tuning(t, layer, f))
            return false;
    return make_kernel_forms(t, arena, f);
}
