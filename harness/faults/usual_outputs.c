/* The outputs of one launch, as numbers, beside what they should be. */
#include "harness/faults/usual.h"

#include "harness/kernel/experts_oracle.h"
#include "harness/kernel/input_call.h"
#include "harness/kernel/op_family.h"
#include "harness/kernel/trial.h"
#include "harness/kernel/words.h"
#include "reference/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char memory_out[] = "the check needs more memory than the limit of a worker";

/* Multiply-adds of the reference. */
#define BUDGET 0x1p28

static void refused(struct usual_outcome *out, const char *reason)
{
    (void)snprintf(out->reason, sizeof out->reason, "%s", reason);
    out->ran = true;
    for (int i = 0; i < USUAL_CHECKS; i++)
        out->failed[i] = true;
}

/* ---- products -------------------------------------------------------------------------------- */

/* The rows that are written, expert after expert. */
struct rows {
    int64_t *out, *a; /* their numbers, and their rows of A */
    int64_t *begin;   /* experts + 1: where those of an expert begin */
    double *lo, *hi, *exact;
};

static bool rows_make(struct rows *r, const struct problem *q, int64_t count, struct arena *arena)
{
    int64_t experts = ref_experts(&q->ref), at = 0;
    size_t m = (size_t)count + 1;

    r->out = arena_alloc(arena, m, sizeof *r->out);
    r->a = arena_alloc(arena, m, sizeof *r->a);
    r->begin = arena_zalloc(arena, (size_t)experts + 2, sizeof *r->begin);
    r->lo = arena_alloc(arena, m, sizeof *r->lo);
    r->hi = arena_alloc(arena, m, sizeof *r->hi);
    r->exact = arena_alloc(arena, m, sizeof *r->exact);
    if (!r->out || !r->a || !r->begin || !r->lo || !r->hi || !r->exact)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (problem_writes(q, i))
            r->begin[q->routing.row_expert[i] + 2]++;
    for (int64_t e = 0; e < experts; e++)
        r->begin[e + 2] += r->begin[e + 1];
    for (int64_t i = 0; i < count; i++) {
        if (!problem_writes(q, i))
            continue;
        at = r->begin[q->routing.row_expert[i] + 1]++;
        r->out[at] = i;
        r->a[at] = q->routing.row_a[i];
    }
    return true;
}

/* Numbers of one product, got and wanted. */
struct numbers {
    double *got, *want;
    int64_t count;
};

static void take_column(const struct problem *q, const struct rows *r, int64_t expert, int64_t j,
                        const uint16_t *codes, struct numbers *n)
{
    int64_t first = r->begin[expert], count = r->begin[expert + 1] - first;
    const struct ref_bound b = {.p = &q->ref,
                                .a = q->a,
                                .rows = r->a + first,
                                .row_count = count,
                                .s_int = q->s_int,
                                .int_factor = q->int_factor};
    int64_t row = r->out[first];

    ref_bound_column(&b, problem_col(q, row, j), q->w + problem_w_at(q, row, j), r->lo, r->hi,
                     r->exact);
    for (int64_t i = 0; i < count; i++) {
        n->got[n->count] = dtype_decode(q->ref.c, codes[r->out[first + i] * q->ref.n + q->cols[j]]);
        n->want[n->count++] = r->exact[i];
    }
}

/* The power of two that brings the wanted numbers to the size that normal activations and weights
 * give, whose products over k sum to sqrt(k): an absolute tolerance means something only there, and
 * the unit of our scales is arbitrary. 1 where they are all 0, or one is no number. */
static double unit_of(const struct numbers *n, int64_t k)
{
    double sum = 0.0, factor;

    for (int64_t i = 0; i < n->count; i++)
        sum += n->want[i] * n->want[i];
    factor = sqrt((double)k * (double)n->count / sum);
    return isfinite(factor) && factor > 0.0 ? exp2(nearbyint(log2(factor))) : 1.0;
}

static void judge_numbers(const struct numbers *n, int64_t k, struct usual_outcome *out)
{
    struct usual_sums sums = {0};
    double unit = unit_of(n, k);

    for (int64_t i = 0; i < n->count; i++)
        usual_add(&sums, n->got[i] * unit, n->want[i] * unit);
    out->ran = true;
    usual_judge(&sums, out);
}

static void compare_product(const struct problem *q, int64_t rows, const uint16_t *codes,
                            struct arena *arena, struct usual_outcome *out, struct finding *f)
{
    double columns = BUDGET / ((double)rows * (double)q->ref.k + 1.0);
    int64_t step = (int64_t)((double)q->cols_count / fmax(columns, 8.0)) + 1;
    size_t most = (size_t)(rows * (q->cols_count / step + 1));
    struct numbers n = {.got = arena_alloc(arena, most, sizeof(double)),
                        .want = arena_alloc(arena, most, sizeof(double))};
    struct rows r;

    if (!n.got || !n.want || !rows_make(&r, q, rows, arena)) {
        finding_give(f, VERDICT_INFRA, "%s", memory_out);
        return;
    }
    for (int64_t j = (q->cols_count - 1) % step; j < q->cols_count; j += step)
        for (int64_t e = 0; e < ref_experts(&q->ref); e++)
            if (r.begin[e + 1] > r.begin[e])
                take_column(q, &r, e, j, codes, &n);
    judge_numbers(&n, q->ref.k, out);
}

static void on_gemm(void *context, struct trial *t, struct arena *scratch, struct finding *f)
{
    struct usual_outcome *out = context;
    const struct problem *q = t->shared->q;
    const struct trial_options plain = trial_plain(t->v[AX_M]);
    struct trial_out got;

    if (!trial_launch(t, &plain, &got))
        finding_give(f, VERDICT_INFRA, "%s", t->shared->device.reason);
    else if (got.code != HUM_OK)
        refused(out, got.reason);
    else
        compare_product(q, problem_rows(q, t->v[AX_M]), got.codes, scratch, out, f);
}

/* ---- operations ------------------------------------------------------------------------------ */

static double number_of(const struct op_part *p, uint32_t code)
{
    if (p->type)
        return dtype_decode(p->type, code);
    return p->bits == 32 ? (double)(int32_t)code : (double)code;
}

/* One output of a call. `values`: what is wanted as numbers, instead of p->want. Where a NaN is
 * wanted, no test of numbers looks. */
static void compare_part(const struct op_part *p, const uint8_t *got, const float *values,
                         struct usual_outcome *out)
{
    const int64_t count = op_part_count(p);
    struct usual_sums sums = {0};

    for (int64_t i = 0; i < count; i++) {
        const uint32_t code = p->want ? p->want[i] : 0;
        const double want = values ? (double)values[i] : number_of(p, code);

        if (isnan(want) || (!values && (code == OP_KEPT || code == REF_CODE_ANY)))
            continue;
        usual_add(&sums, number_of(p, op_element(p, got, i)), want);
    }
    usual_judge(&sums, out);
}

static void compare_call(const struct op_call *c, const struct op_out *got, const float *values,
                         struct usual_outcome *out)
{
    for (int i = 0; i < c->count; i++)
        if (op_part_is_written(&c->parts[i]) && (c->parts[i].want || values))
            compare_part(&c->parts[i], got->got[i], values, out);
}

/* process_input: the true activations, rounded to f32, and what follows from them, where the
 * family's own expectation starts from the provider's. False: memory is out. */
static bool expect_inputs(const struct op_problem *p, struct arena *arena, float **activations)
{
    const struct input_own *own = p->own;
    const struct input_case *c = &own->c;
    int64_t width = c->quant.width, count = c->quant.rows * width;
    struct ref_near *near = arena_alloc(arena, (size_t)width, sizeof *near);
    float *values = arena_alloc(arena, (size_t)count, sizeof *values);

    *activations = arena_alloc(arena, (size_t)count, sizeof **activations);
    if (!near || !values || !*activations)
        return false;
    for (int64_t row = 0; row < c->quant.rows; row++) {
        ref_activation_row(&c->activation, c->x + row * c->width_in, c->width_in, near);
        for (int64_t i = 0; i < width; i++)
            values[row * width + i] = (float)near[i].value;
    }
    memcpy(*activations, values, (size_t)count * sizeof *values);
    return input_want_fill(c, values, arena, own->want);
}

static void on_op(void *context, const struct op_family *family, const struct op_problem *p,
                  struct op_trial *t, struct finding *f)
{
    const struct op_options plain = op_plain();
    struct usual_outcome *out = context;
    float *activations = NULL;

    (void)family;
    if (p->v[AX_FAMILY] == FAMILY_PROCESS_INPUT && ((const struct input_own *)p->own)->staged &&
        !expect_inputs(p, t->arena, &activations)) {
        finding_give(f, VERDICT_INFRA, "%s", memory_out);
        return;
    }
    t->mark = t->arena->used; /* launches come after what was expected */
    for (int i = 0; i < p->count; i++) {
        struct op_out got = {.code = HUM_INVALID};
        bool fine = op_run(t, &p->calls[i], &plain, &got, f);

        if (!fine && !(got.code == HUM_OK && got.damage[0]))
            return;
        *f = (struct finding){.at_row = -1, .at_col = -1}; /* damage is not looked at */
        compare_call(&p->calls[i], &got, i == 0 ? activations : NULL, out);
    }
    out->ran = true;
}

/* ---- the experts pipeline -------------------------------------------------------------------- */

static void compare_ends(const struct step_data *got, const struct step_data *want,
                         struct usual_outcome *out)
{
    struct usual_sums sums = {0};

    for (int64_t i = 0; i < got->rows * got->cols; i++)
        if ((!got->live || got->live[i / got->cols]) && want->codes[i] != REF_CODE_ANY)
            usual_add(&sums, dtype_decode(got->t, got->codes[i]),
                      dtype_decode(want->t, want->codes[i]));
    out->ran = true;
    usual_judge(&sums, out);
}

static void compare_run(const struct experts_oracle *o, struct usual_outcome *out,
                        struct finding *f)
{
    struct step_data want;
    const char *why = experts_chain(o, &want);

    if (why)
        finding_give(f, VERDICT_INFRA, "%s", why);
    else
        compare_ends(&o->run->step[experts_last(o->t->x)], &want, out);
}

static void on_experts(void *context, struct experts_trial *t, int threads, struct finding *f)
{
    struct usual_outcome *out = context;
    struct run_options how = {
        .poison = 0xff,
        .shared = true,
        .result_in_shared = t->x->v[AX_OUTPUT_PLACE] == PLACE_WORKSPACE1,
    };
    struct run_out got;
    struct batch all;
    const struct experts_oracle o = {
        .t = t, .b = &all, .run = &got, .threads = threads, .arena = t->arena};

    how.batch = &all;
    if (!batch_make(t->x, NULL, t->x->tokens, t->arena, &all))
        finding_give(f, VERDICT_INFRA, "%s", memory_out);
    else if (experts_run(t, &how, &got, f))
        compare_run(&o, out, f);
    else if (f->verdict == VERDICT_FAIL && !got.refused)
        finding_give(f, VERDICT_SKIP, "the run ended early, at what only guards see");
}

struct case_hook usual_hook(struct usual_outcome *out)
{
    return (struct case_hook){.gemm = on_gemm, .op = on_op, .experts = on_experts, .context = out};
}
