#include "harness/kernel/combine_pairs.h"

#include <string.h>

static bool is_wanted(const struct combine_pairs *p, size_t i, size_t j)
{
    return p->wanted[i * p->words + j / 64] >> j % 64 & 1;
}

static void set_bit(struct combine_pairs *p, size_t i, size_t j)
{
    p->wanted[i * p->words + j / 64] |= UINT64_C(1) << j % 64;
}

static void clear_both(struct combine_pairs *p, size_t i, size_t j)
{
    p->wanted[i * p->words + j / 64] &= ~(UINT64_C(1) << j % 64);
    p->wanted[j * p->words + i / 64] &= ~(UINT64_C(1) << i % 64);
}

bool pairs_init(struct combine_pairs *p, const struct axis_values *lists, uint64_t variable,
                struct arena *arena)
{
    p->values = 0;
    p->next = 0;
    for (int x = 0; x < AX_COUNT; x++) {
        p->base[x] = p->values;
        if (variable & AXIS_BIT(x))
            p->values += lists[x].count;
    }
    p->base[AX_COUNT] = p->values;
    p->words = (p->values + 63) / 64;
    p->wanted = arena_zalloc(arena, p->values, p->words * sizeof *p->wanted);
    if (!p->wanted)
        return false;
    for (int x = 0; x < AX_COUNT; x++)
        for (size_t i = p->base[x]; i < p->base[x + 1]; i++)
            for (size_t j = 0; j < p->values; j++)
                if (j < p->base[x] || j >= p->base[x + 1])
                    set_bit(p, i, j);
    return true;
}

static enum axis_id axis_of(const struct combine_pairs *p, size_t number)
{
    int x = 0;

    while (number >= p->base[x + 1])
        x++;
    return (enum axis_id)x;
}

bool pairs_next(struct combine_pairs *p, struct combine_pair *out)
{
    for (; p->next < p->values; p->next++)
        for (size_t w = 0; w < p->words; w++) {
            uint64_t bits = p->wanted[p->next * p->words + w];
            size_t other;

            if (!bits)
                continue;
            other = w * 64 + (size_t)__builtin_ctzll(bits);
            out->x = axis_of(p, p->next);
            out->y = axis_of(p, other);
            out->x_value = (uint32_t)(p->next - p->base[out->x]);
            out->y_value = (uint32_t)(other - p->base[out->y]);
            return true;
        }
    return false;
}

uint32_t pairs_gain(const struct combine_pairs *p, enum axis_id x, uint32_t value, uint64_t with)
{
    uint32_t gain = 0;

    for (; with; with &= with - 1) {
        int y = __builtin_ctzll(with);

        gain += is_wanted(p, p->base[x] + value, p->base[y] + p->chosen[y]);
    }
    return gain;
}

void pairs_cover(struct combine_pairs *p, uint64_t variable)
{
    for (uint64_t left = variable; left; left &= left - 1) {
        int x = __builtin_ctzll(left);

        for (uint64_t right = left & (left - 1); right; right &= right - 1) {
            int y = __builtin_ctzll(right);

            clear_both(p, p->base[x] + p->chosen[x], p->base[y] + p->chosen[y]);
        }
    }
}

void pairs_clear(struct combine_pairs *p, const struct combine_pair *pair)
{
    clear_both(p, p->base[pair->x] + pair->x_value, p->base[pair->y] + pair->y_value);
}

void pairs_clear_value(struct combine_pairs *p, enum axis_id x, uint32_t value)
{
    for (size_t j = 0; j < p->values; j++)
        clear_both(p, p->base[x] + value, j);
}

bool seen_init(struct combine_seen *s, const struct axis_values *lists, size_t rows,
               struct arena *arena)
{
    size_t product = 1;

    for (int x = 0; x < AX_COUNT; x++)
        if (__builtin_mul_overflow(product, lists[x].count, &product))
            product = SIZE_MAX;
    s->limit = rows < product ? rows : product;
    s->count = 0;
    s->slot_count = 16;
    while (s->slot_count / 2 < s->limit && s->slot_count <= SIZE_MAX / 4)
        s->slot_count *= 2;
    s->rows = arena_alloc(arena, s->limit, sizeof *s->rows);
    s->slots = ARENA_NEW(arena, s->slot_count, size_t);
    return s->rows && s->slots;
}

/* FNV-1a (Fowler, Noll and Vo) over words instead of bytes. */
static uint64_t hash_of(const uint32_t row[AX_COUNT])
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (int x = 0; x < AX_COUNT; x++)
        h = (h ^ row[x]) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

bool seen_add(struct combine_seen *s, const uint32_t row[AX_COUNT])
{
    size_t i = hash_of(row) & (s->slot_count - 1);

    for (; s->slots[i]; i = (i + 1) & (s->slot_count - 1))
        if (!memcmp(s->rows[s->slots[i] - 1], row, sizeof s->rows[0]))
            return false;
    if (s->count == s->limit)
        return false;
    memcpy(s->rows[s->count], row, sizeof s->rows[0]);
    s->slots[i] = ++s->count;
    return true;
}
