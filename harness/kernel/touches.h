/* touches.h - which cases a change of a source file can break.
 *
 * Data: suites/touches.yaml, or the file that `--touches FILE` names:
 *
 *     touches:
 *       - file: humming/include/humming/scheduler.cuh   # glob; a * also matches /
 *         where: "family == gemm"                       # an expression (expr.h), all or none
 *         reason: which block computes what
 *
 * A glob is tried on the whole name of a changed file and on what follows each of its slashes, so
 * that it does not matter from where the names are told. The first row that names a file counts.
 */
#ifndef HARNESS_KERNEL_TOUCHES_H
#define HARNESS_KERNEL_TOUCHES_H

#include "harness/config/expr.h"

struct touches_row {
    const char *file, *reason;
    const struct expr *where; /* NULL: all cases, or none */
    bool all;
};

struct touches {
    const struct touches_row *rows;
    size_t count;
};

/* The rows that a change picks, one a file that is named. */
struct touched {
    const struct touches_row *const *rows;
    size_t count;
    bool all;                   /* some file is named by no row: every case may be broken */
    const char *const *unnamed; /* those files */
    size_t unnamed_count;
};

/* Everything lives in `arena`; all mistakes of the file are added to errs. */
MUST_USE enum err_code touches_load(const char *path, struct arena *arena, struct touches *out,
                                    struct errs *errs);

/* Texts and rows are borrowed, lists live in `arena`. ERR_NOMEM. */
MUST_USE enum err_code touches_pick(const struct touches *t, const char *const *files, size_t count,
                                    struct arena *arena, struct touched *out, struct errs *errs);

bool touches_case(const struct touched *t, const int64_t v[AX_COUNT]);

#endif
