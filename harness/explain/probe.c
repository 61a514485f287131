#include "harness/explain/probe.h"

#include <math.h>

struct probe_part *probe_add(struct probe *p, const char *name, int64_t count, int64_t width,
                             const struct dtype *type)
{
    struct probe_part *part = &p->parts[p->part_count];

    if (p->part_count == PROBE_PARTS)
        return NULL;
    *part = (struct probe_part){
        .name = name, .first = p->count, .count = count, .width = width, .type = type};
    p->part_count++;
    p->count += count;
    return part;
}

const struct probe_part *probe_part_of(const struct probe *p, int64_t element)
{
    int i = 0;

    while (i + 1 < p->part_count && element >= p->parts[i + 1].first)
        i++;
    return &p->parts[i];
}

bool probe_same(const struct probe_part *part, uint32_t a, uint32_t b)
{
    double x, y;

    if (a == b)
        return true;
    if (!part->type || !part->type->is_float)
        return false;
    x = dtype_decode(part->type, a);
    y = dtype_decode(part->type, b);
    return (isnan(x) && isnan(y)) || (part->zeros_alike && x == 0.0 && y == 0.0);
}

bool probe_judge(struct probe *p, struct arena *arena)
{
    p->wrong = arena_alloc(arena, (size_t)p->count, sizeof *p->wrong);
    p->wrong_count = p->compared = 0;
    for (int i = 0; p->wrong && i < p->part_count; i++) {
        const struct probe_part *part = &p->parts[i];

        for (int64_t e = part->first; e < part->first + part->count; e++) {
            if (p->want[e] == PROBE_ANY)
                continue;
            p->compared++;
            if (!probe_same(part, p->got[e], p->want[e]))
                p->wrong[p->wrong_count++] = e;
        }
    }
    return p->wrong != NULL;
}
