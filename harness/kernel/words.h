/* words.h - names for the values of AXIS_WORD axes, which are indices into the `words` lists of
 * axes.c.
 *
 * test_legal compares the two.
 */
#ifndef HARNESS_KERNEL_WORDS_H
#define HARNESS_KERNEL_WORDS_H

enum word_gemm { GEMM_DENSE, GEMM_INDEXED, GEMM_GROUPED_CONTIGUOUS, GEMM_GROUPED_MASKED };
enum word_scale { SCALE_CHANNEL, SCALE_GROUP, SCALE_BLOCK, SCALE_TENSOR };
enum word_scale_2 { SCALE_2_NONE, SCALE_2_TENSOR, SCALE_2_CHANNEL };
enum word_zero { ZERO_NONE, ZERO_INT, ZERO_FLOAT };
enum word_mma { MMA_MMA, MMA_WGMMA, MMA_UMMA, MMA_MXMMA };
enum word_check { CHECK_EXACT, CHECK_READOUT, CHECK_BOUND, CHECK_ULP, CHECK_MODEL };
enum word_fill { FILL_E1, FILL_E2, FILL_W, FILL_S, FILL_P, FILL_O, FILL_C, FILL_X, FILL_R };
enum word_data { DATA_NORMAL, DATA_LOGNORMAL, DATA_OUTLIERS, DATA_POSITIVE };

#endif
