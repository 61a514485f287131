/* run_result.h - what `humcheck run` found, configuration by configuration, and its one report.
 *
 * Kernels and evaluation leave files (JSON lines, JSON); the report is made from these files, so
 * that it says nothing that they do not.
 */
#ifndef HARNESS_CLI_RUN_RESULT_H
#define HARNESS_CLI_RUN_RESULT_H

#include "harness/core/arena.h"
#include "harness/core/err.h"
#include "harness/core/verdict.h"

#include <stdint.h>
#include <stdio.h>

/* An entry of the derived suite: a matrix of the model, or a step around it. */
struct run_entry {
    const char *name;
    unsigned long counts[VERDICT_COUNT];
    struct run_entry *next;
};

struct run_row {
    const char *config, *model;
    const char *suite;                   /* name of the derived suite; NULL: no kernels */
    struct run_entry *first, *last;      /* in the order of the records */
    unsigned long counts[VERDICT_COUNT]; /* of all cases */
    const char *eval;                    /* its verdict; NULL: none was made */
    const char *why;                     /* the evaluation's sentence */
    int64_t correct, questions, needed;
};

/* Records of a run of kernels, counted into the rows of their suites. */
MUST_USE enum err_code run_read_kernels(const char *path, struct run_row *rows, size_t count,
                                        struct arena *arena, struct errs *errs);

/* Results of an evaluation, put into the rows of their configurations. */
MUST_USE enum err_code run_read_eval(const char *path, struct run_row *rows, size_t count,
                                     struct arena *arena, struct errs *errs);

/* One line a configuration; below, for each that is not all green, the entries that cover its
 * model. */
void run_show(const struct run_row *rows, size_t count, struct arena *arena);

/* The same as Markdown. ERR_IO. */
MUST_USE enum err_code run_write(const char *path, const struct run_row *rows, size_t count,
                                 struct errs *errs);

#endif
