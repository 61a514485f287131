#include "harness/report/table.h"

#include "harness/core/utf8.h"
#include "harness/report/escape.h"

#include <string.h>

struct table_row {
    struct table_row *next;
    const char *cells[TABLE_COLUMNS];
    size_t width[TABLE_COLUMNS];
};

static const char *copied(struct arena *a, const char *s)
{
    size_t size = ESCAPE_GROWTH * strlen(s) + 1;
    char *buf = arena_alloc(a, size, 1);

    return buf ? escape_terminal(s, buf, size) : NULL;
}

bool table_add(struct table *t, const char *const cells[])
{
    struct table_row *row = ARENA_NEW(t->arena, 1, struct table_row);
    size_t columns = strlen(t->aligns);

    if (!row)
        return false;
    for (size_t i = 0; i < columns; i++) {
        row->cells[i] = copied(t->arena, cells[i]);
        if (!row->cells[i])
            return false;
        row->width[i] = utf8_count(row->cells[i], strlen(row->cells[i]));
        if (t->width[i] < row->width[i])
            t->width[i] = row->width[i];
    }
    if (t->last)
        t->last->next = row;
    else
        t->first = row;
    t->last = row;
    return true;
}

void table_print(const struct table *t, FILE *f)
{
    size_t columns = strlen(t->aligns);

    for (const struct table_row *row = t->first; row; row = row->next) {
        size_t pending = 0; /* spaces owed before the next visible cell */

        for (size_t i = 0; i < columns; i++) {
            size_t gap = t->width[i] - row->width[i];
            size_t before = pending + (t->aligns[i] == 'r' ? gap : 0);

            if (row->cells[i][0])
                (void)fprintf(f, "%*s%s", (int)before, "", row->cells[i]);
            pending = row->cells[i][0] ? 0 : pending + t->width[i];
            if (row->cells[i][0] && t->aligns[i] == 'l')
                pending = gap;
            pending += 2;
        }
        (void)fputc('\n', f);
    }
}
