#include "harness/cli/commands.h"
#include "harness/config/near.h"
#include "harness/eval/config_list.h"
#include "harness/eval/server.h"
#include "harness/report/escape.h"
#include "harness/report/table.h"

#include <inttypes.h>
#include <string.h>

#define EVERYWHERE "configs/gsm8k"

enum { LINE = 8192 };

/* A table, and whether a row was lost for want of memory. */
struct listing {
    struct table table;
    bool lost;
};

static void add(struct listing *l, const char *const cells[TABLE_COLUMNS])
{
    for (size_t i = 0; i < strlen(l->table.aligns); i++)
        if (!cells[i]) {
            l->lost = true;
            return;
        }
    if (!table_add(&l->table, cells))
        l->lost = true;
}

/* The row of a configuration (gpu NULL), or of its floor for a GPU. */
static void add_floor(struct listing *l, const struct eval_config *c, const char *gpu)
{
    struct arena *a = l->table.arena;
    struct eval_pass pass;
    const char *cells[TABLE_COLUMNS];

    eval_config_pass(c, gpu, 0, &pass);
    cells[0] = gpu ? arena_printf(a, "  on %s", gpu) : c->name;
    cells[1] = gpu ? "" : c->model_name.text;
    cells[2] = gpu ? "" : c->protocol->name;
    cells[3] = gpu ? "" : c->endpoint.value == ENDPOINT_CHAT ? "chat" : "completions";
    cells[4] = gpu ? "" : arena_printf(a, "%" PRId64, c->num_fewshot.value);
    cells[5] = pass.tolerance ? arena_printf(a, "%.9g - %.9g", (double)pass.threshold / 1e9,
                                             (double)pass.tolerance / 1e9)
                              : arena_printf(a, "%.9g", (double)pass.threshold / 1e9);
    cells[6] = arena_printf(a, "%" PRId64, pass.needed);
    cells[7] = arena_printf(a, "%" PRId64, pass.questions);
    add(l, cells);
}

static bool print_table(const struct config_set *set, struct arena *arena)
{
    static const char *const head[TABLE_COLUMNS] = {
        "config", "model", "protocol", "endpoint", "few-shot", "floor", "pass if correct", "of"};
    struct listing l = {.table = {.arena = arena, .aligns = "llllrlrr"}};
    bool any = false;

    add(&l, head);
    for (size_t i = 0; i < set->count; i++) {
        const struct eval_config *c = &set->items[i].config;

        if (set->items[i].rc)
            continue;
        any = true;
        add_floor(&l, c, NULL);
        for (size_t f = 0; f < c->floor_count; f++)
            add_floor(&l, c, c->floors[f].gpu);
    }
    if (any)
        table_print(&l.table, stdout);
    return !l.lost;
}

static void print_escaped(const char *text)
{
    char line[LINE];

    (void)fputs(escape_terminal(text, line, sizeof line), stdout);
}

/* As a shell would need it. */
static void print_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=+./:,@%";

    if (*word && strspn(word, plain) == strlen(word)) {
        (void)printf(" %s", word);
        return;
    }
    (void)fputs(" '", stdout);
    for (; *word; word++) {
        char one[2] = {*word, '\0'};

        if (*word == '\'')
            (void)fputs("'\\''", stdout);
        else if ((unsigned char)*word >= ' ')
            (void)fputs(one, stdout);
    }
    (void)putchar('\'');
}

static void print_server(const struct eval_config *c, const struct eval_added *added)
{
    bool whole = server_command_is_whole(c);

    (void)printf("\nserver:");
    for (size_t i = 0; i < c->server_command.count; i++)
        print_word(c->server_command.argv[i]);
    if (!c->server_command.count)
        (void)printf(" vllm serve");
    if (!whole)
        print_word(c->model_name.text);
    for (size_t i = 0; !whole && i < c->server_args.count; i++)
        print_word(c->server_args.argv[i]);
    for (int i = 0; !whole && i < EVAL_ADDED; i++)
        for (int k = 0; !added[i].is_env && !added[i].stated && k < 2 && added[i].words[k]; k++)
            print_word(added[i].words[k]);
    (void)printf("\n");
    for (size_t i = 0; i < c->env_count; i++) {
        (void)printf("env: %s=", c->env[i].name);
        print_escaped(c->env[i].value);
        (void)printf("\n");
    }
}

static void print_request(const struct eval_config *c)
{
    (void)printf("request: max_tokens %" PRId64, c->max_tokens.value);
    if (c->temperature.set)
        (void)printf(", temperature %.9g", c->temperature.value);
    if (c->seed.set)
        (void)printf(", seed %" PRId64, c->seed.value);
    if (*c->gen_prefix.text) {
        (void)printf(", gen_prefix '");
        print_escaped(c->gen_prefix.text);
        (void)printf("'");
    }
    (void)printf("; %" PRId64 " at once, %.9g s and %" PRId64 " attempts each\n",
                 c->concurrency.value, c->timeout.value, c->max_attempts.value);
}

/* What vLLM's test adds without saying so: to the only configuration, or to all servers. */
static bool print_added(const struct config_set *set, struct arena *arena)
{
    const struct eval_config plain = {.startup_max_wait_seconds.value = 1200};
    const struct eval_config *c = set->count == 1 ? &set->items[0].config : &plain;
    struct listing l = {.table = {.arena = arena, .aligns = "lll"}};
    struct eval_added added[EVAL_ADDED];
    bool whole = server_command_is_whole(c);

    if (!eval_config_added(c, arena, added))
        return false;
    if (set->count == 1) {
        print_server(c, added);
        print_request(c);
    }
    for (int i = 0; i < EVAL_ADDED; i++) {
        const char *cells[TABLE_COLUMNS] = {
            added[i].is_env ? "  env" : "  argument",
            added[i].words[1] ? arena_printf(arena, "%s %s", added[i].words[0], added[i].words[1])
                              : added[i].words[0],
            added[i].stated ? "stated already, not added" : added[i].why};

        if (whole && !added[i].is_env)
            continue;
        add(&l, cells);
    }
    (void)printf("\nadded to each server, as vLLM's test does:\n");
    table_print(&l.table, stdout);
    return !l.lost;
}

static void print_warnings(const struct errs *warnings)
{
    char line[3 * ERR_TEXT];

    if (warnings->count)
        (void)printf("\n");
    for (size_t i = 0; i < warnings->count; i++)
        (void)printf("warning: %s\n", err_format(&warnings->items[i], line, sizeof line));
}

static int run_check(const char *const *operands, size_t count, struct arena *arena,
                     struct errs *errs)
{
    static const char *const everywhere[] = {EVERYWHERE};
    struct errs warnings = {0};
    struct config_set set;
    bool whole;
    enum err_code rc = config_set_load(count ? operands : everywhere, count ? count : 1, arena,
                                       &set, &warnings, errs);

    if (rc != ERR_NOMEM) {
        whole = print_table(&set, arena);
        if (!rc)
            whole = print_added(&set, arena) && whole;
        print_warnings(&warnings);
        (void)printf("%sconfigurations: %zu, lists: %zu, errors: %zu, warnings: %zu\n",
                     rc && !warnings.count ? "" : "\n", set.count, set.lists,
                     errs->count + errs->dropped, warnings.count + warnings.dropped);
        if (!whole)
            rc = errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for all rows");
    }
    errs_free(&warnings);
    return rc ? commands_failed(errs) : 0;
}

static int run_keys(struct arena *arena, struct errs *errs)
{
    static const char *const head[TABLE_COLUMNS] = {"key", "under", "", "meaning"};
    struct listing l = {.table = {.arena = arena, .aligns = "llll"}};
    struct eval_key k;

    add(&l, head);
    for (size_t i = 0; eval_config_key(i, &k); i++) {
        const char *cells[TABLE_COLUMNS] = {k.key, strcmp(k.group, "vLLM") == 0 ? "" : k.group,
                                            k.required ? "required" : "", k.help};

        add(&l, cells);
    }
    table_print(&l.table, stdout);
    if (!l.lost)
        return 0;
    (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for all rows");
    return commands_failed(errs);
}

static int run_config(const struct options *o, struct arena *arena, struct errs *errs)
{
    static const char *const verbs[] = {"check", "keys", NULL};
    struct near near = near_to(o->operands[0]);
    char hint[128];

    if (!strcmp(o->operands[0], "check"))
        return run_check(o->operands + 1, o->operand_count - 1, arena, errs);
    near_offer_all(&near, verbs);
    if (strcmp(o->operands[0], "keys") != 0)
        (void)errs_add(errs, ERR_USAGE, NOWHERE, "config knows no '%s'%s", o->operands[0],
                       near.best ? near_hint(&near, hint, sizeof hint) : ": check or keys");
    else if (o->operand_count > 1)
        (void)errs_add(errs, ERR_USAGE, NOWHERE, "config keys takes no '%s'", o->operands[1]);
    else
        return run_keys(arena, errs);
    return commands_failed(errs);
}

const struct command command_config = {
    .name = "config",
    .operands = "check|keys [CONFIG|LIST|FOLDER...]",
    .min_operands = 1,
    .max_operands = -1,
    .run = run_config,
    .help = "check configurations of evaluations, and say what they mean",
    .about =
        "  check  read configurations (.yaml), lists of them (.txt) and folders (nothing named: "
        "" EVERYWHERE "),\n"
        "         name every mistake, and print what each requires; one alone in full\n"
        "  keys   what a configuration may state\n",
};
