#include "harness/kernel/experts_checks.h"

#include "harness/kernel/experts_contract.h"
#include "harness/kernel/experts_oracle.h"
#include "harness/kernel/output_hash.h"
#include "harness/kernel/words.h"

#include <math.h>
#include <string.h>

/* Share of the codes of a step that may be the commonest one, and that may be no number. Before
 * the end half of them may well be 0: an activation of what is negative, or small beside the
 * largest. */
static const double most_alike = 0.95, most_alike_at_end = 0.5, most_not_finite = 0.3;
enum { FEW = 16 }; /* results so small are not held to it */

static const char memory_out[] = "the check needs more memory than the limit of a worker";

/* ---- runs ------------------------------------------------------------------------------------ */

static struct run_options usual(const struct experts_trial *t, const struct batch *b)
{
    return (struct run_options){.batch = b,
                                .poison = 0xff,
                                .shared = true,
                                .result_in_shared = t->x->v[AX_OUTPUT_PLACE] == PLACE_WORKSPACE1};
}

static bool make_batch(struct experts_trial *t, const int64_t *tokens, int64_t m, struct batch *b,
                       struct finding *f)
{
    if (batch_make(t->x, tokens, m, t->arena, b))
        return true;
    finding_give(f, VERDICT_INFRA, "%s", memory_out);
    return false;
}

/* What every step has left in rows that mean something. */
static uint64_t hash_run(const struct run_out *run)
{
    uint64_t h = OUTPUT_HASH_NONE;

    for (int i = 0; i < STEP_COUNT; i++) {
        const struct step_data *s = &run->step[i];

        for (int64_t row = 0; row < s->rows; row++) {
            if (s->live && !s->live[row])
                continue;
            h = output_hash_bytes(h, s->codes + row * s->cols, (size_t)s->cols * sizeof *s->codes);
            if (s->scales)
                h = output_hash_bytes(h, s->scales + row, sizeof *s->scales);
        }
    }
    return h;
}

/* ---- comparing runs -------------------------------------------------------------------------- */

static void differ(const struct step_data *got, const struct step_data *want, int64_t row,
                   int64_t want_row, struct finding *f)
{
    for (int64_t j = 0; j < got->cols; j++) {
        uint32_t code = got->codes[row * got->cols + j];
        uint32_t other = want->codes[want_row * got->cols + j];

        f->compared++;
        if (code == other)
            continue;
        f->wrong++;
        if (f->at_row >= 0)
            continue;
        f->at_row = row;
        f->at_col = j;
        f->got_code = code;
        f->want_code = other;
        f->got = dtype_decode(got->t, code);
        f->want = dtype_decode(got->t, other);
        f->error = fabs(f->got - f->want);
    }
}

/* Every row of every step that means something, bit for bit. False: `f` says where. */
static bool same_runs(const struct run_out *got, const struct run_out *want, const char *what,
                      struct finding *f)
{
    for (int i = 0; i < STEP_COUNT; i++) {
        const struct step_data *a = &got->step[i], *b = &want->step[i];

        for (int64_t row = 0; row < a->rows; row++) {
            if (a->live && !a->live[row])
                continue;
            differ(a, b, row, row, f);
            f->wrong += a->scales && a->scales[row] != b->scales[row];
        }
        if (f->wrong) {
            finding_give(f, VERDICT_FAIL, "%s: %llu codes or scales differ %s",
                         experts_step_name((enum experts_step)i), (unsigned long long)f->wrong,
                         what);
            return false;
        }
    }
    return true;
}

/* A second run, compared with the first. */
static bool run_and_compare(struct experts_trial *t, const struct run_options *o,
                            const struct run_out *first, const char *what, struct finding *f)
{
    size_t mark = t->arena->used;
    struct run_out out;
    bool same = experts_run(t, o, &out, f) && same_runs(&out, first, what, f);

    t->arena->used = mark;
    return same;
}

/* ---- the checks ------------------------------------------------------------------------------ */

/* `first` is the case as it is, run once. */
struct checking {
    struct experts_trial *t;
    const struct batch *batch;
    const struct run_out *first;
    int threads;
};

static void check_exact(const struct checking *c, struct finding *f)
{
    const struct experts_oracle o = {
        .t = c->t, .b = c->batch, .run = c->first, .threads = c->threads, .arena = c->t->arena};

    experts_judge(&o, f);
}

static void check_alias(const struct checking *c, struct finding *f)
{
    static const struct {
        bool shared, result_in_shared;
        const char *what;
    } places[] = {
        {false, false, "where every buffer has a place of its own"},
        {true, false, "where the result has a place of its own"},
        {true, true, "where the result lies in workspace1"},
    };
    struct run_options o = usual(c->t, c->batch);

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        o.shared = places[i].shared;
        o.result_in_shared = places[i].result_in_shared;
        if (!run_and_compare(c->t, &o, c->first, places[i].what, f))
            return;
    }
}

static void check_guard(const struct checking *c, struct finding *f)
{
    static const uint8_t poisons[] = {0x00, 0x5a};
    struct run_options o = usual(c->t, c->batch);
    struct run_out out;
    struct batch empty;

    for (size_t i = 0; i < sizeof poisons; i++) {
        o.poison = poisons[i];
        if (!run_and_compare(c->t, &o, c->first, "with what was there before", f))
            return;
    }
    if (!make_batch(c->t, NULL, 0, &empty, f))
        return;
    o.batch = &empty;
    (void)experts_run(c->t, &o, &out, f);
}

static void check_deterministic(const struct checking *c, struct finding *f)
{
    const struct run_options o = usual(c->t, c->batch);

    for (int i = 0; i < 3; i++)
        if (!run_and_compare(c->t, &o, c->first, "from one run to the next", f))
            return;
}

/* ---- invariant ------------------------------------------------------------------------------- */

/* The row of a token's result. -1: it has none. */
static int64_t result_row(const struct experts *x, const struct batch *b, int64_t i)
{
    return experts_batched(x) ? b->row_of[i] : i;
}

/* Results of the tokens of `b` that are numbers, compared with those of the first run. */
static void same_tokens(const struct checking *c, const struct batch *b, const struct run_out *out,
                        struct finding *f)
{
    const struct experts *x = c->t->x;
    enum experts_step last = experts_last(x);

    for (int64_t i = 0; i < b->m; i++) {
        int64_t token = b->token[i];

        if (token >= 0 && result_row(x, b, i) >= 0)
            differ(&out->step[last], &c->first->step[last], result_row(x, b, i),
                   result_row(x, c->batch, token), f);
    }
}

static int64_t in_reverse(int64_t i, int64_t m)
{
    return m - 1 - i;
}
static int64_t every_third(int64_t i, int64_t m)
{
    return 3 * i < m ? 3 * i : m;
}
static int64_t odd_nan(int64_t i, int64_t m)
{
    return i == m ? m : i % 2 ? TOKEN_NAN(i) : i;
}
static int64_t even_nan(int64_t i, int64_t m)
{
    return i == m ? m : i % 2 ? i : TOKEN_NAN(i);
}
static int64_t one_alone(int64_t i, int64_t m)
{
    return i == 0 ? m / 2 : m;
}

/* Token number i of a batch; m: there are no more. */
static const struct {
    int64_t (*token)(int64_t i, int64_t m);
    const char *what;
} batches[] = {
    {in_reverse, "differ where the tokens come in reverse"},
    {every_third, "differ where only every third token is there"},
    {odd_nan, "differ where every second token is NaN"},
    {even_nan, "differ where every other second token is NaN"},
    {one_alone, "differ where a token is alone"},
};

static void check_invariant(const struct checking *c, struct finding *f)
{
    int64_t m = c->t->x->tokens;
    int64_t *tokens = arena_alloc(c->t->arena, (size_t)m, sizeof *tokens);
    size_t mark = c->t->arena->used;

    for (size_t i = 0; tokens && i < sizeof batches / sizeof batches[0]; i++) {
        struct run_options o;
        struct run_out out;
        struct batch b;
        int64_t count = 0;

        while (count < m && batches[i].token(count, m) != m) {
            tokens[count] = batches[i].token(count, m);
            count++;
        }
        if (!make_batch(c->t, tokens, count, &b, f))
            return;
        o = usual(c->t, &b);
        if (!experts_run(c->t, &o, &out, f))
            return;
        same_tokens(c, &b, &out, f);
        finding_judge(f, batches[i].what);
        c->t->arena->used = mark;
        if (f->verdict != VERDICT_PASS)
            return;
    }
    if (!tokens)
        finding_give(f, VERDICT_INFRA, "%s", memory_out);
}

/* ---- trust ----------------------------------------------------------------------------------- */

/* Codes of some rows (NULL: of all): how many are the one that more than half of them are, if there
 * is one, and how many are no numbers. */
static void look(const struct step_data *s, const bool *rows, int64_t *count, int64_t *alike,
                 int64_t *not_finite)
{
    int64_t votes = 0;
    uint32_t leader = 0;

    *count = *alike = *not_finite = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < s->rows * s->cols; i++) {
            if (rows && !rows[i / s->cols])
                continue;
            if (pass == 0) { /* a vote (Boyer and Moore) */
                leader = votes ? leader : s->codes[i];
                votes += s->codes[i] == leader ? 1 : -1;
                *count += 1;
                *not_finite += !isfinite(dtype_decode(s->t, s->codes[i]));
            } else {
                *alike += s->codes[i] == leader;
            }
        }
}

/* Tokens that have an expert: the sums of the others are +0. NULL: memory is out. */
static bool *summed(const struct checking *c)
{
    int64_t k = c->t->x->top_k;
    bool *rows = arena_zalloc(c->t->arena, (size_t)c->batch->m, sizeof *rows);

    for (int64_t i = 0; rows && i < c->batch->m * k; i++)
        rows[i / k] = rows[i / k] || c->batch->row_of[i] >= 0;
    return rows;
}

static void judge_trust(const struct checking *c, struct finding *f)
{
    const bool *sums = summed(c);

    for (int i = 0; i < STEP_COUNT; i++) {
        const char *name = experts_step_name((enum experts_step)i);
        bool end = (enum experts_step)i == experts_last(c->t->x);
        int64_t count, alike, not_finite;

        if (!c->first->step[i].there || i == STEP_ENTER)
            continue;
        look(&c->first->step[i], i == STEP_SUM ? sums : c->first->step[i].live, &count, &alike,
             &not_finite);
        if (count == 0)
            finding_give(f, VERDICT_UNTRUSTED, "%s: no row has an expert", name);
        else if (count >= FEW &&
                 !((double)alike <= (end ? most_alike_at_end : most_alike) * (double)count))
            finding_give(f, VERDICT_UNTRUSTED, "%s: %.0f%% of the results have one code", name,
                         100.0 * (double)alike / (double)count);
        else if (!((double)not_finite <= most_not_finite * (double)count))
            finding_give(f, VERDICT_UNTRUSTED, "%s: %.0f%% of the results are no numbers", name,
                         100.0 * (double)not_finite / (double)count);
        if (f->verdict != VERDICT_PASS)
            return;
    }
    if (!sums)
        finding_give(f, VERDICT_INFRA, "%s", memory_out);
    else if (f->compared == 0)
        finding_give(f, VERDICT_UNTRUSTED, "nothing was compared");
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    enum word_check check;
    void (*run)(const struct checking *c, struct finding *f);
} checks[] = {
    {CHECK_EXACT,         check_exact},
    {CHECK_ALIAS,         check_alias},
    {CHECK_GUARD,         check_guard},
    {CHECK_DETERMINISTIC, check_deterministic},
    {CHECK_INVARIANT,     check_invariant},
};
/* clang-format on */

void experts_check(struct experts_trial *t, int threads, struct finding *f)
{
    struct checking c = {.t = t, .threads = threads};
    struct run_options o;
    struct run_out first;
    struct batch all;

    if (t->x->v[AX_CHECK] == CHECK_CONTRACT) {
        experts_contract(t, f);
        return;
    }
    if (!make_batch(t, NULL, t->x->tokens, &all, f))
        return;
    o = usual(t, &all);
    if (!experts_run(t, &o, &first, f))
        return;
    t->hash = hash_run(&first);
    c.batch = &all;
    c.first = &first;
    t->hooks->stage(t->hooks->context, t->index, STAGE_JUDGE);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if ((int64_t)checks[i].check == t->x->v[AX_CHECK])
            checks[i].run(&c, f);
    if (f->verdict == VERDICT_PASS)
        judge_trust(&c, f);
}
