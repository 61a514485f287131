/* op_trial.h - one operation at a provider: its tensors in a slab of device memory, a call, and a
 * look at every byte afterwards.
 *
 * The counterpart of trial.h for everything that is not a GEMM. A family describes a call: its
 * arguments (a struct of humming_ops.h), its tensors with their contents and the codes that must
 * come out. A launch lays the tensors in one slab, in a chosen order, with gaps of a poison byte
 * before, between and behind them. After it, everything but the outputs must be what it was; of
 * outputs, the elements that are not to be written; of a refused launch, all of them.
 */
#ifndef HARNESS_KERNEL_OP_TRIAL_H
#define HARNESS_KERNEL_OP_TRIAL_H

#include "harness/kernel/checks.h"
#include "harness/kernel/device.h"
#include "harness/kernel/runner.h"
#include "reference/quantize.h"

/* ---- a call ---------------------------------------------------------------------------------- */

/* In an array of expected codes, beside REF_CODE_ANY: the element is not written. (No format has
 * this as a canonical code.) */
#define OP_KEPT (REF_CODE_ANY - 1)

enum op_role { OP_IN, OP_OUT, OP_INOUT };

/* A tensor of a call. Its elements are numbered in memory order, `bits` each, little end first (two
 * 4-bit ones a byte, the even one low). */
struct op_part {
    const char *name; /* as in humming_ops.h */
    size_t at;        /* of its struct hum_tensor in the arguments */
    enum op_role role;
    bool optional;            /* the contract leaves its presence to the caller */
    bool free_rows;           /* its first size is the caller's, whatever the other tensors have */
    struct hum_tensor tensor; /* data: contents in host memory, NULL for OP_OUT; bytes 0: absent */
    int bits;                 /* of an element: 4, 8, 16, 32 or 64 (inputs only) */
    /* Of outputs: */
    const struct dtype *type; /* decodes an element; NaN are alike; NULL: whole numbers */
    const uint32_t *want;     /* a code an element, REF_CODE_ANY or OP_KEPT; NULL: `judge` says */
    int64_t width;            /* elements a row, for reports and trust; 0: all are one row */
};

static inline int64_t op_part_count(const struct op_part *p)
{
    return p->bits ? (int64_t)p->tensor.bytes * 8 / p->bits : 0;
}
static inline bool op_part_is_written(const struct op_part *p)
{
    return p->role != OP_IN;
}
/* Is nothing required of this element? */
static inline bool op_part_is_open(const struct op_part *p, int64_t index)
{
    return p->want && (p->want[index] == OP_KEPT || p->want[index] == REF_CODE_ANY);
}
/* An element of at most 32 bits of the part's bytes. */
uint32_t op_element(const struct op_part *p, const uint8_t *bytes, int64_t index);

enum { OP_PARTS = 8, OP_ARGS_BYTES = 1024 };

/* A field of the arguments that is changed for the check `contract`; every row must be against the
 * contract in every call that has it. */
enum op_width { OP_BOOL, OP_INT32, OP_INT64, OP_F32 }; /* enums are OP_INT32 */
enum op_how { OP_SET, OP_ADD };                        /* OP_ADD of a bool turns it over */
struct op_change {
    const char *what; /* "group_size of 7" */
    size_t at;
    enum op_width width;
    enum op_how how;
    double value;
    bool (*unless)(const void *args); /* NULL: never; true: legal with these arguments */
};

struct op_call {
    const char *name; /* the field of struct hum_ops, for sentences */
    /* The struct of humming_ops.h; the data of its tensors are filled in later. */
    unsigned char args[OP_ARGS_BYTES] __attribute__((aligned(16)));
    size_t args_size;
    /* Calls it; `args` points at its struct of humming_ops.h. */
    enum hum_code (*run)(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES]);
    bool (*is_there)(const struct hum_ops *ops); /* does the provider have it? */
    struct op_part parts[OP_PARTS];
    int count;
    const struct op_change *changes;
    int change_count;
    bool without_args; /* NULL is handed over */
};

/* Begins a call: copies the arguments. `size` at most OP_ARGS_BYTES. */
void op_call_init(struct op_call *c, const char *name, const void *args, size_t size);
/* Adds a tensor, also to the arguments (its data follow with the launch); type, want, width and the
 * like may be set in what is returned. Tensors that these arguments must leave out are added, too,
 * absent (op_absent). */
struct op_part *op_call_add(struct op_call *c, const char *name, size_t at, enum op_role role,
                            struct hum_tensor tensor, int bits);

/* The tensor of a part, as it stands in the arguments. */
struct hum_tensor op_tensor_of(const struct op_call *c, const struct op_part *p);

/* Dense tensors of contents `data`; sizes beyond the rank are not looked at. */
struct hum_tensor op_tensor_1(int32_t dtype, int64_t size0, void *data);
struct hum_tensor op_tensor_2(int32_t dtype, int64_t size0, int64_t size1, void *data);
struct hum_tensor op_tensor_3(int32_t dtype, int64_t size0, int64_t size1, int64_t size2,
                              void *data);
static inline struct hum_tensor op_absent(void)
{
    return (struct hum_tensor){0};
}

/* ---- launches -------------------------------------------------------------------------------- */

struct op_trial {
    const struct hum_provider *provider;
    void *handle;
    struct arena *arena;  /* of launches; used beyond its present mark */
    struct device device; /* op_trial_open */
    const struct runner_hooks *hooks;
    size_t index; /* of the case, for the hooks */
    size_t mark;
    uint64_t hash; /* of the calls added by op_hash; output_hash.h */
};

/* provider, handle, arena, hooks and index are set. Memory handed out before stays. */
void op_trial_open(struct op_trial *t);
void op_trial_close(struct op_trial *t);

struct op_options {
    uint8_t poison; /* every byte of outputs and gaps */
    size_t gap;     /* bytes between tensors, a multiple of 64; 0: only what alignment needs */
    size_t margin;  /* before the first and behind the last, likewise */
    int moved, to;  /* part `moved` is laid as number `to` of the slab, the others in their order;
                       moved -1: none */
    void (*change)(struct op_call *call, const void *context); /* NULL: none. On a copy whose
                                                                  tensors have device addresses */
    const void *context;
};

/* 0xff in outputs and gaps of 256 bytes. */
struct op_options op_plain(void);

struct op_out {
    enum hum_code code;
    char reason[HUM_REASON_BYTES];
    const uint8_t *got[OP_PARTS]; /* bytes of each part afterwards, until the next launch */
    char damage[160];             /* "", or what changed that must not, as a sentence */
    double kernel_us;
};

/* Launches and requires HUM_OK without damage; false: `f` says what happened (skip where the
 * operation, or these arguments, are not supported). */
bool op_run(struct op_trial *t, const struct op_call *c, const struct op_options *o,
            struct op_out *out, struct finding *f);

/* Launches and requires HUM_INVALID (or, with `unsupported`, HUM_UNSUPPORTED), one sentence, and
 * nothing written; false: `f` says what happened, `what` is what should have been refused. */
bool op_refuses(struct op_trial *t, const struct op_call *c, const struct op_options *o,
                bool unsupported, const char *what, struct finding *f);

/* Adds the outputs of a launch that ended well to t->hash. */
void op_hash(struct op_trial *t, const struct op_call *c, const struct op_out *out);

/* ---- judging --------------------------------------------------------------------------------- */

/* Every element of every output that has `want`, after op_run: counts and the first wrong one. */
void op_compare(const struct op_call *c, const struct op_out *out, struct finding *f);

#endif
