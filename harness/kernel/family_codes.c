/* dequant_weight and pack (with unpack): codes in, numbers or words out, and back. */
#include "harness/kernel/op_family.h"

#include "harness/kernel/layer.h"
#include "harness/kernel/words.h"
#include "reference/pack.h"
#include "reference/rng.h"

#include <stdio.h>
#include <string.h>

static const char no_memory[] = "the problem needs more memory than the limit of a worker";

enum { MAX_CODES = 256 };

/* What must occur: each code in each of `columns` columns. */
struct coverage {
    uint32_t codes;
    int64_t columns;
    const uint32_t *data; /* count codes, column i % columns; upper bits do not count */
    int64_t count;
};

static const char *coverage_refuses(const struct op_problem *p, char *buf, size_t size)
{
    const struct coverage *c = p->own;

    if (p->v[AX_CHECK] != CHECK_EXHAUSTIVE)
        return NULL;
    for (int64_t column = 0; column < c->columns; column++) {
        bool seen[MAX_CODES] = {false};
        uint32_t count = 0;

        for (int64_t i = column; i < c->count; i += c->columns) {
            const uint32_t code = c->data[i] & (c->codes - 1u);

            count += !seen[code];
            seen[code] = true;
        }
        if (count == c->codes)
            continue;
        (void)snprintf(buf, size, "only %u of %u codes occur", count, c->codes);
        return buf;
    }
    return NULL;
}

/* ---- dequant_weight -------------------------------------------------------------------------- */

static enum hum_code run_dequant(const struct hum_ops *ops, void *handle, const void *args,
                                 char reason[HUM_REASON_BYTES])
{
    return ops->dequant_weight(handle, args, reason);
}

static bool has_dequant(const struct hum_ops *ops)
{
    return ops->dequant_weight != NULL;
}

#define AT(field) offsetof(struct hum_dequant_weight_args, field)

/* clang-format off */
static const struct op_change dequant_changes[] = {
    {"source_dtype of 0",       AT(source_dtype), OP_INT32, OP_SET, 0,        NULL},
    {"an unknown source_dtype", AT(source_dtype), OP_INT32, OP_SET, 99,       NULL},
    {"source_dtype float16",    AT(source_dtype), OP_INT32, OP_SET, HUM_F16,  NULL},
    {"source_dtype int8",       AT(source_dtype), OP_INT32, OP_SET, HUM_INT8, NULL},
    {"source_dtype float8e8m0", AT(source_dtype), OP_INT32, OP_SET, HUM_E8M0, NULL},
    {"source_dtype float4e0m3", AT(source_dtype), OP_INT32, OP_SET, HUM_E0M3, NULL},
};
/* clang-format on */

/* Every code in turn, then random ones. */
static uint32_t any_code(const int64_t *v, int64_t i, uint32_t codes)
{
    if (i < codes)
        return (uint32_t)i;
    return (uint32_t)rng_word((uint64_t)v[AX_SEED], RNG_CODES, (uint64_t)i) & (codes - 1u);
}

static const char *make_dequant(const int64_t v[AX_COUNT], uint32_t rules, struct arena *arena,
                                struct op_problem *out)
{
    const struct dtype *t = layer_format(v[AX_B]);
    const struct hum_dequant_weight_args args = {.source_dtype = dtype_id(t)};
    const int64_t n = v[AX_M];
    uint32_t *codes = arena_alloc(arena, (size_t)n + 1, sizeof *codes);
    uint32_t *want = arena_alloc(arena, (size_t)n + 1, sizeof *want);
    float *values = arena_alloc(arena, (size_t)n + 1, sizeof *values);
    struct op_call *call = ARENA_NEW(arena, 1, struct op_call);
    struct coverage *coverage = ARENA_NEW(arena, 1, struct coverage);
    struct op_part *part;

    (void)rules; /* no provider has one here */
    if (!codes || !want || !values || !call || !coverage)
        return no_memory;
    for (int64_t i = 0; i < n; i++)
        codes[i] = any_code(v, i, UINT32_C(1) << t->bits);
    ref_dequant_weight(t, codes, n, values);
    memcpy(want, values, (size_t)n * sizeof *want);
    op_call_init(call, "dequant_weight", &args, sizeof args);
    call->run = run_dequant;
    call->is_there = has_dequant;
    call->changes = dequant_changes;
    call->change_count = sizeof dequant_changes / sizeof dequant_changes[0];
    (void)op_call_add(call, "codes", AT(codes), OP_IN, op_tensor_1(HUM_INT32, n, codes), 32);
    part = op_call_add(call, "outputs", AT(outputs), OP_OUT, op_tensor_1(HUM_F32, n, NULL), 32);
    part->type = dtype_find("f32");
    part->want = want;
    *coverage = (struct coverage){UINT32_C(1) << t->bits, 1, codes, n};
    *out = (struct op_problem){.v = v, .calls = call, .count = 1, .own = coverage};
    return NULL;
}

#undef AT

void family_dequant_weight(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                           size_t end, const struct runner_hooks *hooks)
{
    static const struct op_family family = {
        .name = "dequant_weight", .make = make_dequant, .trust = coverage_refuses, .empty = true};

    (void)problem;
    op_family_run(&family, r, plan, begin, end, hooks);
}

/* ---- pack and unpack ------------------------------------------------------------------------- */

static enum hum_code run_pack(const struct hum_ops *ops, void *handle, const void *args,
                              char reason[HUM_REASON_BYTES])
{
    return ops->pack(handle, args, reason);
}

static enum hum_code run_unpack(const struct hum_ops *ops, void *handle, const void *args,
                                char reason[HUM_REASON_BYTES])
{
    return ops->unpack(handle, args, reason);
}

static bool has_pack(const struct hum_ops *ops)
{
    return ops->pack != NULL;
}

static bool has_unpack(const struct hum_ops *ops)
{
    return ops->unpack != NULL;
}

#define AT(field) offsetof(struct hum_pack_args, field)

/* clang-format off */
static const struct op_change pack_changes[] = {
    {"bits of 0",            AT(bits), OP_INT32, OP_SET, 0,  NULL},
    {"bits of 9",            AT(bits), OP_INT32, OP_SET, 9,  NULL},
    {"bits of -4",           AT(bits), OP_INT32, OP_SET, -4, NULL},
    {"one bit more",         AT(bits), OP_INT32, OP_ADD, 1,  NULL},
    {"one bit fewer",        AT(bits), OP_INT32, OP_ADD, -1, NULL},
};
/* clang-format on */

struct codes {
    int64_t rows, cols, words; /* of a row */
    int bits;
    uint32_t *given; /* codes with more bits than count */
    uint32_t *codes; /* without them */
    uint32_t *packed;
};

/* exhaustive: down each column every code in turn. */
static void fill_codes(const int64_t *v, const struct codes *c)
{
    const uint32_t mask = (UINT32_C(1) << c->bits) - 1u;

    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t col = 0; col < c->cols; col++) {
            const int64_t i = row * c->cols + col;
            uint32_t word = (uint32_t)rng_word((uint64_t)v[AX_SEED], RNG_CODES, (uint64_t)i);

            if (v[AX_CHECK] == CHECK_EXHAUSTIVE)
                word = (word & ~mask) | ((uint32_t)(row + 37 * col) & mask);
            c->given[i] = word;
            c->codes[i] = word & mask;
        }
}

static void pack_rows(const struct codes *c, uint8_t *narrow)
{
    for (int64_t row = 0; row < c->rows; row++) {
        for (int64_t col = 0; col < c->cols; col++)
            narrow[col] = (uint8_t)c->codes[row * c->cols + col];
        pack_row(narrow, (size_t)c->cols, c->bits, c->packed + row * c->words);
    }
}

static void add_pack_tensors(struct op_call *call, const struct codes *c, bool packing)
{
    const enum op_role codes_role = packing ? OP_IN : OP_OUT;
    const enum op_role packed_role = packing ? OP_OUT : OP_IN;
    struct op_part *part;

    part = op_call_add(call, "codes", AT(codes), codes_role,
                       op_tensor_2(HUM_INT32, c->rows, c->cols, packing ? c->given : NULL), 32);
    part->width = c->cols;
    part->want = packing ? NULL : c->codes;
    part = op_call_add(call, "packed", AT(packed), packed_role,
                       op_tensor_2(HUM_INT32, c->rows, c->words, packing ? NULL : c->packed), 32);
    part->width = c->words;
    part->want = packing ? c->packed : NULL;
}

/* Both are exact, and each begins with what the other must give: so the round trip is too. */
static void make_pack_calls(struct op_call calls[2], const struct codes *c)
{
    const struct hum_pack_args args = {.bits = c->bits};

    op_call_init(&calls[0], "pack", &args, sizeof args);
    op_call_init(&calls[1], "unpack", &args, sizeof args);
    calls[0].run = run_pack;
    calls[1].run = run_unpack;
    calls[0].is_there = has_pack;
    calls[1].is_there = has_unpack;
    for (int i = 0; i < 2; i++) {
        add_pack_tensors(&calls[i], c, i == 0);
        calls[i].changes = pack_changes;
        calls[i].change_count = sizeof pack_changes / sizeof pack_changes[0];
    }
}

static const char *make_pack(const int64_t v[AX_COUNT], uint32_t rules, struct arena *arena,
                             struct op_problem *out)
{
    struct codes c = {.rows = v[AX_M], .cols = v[AX_K], .bits = (int)v[AX_BITS]};
    const size_t count = (size_t)(c.rows * c.cols);
    struct op_call *calls = ARENA_NEW(arena, 2, struct op_call);
    struct coverage *coverage = ARENA_NEW(arena, 1, struct coverage);
    uint8_t *narrow = arena_alloc(arena, (size_t)c.cols, 1);

    (void)rules; /* no provider has one here */
    c.words = (int64_t)pack_words((size_t)c.cols, c.bits);
    c.given = arena_alloc(arena, count + 1, sizeof *c.given);
    c.codes = arena_alloc(arena, count + 1, sizeof *c.codes);
    c.packed = arena_alloc(arena, (size_t)(c.rows * c.words) + 1, sizeof *c.packed);
    if (!calls || !coverage || !narrow || !c.given || !c.codes || !c.packed)
        return no_memory;
    fill_codes(v, &c);
    pack_rows(&c, narrow);
    make_pack_calls(calls, &c);
    *coverage = (struct coverage){UINT32_C(1) << c.bits, c.cols, c.codes, (int64_t)count};
    *out = (struct op_problem){.v = v, .calls = calls, .count = 2, .own = coverage};
    return NULL;
}

void family_pack(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                 size_t end, const struct runner_hooks *hooks)
{
    static const struct op_family family = {
        .name = "pack", .make = make_pack, .trust = coverage_refuses, .empty = true};

    (void)problem;
    op_family_run(&family, r, plan, begin, end, hooks);
}
