/* record.h - one result, and the one table that names its columns.
 *
 * Every output (terminal, JSON lines, JUnit) is generated from record_columns, so a column added
 * here appears in all of them. / */
#ifndef HARNESS_REPORT_RECORD_H
#define HARNESS_REPORT_RECORD_H

#include "harness/core/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_TEXT = 400, RECORD_ID = 640, RECORD_REPRO = 1024 + RECORD_ID };

/* Plain data without pointers, so that it crosses a pipe as it is. */
struct record {
    uint64_t index; /* in the plan */
    uint64_t seed;
    char suite[64];
    char id[RECORD_ID]; /* "case" in outputs */
    char provider[64];  /* name and version */
    char family[24], check[24], fill[16];
    enum verdict verdict;
    char reason[RECORD_TEXT]; /* why not a pass; "" for a pass */
    char known[128]; /* where a known fault is written down: of a fail that it explains, and
                      * of a pass that it says cannot be; "" for all else */
    char repro[RECORD_REPRO];    /* the command that reruns it alone; always filled */
    char diagnosis[RECORD_TEXT]; /* where a fail is wrong, and why; "" where not looked for */
    char kernel[128];            /* what was really launched: tile, slices */
    char output_hash[17]; /* 16 hexadecimal digits over the bits of the first launch's outputs
                           * (kernel/output_hash.h); "" where none ended well */
    char against_verdict[16], against_hash[17], bits[16]; /* of an earlier run: against.h */
    uint64_t outputs, compared, wrong; /* elements: of the result, looked at, over the limit */
    int64_t at_row, at_col;            /* the worst or first wrong element; -1: none */
    double got, want;                  /* its values */
    uint32_t got_code, want_code;
    double error, limit; /* of the worst element, in `unit` */
    char unit[16];
    double fill_us, reference_us, kernel_us,
        compare_us;        /* timing columns: --no-timing leaves them out */
    uint64_t memory_bytes; /* the worker's arenas at the end of the case */
};

enum column_type { COL_TEXT, COL_U64, COL_SEED, COL_I64, COL_HEX32, COL_REAL, COL_VERDICT };

struct column {
    const char *name; /* JSON key, table heading */
    enum column_type type;
    int timing;    /* differs between equal runs: left out by --no-timing */
    size_t offset; /* in struct record */
    size_t size;   /* of the member, bytes */
    const char *unit;
};

extern const struct column record_columns[];
extern const int record_column_count;

/* A record that came through a pipe may hold anything: ends every text inside its member and
 * turns a verdict that does not exist into infra with its reason. */
void record_make_safe(struct record *r);

/* Which element was wrong, in one line without newline; "" when at_row is -1. Cut to `size`;
 * `buf` is returned. "row 0, column 3: got 1.5 (0x3e00), want 1.25 (0x3d00); error 256 codes,
 * limit 0; 3 of 64 compared are wrong" */
enum { RECORD_WHERE = 400 };
const char *record_where(const struct record *r, char *buf, size_t size);

/* A fail that is written down as a known fault, and a known fault that passes. */
static inline bool record_known_fails(const struct record *r)
{
    return r->known[0] && r->verdict == VERDICT_FAIL;
}
static inline bool record_known_passes(const struct record *r)
{
    return r->known[0] && r->verdict == VERDICT_PASS;
}

/* The member that c names. */
static inline const void *record_member(const struct record *r, const struct column *c)
{
    return (const char *)r + c->offset;
}

#endif
