/* derive.h - the kernel suite of a configuration: every Humming kernel that its model would launch.
 *
 * What is served by Humming follows from the server's arguments (`--linear-backend humming`:
 * matrices that every token meets; `--moe-backend humming`: experts; `--quantization humming`:
 * both), formats from the checkpoint and from VLLM_HUMMING_ONLINE_QUANT_CONFIG and
 * VLLM_HUMMING_INPUT_QUANT_CONFIG, shapes from the model, divided by its parallel sizes. Sources:
 * vllm-project/vllm#49610 (humming_utils, HummingExperts), #43752 (configurations).
 */
#ifndef HARNESS_DERIVE_DERIVE_H
#define HARNESS_DERIVE_DERIVE_H

#include "harness/derive/model.h"
#include "harness/eval/config.h"

#include <stddef.h>

struct derive_options {
    const char *gpu; /* product name or a row of eval_gpus[]; NULL: none, nothing is refused */
    bool full;       /* true sizes; else n, k and the number of experts are cut (derive.c) */
};

struct derived {
    const char *name; /* of the suite: that of the configuration, in a suite's letters */
    const char *text; /* YAML, ended by NUL; in the arena */
    size_t size;      /* without the NUL */
};

/* Errors carry the places of what the configuration or the model states; all are added. Every case
 * of the text is legal: it has been loaded and planned. ERR_CONFIG, ERR_NOMEM. */
MUST_USE enum err_code derive_suite(const struct model *model, const struct eval_config *config,
                                    const struct derive_options *options, struct arena *arena,
                                    struct derived *out, struct errs *errs);

/* The model of a configuration: `json` (a config.json) if not NULL, else the file that x-humcheck:
 * dims names, else MODEL_NAME.yaml in ../models beside the configuration. */
MUST_USE enum err_code derive_model(const struct eval_config *config, const char *json,
                                    struct arena *arena, struct model *out, struct errs *errs);

#endif
