/* known.h - faults that are known: which cases fail, in which version, on which device, and where
 * that is written down.
 *
 * A case of a row stays a `fail` in every record. It is marked (record.h: known), and a run whose
 * fails are all marked is green. A known fault that passes is marked too and makes the run red:
 * the list is wrong then, and a list that is wrong hides the next fault. The file is data,
 * `--known FILE` names it:
 *
 *     known:
 *       - provider: "humming 0.1.12"          # glob over "name version"
 *         device: "*H200*"                    # glob over its device; left out: any
 *         case: "upstream/hygiene*"           # glob over the id, and / or
 *         where: "check == alias"             # an expression over the axes (expr.h)
 *         says: "outputs that overlap *"      # glob over the reason; left out: any
 *         verdict: fail                       # or varies: a race, which some runs do not show
 *         finding: ../results/findings/x.md   # a file, from the folder of the table, or a URL
 *         first_seen: 2026-11-30
 *         last_seen: 2026-11-30
 *         reason: nobody checks for overlap
 *
 * The first row that fits a case counts.
 */
#ifndef HARNESS_KERNEL_KNOWN_H
#define HARNESS_KERNEL_KNOWN_H

#include "harness/config/expr.h"
#include "harness/report/record.h"

struct known_row {
    const char *provider, *device, *id, *says; /* globs; NULL: any */
    const struct expr *where;                  /* NULL: any */
    const char *finding, *first_seen, *last_seen, *reason;
    bool varies; /* a pass is no news */
    int line;    /* of the file */
};

struct known {
    const char *path;
    const struct known_row *rows;
    size_t count;
};

/* path NULL: the empty table. Everything lives in `arena`; all mistakes of the file are added to
 * errs: unknown keys and words, dates that are none, findings that do not exist. */
MUST_USE enum err_code known_load(const char *path, struct arena *arena, struct known *out,
                                  struct errs *errs);

/* Is the row about this provider ("name version") on this device at all? */
bool known_is_about(const struct known_row *row, const char *provider, const char *device);

/* The row of a case; NULL: it has none. What the case says is not asked. */
const struct known_row *known_find(const struct known *k, const char *provider, const char *device,
                                   const char *id, const int64_t v[AX_COUNT]);

/* Marks a fail that its row explains, and a pass that its row excludes, with the finding. All else
 * of the record stays as it is. row NULL: nothing is known of the case. */
void known_mark(const struct known_row *row, struct record *r);

#endif
