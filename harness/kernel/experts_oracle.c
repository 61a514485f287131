#include "harness/kernel/experts_oracle.h"

#include "harness/kernel/semantics.h"
#include "harness/kernel/words.h"
#include "reference/inputs.h"
#include "reference/weighted_sum.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of f32; an elementary function of a kernel is that near to the correctly rounded result. */
enum { ACTIVATION_ULP = 2 };

static const char memory_out[] = "the oracle needs more memory than the limit of a worker";

/* What must be there. */
struct want {
    struct step_data data;
    bool exact;            /* the codes are the only right ones */
    struct ref_near *near; /* of an elementary activation, a number an element */
    struct problem q;      /* of a GEMM */
};

/* ---- numbers and codes ----------------------------------------------------------------------- */

static bool is_live(const struct step_data *s, int64_t row)
{
    return !s->live || s->live[row];
}

/* Rows that mean nothing are 0. NULL: memory is out. */
static float *values_of(const struct step_data *s, struct arena *arena)
{
    float *x = arena_zalloc(arena, (size_t)(s->rows * s->cols), sizeof *x);

    for (int64_t i = 0; x && i < s->rows * s->cols; i++)
        if (is_live(s, i / s->cols))
            x[i] = (float)dtype_decode(s->t, s->codes[i]);
    return x;
}

static bool make_data(struct step_data *s, int64_t rows, int64_t cols, const struct dtype *t,
                      bool scaled, struct arena *arena)
{
    s->there = true;
    s->rows = rows;
    s->cols = cols;
    s->t = t;
    s->codes = arena_zalloc(arena, (size_t)(rows * cols), sizeof *s->codes);
    s->scales = scaled ? arena_zalloc(arena, (size_t)rows, sizeof *s->scales) : NULL;
    return s->codes && (s->scales || !scaled);
}

static bool make_tokens(const struct experts_oracle *o, struct step_data *s)
{
    const struct experts *x = o->t->x;

    memset(s, 0, sizeof *s);
    if (!make_data(s, o->b->m, x->hidden, x->c, false, o->arena))
        return false;
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        s->codes[i] = o->b->inputs[i];
    return true;
}

/* ---- quantized steps ------------------------------------------------------------------------- */

/* One scale a row, or as they are. */
static const char *quantize(const struct experts_oracle *o, const struct step_data *in,
                            struct step_data *out)
{
    bool scaled = experts_quantizes(o->t->x);
    struct ref_input q = {.mode = scaled ? REF_INPUT_DYNAMIC_TOKEN : REF_INPUT_DISABLED,
                          .t = o->t->x->a,
                          .rows = in->rows,
                          .width = in->cols,
                          .values = values_of(in, o->arena),
                          .by_side = semantics_has(o->t->rules, SEMANTICS_EXTREMES_BY_SIDE),
                          .reciprocal_limit =
                              semantics_has(o->t->rules, SEMANTICS_RECIPROCAL_LIMIT)};
    const char *why = ref_input_valid(&q);

    if (why)
        return why;
    if (!q.values || !make_data(out, in->rows, in->cols, q.t, scaled, o->arena))
        return memory_out;
    ref_input_quantize(&q, out->codes, NULL, out->scales);
    return NULL;
}

static const char *want_quantize(const struct experts_oracle *o, const struct step_data *in,
                                 struct want *w)
{
    w->exact = true;
    return quantize(o, in, &w->data);
}

/* Where an input row goes is asked of the oracle of the layouts. */
static const char *sources_of(const struct experts_oracle *o, int64_t *source)
{
    const struct experts *x = o->t->x;
    struct ref_layout layout = {.kind = REF_LAYOUT_NORMAL,
                                .in_rows = o->b->m,
                                .out_rows = o->b->entered,
                                .experts = x->experts,
                                .max_tokens = x->max_tokens};

    if (x->type == HUM_GEMM_GROUPED_CONTIGUOUS) {
        layout.kind = REF_LAYOUT_SCATTER;
        layout.indices = o->b->row_of;
        layout.index_width = x->top_k;
    }
    if (experts_batched(x)) {
        layout.kind = REF_LAYOUT_GROUPED_PADDED;
        layout.expert_layout = o->b->offsets;
    }
    return ref_layout_sources(&layout, source);
}

static const char *want_enter(const struct experts_oracle *o, const struct step_data *in,
                              struct want *w)
{
    int64_t *source = arena_alloc(o->arena, (size_t)o->b->entered, sizeof *source);
    struct step_data rows = {0};
    const char *why = source ? sources_of(o, source) : memory_out;

    if (!why)
        why = quantize(o, in, &rows);
    if (why)
        return why;
    if (!make_data(&w->data, o->b->entered, in->cols, rows.t, rows.scales, o->arena))
        return memory_out;
    w->exact = true;
    w->data.live = o->b->entered_live;
    for (int64_t i = 0; i < o->b->entered; i++) {
        if (source[i] < 0)
            continue;
        memcpy(w->data.codes + i * in->cols, rows.codes + source[i] * in->cols,
               (size_t)in->cols * sizeof *rows.codes);
        if (rows.scales)
            w->data.scales[i] = rows.scales[source[i]];
    }
    return NULL;
}

/* ---- the other steps ------------------------------------------------------------------------- */

static const char *want_activate(const struct experts_oracle *o, const struct step_data *in,
                                 struct want *w)
{
    const struct experts *x = o->t->x;
    float *values = values_of(in, o->arena);
    int64_t count = in->rows * x->inter;

    w->near = arena_alloc(o->arena, (size_t)count, sizeof *w->near);
    if (!values || !w->near || !make_data(&w->data, in->rows, x->inter, x->c, false, o->arena))
        return memory_out;
    w->exact = ref_activation_exact(&x->activation);
    w->data.live = o->b->live;
    for (int64_t i = 0; i < in->rows; i++)
        ref_activation_row(&x->activation, values + i * in->cols, in->cols, w->near + i * x->inter);
    for (int64_t i = 0; i < count; i++)
        w->data.codes[i] = isinf(w->near[i].error)
                               ? REF_CODE_ANY
                               : ref_input_convert(x->c, (float)w->near[i].value);
    return NULL;
}

static bool gemm_inputs(const struct step_data *in, struct arena *arena, struct ref_gemm *p)
{
    uint16_t *codes = arena_alloc(arena, (size_t)(in->rows * in->cols), sizeof *codes);
    float *scales = arena_alloc(arena, (size_t)in->rows, sizeof *scales);

    if (!codes || !scales)
        return false;
    for (int64_t i = 0; i < in->rows * in->cols; i++)
        codes[i] = (uint16_t)in->codes[i];
    if (in->scales)
        memcpy(scales, in->scales, (size_t)in->rows * sizeof *scales);
    p->m = in->rows;
    p->a_codes = codes;
    p->input_scale = in->scales ? scales : NULL;
    return true;
}

static const char *want_gemm(const struct experts_oracle *o, int layer, const struct step_data *in,
                             struct want *w)
{
    const struct experts_layer *l = &o->t->x->layer[layer];
    struct ref_gemm p = l->ref;
    const char *why;

    if (!gemm_inputs(in, o->arena, &p))
        return memory_out;
    p.block_on_operand = semantics_has(o->t->rules, SEMANTICS_BLOCK_ON_OPERAND);
    why = problem_of_codes(l->v, &p, &o->b->routing[layer], o->threads, o->arena, &w->q);
    if (why)
        return why;
    if (!make_data(&w->data, o->b->rows, p.n, p.c, false, o->arena))
        return memory_out;
    w->data.live = o->b->live;
    w->exact = !w->q.inexact && w->q.cols_count == p.n;
    for (int64_t i = 0; w->q.cols_count == p.n && i < o->b->rows * p.n; i++)
        if (o->b->live[i / p.n])
            w->data.codes[i] = w->q.want[i];
    return NULL;
}

static const char *want_gate_up(const struct experts_oracle *o, const struct step_data *in,
                                struct want *w)
{
    return want_gemm(o, LAYER_GATE_UP, in, w);
}

static const char *want_down(const struct experts_oracle *o, const struct step_data *in,
                             struct want *w)
{
    return want_gemm(o, LAYER_DOWN, in, w);
}

/* Slot by slot the row that it got. */
static const char *want_order(const struct experts_oracle *o, const struct step_data *in,
                              struct want *w)
{
    int64_t slots = o->b->m * o->t->x->top_k;
    bool *live = arena_alloc(o->arena, (size_t)slots, sizeof *live);

    if (!live || !make_data(&w->data, slots, in->cols, in->t, false, o->arena))
        return memory_out;
    w->exact = true;
    w->data.live = live;
    for (int64_t i = 0; i < slots; i++) {
        live[i] = o->b->row_of[i] >= 0;
        if (live[i])
            memcpy(w->data.codes + i * in->cols, in->codes + o->b->row_of[i] * in->cols,
                   (size_t)in->cols * sizeof *in->codes);
    }
    return NULL;
}

static const char *want_sum(const struct experts_oracle *o, const struct step_data *in,
                            struct want *w)
{
    const struct experts *x = o->t->x;
    struct ref_weighted_sum s = {.t = x->c,
                                 .tokens = o->b->m,
                                 .top_k = x->top_k,
                                 .width = x->hidden,
                                 .inputs = values_of(in, o->arena),
                                 .weights = o->b->weights,
                                 .topk_ids = o->b->ids,
                                 .fused = semantics_has(o->t->rules, SEMANTICS_FUSED_SUM)};

    if (!s.inputs || !make_data(&w->data, o->b->m, x->hidden, x->c, false, o->arena))
        return memory_out;
    w->exact = true;
    return ref_weighted_sum(&s, w->data.codes);
}

static const char *want_of(const struct experts_oracle *o, enum experts_step step,
                           const struct step_data *in, struct want *w)
{
    static const char *(*const steps[STEP_COUNT])(const struct experts_oracle *,
                                                  const struct step_data *, struct want *) = {
        want_enter, want_gate_up, want_activate, want_quantize, want_down, want_order, want_sum};

    memset(w, 0, sizeof *w);
    return steps[step](o, in, w);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void wrong(struct finding *f, const struct dtype *t, int64_t row, int64_t col, uint32_t got,
                  uint32_t want)
{
    f->wrong++;
    if (f->at_row >= 0)
        return;
    f->at_row = row;
    f->at_col = col;
    f->got_code = got;
    f->want_code = want;
    f->got = dtype_decode(t, got);
    f->want = dtype_decode(t, want);
    f->error = fabs(f->got - f->want);
}

static bool holds(const struct step_data *got, const struct want *w, int64_t i)
{
    if (w->near && !w->exact)
        return ref_near_holds(&w->near[i], got->t, ACTIVATION_ULP, got->codes[i]);
    return ref_code_holds(got->t, got->codes[i], w->data.codes[i]);
}

/* Everything but a GEMM: codes bit for bit, signs of zeros too. */
static void compare(const struct step_data *got, const struct want *w, struct finding *f)
{
    const struct dtype *f32 = dtype_find("f32");

    for (int64_t i = 0; i < got->rows * got->cols; i++) {
        int64_t row = i / got->cols;

        if (!is_live(got, row))
            continue;
        f->compared++;
        f->vacuous += w->data.codes[i] == REF_CODE_ANY;
        if (!holds(got, w, i))
            wrong(f, got->t, row, i % got->cols, got->codes[i], w->data.codes[i]);
    }
    if (!got->scales != !w->data.scales)
        f->wrong++;
    for (int64_t i = 0; got->scales && w->data.scales && i < got->rows; i++)
        if (is_live(got, i) && !ref_code_holds(f32, got->scales[i], w->data.scales[i]))
            wrong(f, f32, i, 0, got->scales[i], w->data.scales[i]);
    finding_judge(f, "differ from the only right code");
}

/* ---- a GEMM ---------------------------------------------------------------------------------- */

static void note(struct finding *f, enum experts_step step, const char *criterion)
{
    size_t used = strlen(f->note);

    (void)snprintf(f->note + used, sizeof f->note - used, "%s%s %s", used ? ", " : "",
                   experts_step_name(step), criterion);
}

/* The strictest criterion that these data allow. */
static void compare_gemm(const struct experts_oracle *o, enum experts_step step,
                         const struct step_data *got, const struct want *w, struct finding *f)
{
    static const enum word_check criteria[] = {CHECK_EXACT, CHECK_MODEL, CHECK_BOUND};
    int layer = step == STEP_GATE_UP ? LAYER_GATE_UP : LAYER_DOWN;
    uint16_t *codes = arena_alloc(o->arena, (size_t)(got->rows * got->cols), sizeof *codes);
    const struct launch launch = {.provider = o->t->provider,
                                  .handle = o->t->handle,
                                  .layer = &o->t->x->layer[layer].config,
                                  .compute = &o->t->compute,
                                  .tuning = &o->t->tuning[layer],
                                  .m = o->b->routing[layer].m,
                                  .routing = &o->run->routing[layer]};
    const struct check_in in = {
        .q = &w->q, .launch = &launch, .got = codes, .scratch = o->arena, .trial = NULL};
    const struct finding start = *f;

    if (!codes) {
        finding_give(f, VERDICT_INFRA, "%s", memory_out);
        return;
    }
    for (int64_t i = 0; i < got->rows * got->cols; i++)
        codes[i] = (uint16_t)got->codes[i];
    for (int i = w->q.inexact ? 1 : 0; i < 3; i++) {
        const struct check *check = check_of(criteria[i]);

        *f = start;
        check->run(&in, f);
        if (f->verdict != VERDICT_SKIP) {
            note(f, step, check->name);
            return;
        }
    }
    finding_give(f, VERDICT_UNTRUSTED, "sums round on these data, and their order is not known: %s",
                 w->q.inexact ? w->q.inexact : "");
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

/* A verdict of a step names it. */
static void name_step(enum experts_step step, struct finding *f)
{
    char reason[sizeof f->reason];

    memcpy(reason, f->reason, sizeof reason);
    finding_give(f, f->verdict, "%s: %s", experts_step_name(step), reason);
}

static bool judge_step(const struct experts_oracle *o, enum experts_step step,
                       const struct step_data *in, struct finding *f, bool *exact)
{
    const struct step_data *got = &o->run->step[step];
    struct want w;
    const char *why = want_of(o, step, in, &w);

    if (why)
        finding_give(f, VERDICT_INFRA, "%s", why);
    else if (step == STEP_GATE_UP || step == STEP_DOWN)
        compare_gemm(o, step, got, &w, f);
    else
        compare(got, &w, f);
    *exact = *exact && w.exact;
    if (f->verdict != VERDICT_PASS)
        name_step(step, f);
    return f->verdict == VERDICT_PASS;
}

const char *experts_chain(const struct experts_oracle *o, struct step_data *out)
{
    struct want w;

    if (!make_tokens(o, out))
        return memory_out;
    for (int i = 0; i < STEP_COUNT; i++) {
        const char *why;

        if (!experts_has(o->t->x, (enum experts_step)i))
            continue;
        why = want_of(o, (enum experts_step)i, out, &w);
        if (!why && w.q.ref.n && w.q.cols_count != w.q.ref.n)
            why = "the products are too large to be computed whole";
        if (why)
            return why;
        *out = w.data;
    }
    return NULL;
}

/* From the tokens to the result without a look at what the provider left in between. */
static void judge_end(const struct experts_oracle *o, struct finding *f)
{
    const struct step_data *got = &o->run->step[experts_last(o->t->x)];
    struct step_data in;
    const char *why = experts_chain(o, &in);

    if (why) {
        finding_give(f, VERDICT_INFRA, "%s", why);
        return;
    }
    for (int64_t i = 0; i < got->rows * got->cols; i++) {
        uint16_t code = (uint16_t)got->codes[i], want = (uint16_t)in.codes[i];

        if (!is_live(got, i / got->cols))
            continue;
        f->compared++;
        if (!finding_same(got->t, code, want))
            finding_code(f, got->t, i / got->cols, i % got->cols, code, want);
    }
    finding_judge(f, "differ from what the tokens come to, end to end");
}

void experts_judge(const struct experts_oracle *o, struct finding *f)
{
    size_t mark = o->arena->used;
    bool exact = true, fine = true;
    struct step_data tokens;

    if (!make_tokens(o, &tokens)) {
        finding_give(f, VERDICT_INFRA, "%s", memory_out);
        return;
    }
    for (int i = 0; i < STEP_COUNT && fine; i++) {
        enum experts_step step = (enum experts_step)i, before = experts_before(o->t->x, step);
        size_t step_mark = o->arena->used;

        if (experts_has(o->t->x, step))
            fine = judge_step(o, step, before == STEP_COUNT ? &tokens : &o->run->step[before], f,
                              &exact);
        o->arena->used = step_mark;
    }
    if (fine && exact) {
        judge_end(o, f);
        (void)snprintf(f->note, sizeof f->note, "exact end to end");
    }
    o->arena->used = mark;
}
