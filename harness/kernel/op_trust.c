#include "harness/kernel/op_trust.h"

#include "harness/kernel/words.h"
#include "reference/fault.h"

#include <stdio.h>
#include <string.h>

/* A fault that only shows in values that are all alike would be missed beyond these. */
static const double most_alike = 0.9;      /* share of one code among 16 outputs and more */
static const double most_rows_alike = 0.1; /* share of rows that equal the row before */
static const double most_vacuous = 0.1;    /* share of outputs of which nothing is required */
static const double most_vacuous_wide =
    0.6; /* the same of special values, and of every input there is */

enum { ROW_BITS = 64 }; /* shorter rows are alike by chance */

static bool counts(const struct op_part *p, int64_t i)
{
    return p->want[i] != OP_KEPT && p->want[i] != REF_CODE_ANY;
}

/* The commonest code by a vote (Boyer and Moore), then its share. */
static bool most_are_alike(const struct op_part *p)
{
    const int64_t count = op_part_count(p);
    uint64_t votes = 0, alike = 0, all = 0;
    uint32_t leader = 0;

    for (int64_t i = 0; i < count; i++) {
        if (!counts(p, i))
            continue;
        if (votes == 0)
            leader = p->want[i];
        votes += p->want[i] == leader ? 1 : (uint64_t)-1;
        all++;
    }
    for (int64_t i = 0; i < count; i++)
        alike += counts(p, i) && p->want[i] == leader;
    return all >= 16 && !((double)alike <= most_alike * (double)all);
}

static int64_t rows_of(const struct op_part *p)
{
    return op_part_is_written(p) && p->want && p->width ? op_part_count(p) / p->width : 0;
}

static bool row_repeats(const struct op_part *p, int64_t row)
{
    return memcmp(p->want + row * p->width, p->want + (row - 1) * p->width,
                  (size_t)p->width * sizeof *p->want) == 0;
}

/* Outputs with as many rows belong together: they are alike if all of them are. */
static bool rows_repeat(const struct op_call *c, int first)
{
    const int64_t rows = rows_of(&c->parts[first]);
    int64_t alike = 0;

    if (rows < 2 || c->parts[first].width * c->parts[first].bits < ROW_BITS)
        return false;
    for (int64_t row = 1; row < rows; row++) {
        bool repeats = true;

        for (int i = first; i < c->count && repeats; i++)
            repeats = rows_of(&c->parts[i]) != rows || row_repeats(&c->parts[i], row);
        alike += repeats;
    }
    return !((double)alike <= most_rows_alike * (double)(rows - 1));
}

static const char *call_refuses(const struct op_call *c, char *buf, size_t size)
{
    bool looked_at_rows = false;

    for (int i = 0; i < c->count; i++) {
        const struct op_part *p = &c->parts[i];
        const char *what = NULL;

        if (!op_part_is_written(p) || !p->want)
            continue;
        if (most_are_alike(p))
            what = "are alike: a kernel that ignores its inputs could pass";
        else if (!looked_at_rows && rows_repeat(c, i))
            what = "come in equal rows: a wrong row could pass";
        looked_at_rows = true;
        if (!what)
            continue;
        (void)snprintf(buf, size, "most of the expected %s of %s %s", p->name, c->name, what);
        return buf;
    }
    return NULL;
}

const char *op_trust_refuses(const struct op_family *family, const struct op_problem *p,
                             const struct finding *f, char *buf, size_t size)
{
    const bool special = p->v[AX_CHECK] == CHECK_SPECIAL;
    const bool wide = special || p->v[AX_CHECK] == CHECK_EXHAUSTIVE;
    const double limit = wide ? most_vacuous_wide : most_vacuous;
    const char *why = NULL;

    if (REF_FAULT(OP_TRUST_OFF))
        return NULL;
    if (f->compared == 0 && !REF_FAULT(COMPARE_EMPTY_PASSES))
        return "nothing was compared";
    if (!((double)f->vacuous <= limit * (double)f->compared)) {
        (void)snprintf(buf, size, "nothing is required of %.0f %% of the outputs",
                       100.0 * (double)f->vacuous / (double)f->compared);
        return buf;
    }
    if (!wide && !family->judge) /* where all there is occurs, much may be alike */
        for (int i = 0; i < p->count && !why; i++)
            why = call_refuses(&p->calls[i], buf, size);
    return why || !family->trust ? why : family->trust(p, buf, size);
}
