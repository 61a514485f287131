#include "harness/cli/against.h"
#include "harness/cli/commands.h"
#include "harness/kernel/matrix.h"
#include "harness/report/table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { SHOWN = 8, LINE = 256 };

/* Places in matrix_axes. */
enum { A = 1, B = 2, C = 4, BS = 8, SCALE = 16, ZERO = 32, GEMM = 64, MMA = 128, ALL = 255 };

static const unsigned sets[] = {A,
                                B,
                                C,
                                BS,
                                SCALE,
                                ZERO,
                                GEMM,
                                MMA,
                                A | B,
                                A | B | SCALE,
                                A | C,
                                GEMM | A,
                                MMA | A,
                                A | B | ZERO,
                                A | B | C | BS,
                                A | B | C | BS | SCALE,
                                ALL};
enum { SET_COUNT = sizeof sets / sizeof sets[0] };

/* Cases that count as covering: all of the plan, those that a run has looked at, its passes. */
enum { PLANNED, RAN, PASSED, LEVELS };

struct coverage {
    const struct options *o;
    const struct plan *plan;
    struct arena *arena;
    struct matrix by[LEVELS];
    int levels;     /* that there are: one without records */
    size_t outside; /* cases of no combination */
};

static bool copy_matrix(const struct matrix *from, struct matrix *to)
{
    *to = *from;
    to->rows = ARENA_NEW(from->arena, from->count + 1, struct matrix_row);
    if (to->rows && from->count)
        memcpy(to->rows, from->rows, from->count * sizeof *to->rows);
    return to->rows;
}

static bool looked_at(enum verdict verdict)
{
    return verdict == VERDICT_PASS || verdict == VERDICT_FAIL || verdict == VERDICT_UNTRUSTED;
}

/* `was`: by case, or NULL without records. */
static void cover(struct coverage *k, const struct against_case *was)
{
    for (size_t i = 0; i < k->plan->count; i++) {
        const int64_t *v = k->plan->cases[i].v;

        k->outside += !matrix_cover(&k->by[PLANNED], v);
        if (was && was[i].there && looked_at(was[i].verdict))
            (void)matrix_cover(&k->by[RAN], v);
        if (was && was[i].there && was[i].verdict == VERDICT_PASS)
            (void)matrix_cover(&k->by[PASSED], v);
    }
}

static enum err_code read_records(struct coverage *k, struct errs *errs)
{
    struct against records;
    FILE *in = fopen(k->o->records, "r");
    enum err_code rc;

    if (!in)
        return errs_add(errs, ERR_IO, place_at(k->o->records, 0, 0), "cannot be read: %s",
                        strerror(errno));
    rc = against_take(in, k->o->records, k->plan, k->arena, &records, errs);
    (void)fclose(in);
    if (!rc)
        cover(k, records.cases);
    return rc;
}

/* ---- what is printed ------------------------------------------------------------------------- */

/* "a_dtype x b_dtype", or with a key "a_dtype=f16 b_dtype=uint4"; cut to LINE. */
static const char *name_set(unsigned places, const uint64_t *key, char *buf)
{
    char value[64];
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < MATRIX_AXES && used < LINE; i++) {
        const struct axis *x = &axes[matrix_axes[i]];
        const char *gap = used ? key ? " " : " x " : "";

        if (!(places >> i & 1))
            continue;
        if (key)
            used += (size_t)snprintf(buf + used, LINE - used, "%s%s=%s", gap, x->key,
                                     axis_format(x, matrix_value(*key, i), value, sizeof value));
        else
            used += (size_t)snprintf(buf + used, LINE - used, "%s%s", gap, x->key);
    }
    return places == ALL && !key ? "all together" : buf;
}

/* One row; false: no memory. */
static bool add_row(struct coverage *k, struct table *t, unsigned places, const char *name)
{
    const char *cells[2 + LEVELS] = {name};
    struct matrix_share share;

    for (int i = 0; i < k->levels; i++) {
        if (!matrix_count(&k->by[i], places, &share, NULL, NULL))
            return false;
        cells[1] = arena_printf(k->arena, "%zu", share.all);
        cells[2 + i] = arena_printf(k->arena, "%zu (%.1f %%)", share.covered,
                                    100.0 * (double)share.covered / (double)share.all);
        if (!cells[1] || !cells[2 + i])
            return false;
    }
    return table_add(t, cells);
}

static bool print_shares(struct coverage *k)
{
    static const char *const head[2 + LEVELS] = {"together", "there are", "planned", "ran",
                                                 "passed"};
    struct table t = {.arena = k->arena, .aligns = k->levels == 1 ? "lrr" : "lrrrr"};
    bool ok = table_add(&t, head);
    char name[LINE];

    for (int i = 0; ok && i < SET_COUNT; i++)
        ok = add_row(k, &t, sets[i], name_set(sets[i], NULL, name));
    table_print(&t, stdout);
    return ok;
}

struct value_count {
    int place;
    int64_t value;
    size_t covered, all;
};

static size_t count_value(const struct matrix *m, int place, int64_t value, size_t *all)
{
    size_t covered = 0;

    *all = 0;
    for (size_t i = 0; i < m->count; i++)
        if (matrix_value(m->rows[i].key, place) == value) {
            (*all)++;
            covered += m->rows[i].covered;
        }
    return covered;
}

/* Every value of every axis: combinations with it, and how many of them are covered. */
static bool print_values(const struct coverage *k)
{
    static const char *const head[] = {"value", "combinations", "covered"};
    const struct matrix *m = &k->by[k->levels - 1];
    struct table t = {.arena = k->arena, .aligns = "lrr"};
    bool ok = table_add(&t, head);
    char buf[64];

    for (int place = 0; ok && place < MATRIX_AXES; place++)
        for (int64_t value = 0; ok && value < 256; value++) {
            const struct axis *x = &axes[matrix_axes[place]];
            size_t all, covered = count_value(m, place, value, &all);
            const char *cells[] = {
                arena_printf(k->arena, "%s=%s", x->key, axis_format(x, value, buf, sizeof buf)),
                arena_printf(k->arena, "%zu", all),
                arena_printf(k->arena, "%zu (%.1f %%)", covered,
                             100.0 * (double)covered / (double)(all ? all : 1))};

            if (all)
                ok = cells[0] && cells[1] && cells[2] && table_add(&t, cells);
        }
    (void)printf("\n");
    table_print(&t, stdout);
    return ok;
}

struct losses {
    unsigned places;
    size_t count, limit;
};

static void print_loss(uint64_t key, void *context)
{
    struct losses *l = context;
    char name[LINE];

    if (l->count++ < l->limit)
        (void)printf("  %s\n", name_set(l->places, &key, name));
}

/* What no case covers, for each set but the whole; the first few of each unless --verbose. */
static bool print_missing(const struct coverage *k)
{
    const struct matrix *m = &k->by[k->levels - 1];
    struct matrix_share share;
    char name[LINE];

    for (int i = 0; i < SET_COUNT; i++) {
        struct losses l = {sets[i], 0, k->o->verbose ? m->count : SHOWN};

        if (sets[i] == ALL && !k->o->verbose)
            continue;
        if (!matrix_count(m, sets[i], &share, NULL, NULL))
            return false;
        if (share.covered == share.all)
            continue;
        (void)printf("\nmissing of %s: %zu\n", name_set(sets[i], NULL, name),
                     share.all - share.covered);
        if (!matrix_count(m, sets[i], &share, print_loss, &l))
            return false;
        if (l.count > l.limit)
            (void)printf("  and %zu more\n", l.count - l.limit);
    }
    return true;
}

static enum err_code show(struct coverage *k, struct errs *errs)
{
    (void)printf("compute capability %d.%d: %zu combinations; %zu cases, %zu of no combination\n",
                 k->by[PLANNED].sm / 10, k->by[PLANNED].sm % 10, k->by[PLANNED].count,
                 k->plan->count, k->outside);
    if (!print_shares(k) || (k->o->verbose && !print_values(k)) || !print_missing(k))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the table");
    return ERR_NONE;
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum err_code measure(struct coverage *k, struct errs *errs)
{
    if (!matrix_make((int)k->o->sm, k->arena, &k->by[PLANNED]) ||
        !copy_matrix(&k->by[PLANNED], &k->by[RAN]) || !copy_matrix(&k->by[PLANNED], &k->by[PASSED]))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the support matrix");
    if (!k->by[PLANNED].count)
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "--sm %" PRId64 ": no compute capability that runs anything; 90 is 9.0",
                        k->o->sm);
    k->levels = k->o->records ? LEVELS : 1;
    if (k->o->records)
        TRY(read_records(k, errs));
    else
        cover(k, NULL);
    return show(k, errs);
}

static int run_coverage(const struct options *o, struct arena *arena, struct errs *errs)
{
    struct plan plan;
    struct coverage k = {.o = o, .plan = &plan, .arena = arena};

    if (commands_plan(o, arena, &plan, errs) || measure(&k, errs))
        return commands_failed(errs);
    return 0;
}

/* clang-format off */
static const struct cli_option options[] = {
    COMMANDS_PLAN_OPTIONS,
    {"records", OPT_TEXT, OPTION_AT(records), "FILE", NULL, 0,
     "records of a run of these suites (--out jsonl:FILE): what ran and what passed, too"},
    {"sm", OPT_COUNT, OPTION_AT(sm), "N", "90", 200, "compute capability, 90 for 9.0"},
    {"verbose", OPT_FLAG, OPTION_AT(verbose), "", NULL, 0,
     "every value of every axis, and all that is missing"},
};
/* clang-format on */

const struct command command_coverage = {
    .name = "coverage",
    .operands = "SUITE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_coverage,
    .help = "say how much of the support matrix the cases of suites cover",
    .about = "The matrix is every combination of formats, weight scale type, zero point, gemm type "
             "and\n"
             "instruction that is legal (humcheck list rules) and that the compute capability "
             "runs.\n",
};
