/* A case as a suite of its own. */
#include "harness/explain/explain.h"

#include "harness/kernel/legal.h"
#include "harness/kernel/plan_resolve.h"

#include <inttypes.h>
#include <string.h>

/* Would the axis have this value, too, if the suite left it out? */
static bool follows(const int64_t v[AX_COUNT], int axis, int64_t fallback)
{
    uint64_t decided_by[AX_COUNT];
    int64_t other[AX_COUNT];

    if (fallback != AXIS_AUTO)
        return fallback == v[axis];
    memcpy(other, v, sizeof other);
    other[axis] = AXIS_AUTO;
    (void)plan_resolve(other, AXIS_ALL, (uint64_t)v[AX_SEED], decided_by);
    return other[axis] == v[axis];
}

static bool is_stated(const int64_t v[AX_COUNT], int axis)
{
    const struct axis *x = &axes[axis];
    int64_t fallback;
    char buf[EXPLAIN_TEXT];

    if (!axis_is_of_families(x, AXIS_FAMILY_BIT(v[AX_FAMILY])) || axis == AX_SEED)
        return false;
    if (!x->fallback)
        return true;
    return axis_parse(x, x->fallback, &fallback, buf, sizeof buf) || !follows(v, axis, fallback);
}

/* "key=value key=value" or lines of YAML. */
static const char *list(const int64_t v[AX_COUNT], const char *before, const char *between,
                        const char *after, struct arena *arena)
{
    const char *text = arena_strdup(arena, "");
    char value[EXPLAIN_TEXT];

    for (int i = 0; i < AX_COUNT && text; i++)
        if (is_stated(v, i))
            text = arena_printf(arena, "%s%s%s%s%s%s", text, before, axes[i].key, between,
                                axis_format(&axes[i], v[i], value, sizeof value), after);
    return text;
}

const char *explain_axes(const int64_t v[AX_COUNT], struct arena *arena)
{
    const char *text = list(v, " ", "=", "", arena);

    return text && *text ? arena_printf(arena, "%s seed=0x%" PRIx64, text + 1, (uint64_t)v[AX_SEED])
                         : text;
}

const char *explain_suite(const int64_t v[AX_COUNT], struct arena *arena)
{
    const char *text = list(v, "    ", ": ", "\n", arena);

    return text ? arena_printf(arena,
                               "suite: explained\nseed: 0x%" PRIx64
                               "\nentries:\n  - name: smallest\n%s",
                               (uint64_t)v[AX_SEED], text)
                : NULL;
}
