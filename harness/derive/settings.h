/* settings.h - what a configuration says about kernels: formats, parallel sizes, who serves what.
 *
 * Private to harness/derive.
 */
#ifndef HARNESS_DERIVE_SETTINGS_H
#define HARNESS_DERIVE_SETTINGS_H

#include "harness/derive/model.h"
#include "harness/eval/config.h"

enum derive_online {
    ONLINE_NONE,
    ONLINE_ALL,    /* VLLM_HUMMING_ONLINE_QUANT_CONFIG: all matrices */
    ONLINE_EXPERTS /* --quantization experts_int8 */
};

struct settings {
    const char *a;       /* format of the activations; NULL: the model's 16 bits */
    struct place a_at;   /* of the variable */
    int64_t input_group; /* of 8- and 4-bit activations; 0: a scale a row */
    enum derive_online online;
    struct model_weights weights; /* of ONLINE_* */
    int64_t hadamard;             /* hadamard_block_size: 0 none, -1 the largest that fits */
    bool f16_accum, batch_invariant;
    bool grouped;           /* experts: grouped_contiguous, else indexed */
    bool linear, moe;       /* served by Humming */
    const char *dtype;      /* --dtype: "f16", "bf16"; NULL: the model's */
    int64_t tensor, data;   /* parallel sizes, at least 1 */
    bool expert_parallel;   /* --enable-expert-parallel */
    struct place server_at; /* of the server's arguments, else of the model's name */
};

/* All mistakes are added: ERR_CONFIG, ERR_NOMEM. `gpu`: as in struct derive_options. */
MUST_USE enum err_code settings_read(const struct eval_config *config, const char *gpu,
                                     struct arena *arena, struct settings *out, struct errs *errs);

#endif
