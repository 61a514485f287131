/* mutate.h - every fault of the catalogue against a suite: does it show, where, and would the usual
 * checks have seen it?
 *
 * Everything runs in processes of this program (`humcheck kernels`, `humcheck usual`) and of its
 * tests, which inherit HUMCHECK_FAULT. A fault is a job of several children, one after the other:
 *
 *   the suite           stopped at the first case that neither passes nor is skipped, unless full
 *   the fault's tests   of an oracle's fault that the suite does not show
 *   usual checks        without the fault (once a case), then with it
 *   explain             where asked for: which mistake `humcheck explain` names for the case
 *
 * A fault is detected by a fail; by an untrusted or infra case, which have the fault-free run's
 * pass behind them; by a run that does not start or ends before its time; or by a test program that
 * fails. Cases are counted in plan order, so the result does not depend on how many jobs run at
 * once. */
#ifndef HARNESS_FAULTS_MUTATE_H
#define HARNESS_FAULTS_MUTATE_H

#include "harness/core/err.h"
#include "harness/faults/catalogue.h"
#include "harness/report/mutation.h"

struct mutate_options {
    const char *const *suites;
    size_t suite_count;
    const char *filter, *provider; /* as of `humcheck kernels`; filter may be NULL */
    bool has_seed;
    uint64_t seed;
    const char *tests;      /* folder of the test programs: in it, or one or two folders below */
    const char *first_case; /* whose configuration the usual checks get where none shows a fault */
    double case_seconds;
    /* A child that writes nothing for so long, and the time that cases may take, hangs; 0: 60. */
    double idle_seconds;
    int jobs;
    bool full, explain;
    const volatile int *interrupted;
};

struct mutate_hooks {
    /* rows[index] is done. An error stops the run. */
    enum err_code (*done)(void *context, size_t index, struct errs *errs);
    /* A few times a second: what is being run, for a terminal. May be NULL. */
    void (*tick)(void *context, const char *doing);
    void *context;
};

/* What it says of a fault before its job. */
void mutate_row(const struct fault *f, struct mutation *out);

/* The suite and all tests that faults name, without a fault: everything must pass, and every test
 * must be there. Sentences about what is wrong are in `errs`. *cases: of the suite. */
MUST_USE enum err_code mutate_baseline(const struct mutate_options *o,
                                       const struct fault *const *faults, size_t count,
                                       uint64_t *cases, struct errs *errs);

/* Runs the faults whose rows are not done. *complete is false after an interrupt and after an
 * error; on return no child is left. */
MUST_USE enum err_code mutate_run(const struct mutate_options *o, const struct fault *const *faults,
                                  struct mutation *rows, size_t count,
                                  const struct mutate_hooks *hooks, bool *complete,
                                  struct errs *errs);

#endif
