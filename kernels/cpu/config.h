/* config.h - which configurations this provider runs, and what follows from them. */
#ifndef KERNELS_CPU_CONFIG_H
#define KERNELS_CPU_CONFIG_H

#include "kernels/abi/humming.h"

/* Writes `sentence` to `reason` and returns `code`. */
enum hum_code refuse(char reason[HUM_REASON_BYTES], enum hum_code code, const char *sentence);

/* HUM_OK, or the first rule of the contract that is broken. Each includes the one before. */
enum hum_code config_check_layer(const struct hum_layer_config *layer,
                                 char reason[HUM_REASON_BYTES]);
enum hum_code config_check_compute(const struct hum_layer_config *layer,
                                   const struct hum_compute_config *compute,
                                   char reason[HUM_REASON_BYTES]);
enum hum_code config_check(const struct hum_layer_config *layer,
                           const struct hum_compute_config *compute,
                           const struct hum_tuning_config *tuning, char reason[HUM_REASON_BYTES]);

/* What a checked layer means; sections are those of docs/semantics.md. */
struct facts {
    int64_t n, k; /* valid sizes */
    int bits_a, bits_b;
    int64_t instruction_k;     /* section 4 */
    int64_t groups;            /* weight scales (and zero points) along valid k; 1 without groups */
    int64_t padded_groups;     /* the same along shape_k */
    int64_t group_k;           /* k of one of them; shape_k without groups */
    int64_t input_groups;      /* input scales a row; 0: none */
    bool scale_on_operand;     /* section 3, first case */
    bool scale_on_c;           /* weight scales are applied where chains flush */
    bool fused, int_scale;     /* sections 8 and 7 */
    bool input_scale_on_c;     /* input groups */
    bool input_scale_epilogue; /* as(m) of section 5 */
    bool has_tensor_factor;    /* t of section 5 */
    bool has_channel_factor;   /* s of section 5 */
    bool is_int;               /* int8, int4 activations */
};

struct facts config_facts(const struct hum_layer_config *layer);

/* Q of section 4; 0: chains without flush. */
int64_t config_flush_k(const struct hum_layer_config *layer, int64_t warp_k);

/* A tuning that config_check accepts, for m rows; experts are taken to have equal shares. */
struct hum_tuning_config config_heuristics(const struct hum_layer_config *layer, int64_t m);

#endif
