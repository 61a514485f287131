/* ops_input.h - process_input, right and with one mistake: what its stages share.
 *
 * Private to ops_input*.c. As in docs/semantics-ops.md sections 5 to 8: inputs, activation,
 * Hadamard, quantization of rows in the order of the inputs, then the layout.
 */
#ifndef HARNESS_EXPLAIN_OPS_INPUT_H
#define HARNESS_EXPLAIN_OPS_INPUT_H

#include "harness/explain/ops_seen.h"
#include "reference/activation.h"
#include "reference/inputs.h"

/* clang-format off */
enum ops_input_kind {
    INPUT_RIGHT,
    /* activation */
    INPUT_HALVES,          /* a and b exchanged */
    INPUT_OTHER_FORM,      /* split as interleaved, interleaved as split */
    INPUT_OTHER_GELU,      /* tanh form for the erf form; n 1: the erf form for the tanh form */
    INPUT_NO_LIMIT,
    INPUT_LIMIT_AFTER,     /* results of both factors are limited instead of a and b */
    INPUT_LIMIT_A_ONLY,
    INPUT_LIMIT_B_ONLY,
    INPUT_LIMIT_A_BOTH,    /* a from below, too */
    INPUT_LIMIT_B_ABOVE,   /* b from above only */
    INPUT_NO_BETA,
    INPUT_NO_ALPHA,        /* alpha 1 */
    INPUT_NO_ACTIVATION,   /* a (times b) */
    INPUT_NO_PRODUCT,      /* b takes no part */
    INPUT_NOT_SQUARED,     /* relu for relu2 */
    /* Hadamard */
    INPUT_HADAMARD,        /* n: kind + 16 n of ops_hadamard.h */
    INPUT_NO_HADAMARD,
    /* scales */
    INPUT_SKIP,            /* absmax without element n (-1: the last) */
    INPUT_FULL_GROUP,      /* a short last group: absmax over the last `group` columns */
    INPUT_NAN_IGNORED,
    INPUT_SIGNED_MAX,      /* the largest value instead of the largest magnitude */
    INPUT_ROW_MAX,         /* all groups: the row's */
    INPUT_SHARED_MAX,      /* all rows: the largest of any */
    INPUT_FLOOR_LOST,
    INPUT_TARGET,          /* scales aim at n */
    INPUT_RECIPROCAL,      /* absmax RN(1 / target_max) */
    INPUT_E8M0,            /* rounded in another way */
    INPUT_SCALE_ROUND,     /* e4m3 scales rounded in another way */
    INPUT_M3_ROUND,
    INPUT_TOKEN_STRICT,    /* largest / token < 448 */
    INPUT_STORE_ONE,       /* token scales: n is stored */
    INPUT_ONE,             /* token scales: n is used and stored */
    /* what the data use */
    INPUT_GROUP,           /* the scale of group g + n, where there is one */
    INPUT_STORED_GROUP,    /* that is stored */
    INPUT_ROW,             /* the scale of row r + n, where there is one */
    INPUT_UNROUNDED,       /* the raw scale, before it is encoded */
    INPUT_ZERO_INF,        /* 1 / 0 is infinity */
    INPUT_LEAST_NAN,       /* the reciprocal of the least e8m0 scale, 2^-99, gives NaN */
    INPUT_DIVIDE,
    INPUT_STATIC_TIMES,    /* times the static scale */
    INPUT_NO_STATIC,       /* the static scale is not used */
    /* conversion */
    INPUT_ROUND,           /* numbers that are not integers: n 0, integers: n 1 */
    INPUT_WRAP,
    INPUT_SPECIAL,         /* overflow gives infinity or NaN */
    INPUT_NARROW,
    INPUT_ZERO_LOST,       /* -0 becomes +0 */
    INPUT_FLUSH,           /* subnormal codes become 0 */
    INPUT_NIBBLES,
    /* layout */
    INPUT_BEYOND_KEPT,     /* rows beyond a count are not zeroed */
    INPUT_PAD_KEPT,        /* what pads 8-bit scales is not written */
    INPUT_SCALES_ROW,      /* mx-packed: row after row */
    INPUT_PITCH,           /* m-major and mx-packed: rows are not padded to 4 */
    INPUT_SCALE_SOURCE,    /* scales go to the row of the input, where the output has it */
    INPUT_LAST_EXPERT,     /* grouped: ends where the last expert begins */
    INPUT_EMPTY_EXPERT,    /* padded: an expert without rows counts as one */
    INPUT_NEGATIVE_0,      /* a negative index is row 0 */
    INPUT_GATHER,          /* output row i is input row indices[i] */
    INPUT_INDEX,           /* indices are n too large */
    INPUT_COPIES,          /* scatter: only the first (0) or not the last (-1) place */
    INPUT_ROW_BEFORE,      /* rows after the first hold the results of the row before */
    INPUT_KINDS
};
/* clang-format on */

struct ops_input {
    const struct hum_process_input_args *a;
    const struct ops_twist *twist;
    const struct dtype *t, *scale; /* of outputs; of group scales, NULL without groups */
    int64_t rows, width_in, width, out_rows;
    int64_t group, groups; /* 0: no groups */
    bool static_scale, tokens;
    uint32_t rules;
    const float *v;         /* rows x width */
    uint32_t *codes;        /* rows x width */
    uint32_t *group_scales; /* rows x groups */
    uint32_t *token_scales; /* rows */
    float *divisors;        /* rows x max(groups, 1): what data are divided by */
    float *raw;             /* likewise: scales before they are encoded */
};

static inline bool ops_input_is(const struct ops_input *j, enum ops_input_kind kind)
{
    return j->twist->kind == (int)kind;
}

/* ops_input_quant.c: codes and scales of v. */
void ops_input_quantize(const struct ops_input *j);

/* ops_input_place.c: puts them where they go. False: this twist says nothing here. */
bool ops_input_place(const struct ops_input *j, const struct ops_seen *s, struct ops_answer *out);

#endif
