/* Arbitrary bytes as a configuration (libFuzzer): whatever comes, eval_config_load_text returns,
 * every error has a sentence and a place inside the text, errors are in order, and what loads obeys
 * the header. Build: clang -fsanitize=fuzzer,address,undefined. */
#include "harness/eval/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); /* NOLINT: libFuzzer's name */

enum { ARENA_BYTES = 256 << 20 };

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void check_errors(const struct errs *errs)
{
    for (size_t i = 0; i < errs->count; i++) {
        const struct err *e = &errs->items[i];

        need(e->text[0] != '\0');
        need(e->at.line >= 0 && (!e->at.line || e->at.column >= 1));
        need(!i || e[-1].at.line <= e->at.line);
    }
}

static void check_words(const struct eval_words *w)
{
    need(w->text != NULL);
    for (size_t i = 0; i < w->count; i++) {
        need(w->argv[i] == w->words[i].text);
        need(w->words[i].at.line >= w->at.line && w->words[i].at.column >= 1);
        need(!i || w->words[i].at.line >= w->words[i - 1].at.line);
    }
    need(!w->count || !w->argv[w->count]);
}

static void check_config(const struct eval_config *c)
{
    struct protocol_options o;
    struct eval_pass pass;

    need(*c->model_name.text && c->num_questions.value >= 1);
    for (size_t i = 0; i <= c->floor_count; i++) {
        eval_config_pass(c, i ? c->floors[i - 1].gpu : NULL, 0, &pass);
        need(pass.needed >= 1 && pass.needed <= pass.questions);
    }
    for (size_t i = 0; i < c->env_count; i++)
        need(*c->env[i].name && c->env[i].value);
    check_words(&c->server_args);
    check_words(&c->server_command);
    eval_config_options(c, &o);
    need(o.max_tokens >= 1 && o.gen_prefix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) /* NOLINT: libFuzzer's name */
{
    static struct arena arena; /* kept, so that a run costs no mapping */
    struct errs errs = {0}, warnings = {0};
    struct eval_config config;
    enum err_code rc;

    need(arena.base || arena_init(&arena, ARENA_BYTES));
    arena_reset(&arena);
    rc = eval_config_load_text("/nowhere/fuzz.yaml", (const char *)data, size, &arena, &config,
                               &warnings, &errs);
    need(!rc == !errs.count && rc != ERR_NOMEM);
    check_errors(&errs);
    check_errors(&warnings);
    if (!rc)
        check_config(&config);
    errs_free(&errs);
    errs_free(&warnings);
    return 0;
}
