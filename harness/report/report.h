/* report.h - the only code that writes results: records in, terminal, JSON lines and JUnit out.
 *
 * No other file prints a result, so no two outputs can disagree. Sinks are rows of a table; each
 * writes to TARGET.part and renames when closed completely, so a file that exists is whole ("-"
 * is standard output; the text sink is always open, on standard output). / */
#ifndef HARNESS_REPORT_REPORT_H
#define HARNESS_REPORT_REPORT_H

#include "harness/core/err.h"
#include "harness/report/against.h"
#include "harness/report/record.h"

#include <stdbool.h>
#include <stdio.h>

struct run_info {
    const char *program;  /* "humcheck 0.1.0 (commit)" */
    const char *provider; /* name, version, device */
    const char *const *suites;
    size_t suite_count;
    size_t cases, problems, illegal, excluded;
    uint64_t started;                  /* seconds since 1970 */
    const struct against_run *against; /* counts of the records handed over; NULL: no other run */
    const struct left *left; /* of a run with a budget, filled when the report is closed; or NULL */
    const char *const *notes; /* lines for the summary, likewise */
    size_t note_count;
};

struct report_options {
    const char *const *outs; /* "KIND:TARGET", each one --out */
    size_t out_count;
    bool no_timing;
    bool quiet;   /* text: summary only */
    bool verbose; /* text: one line a case, also passes */
};

struct sink {
    const char *kind; /* "jsonl", "junit", "left" */
    enum err_code (*open)(const char *target, const struct report_options *o,
                          const struct run_info *run, void **self, struct errs *errs);
    enum err_code (*row)(void *self, const struct record *r, struct errs *errs);
    enum err_code (*close)(void *self, enum verdict run, bool complete, struct errs *errs);
    const char *help;
};

extern const struct sink *const sinks[]; /* what --out takes */
extern const int sink_count;

struct report;

/* Could report_open open these outputs? For commands that work for long before; no file is made. */
MUST_USE enum err_code report_check(const char *const *outs, size_t count, struct errs *errs);

/* Mistakes in o->outs (form, kind, a target named twice) are all reported, as ERR_USAGE, before
 * a file is touched. o, run and what they point to are borrowed until report_close. */
MUST_USE enum err_code report_open(struct report **out, const struct report_options *o,
                                   const struct run_info *run, struct errs *errs);
/* Hands r, made safe (record.h), to every output; the first failure is returned, and the others
 * still get the record. */
MUST_USE enum err_code report_add(struct report *rep, const struct record *r, struct errs *errs);
void report_tick(
    struct report *rep); /* about four times a second, while nothing arrives: the progress bar */

/* Flush and close every sink (complete = false: interrupted; results so far stay in TARGET.part,
 * whole and readable), print the summary, free `rep`. *run is the verdict of the records that
 * came: known fails (record.h) count as passes in it, known faults that pass as fails. An output
 * that failed earlier stays a .part too. */
MUST_USE enum err_code report_close(struct report *rep, bool complete, enum verdict *run,
                                    struct errs *errs);

#endif
