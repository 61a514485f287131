/* gemm.h - one quantized product as the oracle sees it: codes in, exact accumulators and expected
 * codes out.
 *
 * struct ref_gemm describes operands and semantics (docs/semantics.md); it knows nothing of tiles,
 * providers or padding. With experts (section 10) the columns of all of them are numbered through:
 * column j of expert e is e * n + j, in the arrays and wherever a function takes a column. All
 * arrays are borrowed. The functions are pure: same input, same bits,
 * whatever the number of threads.
 */
#ifndef REFERENCE_GEMM_H
#define REFERENCE_GEMM_H

#include "reference/dtype.h"

#include <stddef.h>

enum ref_scale { REF_SCALE_CHANNEL, REF_SCALE_GROUP, REF_SCALE_BLOCK, REF_SCALE_TENSOR };
enum ref_scale_2 { REF_SCALE_2_NONE, REF_SCALE_2_TENSOR, REF_SCALE_2_CHANNEL };
enum ref_zero { REF_ZERO_NONE, REF_ZERO_INT, REF_ZERO_FLOAT };

struct ref_gemm {
    const struct dtype *a, *b, *c; /* b: a weight row of the table (every code finite) */
    const struct dtype
        *bs;         /* weight scale: f16, bf16, e4m3, e5m2, e8m0, e5m3, or f32 (block, tensor) */
    int64_t m, n, k; /* valid sizes, at least 1; n of one expert */
    int64_t experts; /* weight matrices; 0 reads as 1 */
    enum ref_scale scale;
    enum ref_scale_2 scale_2;
    enum ref_zero zero;
    int64_t group;       /* weight scales and zero points along k; 0: one for all of k */
    int64_t group_n;     /* block scales along n; else 1 */
    int64_t input_group; /* 0: one input scale a row */
    bool has_bias, f16_accum, int_scale, fused_e8m0;
    int fused_range;       /* R of semantics.md section 8 */
    bool block_on_operand; /* a rule of semantics-rules.md: with a 16-bit a, block scales act on
                            * operands, rounded RN_a, as group scales do */

    const uint16_t *a_codes; /* m x k */
    const uint8_t *b_codes;  /* columns x k; columns = experts * n */
    const float
        *input_scale; /* m x ceil(k / input_group), or m x 1; NULL with 16-bit activations */
    const uint32_t
        *bs_codes; /* group columns x groups; channel columns; tensor experts; block experts x
                    * ceil(n / group_n) x groups: codes of bs */
    const uint16_t
        *zero_codes; /* columns x groups: integers, or codes of a (floating); NULL without */
    const uint32_t
        *scale_2_codes;         /* tensor: an f32 pattern an expert; channel: columns codes of c */
    const uint16_t *bias_codes; /* columns codes of c */
};

static inline int64_t ref_experts(const struct ref_gemm *p)
{
    return p->experts > 1 ? p->experts : 1;
}
static inline int64_t ref_columns(const struct ref_gemm *p) /* of all experts */
{
    return ref_experts(p) * p->n;
}

/* Groups along k of weight scales and zero points: 1 when p->group is 0. */
static inline int64_t ref_groups(const struct ref_gemm *p)
{
    return p->group ? (p->k + p->group - 1) / p->group : 1;
}
static inline int64_t ref_input_groups(const struct ref_gemm *p)
{
    return p->input_group ? (p->k + p->input_group - 1) / p->input_group : 1;
}

/* True when weight group scales act on accumulators instead of operands (semantics.md section 4).
 * */
static inline bool ref_scales_on_c(const struct ref_gemm *p)
{
    return (p->scale == REF_SCALE_BLOCK && !(p->block_on_operand && p->a->bits == 16)) ||
           (p->scale == REF_SCALE_GROUP && p->a->bits <= 8 && !p->fused_e8m0);
}

/* True when they are multiplied into operands (section 3). */
static inline bool ref_scales_operand(const struct ref_gemm *p)
{
    return (p->scale == REF_SCALE_GROUP || p->scale == REF_SCALE_BLOCK) && !ref_scales_on_c(p) &&
           !p->fused_e8m0;
}

/* Operand values, exact in f32: a_out[i*k + l] = value of A; w_out[(j-n0)*k + l] = w(j, l) of
 * semantics.md section 3 for columns n0 <= j < n1 (fused e8m0: the true value, infinity where f32
 * does not hold it). Bits of a code above its format's are ignored. */
void ref_operand_a(const struct ref_gemm *p, float *a_out);
void ref_operand_w(const struct ref_gemm *p, int64_t n0, int64_t n1, float *w_out);

/* w(col, l) if the code of that weight were `code`: what a wrong code would read as. */
double ref_weight(const struct ref_gemm *p, int64_t col, int64_t l, uint32_t code);

/* The factor that flush applies: as * bs rounded RN_f32 (or RN_f16 of both with f16_accum), or the
 * one that exists; and the integer weight scale with its common factor (section 7; NaN counts
 * nothing there and gives 0, and so does everything beside an infinite scale). l is any k of the
 * flush interval. */
double ref_flush_factor(const struct ref_gemm *p, int64_t row, int64_t col, int64_t l);
void ref_int_scales(const struct ref_gemm *p, int32_t *s_int,
                    float *factor); /* s_int: columns x groups; one factor for all experts */

/* What the epilogue (section 5) needs of the whole problem. int_factor: from ref_int_scales with
 * p->int_scale, else ignored. */
struct ref_epilogue {
    const struct ref_gemm *p;
    bool has_token, has_tensor, has_channel;
    float int_factor; /* 1 without integer scales */
    int output_shift; /* as in accum.h; 0 unless set behind ref_epilogue_init */
};
void ref_epilogue_init(const struct ref_gemm *p, float int_factor, struct ref_epilogue *e);

/* One output of one slice: x is the chain's result. Returns h, a number of format c. */
double ref_epilogue_one(const struct ref_epilogue *e, int64_t row, int64_t col, double x,
                        bool with_bias);

/* Which outputs: rows [row0, row1), n columns. */
struct ref_block {
    int64_t row0, row1;
    const int64_t *cols; /* of column j, all of one expert; NULL: j itself */
    int64_t n;
};

/* All outputs of one block of an unsliced tile: x (row1-row0) x n, codes the same shape. work: 3 n
 * doubles. The same bits as ref_epilogue_one without an output_shift. */
void ref_epilogue_rows(const struct ref_epilogue *e, const struct ref_block *block, const double *x,
                       double *work, uint16_t *codes);

/* ref_epilogue_init and ref_epilogue_one in one call, for a problem without integer scales. */
double ref_epilogue(const struct ref_gemm *p, int64_t row, int64_t col, double x, bool with_bias);

#endif
