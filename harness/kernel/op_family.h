/* op_family.h - the families that are not a GEMM: one way to run them, a table row each.
 *
 * A family makes a problem (one or more calls with contents and expected codes) from the axes of a
 * case; the checks are written once, for all of them (op_checks.c). Data are a function of (seed,
 * tensor, index).
 */
#ifndef HARNESS_KERNEL_OP_FAMILY_H
#define HARNESS_KERNEL_OP_FAMILY_H

#include "harness/kernel/family.h"
#include "harness/kernel/op_trial.h"

struct op_problem {
    const int64_t *v;
    uint32_t rules;        /* of the provider, by which everything here was made (semantics.h) */
    struct op_call *calls; /* in order; independent of each other */
    int count;
    const void *own; /* of the family */
};

struct op_family {
    const char *name; /* the word of the axis `family` */

    /* Calls with contents and expected codes, all in `arena`. The check of v may change the data:
     * `special` has NaN, infinities, zeros and such, `exhaustive` everything there is. v[AX_M] may
     * be 0 where `empty` says so. rules: of the provider (semantics.h). NULL, or a sentence
     * (memory). */
    const char *(*make)(const int64_t v[AX_COUNT], uint32_t rules, struct arena *arena,
                        struct op_problem *out);

    /* What a launch of p->calls[call] that ended well has left, for the checks exact, ulp, special
     * and exhaustive; compared, wrong and at_* of f are added to. NULL: op_compare. With it, of
     * `want` only OP_KEPT and REF_CODE_ANY count. */
    void (*judge)(const struct op_problem *p, int call, const struct op_out *out,
                  struct finding *f);

    /* NULL, or why data like these could not catch a fault; a text may lie in `buf`. Beside what
     * every family needs: outputs that are not all alike, rows that differ. May be NULL. */
    const char *(*trust)(const struct op_problem *p, char *buf, size_t size);

    bool empty; /* m = 0 is a legal call; tried by `special` */
};

/* Runs the cases of one problem: the run_problem of family.h. */
void op_family_run(const struct op_family *family, struct runner *r, const struct plan *plan,
                   size_t begin, size_t end, const struct runner_hooks *hooks);

/* op_checks.c: the check of p->v at all calls of the problem. p was made, its first call has been
 * seen to be there. */
void op_check(const struct op_family *family, const struct op_problem *p, struct op_trial *t,
              struct finding *f, double *kernel_us);

/* The families of weights. */
void family_quant_weight(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                         size_t end, const struct runner_hooks *hooks);
void family_dequant_weight(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                           size_t end, const struct runner_hooks *hooks);
void family_pack(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                 size_t end, const struct runner_hooks *hooks);
void family_process_mxfp4(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                          size_t end, const struct runner_hooks *hooks);

#endif
