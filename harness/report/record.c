#include "harness/report/record.h"

#include <inttypes.h>
#include <stdio.h>

#define AT(member) offsetof(struct record, member), sizeof(((const struct record *)0)->member)

/* memory_bytes is a timing column: an arena keeps its peak, so it depends on which worker ran
 * what. So is diagnosis: what is found out depends on the seconds that are left for it. */
/* clang-format off */
const struct column record_columns[] = {
    {"index",        COL_U64,     0, AT(index),        ""},
    {"suite",        COL_TEXT,    0, AT(suite),        ""},
    {"case",         COL_TEXT,    0, AT(id),           ""},
    {"provider",     COL_TEXT,    0, AT(provider),     ""},
    {"family",       COL_TEXT,    0, AT(family),       ""},
    {"check",        COL_TEXT,    0, AT(check),        ""},
    {"fill",         COL_TEXT,    0, AT(fill),         ""},
    {"seed",         COL_SEED,    0, AT(seed),         ""},
    {"verdict",      COL_VERDICT, 0, AT(verdict),      ""},
    {"reason",       COL_TEXT,    0, AT(reason),       ""},
    {"known",        COL_TEXT,    0, AT(known),        ""},
    {"kernel",       COL_TEXT,    0, AT(kernel),       ""},
    {"outputs",      COL_U64,     0, AT(outputs),      "elements"},
    {"output_hash",  COL_TEXT,    0, AT(output_hash),  ""},
    {"against_verdict", COL_TEXT, 0, AT(against_verdict), ""},
    {"against_hash", COL_TEXT,    0, AT(against_hash), ""},
    {"bits",         COL_TEXT,    0, AT(bits),         ""},
    {"compared",     COL_U64,     0, AT(compared),     "elements"},
    {"wrong",        COL_U64,     0, AT(wrong),        "elements"},
    {"at_row",       COL_I64,     0, AT(at_row),       ""},
    {"at_col",       COL_I64,     0, AT(at_col),       ""},
    {"got",          COL_REAL,    0, AT(got),          ""},
    {"want",         COL_REAL,    0, AT(want),         ""},
    {"got_code",     COL_HEX32,   0, AT(got_code),     ""},
    {"want_code",    COL_HEX32,   0, AT(want_code),    ""},
    {"error",        COL_REAL,    0, AT(error),        "see unit"},
    {"limit",        COL_REAL,    0, AT(limit),        "see unit"},
    {"unit",         COL_TEXT,    0, AT(unit),         ""},
    {"fill_us",      COL_REAL,    1, AT(fill_us),      "us"},
    {"reference_us", COL_REAL,    1, AT(reference_us), "us"},
    {"kernel_us",    COL_REAL,    1, AT(kernel_us),    "us"},
    {"compare_us",   COL_REAL,    1, AT(compare_us),   "us"},
    {"memory_bytes", COL_U64,     1, AT(memory_bytes), "bytes"},
    {"diagnosis",    COL_TEXT,    1, AT(diagnosis),    ""},
    {"repro",        COL_TEXT,    0, AT(repro),        ""},
};
/* clang-format on */
const int record_column_count = sizeof record_columns / sizeof record_columns[0];

void record_make_safe(struct record *r)
{
    for (int i = 0; i < record_column_count; i++) {
        const struct column *c = &record_columns[i];

        if (c->type == COL_TEXT)
            ((char *)r)[c->offset + c->size - 1] = '\0';
    }
    if ((unsigned)r->verdict < VERDICT_COUNT)
        return;
    (void)snprintf(r->reason, sizeof r->reason,
                   "the worker sent a verdict that does not exist (%d)", (int)r->verdict);
    r->verdict = VERDICT_INFRA;
}

const char *record_where(const struct record *r, char *buf, size_t size)
{
    buf[0] = '\0';
    if (r->at_row < 0)
        return buf;
    (void)snprintf(buf, size,
                   "row %" PRId64 ", column %" PRId64 ": got %.17g (0x%04" PRIx32
                   "), want %.17g (0x%04" PRIx32 "); error %.6g%s%s, limit %.6g; %" PRIu64
                   " of %" PRIu64 " compared are wrong",
                   r->at_row, r->at_col, r->got, r->got_code, r->want, r->want_code, r->error,
                   r->unit[0] ? " " : "", r->unit, r->limit, r->wrong, r->compared);
    return buf;
}
