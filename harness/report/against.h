/* against.h - what changed between a record and an earlier one of the same case: bits and verdicts.
 *
 * A wrong bit is not needed for a change: outputs that pass inside an interval of errors may be
 * others than before, and who exchanges a kernel wants to know. Bits are compared by output_hash
 * (record.h). Equal launches of a kernel whose order of summation is not fixed (stream-k) may
 * differ without a reason: a line says where that is so, and a run against the same provider shows
 * them all.
 *
 * The column `bits` of a record:
 *
 *   same, changed   both have outputs
 *   one_side        one of them has outputs, or the other run does not have the case
 *   ""              neither has outputs, the other run's records are too old to say, or no other
 *                   run was asked for
 */
#ifndef HARNESS_REPORT_AGAINST_H
#define HARNESS_REPORT_AGAINST_H

#include "harness/report/record.h"

#include <stdbool.h>

/* What the other run has of a case. */
struct against_case {
    bool there;
    bool hashed; /* its record has the column output_hash */
    enum verdict verdict;
    char hash[17]; /* "": it has no outputs */
};

struct against_counts {
    uint64_t compared; /* outputs on both sides */
    uint64_t changed, changed_passing;
    uint64_t verdicts; /* that differ */
    uint64_t one_side, neither, unknown;
};

/* Of a run: whose records it is compared with, and what came of it so far. */
struct against_run {
    const char *name; /* "humming 0.1.12" */
    struct against_counts counts;
};

/* What a line of an earlier run's records (--out jsonl) says of its case: in *r its index, id,
 * provider, seed and verdict, and what against_judge wants. False: it is no record. */
bool against_read(const char *line, struct record *r, struct against_case *out);

/* Fills against_verdict, against_hash and bits of r, and adds it to counts. */
void against_judge(const struct against_case *before, struct record *r,
                   struct against_counts *counts);

/* "changed CASE: pass -> fail, bits 0123456789abcdef -> fedcba9876543210", cut to `size`; "" unless
 * bits or verdict are others. `buf` is returned. */
enum { AGAINST_LINE = RECORD_ID + 200 };
const char *against_line(const struct record *r, char *buf, size_t size);

/* "against humming 0.1.12: 230 cases compared, 12 with other bits (3 of them pass on both sides), 2
 * verdicts changed, 4 only on one side"; `buf` is returned. */
enum { AGAINST_SUMMARY = 600 };
const char *against_summary(const struct against_run *run, char *buf, size_t size);

#endif
