#include "harness/kernel/runner.h"

#include "harness/core/build_info.h"
#include "harness/kernel/family.h"
#include "harness/kernel/family_inputs.h"
#include "harness/kernel/op_family.h"
#include "harness/kernel/semantics.h"
#include "reference/blas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct family families[] = { /* in the order of the axis' words */
    {"gemm",           family_gemm},
    {"quant_weight",   family_quant_weight},
    {"dequant_weight", family_dequant_weight},
    {"pack",           family_pack},
    {"process_mxfp4",  family_process_mxfp4},
    {"process_input",  family_process_input},
    {"hadamard",       family_hadamard},
    {"moe_sum",        family_moe_sum},
    {"experts",        family_experts},
};
/* clang-format on */

/* ---- life ------------------------------------------------------------------------------------ */

struct runner *runner_open(const struct hum_provider *provider, int threads, size_t memory_limit,
                           struct errs *errs)
{
    struct runner *r = calloc(1, sizeof *r);
    char reason[HUM_REASON_BYTES] = "";

    if (!r || !arena_init(&r->problem, memory_limit) ||
        !arena_init(&r->scratch, memory_limit / 4)) {
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a worker");
        runner_close(r);
        return NULL;
    }
    r->threads = threads;
    ref_blas_init();
    if (!ref_blas_self_test(reason, sizeof reason)) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE,
                       "the BLAS is wrong on this machine, nothing may be judged by it: %s",
                       reason);
        runner_close(r);
        return NULL;
    }
    if (provider->open(threads, &r->handle, reason) != HUM_OK) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "provider %s cannot be opened: %s", provider->name,
                       reason);
        runner_close(r);
        return NULL;
    }
    r->provider = provider;
    return r;
}

void runner_close(struct runner *r)
{
    if (!r)
        return;
    if (r->provider)
        r->provider->close(r->handle);
    if (r->problem.base)
        arena_free(&r->problem);
    if (r->scratch.base)
        arena_free(&r->scratch);
    free(r);
}

/* ---- records --------------------------------------------------------------------------------- */

static const char *word(enum axis_id id, const int64_t v[AX_COUNT])
{
    return v[id] >= 0 && axes[id].words ? axes[id].words[v[id]] : "auto";
}

static size_t put_text(const char *s, char *buf, size_t size, size_t used)
{
    for (; *s; s++, used++)
        if (used < size)
            buf[used] = *s;
    return used;
}

/* A word of a POSIX shell: as it is where none of its characters means anything there, else in
 * single quotes. Returns `used` and what it takes, also where that exceeds `size`. */
static size_t put_word(const char *before, const char *s, char *buf, size_t size, size_t used)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_./,:=+@%-";
    char one[2] = "";

    if (*s && !s[strspn(s, plain)])
        return put_text(s, buf, size, put_text(before, buf, size, used));
    used = put_text(before, buf, size, put_text("'", buf, size, used));
    for (; *s; s++) {
        one[0] = *s;
        used = put_text(*s == '\'' ? "'\\''" : one, buf, size, used);
    }
    return put_text("'", buf, size, used);
}

/* The seed is the one that the plan was made with, not the case's own: random and pairwise entries
 * choose their cases by it. A command that does not fit is left out, for a part of it would run
 * something else. */
static void repro(const struct plan *plan, const struct plan_case *c,
                  const struct hum_provider *provider, char *buf, size_t size)
{
    const struct plan_options *o = &plan->options;
    uint64_t seed = o->has_seed ? o->seed : c->suite->seed;
    const char *fault = build_fault();
    size_t used = 0;
    char text[32];

    if (fault)
        used = put_text(" ", buf, size, put_word("HUMCHECK_FAULT=", fault, buf, size, 0));
    used = put_text("humcheck kernels ", buf, size, used);
    used = put_word(c->suite->path[0] == '-' ? "./" : "", c->suite->path, buf, size, used);
    used = put_text(" --provider ", buf, size, used);
    used = put_word("", o->provider ? o->provider : provider->name, buf, size, used);
    if (o->semantics)
        used = put_word(" --semantics ", o->semantics, buf, size, used);
    used = put_text(" --filter '", buf, size, used);
    used = put_text(c->id, buf, size, used);
    (void)snprintf(text, sizeof text, "' --seed 0x%" PRIx64, seed);
    used = put_text(text, buf, size, used);
    if (used < size)
        buf[used] = '\0';
    else
        (void)snprintf(buf, size,
                       "(the names of the suite and the provider are too long for a line)");
}

void runner_record(const struct plan *plan, size_t case_index, const struct hum_provider *provider,
                   struct record *out)
{
    const struct plan_case *c = &plan->cases[case_index];

    memset(out, 0, sizeof *out);
    out->index = case_index;
    out->seed = (uint64_t)c->v[AX_SEED];
    out->at_row = out->at_col = -1;
    (void)snprintf(out->suite, sizeof out->suite, "%s", c->suite->name);
    (void)snprintf(out->id, sizeof out->id, "%s", c->id);
    (void)snprintf(out->provider, sizeof out->provider, "%s %s", provider->name, provider->version);
    (void)snprintf(out->family, sizeof out->family, "%s", word(AX_FAMILY, c->v));
    (void)snprintf(out->check, sizeof out->check, "%s", word(AX_CHECK, c->v));
    if (axes[AX_FILL].families & AXIS_FAMILY_BIT(c->v[AX_FAMILY]))
        (void)snprintf(out->fill, sizeof out->fill, "%s", word(AX_FILL, c->v));
    repro(plan, c, provider, out->repro, sizeof out->repro);
    (void)snprintf(out->unit, sizeof out->unit, "%s", check_of(c->v[AX_CHECK])->unit);
}

void runner_take(struct record *r, const struct finding *f)
{
    r->verdict = f->verdict;
    (void)snprintf(r->reason, sizeof r->reason, "%s", f->reason);
    r->compared = f->compared;
    r->wrong = f->wrong;
    r->at_row = f->at_row;
    r->at_col = f->at_col;
    r->got = f->got;
    r->want = f->want;
    r->got_code = f->got_code;
    r->want_code = f->want_code;
    r->error = f->error;
    r->limit = f->limit;
}

/* Records on their way to the hooks: with the rules by which they were judged. */
struct noted {
    const struct runner_hooks *hooks;
    uint32_t rules;
};

static void on_stage(void *context, size_t case_index, enum stage stage)
{
    const struct noted *n = context;

    n->hooks->stage(n->hooks->context, case_index, stage);
}

static void on_record(void *context, const struct record *r)
{
    const struct noted *n = context;
    struct record noted = *r;
    char note[SEMANTICS_NOTE];
    size_t used = strlen(noted.kernel);

    (void)semantics_note(n->rules, noted.family, note);
    (void)snprintf(noted.kernel + used, sizeof noted.kernel - used, "%s", note);
    n->hooks->record(n->hooks->context, &noted);
}

void runner_problem(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                    size_t end, const struct runner_hooks *hooks)
{
    struct noted noted = {hooks, plan->rules};
    const struct runner_hooks own = {on_stage, on_record, &noted, hooks->interrupted};

    families[plan->cases[begin].v[AX_FAMILY]].run_problem(r, plan, problem, begin, end, &own);
}
