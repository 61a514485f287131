/* One depth-first search serves all three ways to combine. It fixes one axis after the other and
 * asks after each whether the known axes already break a rule. A refusal names the axes to blame;
 * when every value of an axis has failed, the search returns at once to the deepest axis that had a
 * part in it (conflict-directed backjumping: Prosser, Hybrid algorithms for the constraint
 * satisfaction problem, 1993). It is complete: "none" is a proof.
 *
 *   full      takes every leaf, values in the order written
 *   random    values in random order, takes the first leaf that is new; "none" means that there are
 *             no more
 *   pairwise  starts from a pair not yet covered, prefers the values that cover most (one row at a
 *             time, as in Cohen et al., The AETG system, 1997), takes the first leaf; "none" proves
 *             the pair impossible
 */
#include "harness/kernel/combine.h"

#include "harness/kernel/combine_pairs.h"

#include <string.h>

#define ALL_AXES AXIS_ALL

enum search_end { SEARCH_TAKEN, SEARCH_NONE, SEARCH_GAVE_UP, SEARCH_STOPPED };

struct search {
    const struct combine_in *in;
    enum combine how;
    int64_t v[AX_COUNT];
    uint64_t known, variable; /* variable: axes with more than one value */
    enum axis_id order[AX_COUNT];
    int depth;                  /* of `order`: its length */
    size_t below[AX_COUNT + 1]; /* combinations of order[i] and deeper */
    uint32_t *pick[AX_COUNT];   /* value indices of an axis, in the order of trying */
    uint32_t *gain[AX_COUNT];   /* pairwise: what pick[...] would cover */
    uint64_t asked, limit;      /* questions so far, and the most there may be */
    uint64_t random;
    struct combine_pairs pairs;
    struct combine_seen seen;
};

/* splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t random_below(struct search *s, uint32_t n)
{
    return (uint32_t)((next_random(&s->random) >> 32) * n >> 32);
}

static size_t times(size_t a, size_t b)
{
    size_t product;

    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

static uint32_t count_of(const struct search *s, enum axis_id x)
{
    return (uint32_t)s->in->axes[x].count;
}

static void set(struct search *s, enum axis_id x, uint32_t value)
{
    s->v[x] = s->in->axes[x].values[value];
    s->known |= AXIS_BIT(x);
    s->pairs.chosen[x] = value;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t kept = *a;

    *a = *b;
    *b = kept;
}

/* Prepares the order in which the values of x are tried. */
static void arrange(struct search *s, enum axis_id x)
{
    uint32_t n = count_of(s, x);

    for (uint32_t i = 0; i < n; i++)
        s->pick[x][i] = i;
    if (s->how == COMBINE_FULL)
        return;
    for (uint32_t i = n; i > 1; i--)
        swap(&s->pick[x][i - 1], &s->pick[x][random_below(s, i)]);
    if (s->how == COMBINE_PAIRWISE)
        for (uint32_t i = 0; i < n; i++)
            s->gain[x][i] = pairs_gain(&s->pairs, x, s->pick[x][i], s->known & s->variable);
}

/* The value of x to try as the i-th; pairwise brings the best of the rest forward. */
static uint32_t value_at(struct search *s, enum axis_id x, uint32_t i)
{
    uint32_t best = i;

    if (s->how == COMBINE_PAIRWISE) {
        for (uint32_t j = i + 1; j < count_of(s, x); j++)
            if (s->gain[x][j] > s->gain[x][best])
                best = j;
        swap(&s->gain[x][i], &s->gain[x][best]);
        swap(&s->pick[x][i], &s->pick[x][best]);
    }
    return s->pick[x][i];
}

static void drop(const struct search *s, size_t combinations)
{
    if (s->in->dropped)
        s->in->dropped(combinations, s->in->context);
}

static bool is_broken(struct search *s, uint64_t fresh, uint64_t *blame)
{
    s->asked++;
    if (!s->in->broken(s->v, s->known, fresh, blame, s->in->context))
        return false;
    *blame &= s->variable;
    return true;
}

/* A complete, allowed combination. SEARCH_NONE: go on; all axes had a part in it. */
static enum search_end leaf(struct search *s, uint64_t *blame)
{
    *blame = s->variable;
    if (s->how == COMBINE_RANDOM && !seen_add(&s->seen, s->pairs.chosen))
        return SEARCH_NONE;
    if (!s->in->emit(s->v, s->in->context))
        return SEARCH_STOPPED;
    return s->how == COMBINE_FULL ? SEARCH_NONE : SEARCH_TAKEN;
}

/* Extends the known axes by order[depth] and deeper. SEARCH_NONE: impossible, and *blame tells
 * which of the axes known before have a part in it. */
static enum search_end extend(struct search *s, int depth, uint64_t *blame)
{
    const uint64_t before = s->known;
    enum axis_id x;
    uint32_t n;

    if (depth == s->depth)
        return leaf(s, blame);
    x = s->order[depth];
    n = count_of(s, x);
    arrange(s, x);
    *blame = 0;
    for (uint32_t i = 0; i < n; i++) {
        enum search_end found = SEARCH_NONE;
        uint64_t why = 0;

        if (s->asked >= s->limit)
            return SEARCH_GAVE_UP;
        set(s, x, value_at(s, x, i));
        if (is_broken(s, AXIS_BIT(x), &why))
            drop(s, s->below[depth + 1]);
        else
            found = extend(s, depth + 1, &why);
        if (found != SEARCH_NONE)
            return found;
        s->known = before;
        *blame |= why & ~AXIS_BIT(x);
        if (!(why & AXIS_BIT(x))) {
            *blame = why;
            drop(s, times(n - i - 1, s->below[depth + 1]));
            return SEARCH_NONE;
        }
    }
    return SEARCH_NONE;
}

/* Starts a search from `pinned`, axes already set, beside the axes with one value. */
static enum search_end search_from(struct search *s, uint64_t pinned, uint64_t *blame)
{
    s->known = ALL_AXES & (~s->variable | pinned);
    s->depth = 0;
    for (int x = 0; x < AX_COUNT; x++)
        if (s->variable & ~pinned & AXIS_BIT(x))
            s->order[s->depth++] = (enum axis_id)x;
    s->below[s->depth] = 1;
    for (int i = s->depth; i-- > 0;)
        s->below[i] = times(s->below[i + 1], count_of(s, s->order[i]));
    if (is_broken(s, s->known, blame)) {
        drop(s, s->below[0]);
        return SEARCH_NONE;
    }
    return extend(s, 0, blame);
}

static enum combine_end run_full(struct search *s)
{
    uint64_t blame;

    s->limit = COMBINE_MAX_ASKED;
    switch (search_from(s, 0, &blame)) {
    case SEARCH_STOPPED:
        return COMBINE_STOPPED;
    case SEARCH_GAVE_UP:
        return COMBINE_TOO_MANY;
    case SEARCH_TAKEN:
    case SEARCH_NONE:
        break;
    }
    return COMBINE_DONE;
}

/* Questions for all failing searches of a run together, and the least for one of them. */
enum { POOL = 2 * 1000 * 1000, LEAST = 500 };

/* So many questions may one search ask: much at first, little once the pool is nearly spent. */
static void set_limit(struct search *s, uint64_t spent)
{
    uint64_t left = spent < POOL ? POOL - spent : 0;

    s->limit = s->asked + LEAST + left / 128;
}

static enum combine_end run_random(struct search *s, size_t count)
{
    uint64_t blame;

    if (!seen_init(&s->seen, s->in->axes, count, s->in->arena))
        return COMBINE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        s->limit = s->asked + POOL;
        switch (search_from(s, 0, &blame)) {
        case SEARCH_STOPPED:
            return COMBINE_STOPPED;
        case SEARCH_TAKEN:
            break;
        case SEARCH_NONE:
        case SEARCH_GAVE_UP:
            return COMBINE_DONE;
        }
    }
    return COMBINE_DONE;
}

/* The pair cannot occur, or (blame has one axis) one of its values cannot, or (none) nothing can.
 */
static bool rule_out(struct search *s, const struct combine_pair *p, uint64_t blame)
{
    bool first = blame & AXIS_BIT(p->x), second = blame & AXIS_BIT(p->y);

    if (first && second)
        pairs_clear(&s->pairs, p);
    else if (first)
        pairs_clear_value(&s->pairs, p->x, p->x_value);
    else if (second)
        pairs_clear_value(&s->pairs, p->y, p->y_value);
    return first || second;
}

static enum combine_end run_pairwise(struct search *s, size_t *gaps)
{
    struct combine_pair p = {0};
    uint64_t wasted = 0;

    if (!pairs_init(&s->pairs, s->in->axes, s->variable, s->in->arena))
        return COMBINE_NO_MEMORY;
    while (pairs_next(&s->pairs, &p)) {
        uint64_t blame = 0, asked = s->asked;
        enum search_end found;

        set_limit(s, wasted);
        set(s, p.x, p.x_value);
        set(s, p.y, p.y_value);
        found = search_from(s, AXIS_BIT(p.x) | AXIS_BIT(p.y), &blame);
        if (found == SEARCH_STOPPED)
            return COMBINE_STOPPED;
        if (found == SEARCH_TAKEN) {
            pairs_cover(&s->pairs, s->variable);
            continue;
        }
        wasted += s->asked - asked;
        if (found == SEARCH_GAVE_UP) {
            (*gaps)++;
            pairs_clear(&s->pairs, &p);
        } else if (!rule_out(s, &p, blame)) {
            return COMBINE_DONE;
        }
    }
    return COMBINE_DONE;
}

static bool search_init(struct search *s)
{
    for (int x = 0; x < AX_COUNT; x++) {
        uint32_t n = count_of(s, (enum axis_id)x);

        if (n > 1)
            s->variable |= AXIS_BIT(x);
        set(s, (enum axis_id)x, 0);
        s->pick[x] = ARENA_NEW(s->in->arena, n, uint32_t);
        s->gain[x] = ARENA_NEW(s->in->arena, n, uint32_t);
        if (!s->pick[x] || !s->gain[x])
            return false;
    }
    return true;
}

enum combine_end combine_run(const struct combine_in *in, enum combine how, size_t count,
                             size_t *gaps)
{
    struct search s = {.in = in, .how = how, .random = in->seed};
    size_t unused = 0;

    if (!gaps)
        gaps = &unused;
    *gaps = 0;
    if (!search_init(&s))
        return COMBINE_NO_MEMORY;
    switch (how) {
    case COMBINE_RANDOM:
        return run_random(&s, count);
    case COMBINE_PAIRWISE:
        if (__builtin_popcountll(s.variable) >= 2)
            return run_pairwise(&s, gaps);
        s.how = COMBINE_FULL; /* no pairs: every value of the one axis */
        return run_full(&s);
    case COMBINE_FULL:
        return run_full(&s);
    }
    return COMBINE_DONE;
}
