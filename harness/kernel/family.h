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

struct trial;
struct op_family;
struct op_problem;
struct op_trial;
struct experts_trial;

/* Takes the place of a case's check: launches what was opened, and says in `f` what came of it. The
 * data are those of the case's axes. */
struct case_hook {
    void (*gemm)(void *context, struct trial *t, struct arena *scratch, struct finding *f);
    void (*op)(void *context, const struct op_family *family, const struct op_problem *p,
               struct op_trial *t, struct finding *f);
    void (*experts)(void *context, struct experts_trial *t, int threads, struct finding *f);
    void *context;
};

/* One a process, kept over problems. */
struct runner {
    const struct hum_provider *provider;
    void *handle;
    int threads;
    struct arena problem, scratch; /* of one problem, of one case */
    const struct case_hook *hook;  /* NULL: cases are checked */
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
