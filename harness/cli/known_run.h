/* known_run.h - the known faults of a run: the row of each case, and what to say at the end.
 */
#ifndef HARNESS_CLI_KNOWN_RUN_H
#define HARNESS_CLI_KNOWN_RUN_H

#include "harness/kernel/known.h"
#include "harness/kernel/plan.h"

struct known_run {
    struct known table;
    const struct known_row **rows; /* by case of the plan; NULL without a table */
    const char **passing;          /* ids of known faults that pass, with their rows */
    size_t fails, passes;
};

/* The rows of all cases, for provider "name version" on a device. Lives in `arena`; ERR_NOMEM. */
MUST_USE enum err_code known_run_open(struct known_run *k, const struct plan *plan,
                                      const char *provider, const char *device, struct arena *arena,
                                      struct errs *errs);

/* Marks the record of a case of the plan. */
void known_run_mark(struct known_run *k, struct record *r, struct arena *arena);

/* Adds at most KNOWN_NOTES lines: how many fails are known, each known fault that passes, the rows
 * about this provider that no case of the plan has. Returns how many. */
enum { KNOWN_NOTES = 24 };
size_t known_run_notes(const struct known_run *k, const struct plan *plan, const char *provider,
                       const char *device, struct arena *arena, const char *notes[KNOWN_NOTES]);

#endif
