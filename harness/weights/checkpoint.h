/* checkpoint.h - a checkpoint on disk: safetensors files and a quantization config.
 *
 * Files are mapped, not read: they must not shrink while the checkpoint is open.
 */
#ifndef HARNESS_WEIGHTS_CHECKPOINT_H
#define HARNESS_WEIGHTS_CHECKPOINT_H

#include "harness/weights/safetensors.h"

struct mapping {
    void *bytes;
    size_t size;
};

struct checkpoint {
    struct safetensors tensors; /* of all shards, sorted by name */
    struct mapping *maps;       /* what checkpoint_close unmaps */
    size_t map_count;           /* 1 for a file, else the number of shards */
    uint64_t bytes;             /* of all tensors */
    const struct json *config;  /* the quantization config; NULL: none */
    const char *config_file;    /* where it stood; NULL: none */
    const char *param;          /* the model's torch_dtype as written; NULL: not stated */
};

/* `path` is a .safetensors file, an index (.json: "weight_map" gives each tensor the name of a
 * shard in the same folder), or a folder that has model.safetensors.index.json or
 * model.safetensors. The quantization config is looked for in the same folder:
 * "quantization_config" or "compression_config" of config.json (top level, or its
 * "text_config"), then "quantization" of hf_quant_config.json, then quantize_config.json (GPTQ)
 * and quant_config.json (AWQ) whole; the first that exists counts. Everything lives in `arena`.
 * Errors: ERR_CONFIG (a file that cannot be read is one, too), ERR_NOMEM; *out must be closed in
 * any case. */
MUST_USE enum err_code checkpoint_open(const char *path, struct arena *arena,
                                       struct checkpoint *out, struct errs *errs);
void checkpoint_close(struct checkpoint *c);

#endif
