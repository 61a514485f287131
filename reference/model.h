/* model.h - the output codes a kernel must produce, predicted from order and arithmetic of its
 * sums.
 *
 * semantics.md sections 4 to 6, operation by operation: chains of K-warps, flushes, the tree of
 * warps, the epilogue of each slice and the ordered addition of slices. With a tensor core, chains
 * are those of tc_run; without, IEEE operations as section 4 states them for kernels/cpu; integer
 * activations are summed exactly modulo 2^32 by both. Operands at padded k are zeros, which change
 * no chain: they are left out. The sign of an exact zero is not predicted.
 *
 * Fused e8m0 shifts operands in addition to accum->operand_shift: the smallest scale code of
 * section 8 stands for operands of format b moved into the exponent field of a (or doubled, for
 * integers).
 */
#ifndef REFERENCE_MODEL_H
#define REFERENCE_MODEL_H

#include "reference/accum.h"
#include "reference/gemm.h"

enum { MODEL_MAX_WARPS = 64, MODEL_MAX_INSTRUCTION_K = 512 };

/* All borrowed. */
struct ref_model {
    const struct ref_epilogue *epilogue; /* of the problem to predict: epilogue->p */
    const struct ref_accum *accum;
    const int32_t *s_int; /* n x groups, from ref_int_scales; NULL without integer scales */
    const float *a;       /* m x k, from ref_operand_a */
};

/* NULL, or why nothing can be predicted: among others, more than one slice in unknown order. */
const char *ref_model_refuses(const struct ref_model *model);

/* Codes of format c of the outputs (rows[i], col): codes[i], i < row_count.
 *
 *   w_col   k operand values of that column, from ref_operand_w
 *   rows    in any order, each below m; eight at a time are computed together
 *
 * False, with nothing written, where ref_model_refuses gives a reason. */
bool ref_model_column(const struct ref_model *model, const float *w_col, int64_t col,
                      const int64_t *rows, int64_t row_count, uint16_t *codes);

#endif
