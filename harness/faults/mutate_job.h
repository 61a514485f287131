/* mutate_job.h - one fault on its way through its children (mutate.h). */
#ifndef HARNESS_FAULTS_MUTATE_JOB_H
#define HARNESS_FAULTS_MUTATE_JOB_H

#include "harness/faults/mutate.h"
#include "harness/faults/mutate_child.h"

enum { JOB_PATH = 1024 };

/* Test programs are silent until their end. */
#define JOB_TEST_SECONDS 300.0

/* What the usual checks say of a case without a fault. */
struct usual_clean {
    const char *id;
    struct usual_outcome outcomes[USUAL_RUNS];
    struct usual_clean *next;
};

/* What all jobs share. */
struct jobs {
    const struct mutate_options *o;
    struct arena *arena;
    struct usual_clean *clean; /* by case, as far as known */
    char *const *plain_env;    /* without HUMCHECK_FAULT */
};

enum job_step { JOB_SUITE, JOB_TESTS, JOB_USUAL_CLEAN, JOB_USUAL, JOB_EXPLAIN, JOB_DONE };

struct job {
    struct jobs *shared;
    struct child child; /* its `line` is the owner's */
    const struct fault *fault;
    struct mutation *row;
    char *const *env; /* with the fault */
    enum job_step step;
    const char *test; /* what is left of the fault's list */
    char test_name[MUTATION_NAME];
    int runs; /* of the usual checks that are there */
    struct usual_outcome clean[USUAL_RUNS], outcomes[USUAL_RUNS];
};

/* Starts with the suite. */
MUST_USE enum err_code job_start(struct job *job, struct jobs *shared, const struct fault *fault,
                                 struct mutation *row, struct errs *errs);

/* The child is over: starts the next one, or step is JOB_DONE and the row is complete. */
MUST_USE enum err_code job_next(struct job *job, const struct child_end *end, struct errs *errs);

/* "humcheck kernels ... -- SUITE..." as all runs of the suite have it; `limit`: "--max-fail=1" or
 * NULL. NULL: no memory. */
char *const *job_suite_argv(const struct jobs *shared, const char *limit);

/* Seconds without a line after which a child hangs that may run so many cases without one. */
double job_silence(const struct mutate_options *o, double cases);

/* Takes the next name off a list separated by spaces. False: none is left. */
bool job_next_test(const char **list, char name[MUTATION_NAME]);

/* The program of that name under the folder of tests; false: there is none. */
bool job_find_test(const struct mutate_options *o, const char *name, char path[JOB_PATH]);

#endif
