/* The smallest case that still fails: one axis at a time, smallest values first. */
#include "harness/explain/explain.h"

#include "harness/core/clock.h"
#include "harness/kernel/legal.h"
#include "harness/kernel/plan_resolve.h"

#include <string.h>

enum { VALUES = 24 };

/* Values to try, the smallest first; those from the present one on are left out. An axis that is no
 * size has the values that leave something out, in the order of the wish. */
static const struct {
    enum axis_id axis;
    const char *values[VALUES]; /* ended by NULL */
} wishes[] = {
    {AX_M,
     {"1", "2", "3", "4", "8", "16", "17", "32", "33", "48", "64", "65", "128", "256", "512"}},
    {AX_N,
     {"8", "16", "32", "48", "64", "72", "96", "128", "136", "192", "256", "264", "512", "1024"}},
    {AX_K,
     {"16", "32", "64", "96", "128", "160", "192", "256", "288", "384", "512", "1024", "2048",
      "4096"}},
    {AX_EXPERTS, {"0", "1", "2", "3", "4", "8", "16"}},
    {AX_TOP_K, {"1", "2", "3", "4"}},
    {AX_MAX_TOKENS, {"1", "2", "4", "8", "16", "32"}},
    {AX_GROUP, {"16", "32", "64", "128"}},
    {AX_GROUP_N, {"32", "64", "128"}},
    {AX_INPUT_GROUP, {"32", "64", "128"}},
    {AX_BIAS, {"false"}},
    {AX_SCALE_2, {"none"}},
    {AX_ZERO, {"none"}},
    {AX_STREAM_K, {"false"}},
    {AX_WARP_SPEC, {"false"}},
    {AX_TMA, {"false"}},
    {AX_WRITE_SPLITS, {"1"}},
    {AX_RASTER, {"1"}},
    {AX_STAGES, {"auto"}},
    {AX_CTAS, {"1"}},
    {AX_NUM_SMS, {"0"}},
    {AX_BLOCK, {"auto"}},
    {AX_WARP, {"auto"}},
    {AX_MMA, {"auto"}},
    {AX_ROUTING, {"uniform"}},
    {AX_LAYOUT_DTYPE, {"int32"}},
    {AX_SCALES, {"fill"}},
    {AX_ACTIVATION, {"none"}},
    {AX_HADAMARD, {"0"}},
    {AX_LAYOUT, {"normal"}},
};

/* Paddings follow from sizes. */
static bool resolve(int64_t v[AX_COUNT])
{
    uint64_t decided_by[AX_COUNT];

    v[AX_PAD_N] = v[AX_PAD_K] = AXIS_AUTO;
    (void)plan_resolve(v, AXIS_ALL, (uint64_t)v[AX_SEED], decided_by);
    return !legal_broken(v);
}

static bool is_size(enum axis_id axis)
{
    return axes[axis].kind == AXIS_INT;
}

/* Does the same check fail in the same way: wrong elements, or something else? */
static bool fails_alike(struct explain *x, const int64_t v[AX_COUNT], bool has_place)
{
    explain_rerun(x, v);
    return x->last.verdict == VERDICT_FAIL && (x->last.at_row >= 0) == has_place;
}

static bool try_axis(struct explain *x, int64_t v[AX_COUNT], size_t wish, bool has_place,
                     double deadline)
{
    enum axis_id axis = wishes[wish].axis;
    int64_t other[AX_COUNT];
    char buf[EXPLAIN_TEXT];

    if (!axis_is_of_families(&axes[axis], AXIS_FAMILY_BIT(v[AX_FAMILY])))
        return false;
    for (int i = 0; i < VALUES && wishes[wish].values[i] && clock_us() < deadline; i++) {
        memcpy(other, v, sizeof other);
        if (axis_parse(&axes[axis], wishes[wish].values[i], &other[axis], buf, sizeof buf) ||
            other[axis] == v[axis] || (is_size(axis) && other[axis] > v[axis]))
            continue;
        if (!resolve(other) || !fails_alike(x, other, has_place))
            continue;
        memcpy(v, other, sizeof other);
        return true;
    }
    return false;
}

bool explain_shrink(struct explain *x, int64_t v[AX_COUNT], double deadline)
{
    bool has_place = x->last.at_row >= 0, any = false, changed = true;
    int64_t start[AX_COUNT];

    explain_say(x, EXPLAIN_DOING, "smaller cases");
    memcpy(start, v, sizeof start);
    if (!resolve(start) || !fails_alike(x, start, has_place))
        return false;
    memcpy(v, start, sizeof start);
    while (changed) {
        changed = false;
        for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++)
            changed = try_axis(x, v, i, has_place, deadline) || changed;
        any = any || changed;
    }
    return any;
}
