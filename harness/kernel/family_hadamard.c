/* hadamard: the transform alone (docs/semantics-ops.md section 6).
 *
 * Every second row holds whole numbers from -7 to 7, whose sums are exact in any order, so that a
 * wrong sign, place or factor shows by itself; the others hold random numbers of one size a block,
 * whose sums are rounded as the documented order of butterflies has it.
 */
#include "harness/kernel/family_inputs.h"
#include "harness/kernel/layer.h"
#include "harness/kernel/op_family.h"
#include "harness/kernel/words.h"
#include "reference/hadamard.h"
#include "reference/rng.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char no_memory[] = "the case needs more memory than the limit of a worker";

/* ---- contents -------------------------------------------------------------------------------- */

struct source {
    const struct dtype *t;
    uint64_t seed;
    int64_t width, block;
    bool special;
};

/* The sum of four uniform numbers of [-1, 1). */
static double random_value(uint64_t word)
{
    double sum = 0.0;

    for (int i = 0; i < 4; i++)
        sum += (double)(word >> 16 * i & 0xffff) * 0x1p-15 - 1.0;
    return sum;
}

/* Blocks have one kind of special value each, or none. */
static double special_value(const struct source *s, int64_t block, uint64_t word, double plain)
{
    const double quantum = ldexp(1.0, dtype_min_exponent(s->t) - s->t->man_bits);
    const double sign = word >> 63 ? -1.0 : 1.0;
    const bool few = word % 64 == 0;

    switch (rng_word(s->seed, RNG_HADAMARD, ~(uint64_t)block) % 6) {
    case 0:
        return few ? (double)NAN : plain;
    case 1:
        return few ? sign * HUGE_VAL : plain;
    case 2:
        return -0.0;
    case 3:
        return sign * quantum * (double)(word >> 8 & 31);
    case 4:
        return sign * dtype_max(s->t) * (few ? 1.0 : 0.5);
    default:
        return plain;
    }
}

static double value_at(const struct source *s, int64_t row, int64_t col)
{
    const int64_t at = row * s->width + col, block = at / s->block;
    const uint64_t word = rng_word(s->seed, RNG_HADAMARD, (uint64_t)at);
    const int exponent = (int)(rng_word(s->seed, RNG_HADAMARD, ~(uint64_t)block) >> 60) - 8;
    double value =
        ldexp(random_value(word) * (1.0 + (double)(word & 0xffffff) * 0x1p-26), exponent);

    if (row % 2 == 0)
        value = (double)rng_below(word, 15) - 7.0;
    return s->special ? special_value(s, block, word, value) : value;
}

/* ---- the call -------------------------------------------------------------------------------- */

#define PART(name) offsetof(struct hum_hadamard_args, name)

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->hadamard(handle, args, reason);
}

static bool is_there(const struct hum_ops *ops)
{
    return ops->hadamard != NULL;
}

/* clang-format off */
static const struct op_change changes[] = {
    {"block_size of 0",    PART(block_size), OP_INT64, OP_SET, 0,    NULL},
    {"block_size of -2",   PART(block_size), OP_INT64, OP_SET, -2,   NULL},
    {"block_size of 3",    PART(block_size), OP_INT64, OP_SET, 3,    NULL},
    {"block_size of 1024", PART(block_size), OP_INT64, OP_SET, 1024, NULL},
};
/* clang-format on */

static void describe(const struct dtype *t, int64_t rows, int64_t width, int64_t block, void *data,
                     const uint32_t *want, struct op_call *call)
{
    const struct hum_hadamard_args args = {.block_size = block};
    struct op_part *outputs;

    op_call_init(call, "hadamard", &args, sizeof args);
    call->run = run;
    call->is_there = is_there;
    call->changes = changes;
    call->change_count = sizeof changes / sizeof changes[0];
    (void)op_call_add(call, "inputs", PART(inputs), OP_IN,
                      op_tensor_2(dtype_id(t), rows, width, data), t->bits);
    outputs = op_call_add(call, "outputs", PART(outputs), OP_OUT,
                          op_tensor_2(dtype_id(t), rows, width, NULL), t->bits);
    outputs->type = t;
    outputs->want = want;
    outputs->width = width;
}

/* ---- the problem ----------------------------------------------------------------------------- */

struct hadamard_own {
    uint64_t order_shows; /* outputs that another order of the stages would change */
};

static int64_t reversed(int64_t i, int64_t block)
{
    int64_t out = 0;

    for (int64_t bit = 1; bit < block; bit *= 2)
        out = 2 * out + (i & bit ? 1 : 0);
    return out;
}

/* The stages from the largest stride to the smallest are those of bits in reverse order. x: before
 * the transform. */
static uint64_t count_order(const struct source *s, int64_t count, const float *x,
                            const uint32_t *want)
{
    float y[REF_HADAMARD_MAX];
    uint64_t shows = 0;

    for (int64_t at = 0; at < count; at += s->block) {
        for (int64_t i = 0; i < s->block; i++)
            y[reversed(i, s->block)] = x[at + i];
        ref_hadamard(y, 1, s->block, s->block);
        for (int64_t i = 0; i < s->block; i++)
            shows +=
                dtype_encode(s->t, (double)y[reversed(i, s->block)], DTYPE_TO_TOP) != want[at + i];
    }
    return shows;
}

/* Fills bytes and x. */
static void fill(const struct source *s, int64_t count, uint8_t *bytes, float *x)
{
    const size_t size = s->t->bits / 8;

    for (int64_t i = 0; i < count; i++) {
        double value = value_at(s, i / s->width, i % s->width);
        uint32_t code = dtype_encode(s->t, value, DTYPE_TO_TOP);

        memcpy(bytes + (size_t)i * size, &code, size); /* little end first */
        x[i] = (float)dtype_decode(s->t, code);
    }
}

static const char *make(const int64_t v[AX_COUNT], uint32_t rules, struct arena *arena,
                        struct op_problem *out)
{
    const struct source s = {.t = layer_format(v[AX_INPUT]),
                             .seed = (uint64_t)v[AX_SEED],
                             .width = v[AX_K],
                             .block = v[AX_HADAMARD],
                             .special = v[AX_CHECK] == CHECK_SPECIAL};
    const int64_t count = v[AX_M] * v[AX_K];
    uint8_t *bytes = arena_alloc(arena, (size_t)count, s.t->bits / 8);
    float *x = arena_alloc(arena, (size_t)count, sizeof *x);
    float *y = arena_alloc(arena, (size_t)count, sizeof *y);
    uint32_t *want = arena_alloc(arena, (size_t)count, sizeof *want);
    struct op_call *call = ARENA_NEW(arena, 1, struct op_call);
    struct hadamard_own *own = ARENA_NEW(arena, 1, struct hadamard_own);

    (void)rules; /* no provider has one here */
    if (!bytes || !x || !y || !want || !call || !own)
        return no_memory;
    fill(&s, count, bytes, x);
    memcpy(y, x, (size_t)count * sizeof *y);
    ref_hadamard(y, v[AX_M], s.width, s.block);
    for (int64_t i = 0; i < count; i++)
        want[i] = dtype_encode(s.t, (double)y[i], DTYPE_TO_TOP);
    own->order_shows = count_order(&s, count, x, want);
    describe(s.t, v[AX_M], s.width, s.block, bytes, want, call);
    *out = (struct op_problem){.v = v, .calls = call, .count = 1, .own = own};
    return NULL;
}

/* 16-bit outputs hide what f32 sums lose. */
static const char *trust(const struct op_problem *p, char *buf, size_t size)
{
    const struct hadamard_own *own = p->own;

    if (p->v[AX_CHECK] != CHECK_EXACT || layer_format(p->v[AX_INPUT])->bits != 32 ||
        p->v[AX_HADAMARD] < 4 || own->order_shows)
        return NULL;
    (void)snprintf(buf, size,
                   "no output depends on the order of the stages, so that a wrong order would not "
                   "show");
    return buf;
}

void family_hadamard(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                     size_t end, const struct runner_hooks *hooks)
{
    static const struct op_family family = {"hadamard", make, NULL, trust, true};

    (void)problem;
    op_family_run(&family, r, plan, begin, end, hooks);
}
