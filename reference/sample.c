#include "reference/sample.h"

#include "reference/rng.h"

#include <stdbool.h>
#include <string.h>

enum { BORDERS = 8 }; /* group borders that are taken */

struct list {
    const struct ref_sample *s;
    int64_t *out, length;
    uint64_t drawn; /* random words used */
};

/* Keeps the list sorted; false: x is in it already, or no index at all. */
static bool add(struct list *l, int64_t x)
{
    int64_t low = 0, high = l->length;

    if (x < 0 || x >= l->s->size)
        return false;
    while (low < high) {
        const int64_t mid = (low + high) / 2;

        if (l->out[mid] < x)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < l->length && l->out[low] == x)
        return false;
    memmove(l->out + low + 1, l->out + low, (size_t)(l->length - low) * sizeof *l->out);
    l->out[low] = x;
    l->length++;
    return true;
}

static int64_t draw(struct list *l, int64_t below)
{
    const uint64_t index = 2 * l->drawn++ + (l->s->axis == REF_SAMPLE_COLUMNS);

    return rng_below(rng_word(l->s->seed, RNG_SAMPLE, index), (uint32_t)below);
}

static void add_tile_corners(struct list *l)
{
    const int64_t tile = l->s->tile, whole = tile > 0 ? l->s->size / tile * tile : 0;

    if (whole == 0)
        return;
    add(l, tile - 1);
    add(l, tile);
    add(l, whole - tile);
    add(l, whole - 1);
    add(l, whole);
}

static void add_group_borders(struct list *l)
{
    const int64_t group = l->s->group;
    const int64_t borders = group > 0 ? (l->s->size - 1) / group : 0; /* at group, 2 group, ... */

    for (int64_t i = 0; i < borders && i < BORDERS; i++) {
        int64_t border = i + 1;

        if (borders > BORDERS && i > 0)
            border = i == 1 ? borders : 2 + draw(l, borders - 2);
        add(l, border * group - 1);
        add(l, border * group);
    }
}

static void add_residues(struct list *l)
{
    for (int64_t i = 0; i < REF_SAMPLE_PERIOD; i++) {
        const int64_t choices = (l->s->size - i + REF_SAMPLE_PERIOD - 1) / REF_SAMPLE_PERIOD;

        add(l, i + draw(l, choices) * REF_SAMPLE_PERIOD);
    }
}

int64_t ref_sample_make(const struct ref_sample *s, int64_t count, int64_t *out)
{
    struct list l = {.s = s, .out = out};

    if (s->size <= count || s->size <= REF_SAMPLE_MIN) {
        for (int64_t i = 0; i < s->size; i++)
            out[i] = i;
        return s->size;
    }
    add(&l, 0);
    add(&l, s->size - 1);
    add_tile_corners(&l);
    add_group_borders(&l);
    add_residues(&l);
    while (l.length < count) {
        int64_t x = draw(&l, s->size);

        while (!add(&l, x))
            x = (x + 1) % s->size;
    }
    return l.length;
}
