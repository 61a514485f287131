/* eval_run.h - one configuration of `humcheck eval` from its store to its result.
 */
#ifndef HARNESS_CLI_EVAL_RUN_H
#define HARNESS_CLI_EVAL_RUN_H

#include "harness/cli/eval_show.h"

/* What all configurations of one command share. */
struct eval_run {
    const struct options *o;
    const struct eval_options *how;
    const char *folder; /* of the stores; NULL: they stay in memory */
    struct arena *arena;
    struct eval_line line;
};

/* Runs e (prepared) and fills *row; prints what there is to tell. Errors of this configuration are
 * printed and end up in row->failed; ERR_USAGE alone (another run's store) is returned, with its
 * sentences in `errs`. */
enum err_code eval_run_one(struct eval_run *run, struct eval *e, struct eval_row *row,
                           struct errs *errs);

/* PATH.sqlite of a run: `place` itself if it is a file, else place/NAME.sqlite. NULL: no memory. */
const char *eval_store_path(const char *place, const char *name, struct arena *arena);

#endif
