#include "harness/report/report.h"

#include "harness/core/build_info.h"
#include "harness/report/sink_file.h"
#include "harness/report/sink_text.h"
#include "harness/report/sinks.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct sink *const sinks[] = {&sink_jsonl, &sink_junit, &sink_left};
const int sink_count = sizeof sinks / sizeof sinks[0];

/* Address space for the groups and reasons that the summary counts. */
static const size_t arena_bytes = (size_t)1 << 24;

struct slot {
    const struct sink *sink;
    const char *target;
    void *self;
    bool failed; /* gets no more rows, and keeps its .part */
};

struct report {
    struct arena arena; /* holds the report itself */
    struct slot *slots;
    size_t count, opened;
    struct text *text;
    unsigned long counts[VERDICT_COUNT]; /* as they count for the run */
};

static const struct sink *sink_find(const char *kind, size_t length)
{
    for (int i = 0; i < sink_count; i++)
        if (strlen(sinks[i]->kind) == length && !strncmp(sinks[i]->kind, kind, length))
            return sinks[i];
    return NULL;
}

/* "jsonl, junit" */
static const char *known_kinds(char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < sink_count && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", sinks[i]->kind);
    return buf;
}

static bool is_taken(const struct report *rep, const char *target)
{
    for (size_t i = 0; i < rep->count; i++)
        if (!strcmp(rep->slots[i].target, target))
            return true;
    return false;
}

static enum err_code add_slot(struct report *rep, const char *out, struct errs *errs)
{
    size_t length = strcspn(out, ":");
    const char *target = out + length + 1;
    const struct sink *sink = sink_find(out, length);
    char kinds[128];

    if (!out[length] || !*target)
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "--out needs KIND:TARGET, as in jsonl:run.jsonl, got '%s'", out);
    if (!sink)
        return errs_add(errs, ERR_USAGE, NOWHERE, "--out knows no '%.*s'; the kinds are %s",
                        length < 64 ? (int)length : 64, out, known_kinds(kinds, sizeof kinds));
    if (is_taken(rep, target))
        return errs_add(errs, ERR_USAGE, NOWHERE, "two --out write to '%s'", target);
    rep->slots[rep->count++] = (struct slot){.sink = sink, .target = target};
    return ERR_NONE;
}

static enum err_code add_slots(struct report *rep, const struct report_options *o,
                               struct errs *errs)
{
    enum err_code first = ERR_NONE;

    rep->slots = ARENA_NEW(&rep->arena, o->out_count + 1, struct slot);
    if (!rep->slots)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for %zu outputs", o->out_count);
    for (size_t i = 0; i < o->out_count; i++) {
        enum err_code rc = add_slot(rep, o->outs[i], errs);

        first = first ? first : rc;
    }
    return first;
}

/* Results on standard output leave it to them alone. */
static enum err_code open_text(struct report *rep, const struct report_options *o,
                               const struct run_info *run, struct errs *errs)
{
    struct text_options how = {.stream = is_taken(rep, "-") ? stderr : stdout};

    how.terminal = isatty(fileno(how.stream)) == 1;
    how.colour = how.terminal && build_wants_colour();
    rep->text = text_open(&how, o, run, &rep->arena);
    return rep->text ? ERR_NONE : errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the report");
}

/* One name may be written in several ways: the open .part tells. */
static bool is_part_of(const struct slot *s, const struct stat *part, struct arena *arena)
{
    const char *name = arena_printf(arena, "%s.part", s->target);
    struct stat st;

    return sink_file_has_part(s->target) && name && stat(name, &st) == 0 &&
           st.st_dev == part->st_dev && st.st_ino == part->st_ino;
}

static enum err_code check_apart(struct report *rep, const struct slot *last, struct errs *errs)
{
    const char *name = arena_printf(&rep->arena, "%s.part", last->target);
    struct stat part;

    if (!sink_file_has_part(last->target) || !name || stat(name, &part) != 0)
        return ERR_NONE;
    for (const struct slot *s = rep->slots; s < last; s++)
        if (is_part_of(s, &part, &rep->arena))
            return errs_add(errs, ERR_USAGE, NOWHERE, "two --out write to '%s'", last->target);
    return ERR_NONE;
}

static enum err_code open_slots(struct report *rep, const struct report_options *o,
                                const struct run_info *run, struct errs *errs)
{
    while (rep->opened < rep->count) {
        struct slot *s = &rep->slots[rep->opened];

        TRY(s->sink->open(s->target, o, run, &s->self, errs));
        rep->opened++;
        TRY(check_apart(rep, s, errs));
    }
    return ERR_NONE;
}

/* A run that never began leaves no files. */
static void abandon(struct report *rep, struct errs *errs)
{
    struct arena arena = rep->arena;

    for (size_t i = 0; i < rep->opened; i++) {
        const struct slot *s = &rep->slots[i];
        const char *part = arena_printf(&rep->arena, "%s.part", s->target);

        (void)s->sink->close(s->self, VERDICT_INFRA, false, errs);
        if (part && sink_file_has_part(s->target))
            (void)unlink(part);
    }
    arena_free(&arena);
}

enum err_code report_check(const char *const *outs, size_t count, struct errs *errs)
{
    const struct report_options o = {.outs = outs, .out_count = count};
    struct report rep = {0};
    enum err_code rc;

    if (!arena_init(&rep.arena, arena_bytes))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the report");
    rc = add_slots(&rep, &o, errs);
    for (size_t i = 0; i < rep.count && !rc; i++)
        rc = sink_file_check(rep.slots[i].target, errs);
    arena_free(&rep.arena);
    return rc;
}

enum err_code report_open(struct report **out, const struct report_options *o,
                          const struct run_info *run, struct errs *errs)
{
    struct arena arena;
    struct report *rep;
    enum err_code rc;

    if (!arena_init(&arena, arena_bytes))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the report");
    rep = ARENA_NEW(&arena, 1, struct report);
    if (!rep) {
        arena_free(&arena);
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the report");
    }
    rep->arena = arena;
    rc = add_slots(rep, o, errs);
    if (!rc)
        rc = open_slots(rep, o, run, errs);
    if (!rc)
        rc = open_text(rep, o, run, errs);
    if (rc)
        abandon(rep, errs);
    else
        *out = rep;
    return rc;
}

enum err_code report_add(struct report *rep, const struct record *r, struct errs *errs)
{
    struct record safe = *r;
    enum err_code first = ERR_NONE;

    record_make_safe(&safe);
    rep->counts[record_known_fails(&safe)    ? VERDICT_PASS
                : record_known_passes(&safe) ? VERDICT_FAIL
                                             : safe.verdict]++;
    text_row(rep->text, &safe);
    for (size_t i = 0; i < rep->count; i++) {
        struct slot *s = &rep->slots[i];
        enum err_code rc = s->failed ? ERR_NONE : s->sink->row(s->self, &safe, errs);

        s->failed = s->failed || rc;
        first = first ? first : rc;
    }
    return first;
}

void report_tick(struct report *rep)
{
    text_tick(rep->text);
}

enum err_code report_close(struct report *rep, bool complete, enum verdict *run, struct errs *errs)
{
    struct arena arena = rep->arena;
    enum err_code first = ERR_NONE, rc;
    struct errs told = {0}; /* a failed output has been reported; what closing it adds is not new */

    *run = verdict_of_run(rep->counts);
    for (size_t i = 0; i < rep->count; i++) {
        const struct slot *s = &rep->slots[i];
        bool whole = complete && !s->failed;

        rc = s->sink->close(s->self, *run, whole, s->failed ? &told : errs);
        first = first ? first : rc;
        if ((!whole || rc) && sink_file_has_part(s->target))
            text_note(rep->text, "the results so far are in %s.part", s->target);
    }
    rc = text_close(rep->text, *run, complete, errs);
    errs_free(&told);
    arena_free(&arena);
    return first ? first : rc;
}
