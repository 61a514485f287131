/* What a run must reach: thresholds, floors by GPU, and the rule in whole questions. */
#include "harness/eval/config_load.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define AT(member) offsetof(struct eval_floor, member)
#define BILLION    ((int64_t)EVAL_BILLION)

enum { HINT = 96 };

const char *const eval_gpus[] = {"a10",   "a100",  "a30",  "a40", "b200", "b300",
                                 "gb200", "gh200", "h100", "h20", "h200", "l20",
                                 "l4",    "l40",   "l40s", "t4",  NULL};

/* The letters and digits at the start of `text`. */
static size_t word_length(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]))
        n++;
    return n;
}

const char *eval_gpu_of(const char *product)
{
    while (*product) {
        size_t n = word_length(product);

        for (size_t i = 0; eval_gpus[i]; i++)
            if (strlen(eval_gpus[i]) == n && !strncasecmp(eval_gpus[i], product, n))
                return eval_gpus[i];
        product += n ? n : 1;
    }
    return NULL;
}

/* The `n` characters in lower case; "" if they are no word of letters and digits that fits. */
static const char *lower_word(const char *text, size_t n, char word[HINT])
{
    size_t i = 0;

    if (n < HINT && n && strspn(text, "0123456789") < n)
        for (; i < n; i++)
            word[i] = (char)(tolower)((unsigned char)text[i]);
    word[i] = '\0';
    return word;
}

/* The first word of a product's name that is near to one of ours. */
static const char *gpu_hint(const char *product, char hint[HINT])
{
    hint[0] = '\0';
    while (*product && !hint[0]) {
        size_t n = word_length(product);
        char word[HINT];
        struct near near = near_to(lower_word(product, n, word));

        near_offer_all(&near, eval_gpus);
        (void)near_hint(&near, hint, HINT);
        product += n ? n : 1;
    }
    return hint;
}

enum err_code eval_gpu_check(const char *product, struct errs *errs)
{
    char known[CONFIG_SHOWN] = "", hint[HINT];
    size_t used = 0;

    if (eval_gpu_of(product))
        return ERR_NONE;
    for (size_t i = 0; eval_gpus[i] && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 eval_gpus[i]);
    return errs_add(errs, ERR_USAGE, NOWHERE, "the GPU '%.60s' is not known%s (known: %s)", product,
                    gpu_hint(product, hint), known);
}

/* clang-format off */
static const struct config_key floor_keys[] = {
    {"accuracy",  true,  AT(accuracy),  config_real, 0, BILLION, NULL, "share of right answers"},
    {"tolerance", false, AT(tolerance), config_real, 0, BILLION, NULL, "taken off it (default 0)"},
    {"evidence",  false, AT(evidence),  config_text, 0, 0,       NULL, "where it comes from"},
};
/* clang-format on */
enum { FLOOR_KEYS = sizeof floor_keys / sizeof floor_keys[0] };

/* Some run must be able to fail. */
static void check_floor(struct config_loader *l, const struct eval_real *threshold,
                        const struct eval_real *tolerance)
{
    const struct eval_real *at = tolerance->at.line ? tolerance : threshold;

    if (threshold->at.line && threshold->billionths <= tolerance->billionths)
        BAD(l, at->at, "the floor is %.9g - %.9g: no run could fail", threshold->value,
            tolerance->value);
}

static void load_floor(struct config_loader *l, const struct doc_node *n, struct eval_floor *f)
{
    struct near near = near_to(n->key);
    char hint[HINT];

    for (size_t i = 0; eval_gpus[i]; i++) {
        near_offer(&near, eval_gpus[i]);
        if (!strcmp(eval_gpus[i], n->key))
            f->gpu = eval_gpus[i];
    }
    if (!f->gpu)
        BAD(l, n->key_at, "floors: unknown GPU '%.40s'%s", n->key,
            near_hint(&near, hint, sizeof hint));
    f->at = n->key_at;
    f->tolerance = (struct eval_real){.set = true};
    if (n->kind == DOC_MAP)
        config_map(l, floor_keys, FLOOR_KEYS, n, f, " in a floor", NULL);
    else if (n->kind != DOC_REFUSED)
        config_real(l, &floor_keys[0], n, &f->accuracy);
    check_floor(l, &f->accuracy, &f->tolerance);
}

void config_floors(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                   void *member)
{
    struct eval_floor *floors;
    char shown[CONFIG_SHOWN];

    (void)member;
    if (n->kind != DOC_MAP) {
        BAD(l, n->at, "%s: expected a map such as {h100: 0.88}, found %s", k->key,
            doc_show(n, shown, sizeof shown));
        return;
    }
    floors = ARENA_NEW(l->arena, n->count + 1, struct eval_floor);
    if (!floors) {
        config_no_memory(l);
        return;
    }
    l->out->floors = floors;
    for (const struct doc_node *f = n->child; f; f = f->next)
        load_floor(l, f, &floors[l->out->floor_count++]);
}

void config_check_floor(struct config_loader *l)
{
    check_floor(l, &l->out->accuracy_threshold, &l->out->tolerance);
}

static int64_t needed_of(int64_t threshold, int64_t tolerance, int64_t questions)
{
    int64_t share = threshold - tolerance, n = (share * questions + BILLION - 1) / BILLION;

    return n > 1 ? n : 1;
}

void eval_config_pass(const struct eval_config *c, const char *gpu, int64_t questions,
                      struct eval_pass *out)
{
    const char *key = gpu ? eval_gpu_of(gpu) : NULL;

    *out = (struct eval_pass){.threshold = c->accuracy_threshold.billionths,
                              .tolerance = c->tolerance.billionths,
                              .questions = questions ? questions : c->num_questions.value,
                              .at = c->accuracy_threshold.at};
    for (size_t i = 0; key && i < c->floor_count; i++)
        if (c->floors[i].gpu == key) {
            out->threshold = c->floors[i].accuracy.billionths;
            out->tolerance = c->floors[i].tolerance.billionths;
            out->at = c->floors[i].accuracy.at;
            out->gpu = key;
            out->evidence = c->floors[i].evidence.text;
        }
    out->needed = needed_of(out->threshold, out->tolerance, out->questions);
}
