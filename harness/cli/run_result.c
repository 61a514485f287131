#include "harness/cli/run_result.h"

#include "harness/cli/json_lines.h"
#include "harness/config/source.h"
#include "harness/report/escape.h"
#include "harness/report/sink_file.h"
#include "harness/report/table.h"
#include "harness/weights/json_doc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 4096, COLUMNS = 7 };

static enum err_code no_memory(struct errs *errs)
{
    return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the report");
}

/* ---- kernels --------------------------------------------------------------------------------- */

static struct run_row *find_suite(struct run_row *rows, size_t count, const char *suite)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].suite && !strcmp(rows[i].suite, suite))
            return &rows[i];
    return NULL;
}

/* The entry of "suite/entry/key=value,...". */
static struct run_entry *find_entry(struct run_row *row, const char *id, struct arena *arena)
{
    const char *start = strchr(id, '/') ? strchr(id, '/') + 1 : id;
    size_t length = strcspn(start, "/");
    struct run_entry *e = row->first;

    while (e && (strlen(e->name) != length || strncmp(e->name, start, length) != 0))
        e = e->next;
    if (e)
        return e;
    e = ARENA_NEW(arena, 1, struct run_entry);
    if (!e)
        return NULL;
    e->name = arena_printf(arena, "%.*s", (int)length, start);
    if (row->last)
        row->last->next = e;
    else
        row->first = e;
    row->last = e;
    return e->name ? e : NULL;
}

struct reading {
    struct run_row *rows;
    size_t count;
    struct arena *arena;
};

static enum err_code take_record(void *context, const struct json *r, struct place at,
                                 struct errs *errs)
{
    const struct reading *x = context;
    const char *suite = json_text(json_get(r, "suite")), *id = json_text(json_get(r, "case"));
    const char *verdict = json_text(json_get(r, "verdict"));
    struct run_row *row = suite ? find_suite(x->rows, x->count, suite) : NULL;
    struct run_entry *e;
    int v = 0;

    while (verdict && v < VERDICT_COUNT && strcmp(verdict_name((enum verdict)v), verdict) != 0)
        v++;
    if (!row || !id || !verdict || v == VERDICT_COUNT)
        return errs_add(errs, ERR_INFRA, place_at(at.file, 0, 0), "this is no record of this run");
    e = find_entry(row, id, x->arena);
    if (!e)
        return no_memory(errs);
    e->counts[v]++;
    row->counts[v]++;
    return ERR_NONE;
}

enum err_code run_read_kernels(const char *path, struct run_row *rows, size_t count,
                               struct arena *arena, struct errs *errs)
{
    struct reading reading = {rows, count, arena};
    const struct json_lines lines = {path, arena, take_record, &reading};

    return json_lines_read(&lines, errs);
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static void take_result(const struct json *r, struct run_row *rows, size_t count)
{
    const char *config = json_text(json_get(r, "config"));

    for (size_t i = 0; config && i < count; i++) {
        if (strcmp(rows[i].config, config) != 0)
            continue;
        rows[i].eval = json_text(json_get(r, "verdict"));
        rows[i].why = json_text(json_get(r, "why"));
        (void)json_integer(json_get(r, "correct"), &rows[i].correct);
        (void)json_integer(json_get(r, "questions"), &rows[i].questions);
        (void)json_integer(json_get(r, "needed"), &rows[i].needed);
    }
}

enum err_code run_read_eval(const char *path, struct run_row *rows, size_t count,
                            struct arena *arena, struct errs *errs)
{
    struct json_source src = {.file = path};
    const struct json *root = NULL, *runs;
    const char *problem;
    enum err_code code;

    problem = source_read(path, arena, &src.text, &src.size, &code);
    if (problem)
        return errs_add(errs, ERR_IO, place_at(path, 0, 0), "the results cannot be read: %s",
                        problem);
    TRY(json_parse(&src, arena, &root, errs));
    runs = json_get(root, "runs");
    for (const struct json *r = runs ? runs->first : NULL; r; r = r->next)
        take_result(r, rows, count);
    return ERR_NONE;
}

/* ---- the report ------------------------------------------------------------------------------ */

static unsigned long cases_of(const unsigned long counts[VERDICT_COUNT])
{
    unsigned long sum = 0;

    for (int v = 0; v < VERDICT_COUNT; v++)
        sum += counts[v];
    return sum;
}

static const char *kernels_of(const struct run_row *row)
{
    if (!row->suite)
        return "not run";
    return cases_of(row->counts) ? verdict_name(verdict_of_run(row->counts)) : "none";
}

static const char *eval_of(const struct run_row *row)
{
    return row->eval ? row->eval : "not run";
}

static bool is_green(const struct run_row *row)
{
    return strcmp(kernels_of(row), "fail") != 0 && strcmp(kernels_of(row), "untrusted") != 0 &&
           (!row->eval || !strcmp(row->eval, "pass"));
}

static const char *const head[COLUMNS] = {"config",  "kernels", "cases", "eval",
                                          "correct", "needed",  "of"};
static const char *const entry_head[COLUMNS] = {"entry",     "cases", "pass", "fail",
                                                "untrusted", "skip",  "infra"};

static void row_cells(const struct run_row *row, struct arena *a, const char *cells[COLUMNS])
{
    bool counted = row->questions > 0;

    cells[0] = row->config;
    cells[1] = kernels_of(row);
    cells[2] = arena_printf(a, "%lu", cases_of(row->counts));
    cells[3] = eval_of(row);
    cells[4] = counted ? arena_printf(a, "%" PRId64, row->correct) : "";
    cells[5] = counted ? arena_printf(a, "%" PRId64, row->needed) : "";
    cells[6] = counted ? arena_printf(a, "%" PRId64, row->questions) : "";
}

static void entry_cells(const struct run_entry *e, struct arena *a, const char *cells[COLUMNS])
{
    static const enum verdict order[] = {VERDICT_PASS, VERDICT_FAIL, VERDICT_UNTRUSTED,
                                         VERDICT_SKIP, VERDICT_INFRA};

    cells[0] = e->name;
    cells[1] = arena_printf(a, "%lu", cases_of(e->counts));
    for (int i = 0; i < VERDICT_COUNT; i++)
        cells[2 + i] = arena_printf(a, "%lu", e->counts[order[i]]);
}

/* Rows of either table go to a table of the terminal, or to Markdown. */
struct output {
    struct arena *arena;
    struct table *table; /* NULL: Markdown */
    FILE *f;
};

/* What would end a cell or begin a tag loses its meaning. */
static void put_markdown(FILE *f, const char *text)
{
    char clean[LINE];

    for (const char *c = escape_terminal(text, clean, sizeof clean); *c; c++) {
        if (*c == '|' || *c == '<' || *c == '`' || *c == '[')
            (void)fputc('\\', f);
        (void)fputc(*c, f);
    }
}

static void put(const struct output *o, const char *const cells[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++)
        if (!cells[i])
            return; /* no memory: the exit code and the files are whole */
    if (o->table) {
        (void)table_add(o->table, cells);
        return;
    }
    for (int i = 0; i < COLUMNS; i++) {
        (void)fputs("| ", o->f);
        put_markdown(o->f, cells[i]);
        (void)fputc(' ', o->f);
    }
    (void)fputs("|\n", o->f);
    if (cells == head || cells == entry_head)
        (void)fputs("|---|---|---|---|---|---|---|\n", o->f);
}

static void put_rows(const struct output *o, const struct run_row *rows, size_t count)
{
    const char *cells[COLUMNS];

    put(o, head);
    for (size_t i = 0; i < count; i++) {
        row_cells(&rows[i], o->arena, cells);
        put(o, cells);
    }
}

static void put_entries(const struct output *o, const struct run_row *row)
{
    const char *cells[COLUMNS];

    put(o, entry_head);
    for (const struct run_entry *e = row->first; e; e = e->next) {
        entry_cells(e, o->arena, cells);
        put(o, cells);
    }
}

/* Why a configuration is not green, and what was checked of the kernels below it. */
static const char *introduction(const struct run_row *row, struct arena *a)
{
    const char *why = row->why ? row->why : "";

    if (!row->eval)
        return arena_printf(a, "%s: kernels %s, eval not run", row->config, kernels_of(row));
    return arena_printf(a, "%s: eval %s (%s); %s", row->config, row->eval, why,
                        row->first ? "the kernels that its model launches:"
                                   : "no kernels were run under it");
}

void run_show(const struct run_row *rows, size_t count, struct arena *arena)
{
    struct table summary = {.arena = arena, .aligns = "llrlrrr"};
    struct output o = {.arena = arena, .table = &summary};
    char text[LINE];

    put_rows(&o, rows, count);
    (void)printf("\n");
    table_print(&summary, stdout);
    for (size_t i = 0; i < count; i++) {
        struct table entries = {.arena = arena, .aligns = "lrrrrrr"};
        const char *why = introduction(&rows[i], arena);

        if (is_green(&rows[i]) || !why)
            continue;
        (void)printf("\n%s\n", escape_terminal(why, text, sizeof text));
        o.table = &entries;
        put_entries(&o, &rows[i]);
        if (rows[i].first)
            table_print(&entries, stdout);
    }
}

enum err_code run_write(const char *path, const struct run_row *rows, size_t count,
                        struct errs *errs)
{
    struct sink_file f;
    struct arena arena;
    struct output o = {.arena = &arena};

    if (!arena_init(&arena, (size_t)1 << 28))
        return no_memory(errs);
    if (sink_file_open(&f, path, errs)) {
        arena_free(&arena);
        return ERR_IO;
    }
    o.f = f.stream;
    put_rows(&o, rows, count);
    for (size_t i = 0; i < count; i++) {
        const char *why = introduction(&rows[i], &arena);

        if (!rows[i].first || !why)
            continue;
        (void)fputc('\n', o.f);
        put_markdown(o.f, why);
        (void)fputs("\n\n", o.f);
        put_entries(&o, &rows[i]);
    }
    arena_free(&arena);
    return sink_file_close(&f, true, errs);
}
