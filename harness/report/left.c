#include "harness/report/left.h"

#include "harness/core/arena.h"

#include <string.h>

enum { VALUES = 8 };

/* " (gemm: exact 3, bound 1; pack: guard 2)"; groups of a family are neighbours. */
static char *add_groups(char *line, const struct left *l, struct arena *arena)
{
    for (size_t i = 0; line && i < l->group_count; i++) {
        const struct left_group *g = &l->groups[i];
        bool next = i && !strcmp(l->groups[i - 1].family, g->family);

        if (!next)
            line = arena_printf(arena, "%s%s%s:", line, i ? "; " : " (", g->family);
        line = line ? arena_printf(arena, "%s%s %s %zu", line, next ? "," : "", g->check, g->cases)
                    : NULL;
    }
    return line && l->group_count ? arena_printf(arena, "%s)", line) : line;
}

static char *add_axis(char *line, const struct left_axis *x, struct arena *arena)
{
    size_t shown = x->count > VALUES ? VALUES : x->count;

    line = arena_printf(arena, "%s %s", line, x->key);
    for (size_t i = 0; line && i < shown; i++)
        line = arena_printf(arena, "%s %s", line, x->values[i]);
    if (line && shown < x->count)
        line = arena_printf(arena, "%s and %zu more", line, x->count - shown);
    return line;
}

const char *left_line(const struct left *l, struct arena *arena)
{
    char *line;

    if (!l->cases)
        return "";
    line = arena_printf(arena, "left out %s: %zu of %zu case%s", l->why, l->cases, l->of,
                        l->of == 1 ? "" : "s");
    line = line ? add_groups(line, l, arena) : NULL;
    for (size_t i = 0; line && i < l->axis_count; i++) {
        line = arena_printf(arena, "%s%s", line, i ? "," : ", never run:");
        line = line ? add_axis(line, &l->axes[i], arena) : NULL;
    }
    return line;
}
