#include "harness/explain/locate.h"

#include <inttypes.h>
#include <stdio.h>

enum { LISTED = 6, POWERS = 8, TEXT = 160 };

static bool is_seen(const struct axis_set *s, int64_t i)
{
    return !s->seen || s->seen[i];
}

/* How many are wrong, and the first and last of them; of all that were seen, too. */
struct extent {
    int64_t wrong, first, last, seen, seen_first, seen_last;
    bool together; /* all seen between first and last are wrong */
};

static struct extent extent_of(const struct axis_set *s)
{
    struct extent e = {.first = -1, .seen_first = -1, .together = true};

    for (int64_t i = 0; i < s->count; i++) {
        if (!is_seen(s, i))
            continue;
        e.seen++;
        e.seen_first = e.seen_first < 0 ? i : e.seen_first;
        e.seen_last = i;
        if (!s->wrong[i])
            continue;
        e.wrong++;
        e.first = e.first < 0 ? i : e.first;
        e.last = i;
    }
    for (int64_t i = e.first; e.wrong && i <= e.last; i++)
        e.together = e.together && (!is_seen(s, i) || s->wrong[i]);
    return e;
}

/* Wrong residues of one period: all indices with such a residue are wrong, and no others. */
struct residues {
    int64_t count, first, last;
    bool exact;
};

static struct residues residues_of(const struct axis_set *s, int64_t period)
{
    struct residues r = {.first = -1, .exact = true};

    for (int64_t at = 0; at < period && at < s->count; at++) {
        int64_t wrong = 0, right = 0;

        for (int64_t i = at; i < s->count; i += period) {
            wrong += is_seen(s, i) && s->wrong[i];
            right += is_seen(s, i) && !s->wrong[i];
        }
        if (!wrong)
            continue;
        r.exact = r.exact && !right;
        r.first = r.first < 0 ? at : r.first;
        r.last = at;
        r.count++;
    }
    return r;
}

static const char *with_name(const struct period *p, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%" PRId64 "%s%s%s", p->length, p->name ? " (" : "",
                   p->name ? p->name : "", p->name ? ")" : "");
    return buf;
}

/* A pattern that repeats with a period: false, there is none. */
static bool say_period(const struct axis_set *s, const struct period *p, char *buf, size_t size)
{
    struct residues r;
    char every[TEXT];

    if (p->length < 2 || 2 * p->length > s->count)
        return false;
    r = residues_of(s, p->length);
    if (r.count == 0 || 2 * r.count > p->length || !r.exact || r.last - r.first + 1 != r.count)
        return false;
    (void)with_name(p, every, sizeof every);
    if (r.count == 1)
        (void)snprintf(buf, size, "%s %" PRId64 " of every %s", s->one, r.first, every);
    else
        (void)snprintf(buf, size, "%s %" PRId64 " to %" PRId64 " of every %s", s->many, r.first,
                       r.last, every);
    return true;
}

static bool say_periods(const struct axis_set *s, char *buf, size_t size)
{
    for (int i = 1; i <= POWERS; i++)
        if (say_period(s, &(struct period){.length = (int64_t)1 << i}, buf, size))
            return true;
    for (int i = 0; i < s->period_count; i++)
        if (say_period(s, &s->periods[i], buf, size))
            return true;
    return false;
}

/* All but a few: false, there are more. */
static bool say_all_but(const struct axis_set *s, const struct extent *e, char *buf, size_t size)
{
    size_t used;

    if (e->seen - e->wrong > LISTED / 2 || e->wrong < (int64_t)2 * LISTED)
        return false;
    used = (size_t)snprintf(buf, size, "all %" PRId64 " %s but", e->seen, s->many);
    for (int64_t i = 0; i < s->count && used < size; i++)
        if (is_seen(s, i) && !s->wrong[i])
            used += (size_t)snprintf(buf + used, size - used, " %" PRId64, i);
    return true;
}

static void say_list(const struct axis_set *s, const struct extent *e, char *buf, size_t size)
{
    int64_t listed = 0;
    size_t used =
        (size_t)snprintf(buf, size, "%" PRId64 " of %" PRId64 " %s:", e->wrong, e->seen, s->many);

    for (int64_t i = 0; i < s->count && listed < LISTED && used < size; i++)
        if (is_seen(s, i) && s->wrong[i])
            used +=
                (size_t)snprintf(buf + used, size - used, "%s %" PRId64, listed++ ? "," : "", i);
    if (e->wrong > listed && used < size)
        (void)snprintf(buf + used, size - used, ", ...");
}

const char *locate_axis(const struct axis_set *s, char *buf, size_t size)
{
    struct extent e = extent_of(s);

    if (e.wrong == 0)
        (void)snprintf(buf, size, "no %s", s->one);
    else if (e.wrong == e.seen && e.wrong > 1)
        (void)snprintf(buf, size, "all %" PRId64 " %s", e.wrong, s->many);
    else if (e.wrong == 1)
        (void)snprintf(buf, size, "%s%s %" PRId64 " of %" PRId64,
                       e.first == e.seen_last && e.seen > 1 ? "the last " : "", s->one, e.first,
                       s->count);
    else if (e.together && e.last == e.seen_last)
        (void)snprintf(buf, size, "the last %" PRId64 " of %" PRId64 " %s", s->count - e.first,
                       s->count, s->many);
    else if (e.together && e.first == e.seen_first)
        (void)snprintf(buf, size, "the first %" PRId64 " of %" PRId64 " %s", e.last + 1, s->count,
                       s->many);
    else if (e.together)
        (void)snprintf(buf, size, "%s %" PRId64 " to %" PRId64 " of %" PRId64, s->many, e.first,
                       e.last, s->count);
    else if (!say_all_but(s, &e, buf, size) && !say_periods(s, buf, size))
        say_list(s, &e, buf, size);
    return buf;
}

/* ---- rows and columns of a part -------------------------------------------------------------- */

struct marks {
    bool *rows, *columns, *rows_seen, *columns_seen;
};

static bool mark(const struct probe *p, const struct probe_part *part, struct arena *scratch,
                 struct marks *m)
{
    size_t rows = (size_t)((part->count + part->width - 1) / part->width);

    m->rows = ARENA_NEW(scratch, rows, bool);
    m->rows_seen = ARENA_NEW(scratch, rows, bool);
    m->columns = ARENA_NEW(scratch, part->width, bool);
    m->columns_seen = ARENA_NEW(scratch, part->width, bool);
    if (!m->rows || !m->rows_seen || !m->columns || !m->columns_seen)
        return false;
    for (int64_t i = 0; i < part->count; i++)
        if (p->want[part->first + i] != PROBE_ANY)
            m->rows_seen[i / part->width] = m->columns_seen[i % part->width] = true;
    for (int64_t i = 0; i < p->wrong_count; i++) {
        int64_t e = p->wrong[i] - part->first;

        if (e >= 0 && e < part->count)
            m->rows[e / part->width] = m->columns[e % part->width] = true;
    }
    return true;
}

static int64_t wrong_in(const struct probe *p, const struct probe_part *part)
{
    int64_t count = 0;

    for (int64_t i = 0; i < p->wrong_count; i++)
        count += p->wrong[i] >= part->first && p->wrong[i] < part->first + part->count;
    return count;
}

static void locate_part(struct explain *x, const struct probe *p, const struct probe_part *part,
                        const struct periods *periods, int64_t wrong)
{
    char row_text[TEXT], column_text[TEXT];
    struct axis_set row = {.one = "row",
                           .many = "rows",
                           .count = (part->count + part->width - 1) / part->width,
                           .periods = periods->rows,
                           .period_count = periods->row_count};
    struct axis_set column = {.one = "column",
                              .many = "columns",
                              .count = part->width,
                              .periods = periods->columns,
                              .period_count = periods->column_count};
    struct marks m;

    if (!mark(p, part, &x->scratch, &m))
        return;
    row.wrong = m.rows;
    row.seen = m.rows_seen;
    column.wrong = m.columns;
    column.seen = m.columns_seen;
    explain_say(x, EXPLAIN_WHERE, "%s: %s: %" PRId64 " of %" PRId64 " are wrong, in %s, %s",
                p->what, part->name, wrong, part->count,
                locate_axis(&row, row_text, sizeof row_text),
                locate_axis(&column, column_text, sizeof column_text));
}

void locate_probe(struct explain *x, const struct probe *p, const struct periods *periods)
{
    for (int i = 0; i < p->part_count; i++) {
        int64_t wrong = wrong_in(p, &p->parts[i]);

        if (wrong)
            locate_part(x, p, &p->parts[i], periods, wrong);
    }
}
