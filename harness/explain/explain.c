#include "harness/explain/explain.h"

#include "harness/core/clock.h"
#include "harness/kernel/legal.h"
#include "harness/kernel/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROBES_MAX = 28, OTHER_SEEDS = 2, MORE_SEEDS = 12 };

/* clang-format off */
static const struct explain_family *const families[] = { /* in the order of the axis' words */
    [FAMILY_GEMM]           = &explain_gemm,
    [FAMILY_QUANT_WEIGHT]   = &explain_quant_weight,
    [FAMILY_DEQUANT_WEIGHT] = &explain_dequant_weight,
    [FAMILY_PACK]           = &explain_pack,
    [FAMILY_PROCESS_MXFP4]  = &explain_process_mxfp4,
    [FAMILY_PROCESS_INPUT]  = &explain_process_input,
    [FAMILY_HADAMARD]       = &explain_hadamard,
    [FAMILY_MOE_SUM]        = &explain_moe_sum,
    [FAMILY_EXPERTS]        = &explain_experts,
};
/* clang-format on */

const struct explain_family *explain_family_of(int64_t family)
{
    return families[family];
}

const char *explain_topic_name(enum explain_topic topic)
{
    static const char *const names[EXPLAIN_TOPICS] = {"doing", "rerun", "smallest",  "suite",
                                                      "where", "cause", "ruled out", "note"};

    return names[topic];
}

void explain_say(struct explain *x, enum explain_topic topic, const char *fmt, ...)
{
    char text[4 * EXPLAIN_TEXT];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    x->sink.say(x->sink.context, topic, text);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_stage(void *context, size_t index, enum stage stage)
{
    (void)context;
    (void)index;
    (void)stage;
}

static void on_record(void *context, const struct record *r)
{
    ((struct explain *)context)->last = *r;
}

bool explain_open(struct explain *x, const struct hum_provider *provider, int threads,
                  size_t memory_limit, struct errs *errs)
{
    x->hooks = (struct runner_hooks){on_stage, on_record, x, NULL};
    if (!arena_init(&x->probes, memory_limit) || !arena_init(&x->scratch, memory_limit)) {
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for an explanation");
        return false;
    }
    x->runner = runner_open(provider, threads, memory_limit, errs);
    return x->runner != NULL;
}

void explain_close(struct explain *x)
{
    runner_close(x->runner);
    if (x->probes.base)
        arena_free(&x->probes);
    if (x->scratch.base)
        arena_free(&x->scratch);
}

/* ---- reruns ---------------------------------------------------------------------------------- */

void explain_rerun(struct explain *x, const int64_t v[AX_COUNT])
{
    static const struct suite suite = {.path = "explain.yaml", .name = "explain"};
    struct plan_case c = {.suite = &suite, .id = "explain/case"};
    struct plan_problem problem = {.first = 0, .count = 1, .m = v[AX_M]};
    struct plan plan = {
        .cases = &c, .count = 1, .problems = &problem, .problem_count = 1, .rules = x->rules};

    memcpy(c.v, v, sizeof c.v);
    runner_problem(x->runner, &plan, 0, 0, 1, &x->hooks);
}

/* As part of the plan it came from: the same launches in the same order. */
static void rerun_planned(struct explain *x, const struct plan *plan, size_t index)
{
    char where[RECORD_WHERE];

    explain_say(x, EXPLAIN_DOING, "the case as it is");
    runner_problem(x->runner, plan, plan->cases[index].problem, index, index + 1, &x->hooks);
    (void)record_where(&x->last, where, sizeof where);
    explain_say(x, EXPLAIN_RERUN, "%s%s%s%s%s", verdict_name(x->last.verdict),
                x->last.reason[0] ? ": " : "", x->last.reason, where[0] ? "; " : "", where);
}

/* ---- probes ---------------------------------------------------------------------------------- */

/* Launches v and keeps what came of it. False: `why` says why there is nothing to keep. */
static bool add_probe(struct explain *x, const struct explain_family *family,
                      const int64_t v[AX_COUNT], const char *what, struct probes *all,
                      char why[EXPLAIN_TEXT])
{
    struct probe *p = &all->items[all->count];
    size_t mark = x->probes.used;

    *p = (struct probe){.count = 0};
    (void)snprintf(p->what, sizeof p->what, "%s", what);
    explain_say(x, EXPLAIN_DOING, "%s", what);
    if (family->run(x, v, p, why) && probe_judge(p, &x->probes)) {
        all->count++;
        return true;
    }
    x->probes.used = mark;
    return false;
}

static bool is_left(const struct explain *x, const struct probes *all)
{
    return all->count < PROBES_MAX && clock_us() < x->deadline;
}

/* Seeds [from, to) behind the case's own. */
static void add_seeds(struct explain *x, const struct explain_family *family,
                      const int64_t v[AX_COUNT], int from, int to, struct probes *all)
{
    char what[PROBE_WHAT], why[EXPLAIN_TEXT];
    int64_t other[AX_COUNT];

    memcpy(other, v, sizeof other);
    for (int i = from; i < to && is_left(x, all); i++) {
        other[AX_SEED] = (int64_t)((uint64_t)v[AX_SEED] + (uint64_t)i);
        (void)snprintf(what, sizeof what, "seed 0x%" PRIx64, (uint64_t)other[AX_SEED]);
        (void)add_probe(x, family, other, what, all, why);
    }
}

static void add_variations(struct explain *x, const struct explain_family *family,
                           const int64_t v[AX_COUNT], struct probes *all)
{
    char what[PROBE_WHAT], why[EXPLAIN_TEXT];
    int64_t other[AX_COUNT];

    for (int turn = 0; family->vary && is_left(x, all); turn++) {
        memcpy(other, v, sizeof other);
        if (!family->vary(v, turn, other, what))
            return;
        if (!legal_broken(other))
            (void)add_probe(x, family, other, what, all, why);
    }
}

static int wrong_probes(const struct probes *all)
{
    int count = 0;

    for (int i = 0; i < all->count; i++)
        count += all->items[i].wrong_count > 0;
    return count;
}

/* A mistake that shows rarely: more data of the kind that shows it. */
static void add_more(struct explain *x, const struct explain_family *family, struct probes *all)
{
    const struct probe *p = all->items;
    int64_t v[AX_COUNT];

    while (p->wrong_count == 0)
        p++;
    memcpy(v, p->v, sizeof v);
    for (int i = 0; i < MORE_SEEDS && wrong_probes(all) < 2; i++)
        add_seeds(x, family, v, OTHER_SEEDS + 2 + i, OTHER_SEEDS + 3 + i, all);
}

/* The failing case, then other data for it. */
static void gather(struct explain *x, const struct explain_family *family,
                   const int64_t v[AX_COUNT], struct probes *all)
{
    char why[EXPLAIN_TEXT];

    if (!add_probe(x, family, v, "the failing case", all, why))
        explain_say(x, EXPLAIN_NOTE, "the failing case gives no output to compare: %s", why);
    if (all->count && all->items[0].note[0])
        explain_say(x, EXPLAIN_NOTE, "%s: %s", all->items[0].what, all->items[0].note);
    add_seeds(x, family, v, 1, OTHER_SEEDS + 1, all);
    add_variations(x, family, v, all);
    if (wrong_probes(all) == 1)
        add_more(x, family, all);
}

/* The first wrong probe once more: do equal launches give equal codes? */
static bool repeats(struct explain *x, const struct explain_family *family,
                    const struct probes *all)
{
    char why[EXPLAIN_TEXT];
    size_t mark = x->probes.used;
    struct probe again = {.count = 0};
    const struct probe *p = all->items;
    int64_t differ = 0;

    while (p->wrong_count == 0)
        p++;
    explain_say(x, EXPLAIN_DOING, "%s, again", p->what);
    if (!family->run(x, p->v, &again, why)) {
        explain_say(x, EXPLAIN_CAUSE, "%s, launched again: %s", p->what, why);
        return false;
    }
    for (int64_t i = 0; i < p->count; i++)
        differ += again.got[i] != p->got[i];
    x->probes.used = mark;
    if (differ)
        explain_say(x, EXPLAIN_CAUSE,
                    "not deterministic: %s, launched twice, differs in %" PRId64 " of %" PRId64
                    " elements; no single mistake is looked for",
                    p->what, differ, p->count);
    return differ == 0;
}

/* ---- conclusions ----------------------------------------------------------------------------- */

/* What came of the rows of all tables of a family. */
struct verdicts {
    const struct hypothesis **rows;
    struct hypothesis_result *results;
    int count, rank, holding, open;
    int held; /* the last that holds */
};

static bool collect(const struct explain_family *family, struct arena *arena, struct verdicts *v)
{
    int count = 0;

    for (int i = 0; family->hypotheses[i]; i++)
        count += family->hypotheses[i]->count;
    *v = (struct verdicts){.rows = ARENA_NEW(arena, count, const struct hypothesis *),
                           .results = ARENA_NEW(arena, count, struct hypothesis_result)};
    for (int i = 0; v->rows && family->hypotheses[i]; i++)
        for (int j = 0; j < family->hypotheses[i]->count; j++)
            v->rows[v->count++] = &family->hypotheses[i]->rows[j];
    return v->rows && v->results;
}

/* Is the row the first of its name with its fate? Several rows may be forms of one mistake. */
static bool is_first(const struct verdicts *v, int row)
{
    for (int i = 0; i < row; i++)
        if (v->results[i].fate == v->results[row].fate &&
            !strcmp(v->rows[i]->name, v->rows[row]->name))
            return false;
    return true;
}

/* Names, separated by commas, of the rows with a fate. */
static const char *names(const struct verdicts *v, enum hypothesis_fate fate, char *buf,
                         size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < v->count && used < size; i++)
        if (v->rows[i]->rank <= v->rank && v->results[i].fate == fate && is_first(v, i))
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
                                     v->rows[i]->name);
    return buf;
}

static void count_fates(struct verdicts *v)
{
    v->holding = v->open = 0;
    for (int i = 0; i < v->count; i++) {
        if (v->rows[i]->rank != v->rank)
            continue;
        v->open += v->results[i].fate == HYPOTHESIS_OPEN;
        if (v->results[i].fate != HYPOTHESIS_HOLDS || !is_first(v, i))
            continue;
        v->holding++;
        v->held = i;
    }
}

static void test_rank(struct explain *x, const struct probes *all, struct verdicts *v)
{
    for (int i = 0; i < v->count; i++)
        if (v->rows[i]->rank == v->rank)
            v->results[i] = hypothesis_test(v->rows[i], all, &x->scratch, x->deadline);
    count_fates(v);
}

/* Several hold: those that other sizes refute are dropped. */
static void separate(struct explain *x, const struct explain_family *family,
                     const int64_t v[AX_COUNT], struct verdicts *verdicts)
{
    struct probe items[2];
    char what[PROBE_WHAT], why[EXPLAIN_TEXT];
    int64_t other[AX_COUNT];

    for (int turn = 0; family->resize && verdicts->holding > 1; turn++) {
        struct probes few = {items, 0};
        size_t mark = x->probes.used;

        memset(items, 0, sizeof items);
        memcpy(other, v, sizeof other);
        if (clock_us() > x->deadline || !family->resize(v, turn, other, what))
            return;
        if (!legal_broken(other))
            (void)add_probe(x, family, other, what, &few, why);
        for (int i = 0; i < verdicts->count && few.count; i++) {
            struct hypothesis_result r;

            if (verdicts->results[i].fate != HYPOTHESIS_HOLDS)
                continue;
            r = hypothesis_test(verdicts->rows[i], &few, &x->scratch, x->deadline);
            if (r.fate == HYPOTHESIS_REFUTED)
                verdicts->results[i].fate = HYPOTHESIS_REFUTED;
        }
        count_fates(verdicts);
        x->probes.used = mark;
    }
}

static void name_cause(struct explain *x, const struct verdicts *v, const struct probes *all)
{
    const struct hypothesis *h = v->rows[v->held];
    const struct hypothesis_result *r = &v->results[v->held];
    char detail[HYPOTHESIS_DETAIL] = "";

    if (h->detail && r->variants_held == 1)
        h->detail(h, &all->items[0], r->variant, detail);
    explain_say(x, EXPLAIN_CAUSE, "%s: %s%s%s%s; bit for bit in %d launches, %d of them wrong",
                h->name, h->sentence, detail[0] ? " (" : "", detail, detail[0] ? ")" : "",
                all->count, wrong_probes(all));
}

static void conclude(struct explain *x, const struct verdicts *v, const struct probes *all)
{
    char list[4 * EXPLAIN_TEXT];

    if (v->open)
        explain_say(x, EXPLAIN_CAUSE, "not known: time was up before all hypotheses were tried");
    else if (v->holding == 1)
        name_cause(x, v, all);
    else if (v->holding > 1)
        explain_say(x, EXPLAIN_CAUSE,
                    "cannot be told apart: %s all give the same bits in %d launches",
                    names(v, HYPOTHESIS_HOLDS, list, sizeof list), all->count);
    else
        explain_say(x, EXPLAIN_CAUSE, "not known: no hypothesis gives these bits");
    if (names(v, HYPOTHESIS_REFUTED, list, sizeof list)[0])
        explain_say(x, EXPLAIN_RULED, "%s", list);
}

static void test_hypotheses(struct explain *x, const struct explain_family *family,
                            const int64_t axes_of[AX_COUNT], const struct probes *all)
{
    struct verdicts v;

    if (!collect(family, &x->probes, &v))
        return;
    test_rank(x, all, &v);
    if (!v.holding && !v.open) {
        v.rank = 1;
        test_rank(x, all, &v);
    }
    separate(x, family, axes_of, &v);
    conclude(x, &v, all);
}

/* No probe is wrong, or one: nothing may be named. */
static void too_few(struct explain *x, const struct probes *all, const char *check)
{
    if (wrong_probes(all) == 1)
        explain_say(x, EXPLAIN_CAUSE,
                    "not known: of %d kinds of data one gives a wrong output, which is not "
                    "enough to name a cause",
                    all->count);
    else if (all->count)
        explain_say(x, EXPLAIN_CAUSE,
                    "not known: plain launches with %d kinds of data are right; it shows only in "
                    "what the check %s does",
                    all->count, check);
    else
        explain_say(x, EXPLAIN_CAUSE, "not known: no launch gave an output to compare");
}

static void diagnose(struct explain *x, const int64_t v[AX_COUNT])
{
    const struct explain_family *family = explain_family_of(v[AX_FAMILY]);
    struct probes all = {ARENA_NEW(&x->probes, PROBES_MAX, struct probe), 0};

    if (!family || !all.items)
        return;
    gather(x, family, v, &all);
    arena_reset(&x->scratch);
    if (wrong_probes(&all) > 0)
        family->locate(x, &all);
    if (wrong_probes(&all) < 2)
        too_few(x, &all, axes[AX_CHECK].words[v[AX_CHECK]]);
    else if (repeats(x, family, &all))
        test_hypotheses(x, family, v, &all);
}

/* ---- everything ------------------------------------------------------------------------------ */

static void say_smallest(struct explain *x, const int64_t v[AX_COUNT])
{
    const char *text;

    arena_reset(&x->scratch);
    text = explain_axes(v, &x->scratch);
    if (text)
        explain_say(x, EXPLAIN_SMALL, "%s", text);
    text = explain_suite(v, &x->scratch);
    if (text)
        x->sink.say(x->sink.context, EXPLAIN_SUITE, text);
}

/* Multiply-adds (or elements) of a case beyond which its smallest form is looked at instead. */
static bool is_large(const int64_t v[AX_COUNT])
{
    double n = v[AX_N] > 1 ? (double)v[AX_N] : 1.0;

    return !((double)v[AX_M] * n * (double)v[AX_K] <= 0x1p27);
}

void explain_case(struct explain *x, const struct plan *plan, size_t index,
                  const struct explain_how *how)
{
    double start = clock_us(), budget = how->seconds * 1e6;
    int64_t v[AX_COUNT], small[AX_COUNT];
    struct record first;

    memcpy(v, plan->cases[index].v, sizeof v);
    memcpy(small, v, sizeof small);
    x->deadline = start + budget;
    x->rules = plan->rules;
    rerun_planned(x, plan, index);
    if (x->last.verdict != VERDICT_FAIL) {
        if (x->last.verdict == VERDICT_PASS)
            explain_say(x, EXPLAIN_NOTE,
                        "alone it does not fail: a fail would depend on launches before it, or on "
                        "chance");
        return;
    }
    first = x->last;
    if (how->shrink) {
        if (explain_shrink(x, small, start + 0.4 * budget))
            say_smallest(x, small);
        else
            explain_say(x, EXPLAIN_SMALL, "the case as it is: nothing can be left out");
    }
    diagnose(x, is_large(v) ? small : v);
    x->last = first;
}
