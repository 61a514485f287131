/* family.h - the table of kernel families: how the cases of one problem are run.
 *
 * A family turns a problem's cases into records; everything else (plan, workers, reports) is the
 * same for all of them.
 */
#ifndef HARNESS_KERNEL_FAMILY_H
#define HARNESS_KERNEL_FAMILY_H

#include "harness/core/arena.h"
#include "harness/kernel/checks.h"
#include "harness/kernel/runner.h"

/* One a process, kept over problems. */
struct runner {
    const struct hum_provider *provider;
    void *handle;
    int threads;
    struct arena problem, scratch; /* of one problem, of one case */
};

struct family {
    const char *name; /* the word of the axis `family` */
    /* As runner_problem (runner.h). */
    void (*run_problem)(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                        size_t end, const struct runner_hooks *hooks);
};

/* family_gemm.c */
void family_gemm(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                 size_t end, const struct runner_hooks *hooks);

/* family_experts.c */
void family_experts(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                    size_t end, const struct runner_hooks *hooks);

/* What a check found, as columns of the record. */
void runner_take(struct record *r, const struct finding *f);

#endif
