/* derive_world.h - for tests: models and configurations from texts and files to suites.
 */
#ifndef HARNESS_TEST_DERIVE_WORLD_H
#define HARNESS_TEST_DERIVE_WORLD_H

#include "harness/config/suite.h"
#include "harness/derive/derive.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

static const size_t arena_bytes = (size_t)1 << 32;

static struct arena arena;
static struct errs errs, warnings;
static char folder[] = "/tmp/humcheck-derive-XXXXXX";

static inline void setup(void)
{
    ck_assert(arena_init(&arena, arena_bytes));
}

static inline void teardown(void)
{
    errs_free(&errs);
    errs_free(&warnings);
    arena_free(&arena);
}

static inline void fail_with_errors(const char *what)
{
    char line[3 * ERR_TEXT];

    ck_abort_msg("%s: %s", what,
                 errs.count ? err_format(&errs.items[0], line, sizeof line) : "a code only");
}

static inline void load_config(const char *name, struct eval_config *out)
{
    if (eval_config_load(arena_printf(&arena, "%s/%s.yaml", CONFIGS, name), &arena, out, &warnings,
                         &errs))
        fail_with_errors(name);
}

static inline const struct entry *entry_of(const struct suite *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->entries[i].name, name))
            return &s->entries[i];
    return NULL;
}

/* Values as a suite says them, with commas between. */
static inline const char *values_of(const struct entry *e, const char *key)
{
    int x = axis_find(key);
    const char *all = "";
    char one[64];

    ck_assert_msg(x >= 0, "no axis %s", key);
    for (size_t i = 0; i < e->axes[x].count; i++)
        all = arena_printf(&arena, "%s%s%s", all, i ? "," : "",
                           axis_format(&axes[x], e->axes[x].values[i], one, sizeof one));
    return all;
}

#define CONFIG_OF(args)                                                    \
    "model_name: \"a/b\"\naccuracy_threshold: 0.86\nnum_questions: 1319\n" \
    "num_fewshot: 5\nserver_args: >-\n  --quantization humming " args "\n"

/* Eight heads of 64, two of them for keys; a dense layer of 512, four experts of 256 columns. */
#define SMALL_MODEL                                                          \
    "model_name: a/b\ndtype: bf16\nhidden_size: 512\nnum_hidden_layers: 2\n" \
    "num_attention_heads: 8\nnum_key_value_heads: 2\nhead_dim: 64\n"         \
    "intermediate_size: 512\nnum_experts: 4\nnum_experts_per_tok: 2\n"       \
    "moe_intermediate_size: 256\nactivation: silu\nactivation_form: split\n" \
    "quantization:\n  dtype: uint4\n  scale: group\n  group_size: 64\n"      \
    "  layers: [attention, mlp, experts]\n"

static inline const char *write_file(const char *name, const char *text)
{
    const char *path = arena_printf(&arena, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");

    ck_assert(f);
    ck_assert(fputs(text, f) >= 0);
    ck_assert(fclose(f) == 0);
    return path;
}

/* Model and configuration from texts to a suite; errors are in errs. */
static inline enum err_code derive_texts(const char *model_text, const char *config_text,
                                         const struct derive_options *how, struct suite *suite)
{
    struct eval_config config;
    struct model model;
    struct derived d;

    ck_assert_int_eq(eval_config_load_text("c.yaml", config_text, strlen(config_text), &arena,
                                           &config, &warnings, &errs),
                     ERR_NONE);
    TRY(model_load(write_file("m.yaml", model_text), folder, &arena, &model, &errs));
    TRY(derive_suite(&model, &config, how, &arena, &d, &errs));
    return suite_load_text("c", d.text, d.size, &arena, suite, &errs);
}

static inline void expect_error(const char *error)
{
    char line[3 * ERR_TEXT];

    for (size_t i = 0; i < errs.count; i++)
        if (strstr(err_format(&errs.items[i], line, sizeof line), error))
            return;
    fail_with_errors(error);
}

/* The folder of files that tests write, for main. */
static inline bool make_folder(void)
{
    return mkdtemp(folder) != NULL;
}

static inline void remove_folder(void)
{
    static const char *const names[] = {"m.yaml", "config.json"};
    char path[sizeof folder + 16];

    for (int i = 0; i < COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

#endif
