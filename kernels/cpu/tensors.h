/* tensors.h - do tensors have the format, shape, size and alignment that the contract asks for? */
#ifndef KERNELS_CPU_TENSORS_H
#define KERNELS_CPU_TENSORS_H

#include "kernels/abi/humming.h"

/* HUM_OK, or HUM_INVALID with a sentence that starts with `name`. `want` has every field but data;
 * a want of rank 0 must be absent. */
enum hum_code tensor_check(const char *name, const struct hum_tensor *got,
                           const struct hum_tensor *want, char reason[HUM_REASON_BYTES]);

/* All five. */
enum hum_code tensors_check_weights(const struct hum_weights *got, const struct hum_weights *want,
                                    char reason[HUM_REASON_BYTES]);

/* All of a product but its locks, and that no tensor overlaps the outputs; `layer`, `compute` and
 * `tuning` are checked. No data are read. */
enum hum_code tensors_check_args(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES]);

/* With Stream-K at least one lock for each of `tiles`, all zero. */
enum hum_code tensors_check_locks(const struct hum_gemm_args *args, int64_t tiles,
                                  char reason[HUM_REASON_BYTES]);

#endif
