#include "harness/report/against.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char changed[] = "changed";

/* ---- reading --------------------------------------------------------------------------------- */

/* Member `name` of a row: a text that fits. */
static bool get_text(const cJSON *row, const char *name, char *to, size_t size)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, name));

    if (!text || strlen(text) >= size)
        return false;
    memcpy(to, text, strlen(text) + 1);
    return true;
}

static bool get_verdict(const cJSON *row, enum verdict *out)
{
    char name[16];

    if (!get_text(row, "verdict", name, sizeof name))
        return false;
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (!strcmp(name, verdict_name((enum verdict)v))) {
            *out = (enum verdict)v;
            return true;
        }
    return false;
}

/* "0x0000000000005eed" */
static bool get_seed(const cJSON *row, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    char text[19];

    if (!get_text(row, "seed", text, sizeof text) || strncmp(text, "0x", 2) != 0 || !text[2] ||
        text[2 + strspn(text + 2, digits)])
        return false;
    *out = strtoull(text + 2, NULL, 16);
    return true;
}

static bool get_hash(const cJSON *row, struct against_case *out)
{
    out->hashed = cJSON_GetObjectItemCaseSensitive(row, "output_hash") != NULL;
    return !out->hashed || get_text(row, "output_hash", out->hash, sizeof out->hash);
}

bool against_read(const char *line, struct record *r, struct against_case *out)
{
    cJSON *row = cJSON_Parse(line);
    const cJSON *index = cJSON_GetObjectItemCaseSensitive(row, "index");
    bool ok = cJSON_IsNumber(index) && index->valuedouble >= 0 && index->valuedouble < 0x1p53;

    memset(r, 0, sizeof *r);
    *out = (struct against_case){.there = true};
    r->index = ok ? (uint64_t)index->valuedouble : 0;
    ok = ok && get_text(row, "case", r->id, sizeof r->id) &&
         get_text(row, "provider", r->provider, sizeof r->provider) && get_seed(row, &r->seed) &&
         get_verdict(row, &out->verdict) && get_hash(row, out);
    r->verdict = out->verdict;
    cJSON_Delete(row);
    return ok;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static const char *compare_bits(const struct against_case *before, const struct record *r)
{
    const bool here = r->output_hash[0] != '\0', there = before->hash[0] != '\0';

    if (!before->there)
        return "one_side";
    if (!before->hashed || (!here && !there))
        return "";
    if (here != there)
        return "one_side";
    return strcmp(r->output_hash, before->hash) == 0 ? "same" : changed;
}

static void count(const struct against_case *before, const struct record *r,
                  struct against_counts *c)
{
    const bool other = strcmp(r->bits, changed) == 0;

    c->compared += other || strcmp(r->bits, "same") == 0;
    c->changed += other;
    c->changed_passing += other && r->verdict == VERDICT_PASS && before->verdict == VERDICT_PASS;
    c->verdicts += before->there && r->verdict != before->verdict;
    c->one_side += strcmp(r->bits, "one_side") == 0;
    c->unknown += before->there && !before->hashed;
    c->neither += before->there && before->hashed && !r->bits[0];
}

void against_judge(const struct against_case *before, struct record *r,
                   struct against_counts *counts)
{
    const char *verdict = before->there ? verdict_name(before->verdict) : "";

    (void)snprintf(r->against_verdict, sizeof r->against_verdict, "%s", verdict);
    (void)snprintf(r->against_hash, sizeof r->against_hash, "%s", before->hash);
    (void)snprintf(r->bits, sizeof r->bits, "%s", compare_bits(before, r));
    count(before, r, counts);
}

/* ---- text ------------------------------------------------------------------------------------ */

const char *against_line(const struct record *r, char *buf, size_t size)
{
    const bool other = strcmp(r->bits, changed) == 0;
    const char *verdict = verdict_name(r->verdict), *why = "";
    char bits[64] = "";

    buf[0] = '\0';
    if (!r->against_verdict[0] || (!other && strcmp(r->against_verdict, verdict) == 0))
        return buf;
    if (other)
        (void)snprintf(bits, sizeof bits, "bits %s -> %s", r->against_hash, r->output_hash);
    else if (strcmp(r->bits, "one_side") == 0)
        (void)snprintf(bits, sizeof bits, "outputs only %s", r->output_hash[0] ? "now" : "before");
    else
        (void)snprintf(bits, sizeof bits, "%s",
                       r->bits[0] ? "the same bits" : "no bits to compare");
    if (other && strstr(r->kernel, "stream-k"))
        why = "; stream-k: equal launches may differ too";
    (void)snprintf(buf, size, "changed %s: %s -> %s, %s%s", r->id, r->against_verdict, verdict,
                   bits, why);
    return buf;
}

const char *against_summary(const struct against_run *run, char *buf, size_t size)
{
    const struct against_counts *c = &run->counts;
    const struct {
        uint64_t count;
        const char *what;
    } rest[] = {{c->neither, "without outputs on either side"},
                {c->unknown, "whose earlier record has no output_hash"}};
    size_t used;

    (void)snprintf(buf, size,
                   "against %s: %" PRIu64 " case%s compared, %" PRIu64 " with other bits (%" PRIu64
                   " of them pass on both sides), %" PRIu64 " verdict%s changed, %" PRIu64
                   " only on one side",
                   run->name, c->compared, c->compared == 1 ? "" : "s", c->changed,
                   c->changed_passing, c->verdicts, c->verdicts == 1 ? "" : "s", c->one_side);
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        used = strlen(buf);
        if (rest[i].count)
            (void)snprintf(buf + used, size - used, ", %" PRIu64 " %s", rest[i].count,
                           rest[i].what);
    }
    return buf;
}
