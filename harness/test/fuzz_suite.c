/* Arbitrary bytes as a suite (libFuzzer): whatever comes, suite_load_text returns, every error
 * has a sentence and a place inside the text, and errors are in order. Build: clang
 * -fsanitize=fuzzer,address,undefined. */
#include "harness/config/expr.h"
#include "harness/config/suite.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); /* NOLINT: libFuzzer's name */

enum { ARENA_BYTES = 256 << 20 };

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void check_errors(const struct errs *errs, enum err_code rc)
{
    need(!rc == !errs->count);
    need(rc != ERR_NOMEM);
    for (size_t i = 0; i < errs->count; i++) {
        const struct err *e = &errs->items[i];

        need(e->text[0] != '\0');
        need(e->at.line >= 0 && (!e->at.line || e->at.column >= 1));
        need(!i || e[-1].at.line <= e->at.line);
    }
}

/* A suite that loads is complete: every axis of every entry has values, and each condition can
 * be evaluated. */
static void check_suite(const struct suite *s)
{
    need(s->count && *s->name);
    for (const struct entry *e = s->entries; e < s->entries + s->count; e++) {
        int64_t v[AX_COUNT];

        need(*e->name);
        for (int i = 0; i < AX_COUNT; i++) {
            need(e->axes[i].count);
            v[i] = e->axes[i].values[e->axes[i].count - 1];
        }
        for (size_t i = 0; i < e->where_count; i++)
            (void)expr_eval(e->where[i], v);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) /* NOLINT: libFuzzer's name */
{
    static struct arena arena; /* kept, so that a run costs no mapping */
    struct errs errs = {0};
    struct suite suite;
    enum err_code rc;

    need(arena.base || arena_init(&arena, ARENA_BYTES));
    arena_reset(&arena);
    rc = suite_load_text("/nowhere/fuzz.yaml", (const char *)data, size, &arena, &suite, &errs);
    check_errors(&errs, rc);
    if (!rc)
        check_suite(&suite);
    errs_free(&errs);
    return 0;
}
