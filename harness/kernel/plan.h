/* plan.h - entries become cases: expanded, resolved, filtered, sharded, grouped into problems and
 * counted.
 *
 * Expansion takes each entry's axes through `combine` and drops what `where` or the legality table
 * (legal.h) excludes; "auto" of the axes of a problem is resolved here (c_dtype, fill, ...), so
 * that a case is complete; rules and `where` see the resolved values. Cases that share all axes of
 * the problem (of dense products m apart: a smaller m is a prefix) are neighbours, across entries
 * and suites: the reference is computed once for them. Order: problems by first appearance, then
 * cases in the order written. A case's id is "suite/entry/key=value,..." with the axes that the
 * entry gives more than one value, as written ("auto" stays "auto"); without such axes
 * "suite/entry". Ids are unique in a plan.
 */
#ifndef HARNESS_KERNEL_PLAN_H
#define HARNESS_KERNEL_PLAN_H

#include "harness/config/suite.h"

struct plan_case {
    const struct suite *suite;
    const struct entry *entry;
    const char *id;
    int64_t v[AX_COUNT];
    size_t problem; /* index into plan.problems */
};

struct plan_problem {
    size_t first, count; /* cases [first, first + count) */
    int64_t m;           /* the largest of its cases */
};

struct plan_options {
    const char *provider;  /* as the user named it, for repro lines; NULL: its own name */
    const char *semantics; /* the file of --semantics, for repro lines; NULL: not given */
    const char *filter;    /* glob over the id (* ? [..]; a * also matches /), NULL: all */
    int shard, shards;     /* I of N, from 1; 1 of 1: all. Problems, not cases, are dealt out */
    bool has_seed;
    uint64_t seed; /* replaces the suites' seeds: of inputs and of pairwise and random entries */
};

struct plan {
    struct plan_options options; /* what it was made with; texts are borrowed */
    struct plan_case *cases;
    size_t count;
    struct plan_problem *problems;
    size_t problem_count;
    /* Of `full` entries, before filter and shard; a combination that breaks several rules counts
     * once. (The other ways to combine search for what is allowed and drop nothing.) */
    size_t illegal;  /* combinations dropped by the legality table */
    size_t excluded; /* by where */
    size_t gaps;     /* pairs of `pairwise` entries that the search left undecided; normally 0 */
    uint32_t rules;  /* of the provider (semantics.h); 0, the contract, when it was made */
};

/* Everything lives in `arena`. An entry without a legal combination and suites of one name are
 * ERR_CONFIG at their place (all are reported); a filter that matches nothing, a shard out of
 * range or without problems are ERR_USAGE. */
MUST_USE enum err_code plan_make(const struct suite *suites, size_t suite_count,
                                 const struct plan_options *options, struct arena *arena,
                                 struct plan *out, struct errs *errs);

#endif
