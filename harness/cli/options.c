#include "harness/cli/options.h"

#include "harness/config/near.h"
#include "harness/report/table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every command has it. */
static const struct cli_option help_option = {"help", OPT_FLAG, OPTION_AT(help),      "",
                                              NULL,   0,        "print this and stop"};

struct parser {
    const struct command *c;
    struct options *out;
    const char **operands, **outs; /* where the lists of *out grow; room for argc each */
    size_t most;                   /* of an option: argc */
    struct arena *arena;
    bool *seen; /* by option: given already */
    struct errs *errs;
};

static const struct cli_option *option_find(const struct command *c, const char *name, size_t n)
{
    for (int i = 0; i < c->option_count; i++)
        if (strlen(c->options[i].name) == n && !strncmp(c->options[i].name, name, n))
            return &c->options[i];
    return strlen(help_option.name) == n && !strncmp(help_option.name, name, n) ? &help_option
                                                                                : NULL;
}

/* Digits to their end, decimal or 0x hexadecimal, without sign or space. */
static bool parse_u64(const char *text, const char *end, bool hex_allowed, uint64_t *out)
{
    bool hex = hex_allowed && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hex ? text + 2 : text;
    size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

    errno = 0;
    *out = strtoull(digits, NULL, hex ? 16 : 10);
    return n && digits + n == end && !errno;
}

static bool parse_count(const char *text, const char *end, int64_t max, int64_t *out)
{
    uint64_t x;

    if (!parse_u64(text, end, false, &x) || x < 1 || x > (uint64_t)max)
        return false;
    *out = (int64_t)x;
    return true;
}

/* Plain decimal notation: strtod alone would take " 1", "inf", "nan" and "0x1p3". */
static bool parse_seconds(const char *text, int64_t max, double *out)
{
    char *end;

    if (strspn(text, "0123456789.") != strlen(text))
        return false;
    *out = strtod(text, &end);
    return end != text && !*end && *out > 0 && *out <= (double)max;
}

/* "90s", "10m", "1.5h". */
static bool parse_time(const char *text, int64_t max, double *out)
{
    static const struct {
        char letter;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
    size_t n = strspn(text, "0123456789.");
    char number[32];

    if (n >= sizeof number || !text[n] || text[n + 1])
        return false;
    (void)snprintf(number, sizeof number, "%.*s", (int)n, text);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (text[n] == units[i].letter && parse_seconds(number, max, out)) {
            *out *= units[i].seconds;
            return *out <= (double)max;
        }
    return false;
}

static bool append(struct option_list *list, size_t most, struct arena *arena, const char *value)
{
    if (!list->items)
        list->items = ARENA_NEW(arena, most, const char *);
    if (!list->items)
        return false;
    list->items[list->count++] = value;
    return value[0] != '\0';
}

static bool parse_shard(const char *text, int64_t max, struct options *out)
{
    const char *slash = strchr(text, '/');

    return slash && parse_count(slash + 1, text + strlen(text), max, &out->shards) &&
           parse_count(text, slash, out->shards, &out->shard);
}

/* Store a value; false: `expected` says what was wanted. */
static bool store(struct parser *p, const struct cli_option *o, const char *value, char *expected,
                  size_t size)
{
    void *member = (char *)p->out + o->offset;

    switch (o->type) {
    case OPT_FLAG:
        *(bool *)member = true;
        return true;
    case OPT_TEXT:
        *(const char **)member = value;
        (void)snprintf(expected, size, "a text that is not empty");
        return value[0] != '\0';
    case OPT_OUTS:
        p->outs[p->out->out_count++] = value;
        return true;
    case OPT_LIST:
        (void)snprintf(expected, size, "a text that is not empty");
        return append(member, p->most, p->arena, value);
    case OPT_COUNT:
        (void)snprintf(expected, size, "a whole number from 1 to %" PRId64, o->max);
        return parse_count(value, value + strlen(value), o->max, member);
    case OPT_SECONDS:
        (void)snprintf(expected, size, "seconds above 0, up to %" PRId64, o->max);
        return parse_seconds(value, o->max, member);
    case OPT_TIME:
        (void)snprintf(expected, size, "a time such as 90s, 10m or 1.5h, up to %" PRId64 "h",
                       o->max / 3600);
        return parse_time(value, o->max, member);
    case OPT_SEED:
        (void)snprintf(expected, size, "a 64-bit number, decimal or 0x hexadecimal");
        p->out->has_seed = true;
        return parse_u64(value, value + strlen(value), true, &p->out->seed);
    case OPT_SHARD:
        (void)snprintf(expected, size, "I/N with I from 1 to N and N up to %" PRId64, o->max);
        return parse_shard(value, o->max, p->out);
    }
    return false;
}

static void unknown(struct parser *p, const char *arg, size_t name_length)
{
    char name[64], hint[128];
    struct near near;

    (void)snprintf(name, sizeof name, "%.*s", (int)(name_length < 63 ? name_length : 63), arg);
    near = near_to(name);
    for (int i = 0; i < p->c->option_count; i++)
        near_offer(&near, p->c->options[i].name);
    near_offer(&near, help_option.name);
    hint[0] = '\0';
    if (near.best)
        (void)snprintf(hint, sizeof hint, "; did you mean '--%s'?", near.best);
    (void)errs_add(p->errs, ERR_USAGE, NOWHERE, "unknown option '--%s'%s", name, hint);
}

/* One argument that starts with "--"; `next` is what follows it, or NULL. Returns how many
 * arguments were used. */
static int parse_option(struct parser *p, const char *arg, const char *next)
{
    size_t n = strcspn(arg + 2, "=");
    const struct cli_option *o = option_find(p->c, arg + 2, n);
    const char *value = arg[2 + n] ? arg + 3 + n : NULL;
    bool takes_next = o && o->type != OPT_FLAG && !value && next;
    char expected[96];

    if (!o) {
        unknown(p, arg + 2, n);
        return 1;
    }
    if (takes_next)
        value = next;
    if (o->type == OPT_FLAG && value)
        (void)errs_add(p->errs, ERR_USAGE, NOWHERE, "--%s takes no value, got '%s'", o->name,
                       value);
    else if (o->type != OPT_FLAG && !value)
        (void)errs_add(p->errs, ERR_USAGE, NOWHERE, "--%s needs a value: %s", o->name, o->arg);
    else if (o != &help_option && o->type != OPT_FLAG && o->type != OPT_OUTS &&
             o->type != OPT_LIST && p->seen[o - p->c->options])
        (void)errs_add(p->errs, ERR_USAGE, NOWHERE, "--%s is given twice", o->name);
    else if (!store(p, o, value, expected, sizeof expected))
        (void)errs_add(p->errs, ERR_USAGE, NOWHERE, "--%s needs %s, got '%s'", o->name, expected,
                       value);
    if (o != &help_option)
        p->seen[o - p->c->options] = true;
    return takes_next ? 2 : 1;
}

static void parse_arguments(struct parser *p, int argc, char *const argv[])
{
    bool ended = false;

    for (int i = 0; i < argc;) {
        const char *arg = argv[i];

        if (!ended && !strcmp(arg, "--")) {
            ended = true;
            i++;
        } else if (!ended && !strncmp(arg, "--", 2)) {
            i += parse_option(p, arg, i + 1 < argc ? argv[i + 1] : NULL);
        } else {
            if (!ended && arg[0] == '-' && arg[1])
                (void)errs_add(p->errs, ERR_USAGE, NOWHERE,
                               "unknown option '%s'; options start with two dashes", arg);
            p->operands[p->out->operand_count++] = arg;
            i++;
        }
    }
}

static void check_operands(struct parser *p)
{
    const struct command *c = p->c;
    size_t n = p->out->operand_count;

    if (n < (size_t)c->min_operands)
        (void)errs_add(p->errs, ERR_USAGE, NOWHERE, "%s needs %s; 'humcheck help %s' says more",
                       c->name, c->operands, c->name);
    else if (c->max_operands >= 0 && n > (size_t)c->max_operands)
        (void)errs_add(p->errs, ERR_USAGE, NOWHERE, "%s takes no '%s'", c->name,
                       p->out->operands[c->max_operands]);
}

static void set_fallbacks(struct parser *p)
{
    char expected[96];

    for (int i = 0; i < p->c->option_count; i++)
        if (p->c->options[i].fallback)
            (void)store(p, &p->c->options[i], p->c->options[i].fallback, expected, sizeof expected);
}

enum err_code options_parse(const struct command *c, int argc, char *const argv[],
                            struct arena *arena, struct options *out, struct errs *errs)
{
    struct errs mistakes = {0};
    struct parser p = {.c = c, .out = out, .errs = &mistakes, .most = (size_t)argc, .arena = arena};
    enum err_code rc = ERR_NONE;
    char line[2 * ERR_TEXT];

    *out = (struct options){0};
    p.operands = ARENA_NEW(arena, argc + 1, const char *);
    p.outs = ARENA_NEW(arena, argc + 1, const char *);
    p.seen = ARENA_NEW(arena, c->option_count + 1, bool);
    if (!p.operands || !p.outs || !p.seen)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the command line");
    out->operands = p.operands;
    out->outs = p.outs;
    set_fallbacks(&p);
    parse_arguments(&p, argc, argv);
    check_operands(&p);
    for (size_t i = 0; !out->help && i < mistakes.count; i++)
        rc = errs_add(errs, ERR_USAGE, NOWHERE, "%s",
                      err_format(&mistakes.items[i], line, sizeof line));
    errs_free(&mistakes);
    return rc;
}

static void add_help_row(struct table *t, struct arena *arena, const struct cli_option *o)
{
    const char *cells[3] = {
        "", arena_printf(arena, "--%s%s%s", o->name, o->arg[0] ? " " : "", o->arg), o->help};

    if (o->fallback)
        cells[2] = arena_printf(arena, "%s (default: %s)", o->help, o->fallback);
    if (cells[1] && cells[2])
        (void)table_add(t, cells);
}

void options_exit_codes(FILE *f)
{
    (void)fputs("exit codes: 0 pass, 1 fail or untrusted, 2 usage or configuration, "
                "3 infrastructure, 4 inconclusive, 130 interrupted\n",
                f);
}

void options_help(const struct command *c, struct arena *arena, FILE *f)
{
    struct table t = {.arena = arena, .aligns = "lll"};

    (void)fprintf(f, "usage: humcheck %s [options]%s%s\n%s\n", c->name, c->operands[0] ? " " : "",
                  c->operands, c->help);
    if (c->about)
        (void)fprintf(f, "\n%s", c->about);
    (void)fputs("\noptions:\n", f);
    for (int i = 0; i < c->option_count; i++)
        add_help_row(&t, arena, &c->options[i]);
    add_help_row(&t, arena, &help_option);
    table_print(&t, f);
    options_exit_codes(f);
}
