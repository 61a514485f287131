#include "harness/kernel/known.h"

#include "harness/config/near.h"
#include "harness/config/rows.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* clang-format off */
static const struct rows_key keys[] = {
    {"provider", true}, {"device", false}, {"case", false}, {"where", false}, {"says", false},
    {"verdict", false}, {"finding", true}, {"first_seen", true}, {"last_seen", true},
    {"reason", true},
};
static const struct rows_form form = {"known", "the table of known faults", keys,
                                      sizeof keys / sizeof keys[0]};

static const struct {
    const char *word;
    bool varies;
} verdicts[] = {{"fail", false}, {"varies", true}};
/* clang-format on */

/* ---- loading --------------------------------------------------------------------------------- */

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* YYYY-MM-DD of the Gregorian calendar. */
static bool is_date(const char *text)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int part[3] = {0}, n = 0;

    for (int i = 0; i < 10; i++)
        if (i == 4 || i == 7) {
            if (text[i] != '-')
                return false;
            n++;
        } else {
            if (text[i] < '0' || text[i] > '9')
                return false;
            part[n] = 10 * part[n] + text[i] - '0';
        }
    if (text[10] || part[1] < 1 || part[1] > 12)
        return false;
    return part[2] >= 1 && part[2] <= days[part[1] - 1] + (part[1] == 2 && is_leap(part[0]));
}

static void check_dates(const struct doc_node *node, const struct known_row *row, struct errs *errs)
{
    static const char *const names[] = {"first_seen", "last_seen"};
    bool good = row->first_seen && row->last_seen;

    for (int i = 0; i < 2; i++) {
        const char *text = rows_text(node, names[i]);

        if (!text || is_date(text))
            continue;
        good = false;
        (void)errs_add(errs, ERR_CONFIG, rows_place(node, names[i]),
                       "%s: expected a day as 2026-11-30, got '%.40s'", names[i], text);
    }
    if (good && strcmp(row->last_seen, row->first_seen) < 0)
        (void)errs_add(errs, ERR_CONFIG, rows_place(node, "last_seen"),
                       "last_seen is before first_seen");
}

/* A link that leads nowhere explains nothing. */
static void check_finding(const struct doc_node *node, const char *path, const char *finding,
                          struct arena *arena, struct errs *errs)
{
    const char *slash = strrchr(path, '/');
    const char *file;
    struct stat st;

    if (!finding || !strncmp(finding, "https://", 8) || !strncmp(finding, "http://", 7))
        return;
    file = finding[0] == '/' || !slash
               ? finding
               : arena_printf(arena, "%.*s/%s", (int)(slash - path), path, finding);
    if (!file || stat(file, &st) != 0 || !S_ISREG(st.st_mode))
        (void)errs_add(errs, ERR_CONFIG, rows_place(node, "finding"),
                       "finding: there is no file '%.200s'", file ? file : finding);
}

static void check_length(const struct doc_node *node, const struct known_row *row,
                         struct errs *errs)
{
    const size_t most = sizeof((struct record *)0)->known - 1;

    if (row->finding && strlen(row->finding) > most)
        (void)errs_add(errs, ERR_CONFIG, rows_place(node, "finding"),
                       "finding: expected at most %zu bytes", most);
    if (!rows_text(node, "case") && !rows_text(node, "where"))
        (void)errs_add(errs, ERR_CONFIG, node->at,
                       "a row needs case, where or both, or it would be about every case");
}

static bool varies_of(const struct doc_node *node, struct errs *errs)
{
    const char *text = rows_text(node, "verdict");
    struct near near = near_to(text ? text : "");
    char hint[128];

    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        if (!strcmp(text ? text : verdicts[0].word, verdicts[i].word))
            return verdicts[i].varies;
        near_offer(&near, verdicts[i].word);
    }
    (void)errs_add(errs, ERR_CONFIG, rows_place(node, "verdict"),
                   "verdict: expected fail or varies, got '%.40s'%s", text,
                   near_hint(&near, hint, sizeof hint));
    return false;
}

static void load_row(const struct doc_node *node, const char *path, struct arena *arena,
                     struct known_row *row, struct errs *errs)
{
    *row = (struct known_row){.provider = rows_text(node, "provider"),
                              .device = rows_text(node, "device"),
                              .id = rows_text(node, "case"),
                              .says = rows_text(node, "says"),
                              .where = rows_expr(node, "where", arena, errs),
                              .finding = rows_text(node, "finding"),
                              .first_seen = rows_text(node, "first_seen"),
                              .last_seen = rows_text(node, "last_seen"),
                              .reason = rows_text(node, "reason"),
                              .varies = varies_of(node, errs),
                              .line = node->at.line};
    check_dates(node, row, errs);
    check_finding(node, path, row->finding, arena, errs);
    if (node->kind == DOC_MAP)
        check_length(node, row, errs);
}

enum err_code known_load(const char *path, struct arena *arena, struct known *out,
                         struct errs *errs)
{
    const struct doc_node *node;
    struct known_row *rows;
    size_t before = errs->count, count;
    enum err_code rc;

    *out = (struct known){.path = path};
    if (!path)
        return ERR_NONE;
    rc = rows_load(path, &form, arena, &node, &count, errs);
    rows = ARENA_NEW(arena, count + 1, struct known_row);
    if (!rows)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the table of known faults");
    for (size_t i = 0; node; node = node->next)
        load_row(node, path, arena, &rows[i++], errs);
    out->rows = rows;
    out->count = count;
    return rc ? rc : errs->count > before ? ERR_CONFIG : ERR_NONE;
}

/* ---- use ------------------------------------------------------------------------------------- */

static bool fits(const char *glob, const char *text)
{
    return !glob || fnmatch(glob, text, 0) == 0;
}

bool known_is_about(const struct known_row *row, const char *provider, const char *device)
{
    return fits(row->provider, provider) && fits(row->device, device);
}

const struct known_row *known_find(const struct known *k, const char *provider, const char *device,
                                   const char *id, const int64_t v[AX_COUNT])
{
    for (size_t i = 0; i < k->count; i++) {
        const struct known_row *row = &k->rows[i];

        if (known_is_about(row, provider, device) && (!row->where || expr_eval(row->where, v)) &&
            fits(row->id, id))
            return row;
    }
    return NULL;
}

void known_mark(const struct known_row *row, struct record *r)
{
    bool news = r->verdict == VERDICT_PASS && row && !row->varies;
    bool told = r->verdict == VERDICT_FAIL && row && fits(row->says, r->reason);

    if (news || told)
        (void)snprintf(r->known, sizeof r->known, "%s", row->finding);
}
