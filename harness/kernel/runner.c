#include "harness/kernel/runner.h"

#include "harness/core/clock.h"
#include "harness/kernel/check_info.h"
#include "harness/kernel/checks.h"
#include "harness/kernel/device.h"
#include "harness/kernel/trust.h"
#include "reference/blas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct runner {
    const struct hum_provider *provider;
    void *handle;
    int threads;
    struct arena problem, scratch; /* of one problem, of one case */
};

/* Everything the cases of one problem share on the provider's side. */
struct prepared {
    const struct problem *q;
    struct problem_tensors tensors;
    struct device device;
    struct hum_tensor inputs, input_scale, locks;
    struct hum_weights kernel_form;
    struct fenced output; /* of the largest m */
    bool ready;
    const char *why; /* not ready: the oracle's side, infra */
};

/* ---- life ------------------------------------------------------------------------------------------------- */

struct runner *runner_open(const struct hum_provider *provider, int threads, size_t memory_limit,
                           struct errs *errs)
{
    struct runner *r = calloc(1, sizeof *r);
    char reason[HUM_REASON_BYTES] = "";

    if (!r || !arena_init(&r->problem, memory_limit) ||
        !arena_init(&r->scratch, memory_limit / 4)) {
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a worker");
        runner_close(r);
        return NULL;
    }
    r->threads = threads;
    ref_blas_init();
    if (!ref_blas_self_test(reason, sizeof reason)) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE,
                       "the BLAS is wrong on this machine, nothing may be judged by it: %s",
                       reason);
        runner_close(r);
        return NULL;
    }
    if (provider->open(threads, &r->handle, reason) != HUM_OK) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "provider %s cannot be opened: %s", provider->name,
                       reason);
        runner_close(r);
        return NULL;
    }
    r->provider = provider;
    return r;
}

void runner_close(struct runner *r)
{
    if (!r)
        return;
    if (r->provider)
        r->provider->close(r->handle);
    if (r->problem.base)
        arena_free(&r->problem);
    if (r->scratch.base)
        arena_free(&r->scratch);
    free(r);
}

/* ---- records ------------------------------------------------------------------------------------------------ */

static const char *word(enum axis_id id, const int64_t v[AX_COUNT])
{
    return v[id] >= 0 && axes[id].words ? axes[id].words[v[id]] : "auto";
}

void runner_record(const struct plan *plan, size_t case_index, const struct hum_provider *provider,
                   struct record *out)
{
    const struct plan_case *c = &plan->cases[case_index];

    memset(out, 0, sizeof *out);
    out->index = case_index;
    out->seed = (uint64_t)c->v[AX_SEED];
    out->at_row = out->at_col = -1;
    (void)snprintf(out->suite, sizeof out->suite, "%s", c->suite->name);
    (void)snprintf(out->id, sizeof out->id, "%s", c->id);
    (void)snprintf(out->provider, sizeof out->provider, "%s %s", provider->name, provider->version);
    (void)snprintf(out->family, sizeof out->family, "%s", word(AX_FAMILY, c->v));
    (void)snprintf(out->check, sizeof out->check, "%s", word(AX_CHECK, c->v));
    (void)snprintf(out->fill, sizeof out->fill, "%s", word(AX_FILL, c->v));
    (void)snprintf(out->repro, sizeof out->repro,
                   "humcheck kernels %s --provider %s --filter '%s' --seed 0x%llx", c->suite->path,
                   provider->name, c->id, (unsigned long long)out->seed);
    (void)snprintf(out->unit, sizeof out->unit, "%s", check_of(c->v[AX_CHECK])->unit);
}

static void give(struct record *r, enum verdict v, const char *what, const char *why)
{
    r->verdict = v;
    (void)snprintf(r->reason, sizeof r->reason, "%s%s%s", what, *what && *why ? ": " : "", why);
}

static void take_finding(struct record *r, const struct finding *f)
{
    r->verdict = f->verdict;
    (void)snprintf(r->reason, sizeof r->reason, "%s", f->reason);
    r->compared = f->compared;
    r->wrong = f->wrong;
    r->at_row = f->at_row;
    r->at_col = f->at_col;
    r->got = f->got;
    r->want = f->want;
    r->got_code = f->got_code;
    r->want_code = f->want_code;
    r->error = f->error;
    r->limit = f->limit;
}

/* ---- one launch ----------------------------------------------------------------------------------------------- */

/* Kernel form of the weights and device copies of everything; false with a finding in `r`. */
static bool transform(struct runner *run, struct prepared *p, struct record *r)
{
    struct hum_tensor *parts[] = {&p->kernel_form.weight, &p->kernel_form.weight_scale,
                                  &p->kernel_form.zero_point, &p->kernel_form.weight_scale_2,
                                  &p->kernel_form.bias};
    struct hum_weights standard;
    const struct hum_weights *host = &p->tensors.standard;
    struct device *d = &p->device;
    char reason[HUM_REASON_BYTES] = "";

    if (!device_upload(d, &host->weight, &standard.weight) ||
        !device_upload(d, &host->weight_scale, &standard.weight_scale) ||
        !device_upload(d, &host->zero_point, &standard.zero_point) ||
        !device_upload(d, &host->weight_scale_2, &standard.weight_scale_2) ||
        !device_upload(d, &host->bias, &standard.bias) ||
        !device_upload(d, &p->tensors.inputs, &p->inputs) ||
        !device_upload(d, &p->tensors.input_scale, &p->input_scale)) {
        give(r, VERDICT_INFRA, "", d->reason);
        return false;
    }
    if (run->provider->transform_shapes(run->handle, &p->tensors.layer, &p->kernel_form, reason) !=
        HUM_OK) {
        give(r, VERDICT_FAIL, "transform_shapes refused a supported layer", reason);
        return false;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!device_alloc(d, parts[i])) {
            give(r, VERDICT_INFRA, "", d->reason);
            return false;
        }
    if (run->provider->transform(run->handle, &p->tensors.layer, &standard, &p->kernel_form,
                                 reason) != HUM_OK) {
        give(r, VERDICT_FAIL, "transform refused a supported layer", reason);
        return false;
    }
    p->ready = true;
    return true;
}

/* The case's tuning, from what it states or from the provider; false with a finding. */
static bool choose_tuning(struct runner *run, const struct prepared *p, const int64_t v[AX_COUNT],
                          const struct hum_compute_config *compute, struct hum_tuning_config *out,
                          struct record *r)
{
    struct hum_tuning_config base = {.num_stages = 2,
                                     .num_ctas_per_sm = 1,
                                     .num_write_splits = 1,
                                     .multi_cast_size_a = 1,
                                     .multi_cast_size_b = 1,
                                     .raster_group_m = 1};
    char reason[HUM_REASON_BYTES] = "";
    enum hum_code rc = HUM_OK;

    if (!layer_states_tile(v)) {
        if (!run->provider->heuristics) {
            give(r, VERDICT_SKIP, "", "the provider has no heuristics and the case states no tile");
            return false;
        }
        rc = run->provider->heuristics(run->handle, &p->tensors.layer, compute, v[AX_M], &base,
                                       reason);
    }
    if (rc != HUM_OK) {
        give(r, rc == HUM_UNSUPPORTED ? VERDICT_SKIP : VERDICT_FAIL, "heuristics", reason);
        return false;
    }
    layer_tuning(v, &base, out);
    rc = run->provider->supports(run->handle, &p->tensors.layer, compute, out, reason);
    if (rc == HUM_OK)
        return true;
    if (rc == HUM_UNSUPPORTED)
        give(r, VERDICT_SKIP, "", reason);
    else
        give(r, VERDICT_FAIL, "the provider calls a legal configuration invalid", reason);
    return false;
}

static void describe(const struct hum_tuning_config *t, struct record *r)
{
    (void)snprintf(r->kernel, sizeof r->kernel, "block %dx%dx%d warp %dx%dx%d%s", t->block_m,
                   t->block_n, t->block_k, t->warp_m, t->warp_n, t->warp_k,
                   t->use_stream_k ? " stream-k" : "");
}

static bool make_locks(struct prepared *p, const struct hum_tuning_config *t, int64_t m)
{
    int64_t tiles = ((m + t->block_m - 1) / t->block_m) *
                    ((p->tensors.layer.shape_n + t->block_n - 1) / t->block_n);
    int64_t count = tiles > 1024 ? tiles : 1024; /* upstream's callers allocate 1024 */
    struct hum_tensor host = {
        .dtype = HUM_INT32, .rank = 1, .shape = {count}, .bytes = (size_t)count * 4};

    host.data = arena_zalloc(p->device.arena, (size_t)count, 4);
    return host.data && device_upload(&p->device, &host, &p->locks);
}

/* Runs the kernel; false with a finding. The output is then in p->output.host. */
static bool launch(struct runner *run, struct prepared *p, const struct launch *l, struct record *r)
{
    struct hum_tensor out = p->output.tensor;
    struct hum_gemm_args args = {.layer = l->layer,
                                 .compute = l->compute,
                                 .tuning = l->tuning,
                                 .inputs = tensor_rows(p->inputs, l->m),
                                 .input_scale = tensor_rows(p->input_scale, l->m),
                                 .weights = &p->kernel_form,
                                 .locks = p->locks,
                                 .top_k = 1};
    char reason[HUM_REASON_BYTES] = "";
    double start = clock_us();
    enum hum_code rc;

    out.dtype = l->layer->c_dtype;
    out.rank = 2;
    out.shape[0] = l->m;
    out.shape[1] = p->q->ref.n;
    args.outputs = out;
    rc = run->provider->forward(run->handle, &args, reason);
    r->kernel_us = clock_us() - start;
    if (rc == HUM_OK)
        return true;
    if (rc == HUM_NO_MEMORY || rc == HUM_DEVICE_LOST)
        give(r, rc == HUM_NO_MEMORY ? VERDICT_INFRA : VERDICT_FAIL, "the launch failed", reason);
    else
        give(r, VERDICT_FAIL, "forward refused a supported configuration", reason);
    return false;
}

/* ---- one case ---------------------------------------------------------------------------------------------------- */

static void judge(struct runner *run, struct prepared *p, const struct launch *l,
                  const struct plan_case *c, struct record *r)
{
    struct check_in in = {p->q, l, NULL, &run->scratch};
    struct finding f = {.at_row = -1, .at_col = -1};
    bool broken = false;
    char text[HUM_REASON_BYTES];
    const char *why;
    double start = clock_us();

    if (!device_collect(&p->device, &p->output, &broken)) {
        give(r, VERDICT_FAIL, "the output cannot be read back after the launch", p->device.reason);
        return;
    }
    in.got = (const uint16_t *)(const void *)(p->output.host + DEVICE_FENCE);
    check_of(c->v[AX_CHECK])->run(&in, &f);
    if (f.verdict == VERDICT_PASS) {
        why = trust_refuses(&in, &f, text, sizeof text);
        if (why)
            finding_give(&f, VERDICT_UNTRUSTED, "%s", why);
    }
    if (broken)
        finding_give(&f, VERDICT_FAIL, "the kernel wrote outside its output");
    take_finding(r, &f);
    r->compare_us = clock_us() - start;
}

/* The output buffer ends where the case's output ends, so that its fence stands right behind it. */
static bool make_output(struct prepared *p, int64_t m)
{
    return device_fenced(&p->device, (size_t)(m * p->q->ref.n) * 2, &p->output) &&
           device_poison(&p->device, &p->output);
}

static void run_case(struct runner *run, struct prepared *p, const struct plan_case *c,
                     size_t index, const struct runner_hooks *hooks, struct record *r)
{
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    struct launch l = {run->provider, run->handle, &p->tensors.layer,
                       &compute,      &tuning,     c->v[AX_M]};
    struct hum_tensor locks = {0};

    r->outputs = (uint64_t)(c->v[AX_M] * c->v[AX_N]);
    if (p->why) {
        give(r, VERDICT_INFRA, "", p->why);
        return;
    }
    layer_config(c->v, &p->tensors.layer);
    layer_compute(c->v, &compute);
    hooks->stage(hooks->context, index, STAGE_LAUNCH);
    if (!choose_tuning(run, p, c->v, &compute, &tuning, r) || (!p->ready && !transform(run, p, r)))
        return;
    describe(&tuning, r);
    p->locks = locks;
    if (!make_output(p, l.m) || (tuning.use_stream_k && !make_locks(p, &tuning, l.m))) {
        give(r, VERDICT_INFRA, "", p->device.reason);
        return;
    }
    if (!launch(run, p, &l, r))
        return;
    hooks->stage(hooks->context, index, STAGE_JUDGE);
    judge(run, p, &l, c, r);
}

static void prepare(struct runner *run, const struct plan *plan, size_t problem, struct problem *q,
                    struct prepared *p)
{
    const struct plan_problem *pp = &plan->problems[problem];
    const int64_t *v = plan->cases[pp->first].v;

    arena_reset(&run->problem);
    run->problem.peak = 0;
    memset(p, 0, sizeof *p);
    p->q = q;
    p->device =
        (struct device){.provider = run->provider, .handle = run->handle, .arena = &run->problem};
    p->why = problem_make(v, pp->m, run->threads, &run->problem, q);
    if (!p->why)
        p->why = problem_tensors_make(q, &run->problem, &p->tensors);
}

void runner_problem(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                    size_t end, const struct runner_hooks *hooks)
{
    struct problem q;
    struct prepared p;

    hooks->stage(hooks->context, begin, STAGE_PREPARE);
    prepare(r, plan, problem, &q, &p);
    for (size_t i = begin; i < end; i++) {
        struct record rec;
        size_t mark = r->problem.used;
        int held = p.device.held_count;
        bool was_ready = p.ready;

        if (i > begin)
            hooks->stage(hooks->context, i, STAGE_PREPARE);
        arena_reset(&r->scratch);
        r->scratch.peak = 0;
        runner_record(plan, i, r->provider, &rec);
        run_case(r, &p, &plan->cases[i], i, hooks, &rec);
        rec.fill_us = i == begin ? q.fill_us : 0.0;
        rec.reference_us = i == begin ? q.reference_us : 0.0;
        rec.memory_bytes = r->problem.peak + r->scratch.peak;
        hooks->record(hooks->context, &rec);
        if (p.ready == was_ready) { /* give back the output and locks of this case */
            r->problem.used = mark;
            device_release(&p.device, held);
        }
    }
    device_release(&p.device, 0);
}
