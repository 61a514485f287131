#include "harness/cli/commands.h"
#include "harness/config/near.h"
#include "harness/faults/catalogue.h"
#include "harness/kernel/check_info.h"
#include "harness/kernel/legal.h"
#include "harness/kernel/provider.h"
#include "harness/report/table.h"
#include "reference/dtype.h"

#include <inttypes.h>
#include <string.h>

/* A topic fills a table: first the heading, then its rows. */
struct listing {
    struct table table;
    bool lost;           /* a row, for want of memory */
    const char *refused; /* why this build has no such table; NULL: it has */
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

static const char *kind_of(const struct dtype *t, struct arena *a)
{
    if (!t->is_float)
        return t->is_signed ? "integer" : "unsigned integer";
    if (!t->exp_bits)
        return "sign and magnitude";
    return arena_printf(a, "%sfloat E%dM%d", t->is_signed ? "" : "unsigned ", t->exp_bits,
                        t->man_bits);
}

static void list_formats(struct listing *l)
{
    static const char *const tops[] = {
        [DTYPE_TOP_FINITE] = "none", [DTYPE_TOP_INF_NAN] = "inf nan", [DTYPE_TOP_ONE_NAN] = "nan"};
    static const char *const head[TABLE_COLUMNS] = {"format",  "upstream", "bits",  "kind",
                                                    "largest", "special",  "source"};
    struct arena *a = l->table.arena;

    add(l, head);
    for (int i = 0; i < dtype_count; i++) {
        const struct dtype *t = &dtypes[i];
        const char *cells[TABLE_COLUMNS] = {t->name,
                                            t->alias ? t->alias : "",
                                            arena_printf(a, "%d", t->bits),
                                            kind_of(t, a),
                                            arena_printf(a, "%.9g", dtype_max(t)),
                                            tops[t->top],
                                            t->source};

        add(l, cells);
    }
}

static void list_checks(struct listing *l)
{
    static const char *const head[TABLE_COLUMNS] = {"check", "unit", "fills of gemm",
                                                    "what it requires"};

    add(l, head);
    for (int i = 0; i < check_info_count; i++) {
        const struct check_info *c = &check_infos[i];
        const char *cells[TABLE_COLUMNS] = {c->name, c->unit, c->fills, c->help};

        add(l, cells);
    }
}

static const char *checks_of(int64_t family, int64_t gemm_type, struct arena *a)
{
    const char *text = "";

    for (int64_t c = 0; text && axes[AX_CHECK].words[c]; c++)
        if (legal_has_check(family, gemm_type, c))
            text = arena_printf(a, "%s%s%s", text, *text ? " " : "", axes[AX_CHECK].words[c]);
    return text;
}

/* One row a family; GEMM and the experts pipeline have one a gemm type. */
static void list_kernels(struct listing *l)
{
    static const char *const head[TABLE_COLUMNS] = {"family", "gemm_type", "checks"};
    const char *const *families = axes[AX_FAMILY].words, *const *types = axes[AX_GEMM_TYPE].words;

    add(l, head);
    for (int64_t f = 0; families[f]; f++)
        for (int64_t g = 0; types[g]; g++) {
            bool typed = axes[AX_GEMM_TYPE].families & AXIS_FAMILY_BIT(f);
            const char *cells[TABLE_COLUMNS] = {families[f], typed ? types[g] : "",
                                                checks_of(f, g, l->table.arena)};

            if ((!typed && g > 0) || (f > 0 && typed && g == 0)) /* a pipeline has experts */
                continue;
            add(l, cells);
        }
}

/* "dense | indexed | ..." */
static const char *joined(const char *const *words, struct arena *a)
{
    const char *text = *words;

    while (text && *++words)
        text = arena_printf(a, "%s | %s", text, *words);
    return text;
}

static const char *values_of(const struct axis *x, struct arena *a)
{
    switch (x->kind) {
    case AXIS_INT:
        return arena_printf(a, "%" PRId64 " to %" PRId64, x->min, x->max);
    case AXIS_BOOL:
        return "true | false";
    case AXIS_WORD:
        return joined(x->words, a);
    case AXIS_FORMAT:
    case AXIS_WEIGHT:
        return "humcheck list formats";
    case AXIS_TILE:
        return "MxNxK";
    case AXIS_SEED:
        return "64 bits";
    }
    return NULL;
}

static void list_axes(struct listing *l)
{
    static const char *const head[TABLE_COLUMNS] = {"axis", "default", "values", "meaning"};

    add(l, head);
    for (int i = 0; i < AX_COUNT; i++) {
        const struct axis *x = &axes[i];
        const char *cells[TABLE_COLUMNS] = {x->key, x->fallback ? x->fallback : "required",
                                            values_of(x, l->table.arena), x->help};

        add(l, cells);
    }
}

static void list_rules(struct listing *l)
{
    static const char *const head[TABLE_COLUMNS] = {"rule", "what is required", "source"};

    add(l, head);
    for (int i = 0; i < legal_count(); i++) {
        const struct legal_rule *r = legal_rule(i);
        const char *cells[TABLE_COLUMNS] = {r->name, r->sentence, r->source};

        add(l, cells);
    }
}

/* Only in a build that has them: run_list. */
static void list_faults(struct listing *l)
{
#ifdef HUMCHECK_FAULTS
    static const char *const head[TABLE_COLUMNS] = {"fault", "place", "class", "origin",
                                                    "what is wrong"};

    add(l, head);
    for (int i = 0; i < fault_count(); i++) {
        const struct fault *f = fault_at(i);
        const char *cells[TABLE_COLUMNS] = {f->name, f->place == FAULT_KERNEL ? "kernel" : "oracle",
                                            f->class, f->origin, f->sentence};

        add(l, cells);
    }
#else
    l->refused = commands_no_faults;
#endif
}

static void list_providers(struct listing *l)
{
    static const char *const head[TABLE_COLUMNS] = {"provider", "version", "device"};
    static const char *const outside[TABLE_COLUMNS] = {
        "PATH.so", "", ("any shared library that exports " HUM_PROVIDER_SYMBOL)};

    add(l, head);
    for (int i = 0; i < builtin_provider_count; i++) {
        const struct hum_provider *p = builtin_providers[i];
        const char *cells[TABLE_COLUMNS] = {p->name, p->version, p->device};

        add(l, cells);
    }
    add(l, outside);
}

/* clang-format off */
static const struct {
    const char *name, *aligns;
    void (*fill)(struct listing *l);
} topics[] = {
    {"formats",   "llrlrll", list_formats},
    {"checks",    "llll",    list_checks},
    {"kernels",   "lll",     list_kernels},
    {"axes",      "llll",    list_axes},
    {"rules",     "lll",     list_rules},
    {"providers", "lll",     list_providers},
    {"faults",    "lllll",   list_faults},
};
/* clang-format on */
enum { TOPIC_COUNT = sizeof topics / sizeof topics[0] };

static int run_list(const struct options *o, struct arena *arena, struct errs *errs)
{
    struct near near = near_to(o->operands[0]);
    char hint[128];

    for (int i = 0; i < TOPIC_COUNT; i++) {
        struct listing l = {.table = {.arena = arena, .aligns = topics[i].aligns}};

        near_offer(&near, topics[i].name);
        if (strcmp(topics[i].name, o->operands[0]) != 0)
            continue;
        topics[i].fill(&l);
        table_print(&l.table, stdout);
        if (!l.lost && !l.refused)
            return 0;
        if (l.refused)
            (void)errs_add(errs, ERR_USAGE, NOWHERE, "%s", l.refused);
        else
            (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for all rows");
        return commands_failed(errs);
    }
    (void)errs_add(errs, ERR_USAGE, NOWHERE, "list knows no '%s'%s", o->operands[0],
                   near.best ? near_hint(&near, hint, sizeof hint)
                             : "; 'humcheck help list' names what it knows");
    return commands_failed(errs);
}

const struct command command_list = {
    .name = "list",
    .operands = "formats|checks|kernels|axes|rules|providers|faults",
    .min_operands = 1,
    .max_operands = 1,
    .run = run_list,
    .help = "print one of humcheck's tables",
    .about = "  formats    number formats that an axis may name\n"
             "  checks     criteria that decide a case\n"
             "  kernels    kernel families\n"
             "  axes       what an entry of a suite may state\n"
             "  rules      which combinations are legal, and whose rule that is\n"
             "  providers  sources of kernels\n"
             "  faults     what a build with faults can do wrong on purpose\n",
};
