#include "harness/report/sink_text.h"

#include "harness/core/proc.h"
#include "harness/report/escape.h"
#include "harness/report/left.h"
#include "harness/report/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum {
    LINE = 80,    /* a progress line, with its end: the narrowest usual terminal */
    BAR = 16,     /* characters */
    REASONS = 64, /* different reasons of skips that are told apart */
    TEXT_MAX = ESCAPE_GROWTH * RECORD_REPRO + 1
};

static const double terminal_seconds = 0.1, log_seconds = 5.0;

/* Cases of one family and check. */
struct group {
    struct group *next;
    char family[24], check[24];
    unsigned long counts[VERDICT_COUNT];
};

struct reason {
    struct reason *next;
    const char *text;
    unsigned long count;
};

struct text {
    struct text_options how;
    const struct report_options *o;
    const struct run_info *run;
    struct arena *arena;
    struct group *groups;
    struct reason *reasons;
    size_t reason_count;
    unsigned long counts[VERDICT_COUNT];
    unsigned long known, passing; /* known faults among the fails, and among the passes */
    size_t done;
    uint64_t seed; /* of the first case */
    bool seeds_differ, bar_shown;
    double started, drawn; /* seconds of proc_now() */
};

/* clang-format off */
static const struct {
    enum verdict verdict;
    const char *colour; /* ECMA-48 SGR */
} looks[] = { /* in the order of the summary's columns */
    {VERDICT_PASS,      "\033[32m"},
    {VERDICT_FAIL,      "\033[31m"},
    {VERDICT_UNTRUSTED, "\033[33m"},
    {VERDICT_SKIP,      "\033[36m"},
    {VERDICT_INFRA,     "\033[35m"},
};
/* clang-format on */
enum { LOOKS = sizeof looks / sizeof looks[0] };
_Static_assert(sizeof looks / sizeof looks[0] == VERDICT_COUNT, "one row a verdict");

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

struct text *text_open(const struct text_options *how, const struct report_options *o,
                       const struct run_info *run, struct arena *arena)
{
    struct text *t = ARENA_NEW(arena, 1, struct text);
    char provider[TEXT_MAX];

    if (!t)
        return NULL;
    *t = (struct text){.how = *how, .o = o, .run = run, .arena = arena};
    t->started = t->drawn = proc_now();
    if (o->quiet)
        return t;
    (void)fprintf(how->stream, "%s: %zu case%s in %zu problem%s, provider %s", run->program,
                  run->cases, plural(run->cases), run->problems, plural(run->problems),
                  escape_terminal(run->provider, provider, sizeof provider));
    if (run->illegal || run->excluded)
        (void)fprintf(how->stream, " (left out: %zu illegal, %zu by where)", run->illegal,
                      run->excluded);
    (void)fputc('\n', how->stream);
    return t;
}

const char *text_progress(const struct text_progress *p, char *buf, size_t size)
{
    size_t total = p->total ? p->total : 1, filled = p->done * BAR / total;
    char bar[BAR + 1] = "----------------", rate[64] = "";

    _Static_assert(sizeof "----------------" == BAR + 1, "as long as the bar");
    memset(bar, '#', filled < BAR ? filled : BAR);
    if (p->seconds >= 1 && p->done) {
        double left = p->seconds * (double)(p->total - p->done) / (double)p->done;
        unsigned long s = left < 359999 ? (unsigned long)(left + 0.5) : 359999;

        (void)snprintf(rate, sizeof rate, "  %.0f cases/min  %lu:%02lu left",
                       60 * (double)p->done / p->seconds, s / 60, s % 60);
    }
    (void)snprintf(buf, size, "[%s] %zu/%zu %3zu%%  %zu fail%s", bar, p->done, p->total,
                   100 * p->done / total, p->failed, rate);
    return buf;
}

static void clear_bar(struct text *t)
{
    if (t->bar_shown)
        (void)fputs("\r\033[K", t->how.stream);
    t->bar_shown = false;
}

void text_tick(struct text *t)
{
    double at = proc_now();
    struct text_progress p = {.done = t->done, .total = t->run->cases, .seconds = at - t->started};
    char line[LINE];

    if (t->o->quiet || at - t->drawn < (t->how.terminal ? terminal_seconds : log_seconds))
        return;
    p.failed = t->done - t->counts[VERDICT_PASS] - t->counts[VERDICT_SKIP] - t->known;
    clear_bar(t);
    (void)fputs(text_progress(&p, line, sizeof line), t->how.stream);
    if (!t->how.terminal)
        (void)fputc('\n', t->how.stream);
    (void)fflush(t->how.stream);
    t->bar_shown = t->how.terminal;
    t->drawn = at;
}

static const char *colour_of(const struct text *t, enum verdict v)
{
    for (int i = 0; t->how.colour && i < LOOKS; i++)
        if (looks[i].verdict == v)
            return looks[i].colour;
    return "";
}

static void print_verdict(const struct text *t, enum verdict v)
{
    const char *colour = colour_of(t, v);

    (void)fprintf(t->how.stream, "%s%s%s", colour, verdict_name(v), colour[0] ? "\033[0m" : "");
}

static void print_case(struct text *t, const struct record *r)
{
    char clean[TEXT_MAX], where[RECORD_WHERE];

    clear_bar(t);
    print_verdict(t, r->verdict);
    (void)fprintf(t->how.stream, " %s", escape_terminal(r->id, clean, sizeof clean));
    if (r->reason[0])
        (void)fprintf(t->how.stream, ": %s", escape_terminal(r->reason, clean, sizeof clean));
    (void)fputc('\n', t->how.stream);
    if (r->known[0])
        (void)fprintf(t->how.stream, "  known%s: %s\n",
                      record_known_passes(r) ? ", but it passes now" : "",
                      escape_terminal(r->known, clean, sizeof clean));
    if (r->verdict == VERDICT_PASS || r->verdict == VERDICT_SKIP)
        return;
    if (record_where(r, where, sizeof where)[0])
        (void)fprintf(t->how.stream, "  %s\n", escape_terminal(where, clean, sizeof clean));
    (void)fprintf(t->how.stream, "  repro: %s\n", escape_terminal(r->repro, clean, sizeof clean));
    if (r->diagnosis[0] && !t->o->no_timing)
        (void)fprintf(t->how.stream, "  diagnosis: %s\n",
                      escape_terminal(r->diagnosis, clean, sizeof clean));
}

static void print_change(struct text *t, const struct record *r)
{
    char line[AGAINST_LINE], clean[TEXT_MAX];

    if (!against_line(r, line, sizeof line)[0])
        return;
    clear_bar(t);
    (void)fprintf(t->how.stream, "%s\n", escape_terminal(line, clean, sizeof clean));
    (void)fflush(t->how.stream);
}

static void count_group(struct text *t, const struct record *r)
{
    struct group **p = &t->groups;

    while (*p && (strcmp((*p)->family, r->family) != 0 || strcmp((*p)->check, r->check) != 0))
        p = &(*p)->next;
    if (!*p) {
        *p = ARENA_NEW(t->arena, 1, struct group);
        if (!*p)
            return;
        memcpy((*p)->family, r->family, sizeof r->family);
        memcpy((*p)->check, r->check, sizeof r->check);
    }
    (*p)->counts[r->verdict]++;
}

/* The last row takes all reasons that find no room. */
static void count_skip(struct text *t, const char *reason)
{
    struct reason **p = &t->reasons;
    const char *text;

    while (*p && strcmp((*p)->text, reason) != 0) {
        if (!(*p)->next && t->reason_count == REASONS)
            break;
        p = &(*p)->next;
    }
    if (!*p) {
        text = t->reason_count + 1 < REASONS ? arena_strdup(t->arena, reason) : "other reasons";
        *p = text ? ARENA_NEW(t->arena, 1, struct reason) : NULL;
        if (!*p)
            return;
        (*p)->text = text;
        t->reason_count++;
    }
    (*p)->count++;
}

void text_row(struct text *t, const struct record *r)
{
    bool told = (r->verdict != VERDICT_PASS && r->verdict != VERDICT_SKIP) || r->known[0];

    if (!t->done)
        t->seed = r->seed;
    t->seeds_differ = t->seeds_differ || r->seed != t->seed;
    t->done++;
    t->counts[r->verdict]++;
    t->known += record_known_fails(r);
    t->passing += record_known_passes(r);
    count_group(t, r);
    if (r->verdict == VERDICT_SKIP)
        count_skip(t, r->reason);
    if (!t->o->quiet && (told || t->o->verbose)) {
        print_case(t, r);
        (void)fflush(t->how.stream);
    }
    if (!t->o->quiet)
        print_change(t, r);
    text_tick(t);
}

void text_note(struct text *t, const char *fmt, ...)
{
    char line[TEXT_MAX], clean[TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    clear_bar(t);
    (void)fprintf(t->how.stream, "%s\n", escape_terminal(line, clean, sizeof clean));
}

static void add_counts(struct table *table, const char *family, const char *check,
                       const unsigned long counts[VERDICT_COUNT])
{
    char numbers[LOOKS + 1][24];
    const char *cells[TABLE_COLUMNS] = {family, check, numbers[0]};
    unsigned long cases = 0;

    for (int i = 0; i < LOOKS; i++) {
        cases += counts[looks[i].verdict];
        (void)snprintf(numbers[i + 1], sizeof numbers[0], "%lu", counts[looks[i].verdict]);
        cells[i + 3] = numbers[i + 1];
    }
    (void)snprintf(numbers[0], sizeof numbers[0], "%lu", cases);
    (void)table_add(table, cells);
}

static void print_table(const struct text *t)
{
    struct table table = {.arena = t->arena, .aligns = "llrrrrrr"};
    const char *head[TABLE_COLUMNS] = {"family", "check", "cases"};

    for (int i = 0; i < LOOKS; i++)
        head[i + 3] = verdict_name(looks[i].verdict);
    (void)table_add(&table, head);
    for (const struct group *g = t->groups; g; g = g->next)
        add_counts(&table, g->family, g->check, g->counts);
    if (t->groups && t->groups->next)
        add_counts(&table, "total", "", t->counts);
    table_print(&table, t->how.stream);
}

static void print_skips(const struct text *t)
{
    char clean[TEXT_MAX];

    for (const struct reason *s = t->reasons; s; s = s->next)
        (void)fprintf(t->how.stream, "skipped %lu: %s\n", s->count,
                      escape_terminal(s->text, clean, sizeof clean));
}

static void print_against(const struct text *t)
{
    char line[AGAINST_SUMMARY], clean[TEXT_MAX];

    if (t->run->against)
        (void)fprintf(t->how.stream, "%s\n",
                      escape_terminal(against_summary(t->run->against, line, sizeof line), clean,
                                      sizeof clean));
}

static void print_notes(const struct text *t)
{
    const char *left = t->run->left ? left_line(t->run->left, t->arena) : "";
    char clean[TEXT_MAX];

    if (left && left[0])
        (void)fprintf(t->how.stream, "%s\n", left);
    for (size_t i = 0; i < t->run->note_count; i++)
        (void)fprintf(t->how.stream, "%s\n",
                      escape_terminal(t->run->notes[i], clean, sizeof clean));
}

/* "fail: 4 cases, 1 pass, 1 fail, 1 untrusted, 1 skip, 0 infra in 0.1 s, 2400 cases/min,
 * provider cpu 0.1.0 on cpu, seed 0x1"; cases that are missing may change the verdict, so then
 * it is not told. */
static void print_closing(const struct text *t, enum verdict run, bool complete)
{
    double seconds = proc_now() - t->started;
    char clean[TEXT_MAX];
    FILE *f = t->how.stream;

    if (complete)
        print_verdict(t, run);
    else
        (void)fputs("incomplete", f);
    (void)fprintf(f, ": %zu case%s", t->done, plural(t->done));
    for (int i = 0; i < LOOKS; i++) {
        (void)fprintf(f, ", %lu %s", t->counts[looks[i].verdict], verdict_name(looks[i].verdict));
        if (looks[i].verdict == VERDICT_FAIL && t->known)
            (void)fprintf(f, " (%lu known)", t->known);
        if (looks[i].verdict == VERDICT_PASS && t->passing)
            (void)fprintf(f, " (%lu known as faults)", t->passing);
    }
    if (!t->o->no_timing)
        (void)fprintf(f, " in %.2f s, %.0f cases/min", seconds,
                      seconds > 0 ? 60 * (double)t->done / seconds : 0);
    (void)fprintf(f, ", provider %s", escape_terminal(t->run->provider, clean, sizeof clean));
    if (t->done && t->seeds_differ)
        (void)fputs(", several seeds", f);
    else if (t->done)
        (void)fprintf(f, ", seed 0x%" PRIx64, t->seed);
    (void)fputc('\n', f);
}

enum err_code text_close(struct text *t, enum verdict run, bool complete, struct errs *errs)
{
    FILE *f = t->how.stream;

    clear_bar(t);
    if (!complete || (t->done < t->run->cases && !t->run->left))
        (void)fprintf(f, "stopped after %zu of %zu case%s\n", t->done, t->run->cases,
                      plural(t->run->cases));
    print_table(t);
    print_skips(t);
    print_against(t);
    print_notes(t);
    print_closing(t, run, complete);
    errno = 0;
    if (!fflush(f) && !ferror(f))
        return ERR_NONE;
    return errs_add(errs, ERR_IO, NOWHERE, "cannot write the report: %s",
                    strerror(errno ? errno : EIO));
}
