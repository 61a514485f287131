/* legal_parts.h - what the rules of legal.c are made of: predicates on formats, and the rules about
 * tiles.
 *
 * Private to the legality table and to "auto" (plan_resolve.c).
 */
#ifndef HARNESS_KERNEL_LEGAL_PARTS_H
#define HARNESS_KERNEL_LEGAL_PARTS_H

#include "harness/config/axes.h"
#include "reference/dtype.h"

/* The row of the format that axis x names. */
static inline const struct dtype *legal_type(const int64_t *v, enum axis_id x)
{
    return &dtypes[v[x]];
}

static inline bool legal_is_float(const struct dtype *t, int exponent, int mantissa)
{
    return t->is_float && t->is_signed && t->exp_bits == exponent && t->man_bits == mantissa;
}

static inline bool legal_is_scale_float(const struct dtype *t, int exponent, int mantissa)
{
    return t->is_float && !t->is_signed && t->exp_bits == exponent && t->man_bits == mantissa;
}

static inline bool legal_is_f16_or_bf16(const struct dtype *t)
{
    return legal_is_float(t, 5, 10) || legal_is_float(t, 8, 7);
}

static inline bool legal_is_int(const struct dtype *t)
{
    return !t->is_float && t->is_signed;
}

static inline bool legal_is_uint(const struct dtype *t)
{
    return !t->is_float && !t->is_signed;
}

static inline bool legal_is_power_of_two(int64_t x)
{
    return x > 0 && !(x & (x - 1));
}

static inline bool legal_has_16_bits(const int64_t *v)
{
    return legal_type(v, AX_A)->bits == 16;
}

static inline int64_t legal_shape_n(const int64_t *v)
{
    return v[AX_N] + v[AX_PAD_N];
}

static inline int64_t legal_shape_k(const int64_t *v)
{
    return v[AX_K] + v[AX_PAD_K];
}

/* legal_tiles.c: rules about tuning, one for each row of the table. An auto tile holds. */
bool legal_tiles_together(const int64_t *v);
bool legal_block_size(const int64_t *v);
bool legal_block_n_fits(const int64_t *v);
bool legal_block_k_fits(const int64_t *v);
bool legal_warp_n_size(const int64_t *v);
bool legal_warp_k_size(const int64_t *v);
bool legal_warp_m_size(const int64_t *v);
bool legal_tile_ratio(const int64_t *v);
bool legal_threads(const int64_t *v);
bool legal_warp_spec_threads(const int64_t *v);
bool legal_invariant_stream_k(const int64_t *v);
bool legal_invariant_k_warps(const int64_t *v);
bool legal_wgmma_format(const int64_t *v);
bool legal_wgmma_warps(const int64_t *v);
bool legal_wgmma_stages(const int64_t *v);
bool legal_mxmma_f16_accum(const int64_t *v);
bool legal_mxmma_zero(const int64_t *v);
bool legal_write_splits_tma(const int64_t *v);
bool legal_write_splits_m(const int64_t *v);

#endif
