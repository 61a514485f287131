#include "harness/kernel/plan_resolve.h"

#include "harness/kernel/legal.h"
#include "harness/kernel/legal_parts.h"
#include "harness/kernel/words.h"

#include <string.h>

/* Below so many rows, bf16 outputs leave fill E1 too little room. */
enum { E1_BF16_MIN_M = 16 };

static int64_t row_of(const char *name)
{
    return dtype_find(name) - dtypes;
}

static int64_t up_to(int64_t size, int64_t multiple)
{
    return (multiple - size % multiple) % multiple;
}

static int64_t resolve_c(const int64_t *v)
{
    return legal_type(v, AX_A)->bits == 16 ? v[AX_A] : row_of("bf16");
}

static int64_t resolve_bs(const int64_t *v)
{
    return v[AX_SCALE] == SCALE_BLOCK || v[AX_SCALE] == SCALE_TENSOR ? row_of("f32") : v[AX_C];
}

static int64_t resolve_pad_n(const int64_t *v)
{
    return up_to(v[AX_N], 64);
}

static int64_t resolve_pad_k(const int64_t *v)
{
    return up_to(v[AX_K], 512 / legal_type(v, AX_A)->bits);
}

static int64_t resolve_group(const int64_t *v)
{
    return v[AX_SCALE] == SCALE_GROUP || v[AX_SCALE] == SCALE_BLOCK ? 128 : 0;
}

static int64_t resolve_group_n(const int64_t *v)
{
    return v[AX_SCALE] == SCALE_BLOCK ? 128 : 0;
}

static int64_t resolve_fused(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A);
    bool int8_or_e4m3 = a->bits == 8 && (legal_is_int(a) || legal_is_float(a, 4, 3));

    return int8_or_e4m3 && legal_is_float(legal_type(v, AX_B), 2, 1) &&
           legal_is_scale_float(legal_type(v, AX_BS), 8, 0) && v[AX_SCALE] == SCALE_GROUP;
}

static int64_t resolve_int_scale(const int64_t *v)
{
    return legal_is_int(legal_type(v, AX_A)) && v[AX_SCALE] == SCALE_GROUP &&
           v[AX_INPUT_GROUP] == 0 && v[AX_SCALE_2] != SCALE_2_CHANNEL && v[AX_GROUP_N] <= 1 &&
           !v[AX_FUSED];
}

/* Fill E1 wants outputs that one rounding makes; where an output is rounded more than once (f16
 * accumulators, sums of Stream-K slices) or bf16 leaves a few rows too little room, E2 is exact. */
static int64_t resolve_fill(const int64_t *v)
{
    bool few_rows = legal_is_float(legal_type(v, AX_C), 8, 7) && v[AX_M] < E1_BF16_MIN_M;

    if (v[AX_CHECK] == CHECK_EXACT)
        return v[AX_F16_ACCUM] || v[AX_STREAM_K] || few_rows ? FILL_E2 : FILL_E1;
    return v[AX_CHECK] == CHECK_READOUT ? FILL_P : FILL_R;
}

#define BIT AXIS_BIT

/* A rule stands below those whose result it reads. c, bs, int scale and fused are upstream
 * Humming's own (its layer configuration's defaults); the others are this harness'. */
/* clang-format off */
static const struct {
    enum axis_id axis;
    uint64_t reads;
    int64_t (*value)(const int64_t *v);
} rules[] = {
    {AX_C,         BIT(AX_A),                                                resolve_c},
    {AX_BS,        BIT(AX_SCALE) | BIT(AX_C),                                resolve_bs},
    {AX_PAD_N,     BIT(AX_N),                                                resolve_pad_n},
    {AX_PAD_K,     BIT(AX_K) | BIT(AX_A),                                    resolve_pad_k},
    {AX_GROUP,     BIT(AX_SCALE),                                            resolve_group},
    {AX_GROUP_N,   BIT(AX_SCALE),                                            resolve_group_n},
    {AX_FUSED,     BIT(AX_A) | BIT(AX_B) | BIT(AX_BS) | BIT(AX_SCALE),       resolve_fused},
    {AX_INT_SCALE, BIT(AX_A) | BIT(AX_SCALE) | BIT(AX_INPUT_GROUP) | BIT(AX_SCALE_2) |
                   BIT(AX_GROUP_N) | BIT(AX_FUSED),                          resolve_int_scale},
    {AX_FILL,      BIT(AX_CHECK) | BIT(AX_F16_ACCUM) | BIT(AX_STREAM_K) | BIT(AX_C) |
                   BIT(AX_M),                                                resolve_fill},
};
/* clang-format on */

uint64_t plan_resolve(int64_t v[AX_COUNT], uint64_t known, uint64_t seed,
                      uint64_t decided_by[AX_COUNT])
{
    for (int x = 0; x < AX_COUNT; x++)
        decided_by[x] = AXIS_BIT(x);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        enum axis_id x = rules[i].axis;

        if (!(known & AXIS_BIT(x)) || v[x] != AXIS_AUTO)
            continue;
        if (rules[i].reads & ~known) {
            known &= ~AXIS_BIT(x);
            continue;
        }
        v[x] = rules[i].value(v);
        for (uint64_t reads = rules[i].reads; reads; reads &= reads - 1)
            decided_by[x] |= decided_by[__builtin_ctzll(reads)];
    }
    if (known & AXIS_BIT(AX_SEED) && v[AX_SEED] == AXIS_AUTO)
        memcpy(&v[AX_SEED], &seed, sizeof seed);
    return known;
}
