#include "harness/kernel/layer.h"
#include "harness/kernel/legal_parts.h"
#include "harness/kernel/words.h"

static bool is_auto(const int64_t *v, enum axis_id x)
{
    return v[x] == AXIS_AUTO;
}

bool legal_tiles_together(const int64_t *v)
{
    return is_auto(v, AX_BLOCK) == is_auto(v, AX_WARP);
}

bool legal_block_size(const int64_t *v)
{
    int64_t t = v[AX_BLOCK];

    return is_auto(v, AX_BLOCK) ||
           (axis_tile_m(t) <= 256 && legal_is_power_of_two(axis_tile_n(t)) &&
            legal_is_power_of_two(axis_tile_k(t)));
}

bool legal_block_n_fits(const int64_t *v)
{
    int64_t n = axis_tile_n(v[AX_BLOCK]);

    return is_auto(v, AX_BLOCK) || (n > 0 && legal_shape_n(v) % n == 0);
}

bool legal_block_k_fits(const int64_t *v)
{
    int64_t k = axis_tile_k(v[AX_BLOCK]);

    return is_auto(v, AX_BLOCK) || (k > 0 && legal_shape_k(v) % k == 0);
}

bool legal_warp_n_size(const int64_t *v)
{
    int64_t n = axis_tile_n(v[AX_WARP]);

    return is_auto(v, AX_WARP) ||
           (legal_is_power_of_two(n) && n >= (legal_has_16_bits(v) ? 32 : 16) && n <= 64);
}

bool legal_warp_k_size(const int64_t *v)
{
    int64_t k = axis_tile_k(v[AX_WARP]);

    return is_auto(v, AX_WARP) ||
           (legal_is_power_of_two(k) && k >= 512 / legal_type(v, AX_A)->bits);
}

/* mma.sync has 16 rows, 8 only for integers; wgmma has columns instead: multiples of 8, and of 16
 * for int8 beyond 32. */
bool legal_warp_m_size(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A);
    int64_t m = axis_tile_m(v[AX_WARP]);
    int64_t multiple = 8;

    if (is_auto(v, AX_WARP))
        return true;
    if (v[AX_MMA] == MMA_MMA && a->is_float)
        multiple = 16;
    if (v[AX_MMA] == MMA_WGMMA && legal_is_int(a) && m > 32)
        multiple = 16;
    return m > 0 && m % multiple == 0;
}

static bool has_tiles(const int64_t *v)
{
    return !is_auto(v, AX_BLOCK) && !is_auto(v, AX_WARP);
}

static bool is_ratio(int64_t block, int64_t warp)
{
    return warp > 0 && block % warp == 0 && legal_is_power_of_two(block / warp);
}

bool legal_tile_ratio(const int64_t *v)
{
    int64_t b = v[AX_BLOCK], w = v[AX_WARP];

    return !has_tiles(v) ||
           (is_ratio(axis_tile_m(b), axis_tile_m(w)) && is_ratio(axis_tile_n(b), axis_tile_n(w)) &&
            is_ratio(axis_tile_k(b), axis_tile_k(w)));
}

/* 0 for a warp without size, which tile_ratio refuses. */
static int64_t quotient(int64_t block, int64_t warp)
{
    return warp ? block / warp : 0;
}

static int64_t warps(const int64_t *v)
{
    int64_t b = v[AX_BLOCK], w = v[AX_WARP];

    return quotient(axis_tile_m(b), axis_tile_m(w)) * quotient(axis_tile_n(b), axis_tile_n(w)) *
           quotient(axis_tile_k(b), axis_tile_k(w));
}

/* A warp has 32 threads; the producer of warp specialization adds 128; CUDA allows 1024 in a
 * thread block. */
bool legal_threads(const int64_t *v)
{
    return !has_tiles(v) || warps(v) * 32 + (v[AX_WARP_SPEC] ? 128 : 0) <= 1024;
}

bool legal_warp_spec_threads(const int64_t *v)
{
    return !v[AX_WARP_SPEC] || !has_tiles(v) || warps(v) % 4 == 0;
}

bool legal_tuning(const int64_t *v)
{
    return v[AX_TUNING] == TUNING_AXES ||
           (is_auto(v, AX_BLOCK) && is_auto(v, AX_WARP) && is_auto(v, AX_STAGES) &&
            !v[AX_STREAM_K] && v[AX_NUM_SMS] == 0 && v[AX_CTAS] == 1 && !v[AX_WARP_SPEC] &&
            !v[AX_TMA] && v[AX_WRITE_SPLITS] == 1 && v[AX_RASTER] == 1);
}

bool legal_invariant_stream_k(const int64_t *v)
{
    return !v[AX_BATCH_INVARIANT] || !v[AX_STREAM_K];
}

bool legal_invariant_k_warps(const int64_t *v)
{
    return !v[AX_BATCH_INVARIANT] || !has_tiles(v) ||
           axis_tile_k(v[AX_WARP]) == axis_tile_k(v[AX_BLOCK]);
}

bool legal_wgmma_format(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A);

    return v[AX_MMA] != MMA_WGMMA || (legal_is_int(a) && a->bits == 8) || legal_is_f16_or_bf16(a) ||
           legal_is_float(a, 4, 3) || legal_is_float(a, 5, 2);
}

bool legal_wgmma_warps(const int64_t *v)
{
    return v[AX_MMA] != MMA_WGMMA || !has_tiles(v) ||
           quotient(axis_tile_n(v[AX_BLOCK]), axis_tile_n(v[AX_WARP])) % 4 == 0;
}

bool legal_wgmma_stages(const int64_t *v)
{
    return v[AX_MMA] != MMA_WGMMA || is_auto(v, AX_STAGES) || v[AX_STAGES] >= 3;
}

/* An instruction reads a row of swizzled shared memory: 128 bytes. */
bool legal_wgmma_warp_k(const int64_t *v)
{
    return v[AX_MMA] != MMA_WGMMA || is_auto(v, AX_WARP) ||
           axis_tile_k(v[AX_WARP]) * legal_type(v, AX_A)->bits <= 1024;
}

/* Weights of an even number of bits under 8-bit activations lie k by k where groups of scales are
 * 128 wide: a warp then takes 16 columns at a time, and k of whole rows of 128 bytes. */
bool legal_wgmma_packed_k(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A), *b = legal_type(v, AX_B);
    const bool packed = v[AX_MMA] == MMA_WGMMA && a->bits == 8 && b->bits < 8 && b->bits % 2 == 0 &&
                        v[AX_GROUP] == 128 && !v[AX_FUSED];

    return !packed || is_auto(v, AX_WARP) ||
           (axis_tile_n(v[AX_WARP]) >= 32 && axis_tile_k(v[AX_WARP]) == 128);
}

bool legal_mma_group_n(const int64_t *v)
{
    return v[AX_MMA] != MMA_MMA || legal_has_16_bits(v) || v[AX_SCALE] != SCALE_GROUP ||
           v[AX_FUSED] || is_auto(v, AX_BLOCK) || axis_tile_n(v[AX_BLOCK]) >= 64;
}

bool legal_mxmma_f16_accum(const int64_t *v)
{
    return v[AX_MMA] != MMA_MXMMA || !v[AX_F16_ACCUM];
}

bool legal_mxmma_zero(const int64_t *v)
{
    return v[AX_MMA] != MMA_MXMMA || v[AX_ZERO] == ZERO_NONE || !v[AX_STREAM_K];
}

bool legal_write_splits_tma(const int64_t *v)
{
    return v[AX_WRITE_SPLITS] == 1 || !layer_copies(v)->c;
}

bool legal_write_splits_m(const int64_t *v)
{
    int64_t m = axis_tile_m(v[AX_WARP]);

    return v[AX_WRITE_SPLITS] == 1 || !has_tiles(v) ||
           (axis_tile_m(v[AX_BLOCK]) == m && m % 32 == 0);
}

/* A box of a bulk tensor copy has at most 256 elements a side. */
bool legal_tma_zero(const int64_t *v)
{
    return !layer_copies(v)->scales || v[AX_ZERO] != ZERO_FLOAT || is_auto(v, AX_BLOCK) ||
           axis_tile_n(v[AX_BLOCK]) <= 256;
}

bool legal_tma_as(const int64_t *v)
{
    return !layer_copies(v)->as || v[AX_SCALE_LAYOUT] == SCALES_M_MAJOR;
}

static bool is_multicast(const int64_t *v)
{
    return layer_copies(v)->cast_a * layer_copies(v)->cast_b > 1;
}

bool legal_multicast_dense(const int64_t *v)
{
    return !is_multicast(v) || v[AX_GEMM_TYPE] == GEMM_DENSE;
}

bool legal_multicast_warp_spec(const int64_t *v)
{
    return !is_multicast(v) || v[AX_WARP_SPEC];
}

/* A pair of blocks that share A stand side by side. */
bool legal_multicast_n(const int64_t *v)
{
    const int64_t n = axis_tile_n(v[AX_BLOCK]) * layer_copies(v)->cast_a;

    return layer_copies(v)->cast_a == 1 || is_auto(v, AX_BLOCK) ||
           (n > 0 && legal_shape_n(v) % n == 0);
}
