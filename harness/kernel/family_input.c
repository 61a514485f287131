/* process_input: activation, transform, quantization, layout (docs/semantics-ops.md 5 to 8).
 *
 * Where the activation is an elementary function its f32 results are the provider's own: a first
 * call has the activation alone (f32 to f32, judged within ACTIVATION_ULP of the correctly rounded
 * result), and what the call of the case must give follows from those bits, exactly.
 */
#include "harness/kernel/family_inputs.h"
#include "harness/kernel/input_call.h"
#include "harness/kernel/op_family.h"
#include "harness/kernel/semantics.h"
#include "harness/kernel/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Steps of f32 that an activation may lie from the correctly rounded result: the bound of f32
 * elementary functions. Rounded to 16 bits that is one code at most. */
enum { ACTIVATION_ULP = 2 };

enum { ROW_BITS = 64 }; /* shorter rows are alike by chance */

/* ---- the problem ----------------------------------------------------------------------------- */

static const char no_memory[] = "the case needs more memory than the limit of a worker";

static bool expect(struct input_own *own)
{
    const struct input_case *c = &own->c;
    float *values;

    if (!input_want_make(c, own->arena, own->want))
        return false;
    if (!input_case_is_exact(c)) {
        own->values =
            arena_zalloc(own->arena, (size_t)(c->quant.rows * c->quant.width), sizeof *own->values);
        return own->values != NULL;
    }
    values = input_case_activate(c, own->arena);
    return values && input_want_fill(c, values, own->arena, own->want);
}

static const char *make(const int64_t v[AX_COUNT], uint32_t rules, struct arena *arena,
                        struct op_problem *out)
{
    struct input_own *own = ARENA_NEW(arena, 1, struct input_own);
    struct op_call *calls = ARENA_NEW(arena, 2, struct op_call);
    const char *why;

    if (!own || !calls)
        return no_memory;
    own->arena = arena;
    own->want = ARENA_NEW(arena, 1, struct input_want);
    why = own->want ? input_case_make(v, arena, &own->c) : no_memory;
    if (why)
        return why;
    own->c.quant.by_side = semantics_has(rules, SEMANTICS_EXTREMES_BY_SIDE);
    own->c.quant.reciprocal_limit = semantics_has(rules, SEMANTICS_RECIPROCAL_LIMIT);
    own->c.quant.scales_up = semantics_has(rules, SEMANTICS_SCALES_ROUND_UP);
    own->c.quant.static_on_scale = semantics_has(rules, SEMANTICS_STATIC_ON_SCALE);
    own->c.quant.int4_saturates = semantics_has(rules, SEMANTICS_INT4_SATURATES);
    own->staged = !input_case_is_exact(&own->c);
    if (!expect(own))
        return no_memory;
    if (own->staged)
        input_call_activation(own, &calls[0]);
    if (!input_call_case(own, v, &calls[own->staged]))
        return no_memory;
    *out = (struct op_problem){.v = v, .calls = calls, .count = 1 + own->staged, .own = own};
    return NULL;
}

/* ---- judging --------------------------------------------------------------------------------- */

static void note_wrong(const struct op_part *p, int64_t at, uint32_t got,
                       const struct ref_near *near, struct finding *f)
{
    f->wrong++;
    if (f->at_row >= 0)
        return;
    f->at_row = at / p->width;
    f->at_col = at % p->width;
    f->got_code = got;
    f->want_code = dtype_encode(p->type, near->value, DTYPE_TO_TOP);
    f->got = dtype_decode(p->type, got);
    f->want = near->value;
    (void)snprintf(f->note, sizeof f->note, "first wrong: the activation");
}

/* One row of activations: `got` are the elements of p from `at` on. */
static void judge_row(const struct input_case *c, int64_t row, const struct op_part *p,
                      const uint8_t *got, int64_t at, struct ref_near *near, struct finding *f)
{
    ref_activation_row(&c->activation, c->x + row * c->width_in, c->width_in, near);
    for (int64_t i = 0; i < c->quant.width; i++) {
        uint32_t code = op_element(p, got, at + i);
        int64_t ulps = ref_near_ulps(&near[i], p->type, code);

        f->compared++;
        f->vacuous += isinf(near[i].error) != 0;
        f->error = !((double)ulps <= f->error) ? (double)ulps : f->error;
        if (!ref_near_holds(&near[i], p->type, ACTIVATION_ULP, code))
            note_wrong(p, at + i, code, &near[i], f);
    }
}

/* The number of the part called outputs. */
static int outputs_of(const struct op_call *call)
{
    int i = 0;

    while (strcmp(call->parts[i].name, "outputs") != 0)
        i++;
    return i;
}

/* Output rows against the activation of the input rows that they come from. */
static void judge_activation(const struct op_problem *p, int call, const struct op_out *out,
                             struct finding *f)
{
    const struct input_own *own = p->own;
    const struct input_case *c = &own->c;
    const int part = outputs_of(&p->calls[call]);
    const bool alone = own->staged && call == 0;
    const int64_t rows = alone ? c->quant.rows : c->layout.out_rows;
    struct ref_near *near = arena_alloc(own->arena, (size_t)c->quant.width, sizeof *near);

    if (!near) {
        finding_give(f, VERDICT_INFRA, "%s", no_memory);
        return;
    }
    f->limit = ACTIVATION_ULP;
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = alone ? i : c->source[i];

        if (row >= 0)
            judge_row(c, row, &p->calls[call].parts[part], out->got[part], i * c->quant.width, near,
                      f);
    }
}

static void keep_values(const struct op_problem *p, const struct op_out *out)
{
    const struct input_own *own = p->own;
    const size_t count = (size_t)(own->c.quant.rows * own->c.quant.width);

    if (count)
        memcpy(own->values, out->got[outputs_of(&p->calls[0])], count * sizeof *own->values);
}

static void judge(const struct op_problem *p, int call, const struct op_out *out, struct finding *f)
{
    const struct input_own *own = p->own;

    if (own->staged && call == 0) {
        judge_activation(p, call, out, f);
        keep_values(p, out);
        return;
    }
    if (p->v[AX_CHECK] == CHECK_ULP) {
        judge_activation(p, call, out, f);
        return;
    }
    if (own->staged && !input_want_fill(&own->c, own->values, own->arena, own->want))
        finding_give(f, VERDICT_INFRA, "%s", no_memory);
    else
        op_compare(&p->calls[call], out, f);
}

/* ---- trust ----------------------------------------------------------------------------------- */

/* Two scales that are required and differ; or there is only one, or none. */
static bool scales_differ(const uint32_t *scales, int64_t count)
{
    int64_t first = -1, seen = 0;

    for (int64_t i = 0; scales && i < count; i++) {
        if (scales[i] == OP_KEPT || scales[i] == REF_CODE_ANY)
            continue;
        seen++;
        first = first < 0 ? i : first;
        if (scales[i] != scales[first])
            return true;
    }
    return seen < 2;
}

/* Rows of codes that equal the row before although they come from another input row. */
static bool rows_repeat(const struct input_own *own)
{
    const int64_t *source = own->c.source, width = own->c.quant.width;
    const uint32_t *codes = own->want->codes;
    int64_t before = -1, rows = 0, alike = 0;

    for (int64_t i = 0; i < own->c.layout.out_rows; i++) {
        if (source[i] < 0 || (before >= 0 && source[i] == source[before]))
            continue;
        rows++;
        alike += before >= 0 &&
                 !memcmp(codes + i * width, codes + before * width, (size_t)width * sizeof *codes);
        before = i;
    }
    return width * own->c.quant.t->bits >= ROW_BITS && alike > 1 && alike * 10 > rows;
}

static const char *what_would_not_show(const struct op_problem *p)
{
    const struct input_own *own = p->own;
    const struct input_case *c = &own->c;
    const bool direct = c->activation.kind == REF_ACTIVATION_NONE && !c->hadamard;

    if (p->v[AX_CHECK] != CHECK_EXACT && p->v[AX_CHECK] != CHECK_EXHAUSTIVE)
        return NULL;
    if (direct && c->quant.mode != REF_INPUT_DISABLED && !own->want->ties)
        return "no value lies in the middle of two codes, so that a wrong rounding of ties would "
               "not show";
    if (!scales_differ(own->want->group_scales, ref_scale_count(&c->scales)))
        return "all group scales are alike, so that a scale of the wrong group would not show";
    if (!scales_differ(own->want->token_scales, c->layout.out_rows))
        return "all token scales are alike, so that a scale of the wrong row would not show";
    if (p->v[AX_CHECK] == CHECK_EXACT && rows_repeat(own))
        return "many rows of codes equal the row before, so that a wrong row would not show";
    return NULL;
}

static const char *trust(const struct op_problem *p, char *buf, size_t size)
{
    const char *what = what_would_not_show(p);

    if (!what)
        return NULL;
    (void)snprintf(buf, size, "%s", what);
    return buf;
}

void family_process_input(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                          size_t end, const struct runner_hooks *hooks)
{
    static const struct op_family family = {"process_input", make, judge, trust, true};

    (void)problem;
    op_family_run(&family, r, plan, begin, end, hooks);
}
