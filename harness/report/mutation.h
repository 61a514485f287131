/* mutation.h - what became of one injected fault, and how that is written and read.
 *
 * A row is plain data. The JSON file is the memory of `humcheck mutate`: it is rewritten, whole,
 * whenever a fault is finished, and read again to go on. */
#ifndef HARNESS_REPORT_MUTATION_H
#define HARNESS_REPORT_MUTATION_H

#include "harness/core/arena.h"
#include "harness/core/err.h"
#include "harness/report/record.h"

#include <stdbool.h>
#include <stdio.h>

/* ---- the usual checks ------------------------------------------------------------------------ */

enum { USUAL_CHECKS = 6, USUAL_RUNS = 6 };

/* Checks that tests of quantized kernels use, on random data (harness/faults/usual.h). */
struct usual_name {
    const char *name; /* JSON key */
    const char *text; /* heading */
};
extern const struct usual_name usual_names[USUAL_CHECKS];

/* One run of them on one case: one set of data. */
struct usual_outcome {
    int run;                   /* from 1 */
    bool ran;                  /* false: the case has nothing to compare, for `reason` */
    bool failed[USUAL_CHECKS]; /* a launch that is refused or lost fails all */
    uint64_t compared;         /* numbers */
    char reason[RECORD_TEXT];
};

/* ---- one fault ------------------------------------------------------------------------------- */

enum { MUTATION_CHECKS = 16, MUTATION_NAME = 48 };

struct mutation {
    const char *name, *place, *class, *origin; /* borrowed from the catalogue */
    const char *cause; /* likewise: the mistake that gives the same bits; NULL: none does */
    bool simulated;
    bool done;
    bool reused; /* read from a file of an earlier run */
    bool detected;
    /* Of the first case in plan order that shows it: verdict and check. "refused": the program did
     * not start, check "start"; "test": a test program failed, check is its name. */
    char verdict[16], check[MUTATION_NAME];
    char family[24], id[RECORD_ID], reason[RECORD_TEXT], repro[RECORD_REPRO];
    uint64_t cases; /* run up to that one, and including it; undetected: all */
    double seconds; /* of the suite and, if needed, the tests */
    /* Checks of which a case showed it; only of a full run. */
    struct {
        char name[24];
        uint64_t cases;
    } seen[MUTATION_CHECKS];
    int seen_count;
    /* Of the six runs: in how many a usual check fails with the fault and passes without. */
    bool usual_ran;
    char usual_id[RECORD_ID]; /* the case whose configuration they had */
    char usual_reason[RECORD_TEXT];
    int usual_runs[USUAL_CHECKS];
    int usual_alarms[USUAL_CHECKS]; /* runs in which it fails without a fault */
    char explained[MUTATION_NAME];  /* the mistake that `humcheck explain` names; "": none */
};

/* What all rows belong to: rows of another run mean nothing in this one. */
struct mutation_run {
    const char *suite;   /* the paths, separated by spaces */
    const char *plan;    /* hash of its cases */
    const char *program; /* with the commit */
    const char *build;   /* hash of the program's bytes */
    bool full;
    bool explain; /* failing cases were explained */
};

/* ---- files ----------------------------------------------------------------------------------- */

/* All rows that are done, at `path`; the file is replaced whole. */
MUST_USE enum err_code mutation_write_json(const char *path, const struct mutation_run *run,
                                           const struct mutation *rows, size_t count,
                                           struct errs *errs);
MUST_USE enum err_code mutation_write_markdown(const char *path, const struct mutation_run *run,
                                               const struct mutation *rows, size_t count,
                                               struct errs *errs);

/* Takes the rows of an earlier run of the same mutation_run from the file at `path`: those become
 * done and reused. Returns how many; 0 with a sentence in `why` (at least 160 bytes, "" if there is
 * no file) where none can be taken. */
size_t mutation_read_json(const char *path, const struct mutation_run *run, struct mutation *rows,
                          size_t count, char *why, size_t size);

/* ---- lines that child processes write -------------------------------------------------------- */

/* A line of --out jsonl: index, ids, family, check, verdict, reason and repro of `out`; the rest is
 * 0. False: it is none. */
bool mutation_read_record(const char *line, struct record *out);

/* A line of `humcheck usual`, and back. False: it is none. `id`: of its case, or NULL; it is not
 * read back. */
bool mutation_read_usual(const char *line, struct usual_outcome *out);
bool mutation_print_usual(const struct usual_outcome *o, const char *id, FILE *f);

/* ---- text ------------------------------------------------------------------------------------ */

struct mutation_widths {
    int name, class, origin;
    bool explain; /* a column more */
};

void mutation_print_head(const struct mutation_widths *w, FILE *f);
void mutation_print_row(const struct mutation_widths *w, const struct mutation *m, FILE *f);
/* Shares, all together and class by class. */
void mutation_print_summary(const struct mutation *rows, size_t count, FILE *f);

/* "right": explain named the cause. "wrong": it named another, or one where there is none. "none":
 * it named none although there is one. "": it named none, and rightly so, or had no case. */
const char *mutation_explained(const struct mutation *m);
/* How often each. */
void mutation_print_explained(const struct mutation *rows, size_t count, FILE *f);

/* "exact", "exact (untrusted)", "start (refused)", "test_checks", "-". */
const char *mutation_caught_by(const struct mutation *m, char *buf, size_t size);

#endif
