#include "harness/report/mutation.h"

#include "harness/report/escape.h"
#include "harness/report/sink_file.h"

#include <inttypes.h>
#include <string.h>

/* clang-format off */
const struct usual_name usual_names[USUAL_CHECKS] = {
    {"rtol_05_atol_1",  ".05/.1"},
    {"rtol_01_atol_05", ".01/.05"},
    {"tol_1e_2",        ".01/.01"},
    {"cosine_99",       "cos"},
    {"calc_diff_1e_3",  "diff"},
    {"nmse_5e_4",       "nmse"},
};
/* clang-format on */

const char *mutation_caught_by(const struct mutation *m, char *buf, size_t size)
{
    if (!m->detected)
        return "-";
    if (!strcmp(m->verdict, "fail") || !strcmp(m->verdict, "test"))
        (void)snprintf(buf, size, "%s", m->check);
    else
        (void)snprintf(buf, size, "%s (%s)", m->check, m->verdict);
    return buf;
}

/* ---- counting -------------------------------------------------------------------------------- */

struct share {
    size_t faults, detected, usual_faults, usual[USUAL_CHECKS], right, wrong, none;
};

static void count_one(const struct mutation *m, struct share *s)
{
    s->faults++;
    s->detected += m->detected;
    s->usual_faults += m->usual_ran;
    for (int i = 0; i < USUAL_CHECKS; i++)
        s->usual[i] += m->usual_runs[i] > 0;
    s->right += !strcmp(mutation_explained(m), "right");
    s->wrong += !strcmp(mutation_explained(m), "wrong");
    s->none += !strcmp(mutation_explained(m), "none");
}

/* What rows are counted by. */
typedef const char *key_fn(const struct mutation *m);

static const char *class_of(const struct mutation *m)
{
    return m->class;
}

static const char *origin_of(const struct mutation *m)
{
    if (!strncmp(m->origin, "numerics", strlen("numerics")))
        return "known mistakes of such kernels";
    return strcmp(m->origin, "ours") ? "public reports" : "ours";
}

static const char *place_of(const struct mutation *m)
{
    return m->place;
}

/* `value` NULL: all. */
static struct share share_of(const struct mutation *rows, size_t count, key_fn *key,
                             const char *value)
{
    struct share s = {0};

    for (size_t i = 0; i < count; i++)
        if (rows[i].done && (!value || !strcmp(value, key(&rows[i]))))
            count_one(&rows[i], &s);
    return s;
}

/* Is row i the first of those that share its value? */
static bool is_first(const struct mutation *rows, size_t i, key_fn *key)
{
    for (size_t j = 0; j < i; j++)
        if (!strcmp(key(&rows[j]), key(&rows[i])))
            return false;
    return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { CAUGHT_WIDTH = 22 };

void mutation_print_head(const struct mutation_widths *w, FILE *f)
{
    (void)fprintf(f, "%-*s  %-*s  %-*s  %-*s  %5s  %7s  %6s", w->name, "fault", w->class, "class",
                  w->origin, "origin", CAUGHT_WIDTH, "caught by", "cases", "seconds", "checks");
    for (int i = 0; i < USUAL_CHECKS; i++)
        (void)fprintf(f, "  %7s", usual_names[i].text);
    (void)fputs(w->explain ? "  explained\n" : "\n", f);
}

void mutation_print_row(const struct mutation_widths *w, const struct mutation *m, FILE *f)
{
    char caught[2 * MUTATION_NAME], checks[16] = "";

    if (m->seen_count)
        (void)snprintf(checks, sizeof checks, "%d", m->seen_count);
    (void)fprintf(f, "%-*s  %-*s  %-*s  %-*s  %5" PRIu64 "  %7.2f  %6s", w->name, m->name, w->class,
                  m->class, w->origin, m->origin, CAUGHT_WIDTH,
                  mutation_caught_by(m, caught, sizeof caught), m->cases, m->seconds, checks);
    for (int i = 0; i < USUAL_CHECKS; i++)
        if (m->usual_ran)
            (void)fprintf(f, "  %5d/%d", m->usual_runs[i], USUAL_RUNS - m->usual_alarms[i]);
        else
            (void)fprintf(f, "  %7s", "-");
    if (w->explain && mutation_explained(m)[0])
        (void)fprintf(f, "  %s%s%s", mutation_explained(m), m->explained[0] ? " " : "",
                      m->explained);
    (void)fputc('\n', f);
}

static void print_share(const char *name, const struct share *s, FILE *f)
{
    (void)fprintf(f, "%-16s  %5zu of %3zu", name, s->detected, s->faults);
    for (int i = 0; i < USUAL_CHECKS; i++)
        (void)fprintf(f, "  %7zu", s->usual[i]);
    (void)fputc('\n', f);
}

void mutation_print_summary(const struct mutation *rows, size_t count, FILE *f)
{
    struct share all = share_of(rows, count, class_of, NULL);

    (void)fprintf(f, "\n%-16s  %12s", "class", "detected");
    for (int i = 0; i < USUAL_CHECKS; i++)
        (void)fprintf(f, "  %7s", usual_names[i].text);
    (void)fputc('\n', f);
    for (size_t i = 0; i < count; i++) {
        struct share s = share_of(rows, count, class_of, rows[i].class);

        if (is_first(rows, i, class_of) && s.faults)
            print_share(rows[i].class, &s, f);
    }
    print_share("all", &all, f);
}

const char *mutation_explained(const struct mutation *m)
{
    if (!m->repro[0])
        return "";
    if (m->explained[0])
        return m->cause && !strcmp(m->cause, m->explained) ? "right" : "wrong";
    return m->cause ? "none" : "";
}

void mutation_print_explained(const struct mutation *rows, size_t count, FILE *f)
{
    size_t right = 0, wrong = 0, none = 0, causes = 0;

    for (size_t i = 0; i < count; i++) {
        const char *how = rows[i].done ? mutation_explained(&rows[i]) : "";

        right += !strcmp(how, "right");
        wrong += !strcmp(how, "wrong");
        none += !strcmp(how, "none");
        causes += rows[i].done && rows[i].repro[0] && rows[i].cause;
    }
    (void)fprintf(f,
                  "explain: of %zu faults with a cause that can be named %zu are named rightly and "
                  "%zu are not named; %zu names are wrong\n",
                  causes, right, none, wrong);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void put_cell(const char *text, FILE *f)
{
    char clean[ESCAPE_GROWTH * RECORD_TEXT + 1];

    (void)escape_terminal(text, clean, sizeof clean);
    (void)fputs("| ", f);
    for (const char *s = clean; *s; s++)
        (void)fprintf(f, *s == '|' ? "\\%c" : "%c", *s);
    (void)fputc(' ', f);
}

/* Columns of the run that not every run has, behind the usual checks. */
static void put_heads(const struct mutation_run *run, const char *first, const char *explained,
                      FILE *f)
{
    (void)fputs(first, f);
    for (int i = 0; i < USUAL_CHECKS; i++)
        (void)fprintf(f, "| %s ", usual_names[i].text);
    (void)fprintf(f, "%s|\n", run->explain ? explained : "");
    for (const char *s = first; *s; s++)
        (void)fputs(*s == '|' ? "|---" : "", f);
    for (int i = 0; i < USUAL_CHECKS; i++)
        (void)fputs("|---", f);
    for (const char *s = explained; run->explain && *s; s++)
        (void)fputs(*s == '|' ? "|---" : "", f);
    (void)fputs("|\n", f);
}

static void put_fault(const struct mutation_run *run, const struct mutation *m, FILE *f)
{
    char text[2 * MUTATION_NAME];

    (void)snprintf(text, sizeof text, "%s%s", m->name, m->simulated ? " (simulated)" : "");
    put_cell(text, f);
    put_cell(m->class, f);
    put_cell(m->origin, f);
    put_cell(mutation_caught_by(m, text, sizeof text), f);
    (void)fprintf(f, "| %" PRIu64 " | %.1f ", m->cases, m->seconds);
    for (int i = 0; i < USUAL_CHECKS; i++)
        if (m->usual_ran)
            (void)fprintf(f, "| %d/%d ", m->usual_runs[i], USUAL_RUNS - m->usual_alarms[i]);
        else
            (void)fputs("| ", f);
    (void)snprintf(text, sizeof text, "%s%s%s", mutation_explained(m), m->explained[0] ? ": " : "",
                   m->explained);
    if (run->explain)
        put_cell(text, f);
    (void)fputs("|\n", f);
}

static void put_share(const struct mutation_run *run, const char *name, const struct share *s,
                      FILE *f)
{
    put_cell(name, f);
    (void)fprintf(f, "| %zu | %zu ", s->faults, s->detected);
    for (int i = 0; i < USUAL_CHECKS; i++)
        (void)fprintf(f, "| %zu ", s->usual[i]);
    if (run->explain)
        (void)fprintf(f, "| %zu | %zu | %zu ", s->right, s->wrong, s->none);
    (void)fputs("|\n", f);
}

static void put_shares(const struct mutation_run *run, const struct mutation *rows, size_t count,
                       const char *heading, key_fn *key, FILE *f)
{
    char first[64];

    (void)snprintf(first, sizeof first, "| %s | faults | detected ", heading);
    put_heads(run, first, "| explained | wrongly | not ", f);
    for (size_t i = 0; i < count; i++) {
        struct share s = share_of(rows, count, key, key(&rows[i]));

        if (is_first(rows, i, key) && s.faults)
            put_share(run, key(&rows[i]), &s, f);
    }
}

static void put_markdown(const struct mutation_run *run, const struct mutation *rows, size_t count,
                         FILE *f)
{
    struct share all = share_of(rows, count, class_of, NULL);

    (void)fprintf(f,
                  "%zu of %zu injected faults are detected by %s (%s). Usual checks: in how many "
                  "of %d runs on random data they fail with the fault, of those that pass without "
                  "it.\n\n",
                  all.detected, all.faults, run->suite, run->program, USUAL_RUNS);
    put_shares(run, rows, count, "class", class_of, f);
    put_share(run, "all", &all, f);
    (void)fputc('\n', f);
    put_shares(run, rows, count, "place", place_of, f);
    (void)fputc('\n', f);
    put_shares(run, rows, count, "origin", origin_of, f);
    (void)fputc('\n', f);
    put_heads(run, "| fault | class | origin | caught by | cases | s ", "| explained ", f);
    for (size_t i = 0; i < count; i++)
        if (rows[i].done)
            put_fault(run, &rows[i], f);
}

enum err_code mutation_write_markdown(const char *path, const struct mutation_run *run,
                                      const struct mutation *rows, size_t count, struct errs *errs)
{
    struct sink_file file;

    TRY(sink_file_open(&file, path, errs));
    put_markdown(run, rows, count, file.stream);
    return sink_file_close(&file, true, errs);
}
