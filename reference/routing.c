#include "reference/routing.h"

#include "reference/rng.h"

#include <stdbool.h>
#include <stddef.h>

enum { WORDS = 64 }; /* a token; the last one of them is no slot's */

static uint64_t word_of(const struct ref_routing *r, int64_t token, int64_t slot)
{
    return rng_word(r->seed, RNG_ROUTING, (uint64_t)token * WORDS + (uint64_t)slot);
}

static bool is_allowed(const struct ref_routing *r, int64_t e)
{
    return r->kind != REF_ROUTING_EMPTY || r->experts == 1 || e % 4 == 1 || e % 4 == 2;
}

/* Uniform, or u^3 of a uniform u in [0, 1). */
static int64_t draw(const struct ref_routing *r, uint64_t word)
{
    uint64_t u = word >> 32;

    if (r->kind == REF_ROUTING_SKEWED)
        u = (u * u >> 32) * u >> 32;
    return (int64_t)(u * (uint64_t)r->experts >> 32);
}

static bool is_taken(const int32_t *ids, int64_t count, int64_t e)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] == e)
            return true;
    return false;
}

/* The first allowed expert from e on, around the end, that the first `slot` ids do not have;
 * without one, the first allowed. */
static int32_t next_free(const struct ref_routing *r, const int32_t *ids, int64_t slot, int64_t e)
{
    int64_t any = -1;

    for (int64_t i = 0; i < r->experts; i++) {
        int64_t x = (e + i) % r->experts;

        if (!is_allowed(r, x))
            continue;
        if (!is_taken(ids, slot, x))
            return (int32_t)x;
        any = any < 0 ? x : any;
    }
    return (int32_t)any;
}

static int32_t choose(const struct ref_routing *r, int64_t token, const int32_t *ids, int64_t slot)
{
    if (r->kind == REF_ROUTING_SINGLE)
        return (int32_t)draw(r, word_of(r, 0, 0));
    if (r->kind == REF_ROUTING_DUPLICATE && slot == 1 && token % 2 == 0)
        return ids[0];
    return next_free(r, ids, slot, draw(r, word_of(r, token, slot)));
}

/* Dropped by the low bits of the word, which choose no expert. */
static int32_t lose(const struct ref_routing *r, int64_t token, int64_t slot, int32_t e)
{
    if (word_of(r, token, slot) % 4 == 0)
        return REF_NOWHERE;
    return e % 3 == 2 ? REF_ELSEWHERE(e) : e;
}

void ref_route_tokens(const struct ref_routing *r, int32_t *ids)
{
    for (int64_t t = 0; t < r->m; t++) {
        int32_t *own = ids + t * r->top_k;

        for (int64_t slot = 0; slot < r->top_k; slot++)
            own[slot] = choose(r, t, own, slot);
        for (int64_t slot = 0; r->kind == REF_ROUTING_MISSING && slot < r->top_k; slot++)
            own[slot] = lose(r, t, slot, own[slot]);
    }
}

/* How many of m rows are routed at all. */
static int64_t routed(const struct ref_routing *r)
{
    int64_t m = r->m;

    if (r->max_tokens)
        return r->kind == REF_ROUTING_SPARE ? m * 3 / 8 : (m * 3 + 3) / 4;
    return r->kind == REF_ROUTING_SPARE || r->kind == REF_ROUTING_MISSING ? m - m / 4 : m;
}

void ref_route_counts(const struct ref_routing *r, int64_t *counts)
{
    int64_t rows = routed(r);

    for (int64_t e = 0; e < r->experts; e++)
        counts[e] = 0;
    for (int64_t t = 0; t < rows; t++) {
        int32_t e = choose(r, t, NULL, 0);

        if (r->kind == REF_ROUTING_MISSING)
            e = lose(r, t, 0, e);
        if (e >= 0 && (!r->max_tokens || counts[e] < r->max_tokens))
            counts[e]++;
    }
}

/* Appends the ids of expert `want` (as written in ids), padded to whole blocks. */
static int64_t append(const int32_t *ids, int64_t count, int32_t want, int64_t block_m, int64_t at,
                      int32_t *sorted)
{
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] != want)
            continue;
        if (sorted)
            sorted[at] = (int32_t)i;
        at++;
    }
    for (; at % block_m; at++)
        if (sorted)
            sorted[at] = (int32_t)count;
    return at;
}

int64_t ref_sort_ids(const int32_t *ids, int64_t count, int64_t experts, int64_t block_m,
                     int32_t *sorted, int32_t *expert_ids)
{
    int64_t at = 0;

    for (int32_t e = 0; e < experts; e++)
        for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
            int64_t end = append(ids, count, elsewhere ? REF_ELSEWHERE(e) : e, block_m, at, sorted);

            for (; at < end; at += block_m)
                if (expert_ids)
                    expert_ids[at / block_m] = elsewhere ? -1 : e;
        }
    return at;
}
