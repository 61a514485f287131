/* Rules about the formats of activations, weights, scales and outputs. */
#include "harness/kernel/legal_parts.h"
#include "harness/kernel/words.h"

/* An 8-bit float has two rows: as activation it has NaN, as weight (top FINITE) it has not. */
bool legal_a_format(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A);
    bool float8 = legal_is_float(a, 4, 3) || legal_is_float(a, 5, 2) || legal_is_float(a, 3, 4);

    return legal_is_f16_or_bf16(a) || (float8 && a->top != DTYPE_TOP_FINITE) ||
           legal_is_float(a, 2, 1) || legal_is_float(a, 0, 3) ||
           (legal_is_int(a) && (a->bits == 8 || a->bits == 4));
}

bool legal_b_bits(const int64_t *v)
{
    const struct dtype *b = legal_type(v, AX_B);

    return b->bits <= 8 && b->bits <= legal_type(v, AX_A)->bits;
}

bool legal_b_kind(const int64_t *v)
{
    const struct dtype *b = legal_type(v, AX_B);

    return !b->is_float || (b->is_signed && b->top == DTYPE_TOP_FINITE);
}

bool legal_b_signed(const int64_t *v)
{
    const struct dtype *b = legal_type(v, AX_B);

    return !legal_is_int(b) || v[AX_A] == v[AX_B];
}

/* q - 2^(B-1) with B bits is a float of M mantissa bits when B <= M + 2: magnitudes up to 2^(M+1),
 * all M + 1 bit numbers. (e0m3 has no exponent to reach 2^M.) */
bool legal_b_uint_width(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A), *b = legal_type(v, AX_B);

    if (!legal_is_uint(b))
        return true;
    if (a->is_float)
        return a->exp_bits > 0 && b->bits <= a->man_bits + 2;
    return b->bits < a->bits;
}

bool legal_b_float_fields(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A), *b = legal_type(v, AX_B);

    if (!a->is_float || !b->is_float)
        return true;
    return b->exp_bits <= a->exp_bits && b->man_bits <= a->man_bits &&
           (b->exp_bits >= 1 || a->exp_bits == 0);
}

bool legal_b_float_under_int(const int64_t *v)
{
    return legal_type(v, AX_A)->is_float || !legal_type(v, AX_B)->is_float || v[AX_FUSED];
}

bool legal_c_format(const int64_t *v)
{
    return legal_is_f16_or_bf16(legal_type(v, AX_C));
}

bool legal_c_as_a(const int64_t *v)
{
    return !legal_has_16_bits(v) || v[AX_C] == v[AX_A];
}

bool legal_bs_format(const int64_t *v)
{
    const struct dtype *bs = legal_type(v, AX_BS);
    bool float8 = legal_is_float(bs, 4, 3) || legal_is_float(bs, 5, 2);

    return legal_is_f16_or_bf16(bs) || (float8 && bs->top != DTYPE_TOP_FINITE) ||
           legal_is_float(bs, 8, 23) || legal_is_scale_float(bs, 8, 0) ||
           legal_is_scale_float(bs, 5, 3);
}

bool legal_bs_as_c(const int64_t *v)
{
    return legal_type(v, AX_BS)->bits != 16 || v[AX_BS] == v[AX_C];
}

bool legal_bs_f32(const int64_t *v)
{
    bool wide = v[AX_SCALE] == SCALE_BLOCK || v[AX_SCALE] == SCALE_TENSOR;

    return wide == (legal_type(v, AX_BS)->bits == 32);
}
