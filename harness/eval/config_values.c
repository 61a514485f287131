#include "harness/eval/config_load.h"
#include "harness/weights/json_doc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BILLION ((int64_t)EVAL_BILLION)

enum { EXPECTED = 96, DECIMALS = 9, WHOLE_DIGITS = 9, HINT = 96, CUT = 120 };

static void expected(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                     const char *what)
{
    char shown[CONFIG_SHOWN];

    BAD(l, n->at, "%s: expected %s, found %s", k->key, what, doc_show(n, shown, sizeof shown));
}

/* Would YAML 1.1, as PyYAML reads it, make something else than a text of these plain characters: a
 * number, a date, true, false or nothing? (A few texts that look like numbers are among them.) */
static bool is_other_type(const char *text)
{
    static const char *const words[] = {"true", "false", "yes",  "no",    "on",    "off",  "null",
                                        "~",    "=",     ".inf", "-.inf", "+.inf", ".nan", NULL};
    const char *digits = text + (text[0] == '-' || text[0] == '+');

    for (int i = 0; words[i]; i++)
        if (!strcasecmp(text, words[i]))
            return true;
    return *digits && strchr("0123456789.", *digits) &&
           !digits[strspn(digits, "0123456789abcdefABCDEFxXTZ_.:+-")];
}

const char *config_string(struct config_loader *l, const char *key, const struct doc_node *n)
{
    char shown[CONFIG_SHOWN];

    if (n->kind == DOC_REFUSED)
        return NULL;
    if (n->kind != DOC_TEXT)
        BAD(l, n->at, "%s: expected a text, found %s; put it in single quotes", key,
            doc_show(n, NULL, 0));
    else if (!n->quoted && !n->text[0])
        BAD(l, n->at, "%s: expected a text, found nothing", key);
    else if (!n->quoted && is_other_type(n->text))
        BAD(l, n->at,
            "%s: expected a text, found %s, which YAML takes for something else: "
            "put it in quotes",
            key, doc_show(n, shown, sizeof shown));
    else if (strlen(n->text) > CONFIG_TEXT)
        BAD(l, n->at, "%s: the text is longer than %d bytes", key, CONFIG_TEXT);
    else
        return n->text;
    return NULL;
}

void config_any_text(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                     void *member)
{
    const char *text = config_string(l, k->key, n);

    if (text)
        *(struct eval_text *)member = (struct eval_text){n->at, text};
}

/* A name: one line without blanks at its ends. */
void config_text(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member)
{
    const char *text = config_string(l, k->key, n);
    size_t length = text ? strlen(text) : 0;

    if (!text)
        return;
    if (!length || strchr(" \t\n-", text[0]) || strchr(" \t", text[length - 1]) ||
        strchr(text, '\n'))
        expected(l, k, n, "one line of text that starts neither with a blank nor with '-'");
    else
        *(struct eval_text *)member = (struct eval_text){n->at, text};
}

/* Plain: as YAML writes numbers and words, not in quotes. */
static bool is_plain(const struct doc_node *n)
{
    return n->kind == DOC_TEXT && !n->quoted;
}

static bool is_null(const struct doc_node *n)
{
    return is_plain(n) && (!strcmp(n->text, "null") || !strcmp(n->text, "~"));
}

/* Decimal digits, one '-' before them or none, no leading zeros, which YAML reads as octal. */
static bool parse_int(const char *text, int64_t *out)
{
    const char *digits = text + (text[0] == '-');
    size_t n = strspn(digits, "0123456789");

    if (!n || digits[n] || (digits[0] == '0' && (n > 1 || digits != text)))
        return false;
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return !errno;
}

void config_int(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                void *member)
{
    char what[EXPECTED];
    int64_t value;

    if (is_plain(n) && parse_int(n->text, &value) && value >= k->low && value <= k->high) {
        *(struct eval_int *)member = (struct eval_int){n->at, true, value};
        return;
    }
    (void)snprintf(what, sizeof what, "a whole number from %" PRId64 " to %" PRId64, k->low,
                   k->high);
    expected(l, k, n, what);
}

void config_int_or_null(struct config_loader *l, const struct config_key *k,
                        const struct doc_node *n, void *member)
{
    if (is_null(n))
        *(struct eval_int *)member = (struct eval_int){.at = n->at};
    else
        config_int(l, k, n, member);
}

/* Digits, or digits, a point and at most nine digits: exact in billionths. */
static bool parse_decimal(const char *text, int64_t *billionths)
{
    size_t whole = strspn(text, "0123456789"), decimals = 0;
    const char *after = text + whole;
    int64_t sum = 0;

    if (*after == '.')
        decimals = strspn(++after, "0123456789");
    if (!whole || whole > WHOLE_DIGITS || decimals > DECIMALS || after[decimals] ||
        (text[whole] == '.' && !decimals) || (text[0] == '0' && whole > 1))
        return false;
    for (size_t i = 0; i < whole; i++)
        sum = 10 * sum + (text[i] - '0');
    for (size_t i = 0; i < DECIMALS; i++)
        sum = 10 * sum + (i < decimals ? after[i] - '0' : 0);
    *billionths = sum;
    return true;
}

void config_real(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member)
{
    char what[EXPECTED];
    int64_t x;

    if (is_plain(n) && parse_decimal(n->text, &x) && x >= k->low && x <= k->high) {
        *(struct eval_real *)member = (struct eval_real){n->at, true, (double)x / 1e9, x};
        return;
    }
    (void)snprintf(what, sizeof what, "a decimal number from %.9g to %.9g", (double)k->low / 1e9,
                   (double)k->high / 1e9);
    expected(l, k, n, what);
}

void config_real_or_null(struct config_loader *l, const struct config_key *k,
                         const struct doc_node *n, void *member)
{
    if (is_null(n))
        *(struct eval_real *)member = (struct eval_real){.at = n->at};
    else
        config_real(l, k, n, member);
}

void config_bool(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member)
{
    bool yes = is_plain(n) && !strcmp(n->text, "true");

    if (yes || (is_plain(n) && !strcmp(n->text, "false")))
        *(struct eval_int *)member = (struct eval_int){n->at, true, yes};
    else
        expected(l, k, n, "true or false, without quotes");
}

void config_word(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member)
{
    struct near near = near_to(n->kind == DOC_TEXT ? n->text : "");
    char shown[CONFIG_SHOWN], hint[HINT];

    near_offer_all(&near, k->words);
    for (int i = 0; n->kind == DOC_TEXT && k->words[i]; i++)
        if (!strcmp(k->words[i], n->text)) {
            *(struct eval_int *)member = (struct eval_int){n->at, true, i};
            return;
        }
    BAD(l, n->at, "%s: expected %s or %s, found %s%s", k->key, k->words[0], k->words[1],
        doc_show(n, shown, sizeof shown), near_hint(&near, hint, sizeof hint));
}

/* Why `text` is no object of JSON; NULL: it is one. */
static const char *json_problem(struct config_loader *l, const char *text, char *buf, size_t size)
{
    struct json_source src = {.text = text, .size = strlen(text)};
    struct errs errs = {0};
    const struct json *json = NULL;
    const char *problem = NULL;

    if (json_parse(&src, l->arena, &json, &errs)) {
        (void)snprintf(buf, size, "%.*s", (int)CUT, errs.count ? errs.items[0].text : "no memory");
        problem = buf;
    } else if (json->kind != JSON_OBJECT) {
        problem = "it is no object in braces";
    }
    errs_free(&errs);
    return problem;
}

void config_check_json(struct config_loader *l, const char *name, struct place at, const char *text)
{
    char buf[CUT + 1];
    const char *problem = text[0] == '{' ? json_problem(l, text, buf, sizeof buf) : NULL;

    if (problem)
        BAD(l, at, "%s begins like JSON and is none: %s", name, problem);
}

void config_json(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member)
{
    const char *text = config_string(l, k->key, n), *problem;
    char buf[CUT + 1];

    if (!text)
        return;
    problem = json_problem(l, text, buf, sizeof buf);
    if (problem)
        BAD(l, n->at, "%s: expected an object of JSON in single quotes: %s", k->key, problem);
    else
        *(struct eval_text *)member = (struct eval_text){n->at, text};
}
