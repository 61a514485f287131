/* schema.h - checkpoint schemas: config and tensors of a layer to the standard form.
 *
 * A schema is a row: how its config is told, which tensor makes a layer, how that is converted and
 * what document says so. A conversion either is exact in codes and stated in scales, or is refused
 * with a sentence. Source of the list and the conversions: upstream Humming's weight schemas; where
 * they are known to be wrong (v1 zero points of GPTQ are taken without + 1) the format's own
 * definition is followed.
 */
#ifndef HARNESS_WEIGHTS_SCHEMA_H
#define HARNESS_WEIGHTS_SCHEMA_H

#include "harness/weights/json_doc.h"
#include "harness/weights/safetensors.h"
#include "harness/weights/standard.h"

/* What becomes of f32 scales that the standard form can hold as they are. */
enum schema_form {
    SCHEMA_EXACT,   /* block scales stay blocks, a tensor scale stays one number, both f32 */
    SCHEMA_UPSTREAM /* as upstream converts: block scales are repeated along n into group scales,
                     * a tensor scale into channel scales, both rounded to the parameters' format */
};

/* A layer is the concatenation along n of parts that are stored one by one: one name for most,
 * {"...q_proj", "...k_proj", "...v_proj"} for a fused one. */
struct schema_request {
    const struct safetensors *from;
    const struct json *config;
    const char *config_file;   /* for sentences about the config; NULL: unknown */
    const struct dtype *param; /* f16 or bf16: the model's parameters, into which 16- and 32-bit
                                * group and channel scales are rounded; NULL: 16-bit ones keep
                                * their format, and 32-bit ones are refused */
    enum schema_form form;
    const char *const *layers; /* names without suffix */
    size_t count;              /* at least 1 */
};

struct work; /* schema_parts.h */
struct part;

struct schema {
    const char *name;
    const char *main;    /* suffix of the tensor that makes a layer */
    const char *formats; /* of that tensor, with spaces between and around */
    const char *others;  /* the other suffixes that are read, with spaces between and around */
    bool (*detect)(const struct json *config);
    enum err_code (*settings)(struct work *w);
    enum err_code (*shape)(struct work *w, struct part *p);
    enum err_code (*fill)(struct work *w, const struct part *p);
    const char *source;
};

extern const struct schema schemas[];
extern const int schema_count;

/* The schema by which tensor t is the main tensor of a layer, or NULL. *length is how many bytes of
 * t's name are the layer's. */
const struct schema *schema_of(const struct json *config, const struct tensor *t, size_t *length);

/* True if any schema knows this config. */
bool schema_knows(const struct json *config);

/* The name of the config's method, for reports: "gptq", "compressed-tensors int-quantized".
 * Lives in `arena`; "unknown method" if there is none. */
const char *schema_method(const struct json *config, struct arena *arena);

/* Convert. Arrays of *out live in `arena`. Errors: ERR_CONFIG with sentences that name the file and
 * the tensor or key; ERR_NOMEM. */
MUST_USE enum err_code schema_convert(const struct schema *schema, const struct schema_request *r,
                                      struct arena *arena, struct standard *out, struct errs *errs);

#endif
