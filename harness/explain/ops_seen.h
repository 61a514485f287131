/* ops_seen.h - what an operation was asked and what it answered, in host memory; and what it would
 * have answered with one mistake.
 *
 * ops_record.c notes the calls that a provider accepts. Each operation (ops_quant.c, ops_codes.c,
 * ...) has one function that computes its outputs once more, from the arguments and with a twist:
 * twist 0 is what docs/semantics-ops.md or the provider's rules say, every other one a mistake.
 */
#ifndef HARNESS_EXPLAIN_OPS_SEEN_H
#define HARNESS_EXPLAIN_OPS_SEEN_H

#include "harness/core/arena.h"
#include "harness/explain/ops_number.h"
#include "kernels/abi/humming.h"
#include "reference/quantize.h"

enum { OPS_OUTPUTS = 3, OPS_TENSORS = 9 };

/* What a kernel does instead: `kind` is the operation's own, 0 is right; `rounding` and `n` are
 * what the kind makes of them. */
struct ops_twist {
    int kind;
    enum ops_rounding rounding;
    int n;
};

/* A tensor that a call writes, one code an element in memory order. */
struct ops_output {
    const char *name;
    int tensor;               /* of the operation's table */
    const struct dtype *type; /* NaN are alike; NULL: whole numbers */
    int bits;
    int64_t count, width; /* width: elements a row, at least 1 */
    uint32_t *before, *got;
};

struct ops_seen {
    const struct ops_operation *op;
    uint32_t rules;   /* of the provider (semantics.h): what is right */
    const void *args; /* its struct of humming_ops.h; contents of inputs in host memory; of what
                         is only written none */
    struct ops_output out[OPS_OUTPUTS];
    int outs;
    const float *activated; /* process_input: what an elementary function left in another call, one
                               a value; NULL: not known */
};

/* Beside the codes, of which 32-bit tensors need every one: nothing is required. */
#define OPS_OPEN (UINT64_C(1) << 32)

/* A code of less than 32 bits, or REF_CODE_ANY. */
static inline uint64_t ops_code(uint32_t code)
{
    return code == REF_CODE_ANY ? OPS_OPEN : code;
}

/* What a call would leave. */
struct ops_answer {
    uint64_t *codes[OPS_OUTPUTS]; /* begin as `before` */
    const bool *rows;             /* by_rows: which are asked for; NULL: all */
    struct arena *arena;          /* for what is needed on the way */
};

static inline bool ops_asked(const struct ops_answer *a, int64_t row)
{
    return !a->rows || a->rows[row];
}

struct ops_tensor {
    const char *name;
    size_t at; /* of its struct hum_tensor in the arguments */
    enum ops_use { OPS_READ, OPS_WRITE, OPS_CHANGE } use;
};

struct ops_operation {
    const char *name;
    size_t args_size;
    const struct ops_tensor *tensors;
    int tensor_count;
    enum hum_code (*run)(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES]);
    /* What elements an output has, where that does not follow from its tensor: may set type, bits
     * and width. NULL: numbers of the tensor's format. */
    void (*shape)(const void *args, struct ops_output *out);
    bool by_rows; /* element i of an output belongs to row i / width, and rows can be had alone */
    /* False: memory is out, or this twist says nothing about these arguments. */
    bool (*answer)(const struct ops_seen *s, const struct ops_twist *twist, struct ops_answer *out);
};

extern const struct ops_operation ops_quant_weight, ops_dequant_weight, ops_pack, ops_unpack,
    ops_process_mxfp4, ops_process_input, ops_hadamard, ops_moe_sum;

/* The tensor number i of the arguments. */
struct hum_tensor ops_tensor_of(const struct ops_operation *op, const void *args, int i);

/* All elements of a tensor in host memory as numbers, exactly. NULL: memory is out. */
float *ops_values(const struct hum_tensor *t, struct arena *arena);

/* Element i of `bits` bits of bytes, little end first. */
uint32_t ops_element(const uint8_t *bytes, int bits, int64_t i);

/* Answers with this twist (NULL: right), rows as in ops_answer. False: as `answer`. */
bool ops_answer(const struct ops_seen *s, const struct ops_twist *twist, const bool *rows,
                struct arena *arena, struct ops_answer *out);

/* May the call leave `got` where `want` is right? */
static inline bool ops_holds(const struct ops_output *out, uint32_t got, uint64_t want)
{
    if (want == OPS_OPEN || got == want)
        return true;
    return out->type && isnan(dtype_decode(out->type, got)) &&
           isnan(dtype_decode(out->type, (uint32_t)want));
}

#endif
