/* The checks, written once for all operations. Each looks at every call of the problem. */
#include "harness/kernel/op_contract.h"
#include "harness/kernel/op_family.h"
#include "harness/kernel/op_graph.h"
#include "harness/kernel/words.h"
#include "reference/fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { REPEATS = 8, WIDE_GAP = 4096 };

static const uint8_t other_poison = 0x5a; /* the first launch of a case has 0xff */

/* One call of the problem that is being checked. */
struct op_case {
    const struct op_family *family;
    const struct op_problem *p;
    int number;
    const struct op_call *call;
    struct op_trial *t;
    const uint8_t *kept[OP_PARTS]; /* outputs of the first launch */
    double kernel_us;
};

/* ---- the first launch ------------------------------------------------------------------------ */

static bool no_memory(struct finding *f)
{
    finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
    return false;
}

static bool keep_outputs(struct op_case *x, const struct op_out *out, struct finding *f)
{
    const uint8_t *bytes[OP_PARTS] = {0};
    size_t total = 0;
    uint8_t *to;

    for (int i = 0; i < x->call->count; i++)
        total += op_part_is_written(&x->call->parts[i]) ? x->call->parts[i].tensor.bytes : 0;
    to = arena_alloc(x->t->arena, total + 1, 1);
    if (!to)
        return no_memory(f);
    for (int i = 0; i < x->call->count; i++) {
        const struct op_part *part = &x->call->parts[i];

        if (!op_part_is_written(part) || !part->tensor.bytes)
            continue;
        memcpy(to, out->got[i], part->tensor.bytes);
        bytes[i] = to;
        to += part->tensor.bytes;
    }
    memcpy(x->kept, bytes, sizeof bytes);
    x->t->mark = x->t->arena->used;
    return true;
}

static bool first_launch(struct op_case *x, struct finding *f)
{
    const struct op_options plain = op_plain();
    struct op_out out;

    if (!op_run(x->t, x->call, &plain, &out, f))
        return false;
    op_hash(x->t, x->call, &out);
    x->kernel_us += out.kernel_us;
    return keep_outputs(x, &out, f);
}

/* ---- the same bytes -------------------------------------------------------------------------- */

static void note_difference(const struct op_part *p, int64_t index, uint32_t got, uint32_t want,
                            struct finding *f)
{
    const int64_t width = p->width ? p->width : op_part_count(p);

    f->wrong++;
    if (f->at_row >= 0)
        return;
    f->at_row = index / width;
    f->at_col = index % width;
    f->got_code = got;
    f->want_code = want;
    f->got = p->type ? dtype_decode(p->type, got) : (double)got;
    f->want = p->type ? dtype_decode(p->type, want) : (double)want;
    (void)snprintf(f->note, sizeof f->note, "first wrong: %s", p->name);
}

static void compare_bytes(const struct op_part *p, const uint8_t *got, const uint8_t *want,
                          struct finding *f)
{
    const int64_t count = op_part_count(p);

    f->compared += (uint64_t)count;
    if (p->tensor.bytes == 0 || memcmp(got, want, p->tensor.bytes) == 0)
        return;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t g = op_element(p, got, i), w = op_element(p, want, i);

        if (g != w && !op_part_is_open(p, i))
            note_difference(p, i, g, w, f);
    }
}

/* The outputs must be those of the first launch. False: `f` has the verdict. */
static bool are_kept(const struct op_case *x, const struct op_out *out, const char *what,
                     struct finding *f)
{
    const struct op_call *c = x->call;

    for (int i = 0; i < c->count; i++)
        if (x->kept[i])
            compare_bytes(&c->parts[i], out->got[i], x->kept[i], f);
    if (f->wrong == 0)
        return true;
    finding_give(f, VERDICT_FAIL, "%" PRIu64 " outputs of %s differ %s", f->wrong, c->name, what);
    return false;
}

static bool same_bytes(const struct op_case *x, const struct op_options *o, const char *what,
                       struct finding *f)
{
    struct op_out out;

    return op_run(x->t, x->call, o, &out, f) && are_kept(x, &out, what, f);
}

/* ---- exact, ulp, exhaustive, special --------------------------------------------------------- */

static void judge_call(const struct op_case *x, const struct op_out *out, struct finding *f)
{
    char what[100];

    if (x->family->judge)
        x->family->judge(x->p, x->number, out, f);
    else
        op_compare(x->call, out, f);
    (void)snprintf(what, sizeof what, "of %s differ from what is right", x->call->name);
    finding_judge(f, what);
}

static void check_values(struct op_case *x, struct finding *f)
{
    const struct op_options plain = op_plain();
    struct op_out out;

    if (!op_run(x->t, x->call, &plain, &out, f))
        return;
    op_hash(x->t, x->call, &out);
    x->kernel_us += out.kernel_us;
    judge_call(x, &out, f);
}

/* No rows: accepted, and nothing is written. */
static void check_empty(const struct op_family *family, const struct op_problem *p,
                        struct op_trial *t, struct finding *f)
{
    const struct op_options plain = op_plain();
    struct op_problem none;
    int64_t v[AX_COUNT];
    struct op_out out;
    const char *why;

    memcpy(v, p->v, sizeof v);
    v[AX_M] = 0;
    why = family->make(v, p->rules, t->arena, &none);
    t->mark = t->arena->used;
    if (why)
        finding_give(f, VERDICT_INFRA, "%s", why);
    for (int i = 0; !why && i < none.count; i++)
        if (!op_run(t, &none.calls[i], &plain, &out, f))
            return;
}

/* ---- guard ----------------------------------------------------------------------------------- */

static void check_guard(struct op_case *x, struct finding *f)
{
    struct op_options o = op_plain();

    if (!first_launch(x, f))
        return;
    o.gap = o.margin = WIDE_GAP;
    if (!same_bytes(x, &o, "from one launch to the next", f))
        return;
    o.poison = REF_FAULT(GUARD_ONE_POISON) ? o.poison : other_poison;
    o.moved = x->call->count - 1;
    o.to = 0;
    (void)same_bytes(x, &o,
                     "with what lay there before: they are not written, or something outside of "
                     "the tensors is read",
                     f);
}

/* ---- deterministic --------------------------------------------------------------------------- */

/* Calls of the same kind with other data, to come in between. */
static bool make_others(struct op_case *x, struct op_problem *others, int64_t *v, struct finding *f)
{
    const char *why;

    memcpy(v, x->p->v, AX_COUNT * sizeof *v);
    v[AX_SEED] ^= INT64_C(0x5eed);
    why = x->family->make(v, x->p->rules, x->t->arena, others);
    x->t->mark = x->t->arena->used;
    if (why)
        finding_give(f, VERDICT_INFRA, "%s", why);
    return !why;
}

static void check_deterministic(struct op_case *x, struct finding *f)
{
    struct op_options o = op_plain();
    struct op_problem others;
    int64_t v[AX_COUNT];
    struct op_out out;
    bool fine = first_launch(x, f) && make_others(x, &others, v, f);
    const int repeats = REF_FAULT(DETERMINISTIC_ONCE) ? 1 : REPEATS;

    for (int i = 0; fine && i < repeats; i++) {
        o.poison = i % 2 ? 0xff : other_poison;
        fine = (i < REPEATS / 2 ||
                op_run(x->t, &others.calls[x->number % others.count], &o, &out, f)) &&
               same_bytes(x, &o, "from one launch to the next", f);
    }
}

/* ---- graph ----------------------------------------------------------------------------------- */

static void replays(struct op_case *own, struct op_case *others, struct finding *f)
{
    const struct {
        struct op_case *x;
        bool keep;
        const char *what;
    } steps[] = {
        {own, false, "in a replay with other inputs than those that were recorded"},
        {others, true, "in the second replay"},
        {own, true, "in the third replay"},
    };
    struct op_options o = op_plain();
    struct op_recording recording;
    bool fine = op_capture(own->t, others->call, &recording, f);

    for (size_t i = 0; fine && i < sizeof steps / sizeof steps[0]; i++) {
        struct op_out out;

        o.poison = i % 2 ? 0xff : other_poison;
        fine = op_replay(own->t, steps[i].x->call, &o, steps[i].keep, &recording, &out, f) &&
               are_kept(steps[i].x, &out, steps[i].what, f);
    }
    op_drop(own->t);
}

/* A call recorded with the data of another seed and replayed with these, as graph.h has it. What a
 * replay must give is what a plain launch gave; that this is right, `exact` says. */
static void check_graph(struct op_case *x, struct finding *f)
{
    struct op_problem others;
    struct op_case y = *x;
    int64_t v[AX_COUNT];

    if (!first_launch(x, f))
        return;
    if (!x->t->provider->capture) {
        finding_give(f, VERDICT_SKIP, "provider %s cannot record launches", x->t->provider->name);
        return;
    }
    if (!make_others(x, &others, v, f))
        return;
    y.call = &others.calls[x->number];
    if (memcmp(y.call->args, x->call->args, x->call->args_size) != 0)
        finding_give(f, VERDICT_UNTRUSTED, "data of another seed have other sizes");
    else if (first_launch(&y, f))
        replays(x, &y, f);
}

/* ---- alias ----------------------------------------------------------------------------------- */

/* An output moved over another tensor. */
struct overlap {
    const struct op_part *output, *onto;
    enum overlap_place { AT_BEGIN, AT_END, OVER_BEGIN, PLACES } place;
};

static void move_output(struct op_call *call, const void *context)
{
    const struct overlap *x = context;
    struct hum_tensor onto = op_tensor_of(call, x->onto), output = op_tensor_of(call, x->output);
    uint8_t *data = onto.data;

    switch (x->place) {
    case AT_BEGIN:
        output.data = data;
        break;
    case AT_END: /* the last 64 bytes or fewer */
        output.data = data + (onto.bytes - 1) / 64 * 64;
        break;
    case OVER_BEGIN: /* the end of the output lies on the first bytes */
        output.data = data - (output.bytes - 1) / 64 * 64;
        break;
    case PLACES:
        break;
    }
    memcpy(call->args + x->output->at, &output, sizeof output);
}

static bool overlaps_refused(const struct op_case *x, const struct op_part *output,
                             struct finding *f)
{
    struct op_options o = op_plain();
    char what[100];

    o.margin += (output->tensor.bytes + 63) / 64 * 64; /* where the output may reach */
    o.change = move_output;
    for (int i = 0; i < x->call->count; i++)
        for (int place = AT_BEGIN; place < PLACES; place++) {
            struct overlap over = {output, &x->call->parts[i], (enum overlap_place)place};

            if (over.onto == output || !over.onto->tensor.bytes)
                continue;
            o.context = &over;
            (void)snprintf(what, sizeof what, "%s that overlaps %s", output->name, over.onto->name);
            if (!op_refuses(x->t, x->call, &o, false, what, f))
                return false;
        }
    return true;
}

/* Each output at each place among the other tensors, without gaps; then over each of them. */
static void check_alias(struct op_case *x, struct finding *f)
{
    struct op_options o = op_plain();

    if (!first_launch(x, f))
        return;
    o.gap = REF_FAULT(ALIAS_APART) ? o.gap : 0;
    o.poison = other_poison;
    for (o.moved = 0; o.moved < x->call->count; o.moved++) {
        const struct op_part *part = &x->call->parts[o.moved];

        if (!op_part_is_written(part) || !part->tensor.bytes)
            continue;
        for (o.to = 0; o.to < x->call->count; o.to++)
            if (!same_bytes(x, &o, "when outputs lie beside the other tensors", f))
                return;
        if (!overlaps_refused(x, part, f))
            return;
    }
}

/* ---- contract ------------------------------------------------------------------------------- */

static void check_contract(struct op_case *x, struct finding *f)
{
    const struct op_options plain = op_plain();

    if (first_launch(x, f) && op_contract_holds(x->t, x->call, f))
        (void)same_bytes(x, &plain, "after calls that were refused", f);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void not_of_operations(struct op_case *x, struct finding *f)
{
    finding_give(f, VERDICT_INFRA, "%s has no such check", x->call->name);
}

/* clang-format off */
static void (*const checks[])(struct op_case *x, struct finding *f) = {
    [CHECK_EXACT]         = check_values,
    [CHECK_READOUT]       = not_of_operations,
    [CHECK_BOUND]         = not_of_operations,
    [CHECK_ULP]           = check_values,
    [CHECK_MODEL]         = not_of_operations,
    [CHECK_INVARIANT]     = not_of_operations,
    [CHECK_DETERMINISTIC] = check_deterministic,
    [CHECK_ALIAS]         = check_alias,
    [CHECK_GUARD]         = check_guard,
    [CHECK_LOCKS]         = not_of_operations,
    [CHECK_SPECIAL]       = check_values,
    [CHECK_CONTRACT]      = check_contract,
    [CHECK_EXHAUSTIVE]    = check_values,
    [CHECK_GRAPH]         = check_graph,
};
/* clang-format on */

void op_check(const struct op_family *family, const struct op_problem *p, struct op_trial *t,
              struct finding *f, double *kernel_us)
{
    for (int i = 0; i < p->count && f->verdict == VERDICT_PASS; i++) {
        struct op_case x = {.family = family, .p = p, .number = i, .call = &p->calls[i], .t = t};
        const size_t mark = t->mark;

        checks[p->v[AX_CHECK]](&x, f);
        t->mark = mark; /* what the call kept is not needed any more */
        *kernel_us += x.kernel_us;
    }
    if (f->verdict == VERDICT_PASS && p->v[AX_CHECK] == CHECK_SPECIAL && family->empty)
        check_empty(family, p, t, f);
}
