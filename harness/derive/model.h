/* model.h - the layers of a model: what decides the shapes and formats of its kernels.
 *
 * A model file is a map whose keys are those of the model's config.json on Hugging Face wherever it
 * has them (`humcheck derive` reads a config.json itself, too):
 *
 *     base: Qwen/Qwen3-30B-A3B        # optional: read that model's file first, without its weights
 *     model_name: QuixiAI/Qwen3-30B-A3B-AWQ
 *     dtype: bf16                     # f16 or bf16; absent: not known, both are derived
 *     hidden_size: 2048               # ... the table in model.c lists all
 *     quantization:                   # of the checkpoint; `none`: it is not quantized
 *       dtype: uint4                  # b_dtype, weight_scale_type, and so on, as in suites
 *       scale: group
 *       group_size: 128
 *       zero_point: true
 *       layers: [attention, experts]  # parts whose matrices are quantized
 *       unknown: [mamba]              # parts of which nobody here has read whether they are
 *     missing: [quantization]         # optional keys that are known to be unknown: not guessed
 *
 * Unknown keys are errors, and so is the absence of what every model has. Texts live in the arena
 * of the load. Files stand in a folder as MODEL_NAME.yaml.
 */
#ifndef HARNESS_DERIVE_MODEL_H
#define HARNESS_DERIVE_MODEL_H

#include "harness/core/arena.h"
#include "harness/core/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Parts of a model that have matrices of their own. */
enum model_part {
    PART_ATTENTION,
    PART_LINEAR_ATTENTION, /* gated delta net */
    PART_MAMBA,
    PART_MLP,    /* of layers without experts */
    PART_SHARED, /* the expert that all tokens go to */
    PART_EXPERTS,
    PART_COUNT
};
extern const char *const model_parts[]; /* "attention", ..., ended by NULL */

enum model_weights_state {
    WEIGHTS_UNKNOWN, /* nobody here has read it */
    WEIGHTS_PLAIN,   /* f16 or bf16 */
    WEIGHTS_QUANTIZED
};

struct model_weights {
    struct place at;
    const char *b;          /* b_dtype: "uint4", "float8e4m3" */
    const char *scale;      /* weight_scale_type: "channel", "group", "block", "tensor" */
    const char *bs;         /* bs_dtype; NULL: auto */
    int64_t group, group_n; /* 0: none */
    bool scale_2;           /* a tensor scale beside group scales */
    bool zero_point;        /* integers */
};

struct model {
    const char *path;     /* of the file, for messages */
    const char *name;     /* model_name; of a config.json the file's path */
    struct place name_at; /* where the model begins: of what is missing */
    const char *dtype;    /* "f16", "bf16"; NULL: not known */

    /* 0: absent */
    int64_t hidden_size, num_hidden_layers;
    int64_t num_attention_heads, num_key_value_heads, head_dim;
    int64_t intermediate_size;
    int64_t num_experts, num_experts_per_tok, moe_intermediate_size;
    int64_t shared_expert_intermediate_size;
    int64_t linear_num_key_heads, linear_num_value_heads;
    int64_t linear_key_head_dim, linear_value_head_dim;
    int64_t mamba_num_heads, mamba_head_dim, n_groups, ssm_state_size;
    int64_t swiglu_limit; /* of activation swiglu */

    int64_t attention_bias;        /* of query, key and value */
    int64_t attention_output_bias; /* of the output projection */
    int64_t attn_output_gate;      /* a gate of the size of the query is computed with it */
    int64_t expert_bias;           /* of both matrices of the experts */

    const char *activation;      /* word of the axis: "silu", "relu2", "swiglu", ... */
    const char *activation_form; /* "unary", "split", "interleaved" */

    enum model_weights_state state;
    struct model_weights weights; /* WEIGHTS_QUANTIZED */
    unsigned quantized;           /* bit of enum model_part: of the checkpoint */
    unsigned unknown;             /* bit of enum model_part: not known whether quantized */
};

/* Does the model have the part at all? */
bool model_has(const struct model *m, enum model_part part);

/* Does its activation multiply two halves? */
bool model_is_gated(const struct model *m);

/* The model file at `path`; `folder` is where its base is looked for. All mistakes are added with
 * their places: ERR_CONFIG, ERR_IO, ERR_NOMEM. */
MUST_USE enum err_code model_load(const char *path, const char *folder, struct arena *arena,
                                  struct model *out, struct errs *errs);

/* A config.json of Hugging Face (its text_config if it has one), with its quantization_config by
 * the schemas of harness/weights. What Humming does not serve is refused with a sentence. */
MUST_USE enum err_code model_load_json(const char *path, struct arena *arena, struct model *out,
                                       struct errs *errs);

/* FOLDER/NAME.yaml; NULL: the name is no "owner/name" of letters, digits, '.', '_' and '-', or no
 * memory. */
const char *model_path(const char *folder, const char *name, struct arena *arena);

/* What does not fit together in a model that has been read: parts that are half there. */
enum err_code model_check(const struct model *m, struct errs *errs);

#endif
