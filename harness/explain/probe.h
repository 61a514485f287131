/* probe.h - one launch as evidence: inputs, what a kernel returned, what it should have returned.
 *
 * An explanation looks at several: the failing case, and the same configuration with other data. A
 * family turns the axes of a case into a probe (explain.h); everything else is the same for all of
 * them.
 */
#ifndef HARNESS_EXPLAIN_PROBE_H
#define HARNESS_EXPLAIN_PROBE_H

#include "harness/config/axes.h"
#include "harness/core/arena.h"
#include "reference/quantize.h"

enum { PROBE_PARTS = 24, PROBE_WHAT = 64 };

/* In `want`: not looked at. */
#define PROBE_ANY REF_CODE_ANY

/* Neighbouring elements of a probe that are one tensor. */
struct probe_part {
    const char *name; /* "outputs" */
    int64_t first, count;
    int64_t width;            /* elements a row, at least 1 */
    const struct dtype *type; /* decodes an element, NaN are alike; NULL: whole numbers */
    bool zeros_alike;         /* zeros of either sign are the same */
};

struct probe {
    int64_t v[AX_COUNT];
    char what[PROBE_WHAT]; /* "the failing case", "fill P" */
    char note[160];        /* "", or what else the launch did: a sentence */
    struct probe_part parts[PROBE_PARTS];
    int part_count;
    int64_t count;   /* elements of all parts */
    uint32_t *got;   /* a code an element */
    uint32_t *want;  /* likewise, or PROBE_ANY; what was there before where nothing is written */
    const void *own; /* the family's: inputs, configuration */
    /* The frame's: which elements are wrong, ascending; and how many are compared. */
    int64_t *wrong;
    int64_t wrong_count, compared;
};

/* Adds a part behind the others; its elements are [first, first + count) of the probe. NULL: there
 * are PROBE_PARTS already. */
struct probe_part *probe_add(struct probe *p, const char *name, int64_t count, int64_t width,
                             const struct dtype *type);

const struct probe_part *probe_part_of(const struct probe *p, int64_t element);

/* Are these two codes of that element the same result? */
bool probe_same(const struct probe_part *part, uint32_t a, uint32_t b);

/* Fills the frame's members from got and want. False: memory is out. */
bool probe_judge(struct probe *p, struct arena *arena);

#endif
