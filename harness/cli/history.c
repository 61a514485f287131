#include "harness/cli/history.h"

#include "harness/cli/json_lines.h"
#include "harness/core/verdict.h"

#include <string.h>

/* Address space for one file's lines, one at a time. */
static const size_t line_limit = (size_t)1 << 26;

struct history {
    const struct plan *plan;
    size_t *slots; /* open addressing: 0 is empty, else 1 + index of a case */
    size_t slot_count;
    struct risk_past *past;
    struct arena lines;
    size_t file; /* from 1 */
};

static const char *const columns[] = {"fill_us", "reference_us", "kernel_us", "compare_us"};

/* FNV-1a (Fowler, Noll and Vo). */
static size_t hash_of(const char *id)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * UINT64_C(0x100000001b3);
    return (size_t)(h ^ h >> 32);
}

/* The slot of the case, or the empty one where it would be. */
static size_t slot_of(const struct history *h, const char *id)
{
    size_t i = hash_of(id) & (h->slot_count - 1);

    while (h->slots[i] && strcmp(h->plan->cases[h->slots[i] - 1].id, id) != 0)
        i = (i + 1) & (h->slot_count - 1);
    return i;
}

static bool open_history(struct history *h, struct arena *arena)
{
    h->slot_count = 16;
    while (h->slot_count / 2 < h->plan->count)
        h->slot_count *= 2;
    h->slots = ARENA_NEW(arena, h->slot_count, size_t);
    h->past = ARENA_NEW(arena, h->plan->count, struct risk_past);
    if (!h->slots || !h->past || !arena_init(&h->lines, line_limit))
        return false;
    for (size_t i = 0; i < h->plan->count; i++)
        h->slots[slot_of(h, h->plan->cases[i].id)] = i + 1;
    return true;
}

static bool is_bad(const char *verdict)
{
    static const enum verdict bad[] = {VERDICT_FAIL, VERDICT_UNTRUSTED, VERDICT_INFRA};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (!strcmp(verdict, verdict_name(bad[i])))
            return true;
    return false;
}

static bool is_verdict(const char *text)
{
    for (int v = 0; text && v < VERDICT_COUNT; v++)
        if (!strcmp(text, verdict_name((enum verdict)v)))
            return true;
    return false;
}

static double seconds_of(const struct json *record)
{
    double us = 0;

    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        const struct json *x = json_get(record, columns[i]);

        us += x && x->kind == JSON_NUMBER && x->number > 0 ? x->number : 0;
    }
    return us * 1e-6;
}

static enum err_code take_line(void *context, const struct json *record, struct place at,
                               struct errs *errs)
{
    struct history *h = context;
    const char *id = json_text(json_get(record, "case"));
    const char *verdict = json_text(json_get(record, "verdict"));
    struct risk_past *past;
    size_t slot;

    if (!id || !is_verdict(verdict))
        return errs_add(errs, ERR_CONFIG, at, "this is no record of a run of kernels");
    slot = h->slots[slot_of(h, id)];
    if (slot) {
        past = &h->past[slot - 1];
        if (is_bad(verdict) && !past->failed)
            past->failed = h->file;
        if (!(past->seconds > 0))
            past->seconds = seconds_of(record);
    }
    arena_reset(&h->lines);
    return ERR_NONE;
}

enum err_code history_read(const struct option_list *files, const struct plan *plan,
                           struct arena *arena, const struct risk_past **out, struct errs *errs)
{
    struct history h = {.plan = plan};
    enum err_code first = ERR_NONE;

    *out = NULL;
    if (!files->count)
        return ERR_NONE;
    if (!open_history(&h, arena))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the records of earlier runs");
    while (h.file < files->count) {
        const struct json_lines lines = {files->items[h.file++], &h.lines, take_line, &h};
        enum err_code rc = json_lines_read(&lines, errs);

        arena_reset(&h.lines);
        first = first ? first : rc;
    }
    arena_free(&h.lines);
    *out = h.past;
    return first;
}
