/* made_table.h - for tests: a YAML table in a file of its own, and the mistakes that its loader
 * found.
 */
#ifndef HARNESS_TEST_MADE_TABLE_H
#define HARNESS_TEST_MADE_TABLE_H

#include "harness/core/err.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const char *const made_path = "made-table.yaml"; /* in the folder of the test */

static inline void made_table(const char *text)
{
    FILE *f = fopen(made_path, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* All errors, each "LINE:COLUMN: sentence" and ended by a newline. */
static inline const char *made_errors(const struct errs *errs, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < errs->count && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%d:%d: %s\n", errs->items[i].at.line,
                                 errs->items[i].at.column, errs->items[i].text);
    return buf;
}

#endif
