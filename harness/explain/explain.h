/* explain.h - why a case fails: rerun, shrunk, located, compared with hypotheses.
 *
 * Runs in a process of its own, since kernels under test may crash; what is found out is said line
 * by line as soon as it is known. It changes no verdict.
 */
#ifndef HARNESS_EXPLAIN_EXPLAIN_H
#define HARNESS_EXPLAIN_EXPLAIN_H

#include "harness/explain/hypothesis.h"
#include "harness/kernel/family.h"

enum explain_topic {
    EXPLAIN_DOING, /* what is launched next, should it crash */
    EXPLAIN_RERUN, /* the verdict */
    EXPLAIN_SMALL, /* the smallest failing case */
    EXPLAIN_SUITE, /* a suite that holds it alone: YAML, several lines */
    EXPLAIN_WHERE, /* which elements are wrong */
    EXPLAIN_CAUSE, /* the mistake that gives the same bits; or several, or none */
    EXPLAIN_RULED, /* names of hypotheses that do not */
    EXPLAIN_NOTE,
    EXPLAIN_TOPICS
};
const char *explain_topic_name(enum explain_topic topic); /* one word */

struct explain_sink {
    void (*say)(void *context, enum explain_topic topic, const char *text);
    void *context;
};

struct explain {
    struct runner *runner; /* provider, handle, threads; its arenas are those of reruns */
    struct runner_hooks hooks;
    uint32_t rules;       /* of the provider (semantics.h): of the plan explained */
    struct record last;   /* of the last rerun */
    struct arena probes;  /* what lives as long as the explanation */
    struct arena scratch; /* of one prediction, one sentence */
    struct explain_sink sink;
    double deadline; /* clock_us */
};

enum { EXPLAIN_TEXT = 400 };

/* What a family has to offer. */
struct explain_family {
    /* Runs v (legal, resolved) once, plainly, and says what is right: parts, count, got, want, own,
     * in x->probes. False: `why` says what happened instead (refused, memory, no right answer). */
    bool (*run)(struct explain *x, const int64_t v[AX_COUNT], struct probe *out,
                char why[EXPLAIN_TEXT]);
    /* Axes for more data of the same configuration, number `turn` from 0, other seeds apart (those
     * the frame makes): `out` begins as those of the case; what is not legal is left out. False:
     * there are no more. NULL: none. */
    bool (*vary)(const int64_t v[AX_COUNT], int turn, int64_t out[AX_COUNT], char what[PROBE_WHAT]);
    /* Says where the first wrong probe is wrong (locate.h) and what others add to that. Memory:
     * the rest of x->scratch. */
    void (*locate)(struct explain *x, const struct probes *all);
    const struct hypotheses *const *hypotheses; /* tables, ended by NULL */
    /* The same with other sizes, to tell hypotheses apart that agree so far. NULL: none. */
    bool (*resize)(const int64_t v[AX_COUNT], int turn, int64_t out[AX_COUNT],
                   char what[PROBE_WHAT]);
};

/* By value of the axis `family`; NULL: its failures can be shrunk, not located. */
const struct explain_family *explain_family_of(int64_t family);

extern const struct explain_family explain_gemm; /* gemm.c */
/* ops_*.c */
extern const struct explain_family explain_quant_weight, explain_dequant_weight, explain_pack,
    explain_process_mxfp4, explain_process_input, explain_hadamard, explain_moe_sum,
    explain_experts;

/* Opens the provider and reserves memory; false: `errs` says why. To be closed either way. */
bool explain_open(struct explain *x, const struct hum_provider *provider, int threads,
                  size_t memory_limit, struct errs *errs);
void explain_close(struct explain *x);

struct explain_how {
    bool shrink;
    double seconds;
};

/* Explains case `index` of a plan; the verdict of its rerun is x->last. */
void explain_case(struct explain *x, const struct plan *plan, size_t index,
                  const struct explain_how *how);

/* ---- pieces ---------------------------------------------------------------------------------- */

void explain_say(struct explain *x, enum explain_topic topic, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs a case of these axes, alone, as `humcheck kernels` would; the record is x->last. */
void explain_rerun(struct explain *x, const int64_t v[AX_COUNT]);

/* shrink.c: makes v as small as it may be while the same check fails (until `deadline`); false:
 * nothing could be left out. */
bool explain_shrink(struct explain *x, int64_t v[AX_COUNT], double deadline);

/* A suite of one case, and its axes in one line, in `arena`. NULL: memory is out. */
const char *explain_suite(const int64_t v[AX_COUNT], struct arena *arena);
const char *explain_axes(const int64_t v[AX_COUNT], struct arena *arena);

#endif
