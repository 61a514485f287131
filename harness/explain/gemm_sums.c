/* Sums: k that is lost or added twice, narrow accumulators, slices, orders. */
#include "harness/explain/gemm.h"
#include "harness/explain/gemm_variants.h"

#include "reference/round.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const struct ref_gemm *gemm(const struct probe *p)
{
    return &gemm_of(p)->q->ref;
}
static bool is_float(const struct probe *p)
{
    return gemm(p)->a->is_float;
}
static bool has_f32_sums(const struct probe *p)
{
    return is_float(p) && !gemm(p)->f16_accum;
}
static bool has_f16_sums(const struct probe *p)
{
    return gemm(p)->f16_accum;
}
static bool has_flush(const struct probe *p)
{
    return ref_scales_on_c(gemm(p)) || gemm(p)->input_group;
}
static bool has_float_flush(const struct probe *p)
{
    return has_flush(p) && !gemm(p)->int_scale;
}
static bool has_int_scale(const struct probe *p)
{
    return gemm(p)->int_scale;
}
static bool has_warps(const struct probe *p)
{
    return gemm_of(p)->tuning.block_k > gemm_of(p)->tuning.warp_k;
}
static bool has_slices(const struct probe *p)
{
    return gemm_of(p)->tuning.use_stream_k;
}
static bool has_f16_slices(const struct probe *p)
{
    return has_slices(p) && gemm(p)->c == dtype_find("f16");
}

/* ---- which k --------------------------------------------------------------------------------- */

/* The last 1, 2, ..., 64 k, or 128. */
static int64_t tails(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    int64_t count = gemm_count_up(65, out);

    (void)all;
    for (int64_t i = 0; i < count; i++)
        out[i] = i < 64 ? i + 1 : 128;
    return count;
}
static int times_tail(const struct twin *t, int64_t row, int64_t col, int64_t l)
{
    (void)row;
    (void)col;
    return l < t->ref.k - t->variant;
}
static void k_tail_dropped(struct twin *t)
{
    t->none = t->variant >= t->ref.k;
    t->times = times_tail;
}
static void tail_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                        char buf[HYPOTHESIS_DETAIL])
{
    (void)h;
    (void)snprintf(buf, HYPOTHESIS_DETAIL, "the last %" PRId64 " of %" PRId64, variant, gemm(p)->k);
}

/* Blocks of 8 << (variant % 8) k, number variant / 8. */
static int64_t blocks(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    int64_t k = gemm(&all->items[0])->k, count = 0;

    for (int64_t size = 0; size < 6; size++)
        for (int64_t b = 0; b * (8 << size) < k && b < 64; b++)
            out[count++] = b * 8 + size;
    return count;
}
static int times_block(const struct twin *t, int64_t row, int64_t col, int64_t l)
{
    (void)row;
    (void)col;
    return l / (8 << t->variant % 8) == t->variant / 8 ? 2 : 1;
}
static void k_block_twice(struct twin *t)
{
    t->times = times_block;
}
static int times_none(const struct twin *t, int64_t row, int64_t col, int64_t l)
{
    (void)row;
    (void)col;
    return l / (8 << t->variant % 8) != t->variant / 8;
}
static void k_block_lost(struct twin *t)
{
    t->none =
        t->ref.k <= 8 << t->variant % 8 || (t->variant / 8 + 1) * (8 << t->variant % 8) >= t->ref.k;
    t->times = times_none;
}
static void block_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                         char buf[HYPOTHESIS_DETAIL])
{
    int64_t size = 8 << variant % 8;

    (void)h;
    (void)p;
    (void)snprintf(buf, HYPOTHESIS_DETAIL, "k = %" PRId64 " to %" PRId64, variant / 8 * size,
                   (variant / 8 + 1) * size - 1);
}

/* ---- accumulators ---------------------------------------------------------------------------- */

static double narrow_f16(const struct twin *t, double sum)
{
    return round_to(t->f16, sum);
}
/* Variant 1: after each addition. */
static void f16_accumulator(struct twin *t)
{
    t->accumulator = ACCUMULATOR_F16;
    t->narrow = t->variant ? narrow_f16 : NULL;
}
static void f32_accumulator(struct twin *t)
{
    t->accumulator = ACCUMULATOR_F32;
}

/* 13 bits, with or without the leading one, after each instruction or each addition. */
static double narrow_13(const struct twin *t, double sum)
{
    int bits = t->variant & 1 ? 13 : 14, e;

    if (sum == 0.0 || !isfinite(sum))
        return sum;
    (void)frexp(sum, &e);
    return ldexp(trunc(ldexp(sum, bits - e)), e - bits);
}
static void accumulator_13_bits(struct twin *t)
{
    t->narrow = narrow_13;
    t->narrow_instruction = !(t->variant & 2);
}

static void opposite_infinities(struct twin *t)
{
    t->opposite_is_zero = true;
}

/* ---- flushes --------------------------------------------------------------------------------- */

static void flush_at_group_end(struct twin *t)
{
    int64_t q = ref_scales_on_c(&t->ref) ? t->ref.group : 0;

    if (t->ref.input_group && (!q || t->ref.input_group < q))
        q = t->ref.input_group;
    t->flush_k = q;
}
static void flush_each_instruction(struct twin *t)
{
    t->flush_k = 256 / t->ref.a->bits;
}
static void flush_two_roundings(struct twin *t)
{
    t->flush_apart = true;
}
static void int32_saturates(struct twin *t)
{
    t->saturate_int = true;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static bool every_row(const struct twin *t, int64_t row)
{
    (void)t;
    (void)row;
    return true;
}
static bool odd_row(const struct twin *t, int64_t row)
{
    return row % t->g->tuning.block_m % 2 == 1;
}
/* Variant 1: in odd rows of a tile. */
static void k_order_reversed(struct twin *t)
{
    t->reversed = t->variant ? odd_row : every_row;
}
static void warps_in_order(struct twin *t)
{
    t->warps_in_line = true;
}
static bool last_warp(const struct twin *t, int64_t warp, int64_t warps)
{
    return warps > 1 && warp == (t->variant ? 0 : warps - 1);
}
/* Variant 1: the first. */
static void warp_lost(struct twin *t)
{
    t->loses_warp = last_warp;
}
/* Half, a quarter, twice, four times as many k a warp. */
static void other_warps(struct twin *t)
{
    int64_t own = t->g->tuning.warp_k;

    t->warp_k = t->variant < 2 ? own >> (t->variant + 1) : own << (t->variant - 1);
    t->none = t->warp_k > t->g->tuning.block_k || t->warp_k < 16;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static double bf16_slices(const struct twin *t, enum twin_rounding where, double x)
{
    if (where == ROUND_SLICES)
        x = round_to(dtype_find("bf16"), x);
    return round_to(t->ref.c, x);
}
static void slices_in_bf16(struct twin *t)
{
    t->round = bf16_slices;
}
/* Variant 1: slice 0 stays the first. */
static void slices_reversed(struct twin *t)
{
    t->slices = t->variant ? SLICES_BACKWARDS_BUT_0 : SLICES_BACKWARDS;
}

static bool in_last_tile(const struct twin *t, int64_t row, int64_t col)
{
    const struct hum_tuning_config *tuning = &t->g->tuning;
    bool dense = t->q->routing.type == HUM_GEMM_DENSE;
    bool row_is = dense ? row / tuning->block_m == (t->g->rows - 1) / tuning->block_m
                        : routing_tile_of(&t->g->routing, row) == t->g->routing.row_tiles - 1;

    return row_is && col / tuning->block_n == (t->g->layer.shape_n - 1) / tuning->block_n;
}
/* The last slice of the last tile, of every tile; the first but one likewise. */
static bool loses_slice(const struct twin *t, int64_t row, int64_t col, int slice)
{
    int slices = t->order.accum.slices;

    return slices > 1 && slice == (t->variant < 2 ? slices - 1 : 1) &&
           (t->variant % 2 == 1 || in_last_tile(t, row, col));
}
static void slice_lost(struct twin *t)
{
    t->loses = loses_slice;
}

/* clang-format off */
static const struct hypothesis rows[] = {
    {.name = "k-tail-dropped", .sentence = "the last k take no part", .variants = tails,
     .detail = tail_detail, GEMM_TWIST(k_tail_dropped)},
    {.name = "k-block-twice", .sentence = "a block of k is accumulated twice", .variants = blocks,
     .detail = block_detail, GEMM_TWIST(k_block_twice)},
    {.name = "k-block-lost", .sentence = "a block of k takes no part", .variants = blocks,
     .detail = block_detail, GEMM_TWIST(k_block_lost)},
    {.name = "f16-accumulator", .sentence = "the accumulator is f16 though f32 was asked for",
     .applies = has_f32_sums, .variants = gemm_variants_2, GEMM_TWIST(f16_accumulator)},
    {.name = "f32-accumulator", .sentence = "the accumulator is f32 though f16 was asked for",
     .applies = has_f16_sums, GEMM_TWIST(f32_accumulator)},
    {.name = "accumulator-13-bits", .sentence = "the accumulator is cut to 13 bits",
     .applies = is_float, .variants = gemm_variants_4, GEMM_TWIST(accumulator_13_bits)},
    {.name = "inf-minus-inf-is-0", .sentence = "a sum of opposite infinities is 0 instead of NaN",
     .applies = is_float, GEMM_TWIST(opposite_infinities)},
    {.name = "flush-at-group-end",
     .sentence = "the accumulator is flushed at the ends of groups alone, not at those of warps",
     .applies = has_flush, GEMM_TWIST(flush_at_group_end)},
    {.name = "flush-each-instruction",
     .sentence = "the accumulator is flushed after each instruction",
     .applies = has_flush, GEMM_TWIST(flush_each_instruction)},
    {.name = "flush-two-roundings",
     .sentence = "product and sum of a flush are rounded apart instead of fused",
     .applies = has_float_flush, GEMM_TWIST(flush_two_roundings)},
    {.name = "int32-saturates", .sentence = "integer sums saturate instead of wrapping",
     .applies = has_int_scale, GEMM_TWIST(int32_saturates)},
    {.name = "k-order-reversed", .sentence = "inside an instruction k is summed downwards",
     .applies = is_float, .variants = gemm_variants_2, GEMM_TWIST(k_order_reversed)},
    {.name = "k-warps-in-order",
     .sentence = "the sums of K-warps are added one after the other instead of as a tree",
     .applies = has_warps, GEMM_TWIST(warps_in_order)},
    {.name = "k-warp-lost", .sentence = "the sum of a K-warp is lost", .applies = has_warps,
     .variants = gemm_variants_2, GEMM_TWIST(warp_lost)},
    {.name = "other-k-warps", .sentence = "k is divided among another number of K-warps",
     .applies = is_float, .variants = gemm_variants_4, GEMM_TWIST(other_warps)},
    {.name = "slices-in-bf16", .sentence = "sums of f16 slices are rounded to bf16 first",
     .applies = has_f16_slices, GEMM_TWIST(slices_in_bf16)},
    {.name = "slice-order-reversed",
     .sentence = "the slices of a tile are added from the last to the first",
     .applies = has_slices, .variants = gemm_variants_2, GEMM_TWIST(slices_reversed)},
    {.name = "slice-lost", .sentence = "a slice of a tile is lost", .applies = has_slices,
     .variants = gemm_variants_4, GEMM_TWIST(slice_lost)},
};
/* clang-format on */

GEMM_TABLE(gemm_sums_hypotheses, rows);
