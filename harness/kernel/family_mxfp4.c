/* process_mxfp4: groups far below the largest scale are requantized. */
#include "harness/kernel/op_family.h"

#include "harness/kernel/layer.h"
#include "harness/kernel/words.h"
#include "reference/mxfp4.h"
#include "reference/rng.h"

#include <stdio.h>
#include <string.h>

static const char no_memory[] = "the problem needs more memory than the limit of a worker";

enum { TOP_SCALE = 254, CODES = 16, SCALES = TOP_SCALE + 1 };

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->process_mxfp4(handle, args, reason);
}

static bool is_there(const struct hum_ops *ops)
{
    return ops->process_mxfp4 != NULL;
}

#define AT(field) offsetof(struct hum_process_mxfp4_args, field)

/* With one row a factor a row is a factor a tensor. */
static bool has_one_row(const void *args)
{
    const struct hum_process_mxfp4_args *a = args;

    return a->weight.shape[0] == 1;
}

/* clang-format off */
static const struct op_change changes[] = {
    {"a_dtype of 0",           AT(a_dtype), OP_INT32, OP_SET, 0,        NULL},
    {"a_dtype float16",        AT(a_dtype), OP_INT32, OP_SET, HUM_F16,  NULL},
    {"a_dtype float8e5m2",     AT(a_dtype), OP_INT32, OP_SET, HUM_E5M2, NULL},
    {"a_dtype int4",           AT(a_dtype), OP_INT32, OP_SET, HUM_INT4, NULL},
    {"a negative range",       AT(range),   OP_INT32, OP_SET, -1,       NULL},
    {"factors of the other number", AT(per_row), OP_BOOL, OP_ADD, 0,    has_one_row},
};
/* clang-format on */

/* ---- one call -------------------------------------------------------------------------------- */

struct tensor {
    const int64_t *v;
    int64_t rows, groups, group;
    uint8_t *scales, *codes; /* as given, one code a byte */
    struct arena *arena;
    bool fine; /* memory */
};

static void *get(struct tensor *t, size_t count, size_t size)
{
    void *p = arena_alloc(t->arena, count + 1, size);

    t->fine = t->fine && p;
    return p;
}

static uint32_t *widen(struct tensor *t, const uint8_t *narrow, size_t count)
{
    uint32_t *wide = get(t, count, sizeof *wide);

    for (size_t i = 0; wide && i < count; i++)
        wide[i] = narrow[i];
    return wide;
}

static uint8_t *copy(struct tensor *t, const uint8_t *from, size_t count)
{
    uint8_t *to = get(t, count, 1);

    if (to)
        memcpy(to, from, count);
    return to;
}

static uint8_t *pack_nibbles(struct tensor *t, size_t count)
{
    uint8_t *bytes = get(t, count / 2, 1);

    for (size_t i = 0; bytes && i < count / 2; i++)
        bytes[i] = (uint8_t)(t->codes[2 * i] | t->codes[2 * i + 1] << 4);
    return bytes;
}

static int range_of(const int64_t *v)
{
    return (int)v[AX_RANGE];
}

/* The contract's own range is asked for by its name, 0. */
static struct hum_process_mxfp4_args args_of(const int64_t *v)
{
    const struct dtype *a = layer_format(v[AX_A]);

    return (struct hum_process_mxfp4_args){
        .a_dtype = dtype_id(a),
        .range = range_of(v) == ref_mxfp4_range(a) ? 0 : range_of(v),
        .per_row = v[AX_PER_ROW] != 0,
    };
}

static void add_tensors(struct tensor *t, const struct ref_mxfp4 *r, struct op_call *call)
{
    const int64_t columns = t->groups * t->group, factors = r->per_row ? t->rows : 1;
    const size_t count = (size_t)(t->rows * columns), scales = (size_t)(t->rows * t->groups);
    uint32_t *factor = get(t, (size_t)factors, sizeof *factor);
    struct op_part *part;

    part = op_call_add(call, "weight", AT(weight), OP_INOUT,
                       op_tensor_2(HUM_INT32, t->rows, columns / 8, pack_nibbles(t, count)), 4);
    part->type = dtype_find("e2m1");
    part->width = columns;
    part->want = widen(t, r->codes, count);
    part = op_call_add(call, "scale", AT(scale), OP_INOUT,
                       op_tensor_2(HUM_E8M0, t->rows, t->groups, t->scales), 8);
    part->width = t->groups;
    part->want = widen(t, r->scales, scales);
    part = op_call_add(call, "factor", AT(factor), OP_OUT, op_tensor_1(HUM_F32, factors, NULL), 32);
    part->type = dtype_find("f32");
    part->want = factor;
    if (factor)
        memcpy(factor, r->factor, (size_t)factors * sizeof *factor);
}

/* scales and codes of t are filled. */
static void make_call(struct tensor *t, struct op_call *call)
{
    const struct hum_process_mxfp4_args args = args_of(t->v);
    const int64_t columns = t->groups * t->group;
    struct ref_mxfp4 r = {.n = t->rows,
                          .groups = t->groups,
                          .group = t->group,
                          .range = range_of(t->v),
                          .per_row = args.per_row,
                          .codes = copy(t, t->codes, (size_t)(t->rows * columns)),
                          .scales = copy(t, t->scales, (size_t)(t->rows * t->groups)),
                          .factor = get(t, (size_t)t->rows, sizeof(float))};

    op_call_init(call, "process_mxfp4", &args, sizeof args);
    call->run = run;
    call->is_there = is_there;
    call->changes = changes;
    call->change_count = sizeof changes / sizeof changes[0];
    if (!t->fine)
        return;
    ref_process_mxfp4(&r);
    add_tensors(t, &r, call);
}

static void get_arrays(struct tensor *t)
{
    t->codes = get(t, (size_t)(t->rows * t->groups * t->group), 1);
    t->scales = get(t, (size_t)(t->rows * t->groups), 1);
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Random codes; exhaustive: 16 neighbours are all of them. */
static void fill_codes(const struct tensor *t, int number)
{
    const int64_t count = t->rows * t->groups * t->group;
    const bool all = t->v[AX_CHECK] == CHECK_EXHAUSTIVE;

    for (int64_t i = 0; i < count; i++) {
        const uint64_t word = rng_word((uint64_t)t->v[AX_SEED] + (uint64_t)number, RNG_MXFP4_CODE,
                                       (uint64_t)i / CODES);

        t->codes[i] =
            (uint8_t)((all ? (uint64_t)i + word % CODES : word >> (i % CODES * 4)) % CODES);
    }
}

/* Scales of a few binades more than the range holds, around a base of the row or the tensor. */
static uint8_t usual_scale(const struct tensor *t, int64_t row, int64_t group)
{
    const uint64_t seed = (uint64_t)t->v[AX_SEED];
    const uint64_t of_row = rng_word(seed, RNG_MXFP4_SCALE, t->v[AX_PER_ROW] ? (uint64_t)row : 0);
    const uint64_t word =
        rng_word(seed, RNG_MXFP4_SCALE, (UINT64_C(1) << 32) + (uint64_t)(row * t->groups + group));
    const uint32_t span = (uint32_t)range_of(t->v) + 6, most = TOP_SCALE - 4;
    const uint32_t steps = span < most ? span : most;

    return (uint8_t)(steps + rng_below(of_row, SCALES - steps) - rng_below(word, steps + 1));
}

/* Limits of scales: all the smallest, all the largest, exactly the range apart, from end to end. */
enum { SPECIALS = 4 };
static uint8_t special_scale(const struct tensor *t, int64_t row, int64_t group, int number)
{
    const int kind = (int)(t->v[AX_PER_ROW] ? row + number : number) % SPECIALS;
    const int64_t last = t->v[AX_PER_ROW] ? t->groups : t->rows * t->groups;
    const int64_t at = t->v[AX_PER_ROW] ? group : row * t->groups + group;
    const int range = range_of(t->v) < 200 ? range_of(t->v) : 200;

    switch (kind) {
    case 0:
        return 0;
    case 1:
        return TOP_SCALE;
    case 2:
        return (uint8_t)(at == 0 ? 40 + range : at + 1 == last ? 40 : 40 + at % (range + 1));
    default:
        return (uint8_t)(at == 0 ? TOP_SCALE : at + 1 == last ? 0 : at * 29 % SCALES);
    }
}

static const char *make_usual(const int64_t *v, struct arena *arena, struct op_problem *out)
{
    const bool special = v[AX_CHECK] == CHECK_SPECIAL;
    const int count = special ? SPECIALS : 1;
    struct op_call *calls = ARENA_NEW(arena, count, struct op_call);
    struct tensor t = {.v = v,
                       .rows = v[AX_M],
                       .groups = v[AX_K] / v[AX_GROUP],
                       .group = v[AX_GROUP],
                       .arena = arena,
                       .fine = calls != NULL};

    for (int i = 0; t.fine && i < count; i++) {
        get_arrays(&t);
        for (int64_t at = 0; t.fine && at < t.rows * t.groups; at++)
            t.scales[at] = special ? special_scale(&t, at / t.groups, at % t.groups, i)
                                   : usual_scale(&t, at / t.groups, at % t.groups);
        if (!t.fine)
            break;
        fill_codes(&t, i);
        make_call(&t, &calls[i]);
    }
    *out = (struct op_problem){.v = v, .calls = calls, .count = count};
    return t.fine ? NULL : no_memory;
}

/* A row for each pair of a largest and a smallest scale, in either order. */
static const char *make_pairs(const int64_t *v, struct arena *arena, struct op_problem *out)
{
    struct op_call *call = ARENA_NEW(arena, 1, struct op_call);
    struct tensor t = {.v = v,
                       .rows = v[AX_M],
                       .groups = 2,
                       .group = v[AX_GROUP],
                       .arena = arena,
                       .fine = call != NULL};
    uint8_t *to;

    get_arrays(&t);
    to = t.scales;
    for (int high = 0; t.fine && high <= TOP_SCALE; high++)
        for (int low = 0; low <= high; low++, to += 2) {
            to[low % 2] = (uint8_t)high;
            to[1 - low % 2] = (uint8_t)low;
        }
    if (t.fine) {
        fill_codes(&t, 0);
        make_call(&t, call);
    }
    *out = (struct op_problem){.v = v, .calls = call, .count = 1};
    return t.fine ? NULL : no_memory;
}

/* The scales low ... high, a group each, and a call. */
static void make_run(struct tensor *t, int low, int high, struct op_call *call, int number)
{
    t->rows = high - low + 1;
    get_arrays(t);
    for (int64_t i = 0; t->fine && i < t->rows; i++)
        t->scales[i] = (uint8_t)(low + (i + number) % t->rows);
    if (!t->fine)
        return;
    fill_codes(t, number);
    make_call(t, call);
}

/* For each largest scale all smaller ones, and each smallest one up to a step beyond the range:
 * farther ones do not change the base. */
static const char *make_runs(const int64_t *v, struct arena *arena, struct op_problem *out)
{
    const int reach = range_of(v) + 1 < TOP_SCALE ? range_of(v) + 1 : TOP_SCALE;
    struct op_call *calls = ARENA_NEW(arena, SCALES * (reach + 2), struct op_call);
    struct tensor t = {
        .v = v, .groups = 1, .group = v[AX_GROUP], .arena = arena, .fine = calls != NULL};
    int count = 0;

    for (int high = 0; t.fine && high <= TOP_SCALE; high++) {
        make_run(&t, 0, high, &calls[count], count);
        count++;
        for (int low = high; t.fine && low > 0 && low >= high - reach; low--, count++)
            make_run(&t, low, high, &calls[count], count);
    }
    *out = (struct op_problem){.v = v, .calls = calls, .count = count};
    return t.fine ? NULL : no_memory;
}

static const char *make(const int64_t v[AX_COUNT], uint32_t rules, struct arena *arena,
                        struct op_problem *out)
{
    (void)rules; /* no provider has one here */
    if (v[AX_CHECK] != CHECK_EXHAUSTIVE)
        return make_usual(v, arena, out);
    return v[AX_PER_ROW] ? make_pairs(v, arena, out) : make_runs(v, arena, out);
}

/* ---- trust ----------------------------------------------------------------------------------- */

/* Counted: which scale codes meet which largest one, in groups of all 16 weight codes. */
struct seen {
    bool pair[SCALES][SCALES];
    int pairs;
    int64_t low_groups, other_groups; /* far below the largest scale, and not */
};

static bool has_all_codes(const uint8_t *nibbles, int64_t group)
{
    unsigned seen = 0;

    for (int64_t i = 0; i < group / 2; i++)
        seen |= 1u << (nibbles[i] & 15) | 1u << (nibbles[i] >> 4);
    return seen == 0xffff;
}

/* The scales of one base, of `count` groups. */
static void look(const uint8_t *scales, const uint8_t *nibbles, int64_t count, int64_t group,
                 int range, struct seen *s)
{
    int high = 0;

    for (int64_t i = 0; i < count; i++)
        high = scales[i] > high ? scales[i] : high;
    for (int64_t i = 0; i < count; i++) {
        bool *pair = &s->pair[high][scales[i]];

        s->low_groups += scales[i] < high - range;
        s->other_groups += scales[i] >= high - range;
        s->pairs += !*pair && has_all_codes(nibbles + i * group / 2, group);
        *pair = *pair || has_all_codes(nibbles + i * group / 2, group);
    }
}

static void look_at_call(const struct op_problem *p, const struct op_call *c, struct seen *s)
{
    const struct hum_tensor *weight = &c->parts[0].tensor, *scale = &c->parts[1].tensor;
    const int64_t all = scale->shape[0] * scale->shape[1], group = p->v[AX_GROUP];
    const int64_t count = p->v[AX_PER_ROW] ? scale->shape[1] : all;

    for (int64_t i = 0; i < all; i += count)
        look((const uint8_t *)scale->data + i, (const uint8_t *)weight->data + i * group / 2, count,
             group, range_of(p->v), s);
}

static const char *trust(const struct op_problem *p, char *buf, size_t size)
{
    const int all = SCALES * (SCALES + 1) / 2;
    struct seen s = {.pairs = 0};

    for (int i = 0; i < p->count; i++)
        look_at_call(p, &p->calls[i], &s);
    if (s.low_groups == 0)
        return "no group is requantized: the scales lie within the range";
    if (s.other_groups == 0)
        return "all groups are requantized";
    if (p->v[AX_CHECK] != CHECK_EXHAUSTIVE || s.pairs == all)
        return NULL;
    (void)snprintf(buf, size, "only %d of %d pairs of scales occur with all weight codes", s.pairs,
                   all);
    return buf;
}

void family_process_mxfp4(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                          size_t end, const struct runner_hooks *hooks)
{
    static const struct op_family family = {.name = "process_mxfp4", .make = make, .trust = trust};

    (void)problem;
    op_family_run(&family, r, plan, begin, end, hooks);
}
