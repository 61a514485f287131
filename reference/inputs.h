/* inputs.h - what process_input makes of f32 values: scales, codes, and where they lie.
 *
 * The oracle of docs/semantics-ops.md sections 7 and 8, the source of every rule here.
 * process_input is checked stage by stage, each stage alone on the result of the one before it:
 *
 *   activation.h         inputs to f32 values (of an inexact activation: the provider's own)
 *   hadamard.h           values to values
 *   ref_input_quantize   values to scales and codes, rows in the order of the input
 *   ref_layout_sources   which input row lands in which output row
 *   ref_rows_place       codes to their places; what is not written stays as it was
 *   ref_scales_place     scales likewise
 *
 * Codes are one a uint32_t (REF_CODE_ANY: open, see quantize.h; compare with ref_code_holds), f32
 * scales are their patterns. All arrays are row-major, borrowed, and do not overlap. One right
 * answer, division being IEEE. */
#ifndef REFERENCE_INPUTS_H
#define REFERENCE_INPUTS_H

#include "reference/quantize.h"

/* ---- scales and codes ------------------------------------------------------------------------ */

enum ref_input_mode {
    REF_INPUT_DISABLED,
    REF_INPUT_STATIC_TENSOR,
    REF_INPUT_DYNAMIC_TOKEN,
    REF_INPUT_DYNAMIC_GROUP,
    REF_INPUT_STATIC_TENSOR_DYNAMIC_GROUP,
    REF_INPUT_DYNAMIC_GROUP_TOKEN
};

struct ref_input {
    enum ref_input_mode mode;
    /* Of the codes: f16, bf16, f32 (disabled), else e4m3, e5m2, e3m4, e2m1, e0m3, int8, int4. */
    const struct dtype *t;
    /* f32, e8m0 or e4m3; e4m3 alone with dynamic_group_token; NULL without groups. */
    const struct dtype *group_scale;
    int64_t rows, width;
    int64_t group; /* columns a group scale, the last group may be short; without groups ignored */
    float static_scale;  /* of the static modes: 1 / static_scale is finite */
    const float *values; /* rows x width */
    /* A provider's own scales, from which the data are then computed; NULL: the right ones. Not
     * used by dynamic_group_token, whose data are divided by a number that is not stored. */
    const uint32_t *given_group, *given_token;

    /* Rules of a provider (docs/semantics-rules.md), each in the place of one formula. */
    bool by_side;          /* the floor of 1e-30 is one of the extremes, not of the scale, and
                            * integers have one more code below zero */
    bool reciprocal_limit; /* extremes are multiplied by RN(1 / limit) */
    bool scales_up;        /* e4m3 group scales and m3 are not below what they stand for */
    bool static_on_scale;  /* of static_tensor_dynamic_group: the static scale divides raw scales
                            * and multiplies decoded ones, the values stay */
    bool int4_saturates;   /* to [-8, 7] */
};

static inline bool ref_input_has_groups(enum ref_input_mode mode)
{
    return mode >= REF_INPUT_DYNAMIC_GROUP;
}
static inline bool ref_input_has_tokens(enum ref_input_mode mode)
{
    return mode == REF_INPUT_DYNAMIC_TOKEN || mode == REF_INPUT_DYNAMIC_GROUP_TOKEN;
}
static inline bool ref_input_is_static(enum ref_input_mode mode)
{
    return mode == REF_INPUT_STATIC_TENSOR || mode == REF_INPUT_STATIC_TENSOR_DYNAMIC_GROUP;
}
static inline int64_t ref_input_scale_groups(const struct ref_input *q)
{
    return ref_input_has_groups(q->mode) ? (q->width + q->group - 1) / q->group : 1;
}

/* NULL, or what is wrong with everything but values and scales. */
const char *ref_input_valid(const struct ref_input *q);

/* q is valid.
 *   codes         rows x width. REF_CODE_ANY: NaN where the format has none; int4 of 2^31 and
 *                 more
 *   group_scales  rows x groups codes of q->group_scale; NULL without groups
 *   token_scales  rows f32 patterns; NULL without
 * In dynamic_group_token a NaN or an infinity in a row leaves the token scale and all group
 * scales of the row open. */
void ref_input_quantize(const struct ref_input *q, uint32_t *codes, uint32_t *group_scales,
                        uint32_t *token_scales);

/* The largest |x|; NaN if there is one; 0 of nothing. */
float ref_absmax(const float *x, int64_t n);

/* The value that a scale maps absmax to: e4m3 448, e5m2 57344, e3m4 30, e2m1 6, e0m3 7, int8 127,
 * int4 7. 0: no other has one. */
float ref_input_target_max(const struct dtype *t);

/* max(RN(absmax / target_max), 1e-30f); NaN for NaN. */
float ref_input_raw_scale(const struct dtype *t, float absmax);

/* The same for n values times `first`, by the rules of q; and that to 3 mantissa bits. */
float ref_input_raw(const struct ref_input *q, const float *v, int64_t n, float first);
float ref_input_m3(const struct ref_input *q, float raw);

/* A raw scale to the format it is stored in, and back to what the data are divided by. e8m0: up
 * to a power of two; a scale that is not finite is 255, a NaN. */
uint32_t ref_group_scale_encode(const struct dtype *format, float raw);
float ref_group_scale_decode(const struct dtype *format, uint32_t code);

/* x > 0 rounded RN to 3 mantissa bits, without bounds on the exponent; NaN and infinity stay. */
float ref_round_to_3_bits(float x);

/* The smallest power of two t with largest / t <= 448; largest > 0 and finite. */
float ref_token_scale(float largest);

/* One number to a code of t: f16, bf16, f32 RN, overflow to infinity; all others RN saturating
 * but int4, which keeps the low 4 bits of the integer. */
uint32_t ref_input_convert(const struct dtype *t, float y);

/* n (even) 4-bit codes from n / 2 bytes: the even one is the low half. */
void ref_unpack_nibbles(const uint8_t *bytes, int64_t n, uint32_t *codes);

/* ---- layouts --------------------------------------------------------------------------------- */

enum ref_layout_kind {
    REF_LAYOUT_NORMAL,
    REF_LAYOUT_GROUPED,
    REF_LAYOUT_PERMUTE,
    REF_LAYOUT_GROUPED_PADDED,
    REF_LAYOUT_SCATTER
};

struct ref_layout {
    enum ref_layout_kind kind;
    bool zero_invalid; /* grouped_padded */
    int64_t in_rows, out_rows;
    int64_t experts, max_tokens;  /* experts: the two grouped forms; max_tokens: grouped_padded */
    const int64_t *expert_layout; /* grouped: experts + 1 offsets; grouped_padded: experts counts */
    const int64_t *indices;       /* permute: in_rows; scatter: in_rows x index_width */
    int64_t index_width;          /* scatter */
};

/* What an output row holds, beside the number of an input row. */
enum {
    REF_ROW_KEPT = -1, /* not written */
    REF_ROW_ZERO = -2, /* code 0; its scales are not written */
    REF_ROW_ANY = -3   /* several input rows are sent here: open */
};

/* source[out_rows] is written and NULL returned; or what is wrong: counts below 0, above
 * max_tokens, or beyond the rows. */
const char *ref_layout_sources(const struct ref_layout *l, int64_t *source);

/* out (out_rows x width), which holds the codes that were there before: rows are written as
 * `source` says. in: input rows. */
void ref_rows_place(const int64_t *source, int64_t out_rows, int64_t width, const uint32_t *in,
                    uint32_t *out);

enum ref_scale_layout { REF_SCALES_ROW_MAJOR, REF_SCALES_M_MAJOR, REF_SCALES_MX_PACKED };

struct ref_scale_places {
    enum ref_scale_layout layout;
    int64_t rows, groups; /* output rows */
    int bits;             /* of a scale: 32 or 8 */
};

/* Elements of the tensor, unused ones included; and where the scale of a row and group lies in
 * it. mx-packed needs 8 bits. */
int64_t ref_scale_count(const struct ref_scale_places *p);
int64_t ref_scale_index(const struct ref_scale_places *p, int64_t row, int64_t group);

/* out (ref_scale_count), which holds what was there before: scales (input rows x groups) of rows
 * that `source` sends somewhere, and in row-major form the zeros that pad 8-bit rows, are
 * written. Token scales: row-major, one group, 32 bits. */
void ref_scales_place(const struct ref_scale_places *p, const int64_t *source,
                      const uint32_t *scales, uint32_t *out);

#endif
