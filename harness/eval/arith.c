#include "harness/eval/arith.h"

#include "harness/eval/mt19937.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const char *const names[] = {"Ada",   "Bruno", "Chiara", "Dev",   "Elif", "Farid",
                                    "Grace", "Hugo",  "Ines",   "Jonas", "Kira", "Luis"};
static const char *const things[] = {"pencils",   "apples", "stickers", "marbles",
                                     "postcards", "shells", "buttons",  "stamps"};
static const char *const towns[] = {"Oslo", "Quebec", "Sapporo", "Tallinn", "Ulm", "Vilnius"};

enum { NUMBER_TEXT = 32 };

/* The state of one row. */
struct draw {
    struct mt19937 mt;
    struct arena *arena;
};

static int64_t between(struct draw *d, int64_t low, int64_t high)
{
    return low + mt_below(&d->mt, (uint32_t)(high - low + 1));
}

static const char *pick(struct draw *d, const char *const *words, size_t count)
{
    return words[mt_below(&d->mt, (uint32_t)count)];
}

#define PICK(d, words) pick((d), (words), COUNT(words))

/* 1234567 as "1,234,567". */
static const char *grouped(int64_t x, char buf[NUMBER_TEXT])
{
    char digits[NUMBER_TEXT];
    int n = snprintf(digits, sizeof digits, "%" PRId64, x < 0 ? -x : x);
    char *out = buf;

    if (x < 0)
        *out++ = '-';
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return buf;
}

/* Each kind fills question and answer; a NULL in either means the arena is full. */
static void shopping(struct draw *d, struct dataset_row *r)
{
    const char *name = PICK(d, names), *thing = PICK(d, things);
    int64_t n = between(d, 3, 30), price = between(d, 2, 15), had = between(d, 20, 90);
    int64_t cost = n * price, bill = cost + had;

    r->question =
        arena_printf(d->arena,
                     "%s buys %" PRId64 " boxes of %s at $%" PRId64 " each and pays with $%" PRId64
                     ". How much change, in dollars, does %s get?",
                     name, n, thing, price, bill, name);
    r->answer =
        arena_printf(d->arena,
                     "The boxes cost %" PRId64 " * $%" PRId64 " = $<<%" PRId64 "*%" PRId64
                     "=%" PRId64 ">>%" PRId64 ".\nThe change is $%" PRId64 " - $%" PRId64
                     " = $<<%" PRId64 "-%" PRId64 "=%" PRId64 ">>%" PRId64 ".\n#### %" PRId64,
                     n, price, n, price, cost, cost, bill, cost, bill, cost, had, had, had);
}

static void temperature(struct draw *d, struct dataset_row *r)
{
    const char *town = PICK(d, towns);
    int64_t warm = between(d, 1, 12), hours = between(d, 3, 9), rate = between(d, 2, 6);
    int64_t drop = hours * rate, cold = warm - drop;

    r->question = arena_printf(
        d->arena,
        "At noon it is %" PRId64 " degrees in %s. The temperature then falls "
        "by %" PRId64 " degrees an hour for %" PRId64 " hours. How many degrees is it then?",
        warm, town, rate, hours);
    r->answer = arena_printf(
        d->arena,
        "It falls by %" PRId64 " * %" PRId64 " = <<%" PRId64 "*%" PRId64 "=%" PRId64 ">>%" PRId64
        " degrees.\nThen it is %" PRId64 " - %" PRId64 " = <<%" PRId64 "-%" PRId64 "=%" PRId64
        ">>%" PRId64 " degrees.\n#### %" PRId64,
        rate, hours, rate, hours, drop, drop, warm, drop, warm, drop, cold, cold, cold);
}

static void factory(struct draw *d, struct dataset_row *r)
{
    const char *town = PICK(d, towns), *thing = PICK(d, things);
    int64_t a_day = between(d, 11, 99) * 100, days = between(d, 21, 240);
    int64_t total = a_day * days;
    char x[NUMBER_TEXT], y[NUMBER_TEXT];

    r->question = arena_printf(
        d->arena, "A factory in %s makes %s %s a day. How many does it make in %" PRId64 " days?",
        town, grouped(a_day, x), thing, days);
    r->answer = arena_printf(d->arena,
                             "It makes %s * %" PRId64 " = <<%" PRId64 "*%" PRId64 "=%" PRId64
                             ">>%s %s.\n#### %s",
                             x, days, a_day, days, total, grouped(total, y), thing, y);
}

static void prices(struct draw *d, struct dataset_row *r)
{
    const char *name = PICK(d, names), *thing = PICK(d, things);
    int64_t quarters = 4 * between(d, 1, 9) + between(d, 1, 3), n = 4 * between(d, 2, 25);
    int64_t dollars = quarters / 4, cents = quarters % 4 * 25, total = quarters * n / 4;

    r->question = arena_printf(d->arena,
                               "%s sells %" PRId64 " %s for $%" PRId64 ".%02" PRId64
                               " each. How many dollars does %s take in?",
                               name, n, thing, dollars, cents, name);
    r->answer = arena_printf(d->arena,
                             "%s takes in %" PRId64 " * $%" PRId64 ".%02" PRId64 " = $<<%" PRId64
                             "*%" PRId64 ".%02" PRId64 "=%" PRId64 ">>%" PRId64 ".\n#### %" PRId64,
                             name, n, dollars, cents, n, dollars, cents, total, total, total);
}

static void percent(struct draw *d, struct dataset_row *r)
{
    const char *town = PICK(d, towns);
    int64_t people = 100 * between(d, 3, 90), share = 5 * between(d, 1, 19);
    int64_t part = people * share / 100, rest = people - part;
    char x[NUMBER_TEXT], y[NUMBER_TEXT], z[NUMBER_TEXT];

    r->question =
        arena_printf(d->arena,
                     "A concert in %s has %s visitors. %" PRId64
                     "%% of them come by train, the others on foot. How many come on foot?",
                     town, grouped(people, x), share);
    r->answer = arena_printf(d->arena,
                             "By train come %s * %" PRId64 "/100 = <<%" PRId64 "*%" PRId64
                             "*.01=%" PRId64 ">>%s visitors.\nOn foot come %s - %s = <<%" PRId64
                             "-%" PRId64 "=%" PRId64 ">>%s.\n#### %" PRId64,
                             x, share, people, share, part, grouped(part, y), x, y, people, part,
                             rest, grouped(rest, z), rest);
}

static void average(struct draw *d, struct dataset_row *r)
{
    const char *name = PICK(d, names), *thing = PICK(d, things);
    int64_t mean = between(d, 10, 80), off = between(d, 1, 9), last = between(d, 0, 9);
    int64_t a = mean - off, b = mean + off + last, c = mean - last, sum = a + b + c;

    r->question =
        arena_printf(d->arena,
                     "%s finds %" PRId64 " %s on Monday, %" PRId64 " on Tuesday and %" PRId64
                     " on Wednesday. How many is that a day on average?",
                     name, a, thing, b, c);
    r->answer = arena_printf(d->arena,
                             "Together that is %" PRId64 " + %" PRId64 " + %" PRId64 " = <<%" PRId64
                             "+%" PRId64 "+%" PRId64 "=%" PRId64 ">>%" PRId64
                             ".\nOver 3 days that is %" PRId64 " / 3 = <<%" PRId64 "/3=%" PRId64
                             ">>%" PRId64 " a day.\n#### %" PRId64,
                             a, b, c, a, b, c, sum, sum, sum, sum, mean, mean, mean);
}

static void journey(struct draw *d, struct dataset_row *r)
{
    const char *from = PICK(d, towns), *name = PICK(d, names);
    int64_t halves = 2 * between(d, 1, 7) + 1, speed = 2 * between(d, 20, 55);
    int64_t km = speed * halves / 2;

    r->question = arena_printf(d->arena,
                               "%s leaves %s by car and drives for %" PRId64 ".5 hours at %" PRId64
                               " km an hour. How many km is that?",
                               name, from, halves / 2, speed);
    r->answer = arena_printf(d->arena,
                             "That is %" PRId64 ".5 * %" PRId64 " = <<%" PRId64 ".5*%" PRId64
                             "=%" PRId64 ">>%" PRId64 " km.\n#### %" PRId64,
                             halves / 2, speed, halves / 2, speed, km, km, km);
}

static void debt(struct draw *d, struct dataset_row *r)
{
    const char *name = PICK(d, names);
    int64_t saved = between(d, 1000, 9000), spent = saved + between(d, 100, 99000);
    int64_t balance = saved - spent;
    char x[NUMBER_TEXT], y[NUMBER_TEXT], z[NUMBER_TEXT];

    r->question =
        arena_printf(d->arena,
                     "%s has $%s in an account and spends $%s from it. What is the balance "
                     "in dollars, below zero if %s owes money?",
                     name, grouped(saved, x), grouped(spent, y), name);
    r->answer = arena_printf(
        d->arena, "The balance is $%s - $%s = $<<%" PRId64 "-%" PRId64 "=%" PRId64 ">>%s.\n#### %s",
        x, y, saved, spent, balance, grouped(balance, z), z);
}

typedef void kind_fn(struct draw *d, struct dataset_row *r);
static kind_fn *const kinds[ARITH_KINDS] = {shopping, temperature, factory, prices,
                                            percent,  average,     journey, debt};

static bool seen(const struct dataset_row *rows, size_t count, const char *question)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(rows[i].question, question))
            return true;
    return false;
}

/* Row `count` of the rows so far. A question that was there is drawn again; some kinds have few, so
 * after TRIES the next kind has its turn. */
enum { TRIES = 16 };
static bool add(struct draw *d, struct dataset_row *rows, size_t count)
{
    struct dataset_row *r = &rows[count];

    for (size_t tries = 0;; tries++) {
        kinds[(count + tries / TRIES) % ARITH_KINDS](d, r);
        if (!r->question || !r->answer)
            return false;
        if (!seen(rows, count, r->question))
            break;
    }
    r->label = dataset_label(r->answer);
    return true;
}

/* The hash of the texts, each ended by a NUL. */
static void split(struct dataset_row *rows, size_t count, struct dataset_rows *out)
{
    struct sha256 hash;

    sha256_init(&hash);
    for (size_t i = 0; i < count; i++) {
        sha256_add(&hash, rows[i].question, strlen(rows[i].question) + 1);
        sha256_add(&hash, rows[i].answer, strlen(rows[i].answer) + 1);
    }
    *out = (struct dataset_rows){.row = rows, .count = count};
    (void)sha256_end(&hash, out->sha256);
}

enum err_code arith_make(uint64_t seed, size_t train, size_t test, struct arena *arena,
                         struct dataset *out, struct errs *errs)
{
    struct draw d = {.arena = arena};
    struct dataset_row *rows;

    if (train > ARITH_ROWS_MAX || test > ARITH_ROWS_MAX - train)
        return errs_add(errs, ERR_CONFIG, NOWHERE,
                        "arith makes at most %d rows, %zu and %zu were asked for", ARITH_ROWS_MAX,
                        train, test);
    rows = arena_alloc(arena, train + test, sizeof *rows);
    mt_seed(&d.mt, seed);
    for (size_t i = 0; rows && i < train + test; i++)
        if (!add(&d, rows, i))
            rows = NULL;
    if (!rows)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "the problems do not fit in their memory");
    split(rows, train, &out->train);
    split(rows + train, test, &out->test);
    return ERR_NONE;
}
