/* table.h - rows of short texts, printed in aligned columns.
 *
 * Widths count characters, not bytes. Cells are copied into the arena and escaped for terminals.
 */
#ifndef HARNESS_REPORT_TABLE_H
#define HARNESS_REPORT_TABLE_H

#include "harness/core/arena.h"

#include <stdio.h>

enum { TABLE_COLUMNS = 8 };

struct table_row;

/* Starts as {.arena = a, .aligns = "llr"}: one letter a column, l left or r right; at most
 * TABLE_COLUMNS. */
struct table {
    struct arena *arena;
    const char *aligns;
    struct table_row *first, *last;
    size_t width[TABLE_COLUMNS];
};

/* One row: as many cells as aligns has letters. Without memory the row is lost and false is
 * returned. */
bool table_add(struct table *t, const char *const cells[]);

/* All rows, two spaces between columns, none at the end of a line. */
void table_print(const struct table *t, FILE *f);

#endif
