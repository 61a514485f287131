/* sample.h - products for tests: a configuration, random operands in their standard form, one call
 * to run it.
 *
 * Fails the running Check test when memory is out or a call is refused that should not be.
 */
#ifndef KERNELS_TEST_SAMPLE_H
#define KERNELS_TEST_SAMPLE_H

#include "kernels/abi/humming.h"

/* Counter-based: the same seed gives the same sequence. */
uint64_t sample_random(uint64_t *state);

enum sample_style {
    SAMPLE_TAME, /* finite numbers of moderate size */
    SAMPLE_WILD  /* any code of any format */
};

struct sample {
    struct hum_layer_config layer;
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    int64_t m;
    int32_t top_k; /* 0 is 1 */
    struct hum_weights standard, kernel;
    struct hum_tensor inputs, input_scale, outputs, locks;
    struct hum_tensor sorted_ids, expert_ids, num_tokens_padded, expert_layout; /* route.h */
};

/* A handle of `provider`. */
void *sample_open(const struct hum_provider *provider, int threads);

/* A product that is legal, without operands: e4m3 x uint4, group scales, Stream-K, m = 20. */
struct sample sample_legal(void);

enum { SAMPLE_GUARD = 64 }; /* bytes of 0xa5 behind the outputs */

/* A tensor of rank 1 or 2 of zeros, with SAMPLE_GUARD bytes behind it. */
struct hum_tensor sample_tensor(int32_t dtype, int64_t rows, int64_t columns, int rank);

/* Operands for a configuration that `provider` supports, but routing tensors. Outputs are filled
 * with 0xff, kernel weights are not transformed yet. */
void sample_fill(struct sample *s, const struct hum_provider *provider, void *handle, uint64_t seed,
                 enum sample_style style);
void sample_free(struct sample *s); /* with the routing tensors */

struct hum_gemm_args sample_args(const struct sample *s);

/* Transforms and multiplies. */
void sample_run(struct sample *s, const struct hum_provider *provider, void *handle);

/* A configuration with most options drawn at random; the formats, shapes and tiles fit together,
 * but whether all of it is legal is the provider's answer. */
void sample_random_config(struct sample *s, uint64_t *state);

#endif
