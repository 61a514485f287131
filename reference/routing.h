/* routing.h - which rows go to which experts (semantics.md section 10), as a pure function of a
 * seed.
 *
 * A routing gives each of m tokens top_k experts, or, for the grouped types, each expert a number
 * of rows. All arrays are the caller's. Kinds:
 *
 *   uniform    distinct experts at random
 *   skewed     expert 0 most often, e with a density like (e + 1)^(-2/3)
 *   empty      only experts e with e mod 4 of 1 or 2 (the only one if there is one): the first and
 *              often the last have no rows
 *   single     one expert has all rows
 *   duplicate  uniform, but every second token has one expert twice
 *   missing    uniform, but a quarter of the ids is dropped, and experts e with e mod 3 = 2 are
 *              another rank's: REF_ELSEWHERE
 *   spare      uniform, with capacity behind the last row
 */
#ifndef REFERENCE_ROUTING_H
#define REFERENCE_ROUTING_H

#include <stdint.h>

/* In the order of the axis' words, `none` apart. */
enum ref_routing_kind {
    REF_ROUTING_UNIFORM,
    REF_ROUTING_SKEWED,
    REF_ROUTING_EMPTY,
    REF_ROUTING_SINGLE,
    REF_ROUTING_DUPLICATE,
    REF_ROUTING_MISSING,
    REF_ROUTING_SPARE
};

/* Expert ids below 0: nowhere, and to expert e of another rank (its own inverse). */
enum { REF_NOWHERE = -1 };
#define REF_ELSEWHERE(e) (-2 - (e))

struct ref_routing {
    enum ref_routing_kind kind;
    uint64_t seed;
    int64_t m; /* tokens; grouped types: rows of A */
    int64_t experts;
    int64_t top_k;      /* 1 to 64; 1 for the grouped types */
    int64_t max_tokens; /* grouped_masked: m / experts; else 0 */
};

/* ids: m x top_k expert ids. Those of a token are distinct while there are experts left to choose
 * from (but for single and duplicate).
 */
void ref_route_tokens(const struct ref_routing *r, int32_t *ids);

/* counts: experts. Contiguous (max_tokens 0): their sum is m, of spare m - m / 4, of missing no
 * more than that. Masked: none above max_tokens; three quarters of m are routed (spare: three
 * eighths), and what an expert cannot hold is lost. */
void ref_route_counts(const struct ref_routing *r, int64_t *counts);

/* What an indexed kernel is given, for blocks of block_m: ids (count = m x top_k) sorted by
 * expert, an expert after the other, each padded with `count` to whole blocks; blocks of another
 * rank's experts stand where those belong and have expert id -1. Experts without ids have no
 * block, REF_NOWHERE stands nowhere. Returns the padded length; sorted holds that much,
 * expert_ids one a block; both NULL: only the length. */
int64_t ref_sort_ids(const int32_t *ids, int64_t count, int64_t experts, int64_t block_m,
                     int32_t *sorted, int32_t *expert_ids);

#endif
