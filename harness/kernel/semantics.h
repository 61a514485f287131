/* semantics.h - rules of a provider: where it computes by another formula than the contract.
 *
 * Each rule is an exact formula that takes the place of one of docs/semantics*.md
 * (docs/semantics-rules.md states them); what is expected is made by it, and compared as always. So
 * a rule never widens a check: a kernel that computes by the contract fails under it. Which rules
 * hold for which versions is data:
 *
 *     semantics:
 *       - versions: "humming 0.1.*"      # glob over "name version" of the provider
 *         family: moe_sum                # of the kernels
 *         rule: fused-sum                # of the table
 *         established: ops/moe.py        # how it is known: source and function, record
 */
#ifndef HARNESS_KERNEL_SEMANTICS_H
#define HARNESS_KERNEL_SEMANTICS_H

#include "harness/core/arena.h"
#include "harness/core/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The rules, in the order of the table; a set of them is a mask of bits 1 << rule. */
enum semantics_rule {
    SEMANTICS_BLOCK_ON_OPERAND, /* gemm */
    SEMANTICS_ZERO_ON_MINIMUM,  /* quant_weight */
    SEMANTICS_SIDES_BY_SIZE,
    SEMANTICS_SCALED_QUOTIENT,
    SEMANTICS_TWOS_COMPLEMENT,
    SEMANTICS_EXTREMES_BY_SIDE, /* process_input */
    SEMANTICS_RECIPROCAL_LIMIT,
    SEMANTICS_SCALES_ROUND_UP,
    SEMANTICS_STATIC_ON_SCALE,
    SEMANTICS_INT4_SATURATES,
    SEMANTICS_FUSED_SUM, /* moe_sum */
    SEMANTICS_COUNT
};

static inline bool semantics_has(uint32_t rules, enum semantics_rule rule)
{
    return (rules >> rule & 1u) != 0;
}

struct semantics_info {
    const char *name;     /* the word of the file */
    const char *family;   /* the word of the axis `family` */
    const char *replaces; /* what the contract says there, and what the rule says: one sentence */
};
extern const struct semantics_info semantics_infos[SEMANTICS_COUNT];

struct semantics_row {
    const char *versions;
    enum semantics_rule rule;
};

struct semantics {
    const struct semantics_row *rows;
    size_t count;
};

/* path NULL: the empty table. Everything lives in `arena`; all mistakes of the file are added to
 * errs: form, an unknown rule, a rule of another family, one that is given twice. */
MUST_USE enum err_code semantics_load(const char *path, struct arena *arena, struct semantics *out,
                                      struct errs *errs);

/* The rules for a provider, "name version". */
uint32_t semantics_of(const struct semantics *s, const char *provider);

/* Their names, "fused-sum, zero-on-minimum", of a family (of the experts pipeline: its steps) or,
 * NULL, of all. Cut to `size`; `buf` is returned. */
const char *semantics_names(uint32_t rules, const char *family, char *buf, size_t size);

/* What a record says of them behind its kernel: "; by fused-sum", or "". */
enum { SEMANTICS_NOTE = 128, SEMANTICS_NAMES = 400 };
const char *semantics_note(uint32_t rules, const char *family, char buf[SEMANTICS_NOTE]);

#endif
