/* experts_oracle.h - what each step of the pipeline must make of what the step before it has left.
 *
 * A step is judged alone, from the provider's own intermediate: exactly, where there is one right
 * answer; an elementary activation within ACTIVATION_ULP; a GEMM whose sums round on these data by
 * the bits that its stated order of summation predicts, or, where no model knows them, by its error
 * bound. Where every step is exact, the whole chain is computed a second time from the tokens alone
 * and compared with the result.
 */
#ifndef HARNESS_KERNEL_EXPERTS_ORACLE_H
#define HARNESS_KERNEL_EXPERTS_ORACLE_H

#include "harness/kernel/experts_run.h"

struct experts_oracle {
    const struct experts_trial *t;
    const struct batch *b;
    const struct run_out *run;
    int threads;         /* of the BLAS */
    struct arena *arena; /* of everything it makes */
};

/* One step after the other, then the end. Pass, or the first step that is wrong, as "down: ...";
 * f->note says by what the GEMMs were judged. */
void experts_judge(const struct experts_oracle *o, struct finding *f);

/* The result that the tokens alone come to, without a look at the provider's intermediates: exact
 * sums rounded once, correctly rounded activations. Where a step has no one right answer a right
 * kernel may differ. NULL, or a sentence: memory is out, a GEMM is looked at in samples only. */
const char *experts_chain(const struct experts_oracle *o, struct step_data *out);

#endif
