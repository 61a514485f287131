#include "harness/report/escape.h"
#include "harness/report/left.h"
#include "harness/report/report.h"
#include "harness/report/sink_file.h"
#include "harness/report/sinks.h"

#include <libxml/xmlwriter.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The attributes of an element count what is inside it, so the cases of each suite are written
 * to memory as they arrive and put into the file at the end. Dialect: what Buildkite,
 * action-junit-report, publish-unit-test-result and dorny all accept: one result element a case,
 * stable names with the numbers in the message, seconds with a dot. */

enum { TEXT_MAX = ESCAPE_GROWTH * RECORD_REPRO + 1 };

struct tally {
    unsigned long counts[VERDICT_COUNT];
    double seconds;
};

struct junit_suite {
    struct junit_suite *next;
    char name[64];
    struct tally tally;
    xmlBufferPtr body;
    xmlTextWriterPtr writer; /* into body */
};

struct junit {
    struct sink_file file;
    const struct run_info *run;
    bool no_timing;
    bool failed; /* an XML call failed, which means memory */
    struct tally tally;
    struct junit_suite *suites;
};

static const xmlChar *xml(const char *s)
{
    return (const xmlChar *)s;
}

static bool start(xmlTextWriterPtr w, const char *name)
{
    return xmlTextWriterStartElement(w, xml(name)) >= 0;
}

static bool end(xmlTextWriterPtr w)
{
    return xmlTextWriterEndElement(w) >= 0;
}

static bool attribute(xmlTextWriterPtr w, const char *name, const char *value)
{
    char clean[TEXT_MAX];

    return xmlTextWriterWriteAttribute(w, xml(name), xml(escape_xml(value, clean, sizeof clean))) >=
           0;
}

static bool attribute_count(xmlTextWriterPtr w, const char *name, unsigned long n)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%lu", n);
    return attribute(w, name, text);
}

static bool attribute_seconds(xmlTextWriterPtr w, double seconds)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%.6f", seconds);
    return attribute(w, "time", text);
}

static bool attribute_timestamp(xmlTextWriterPtr w, uint64_t started)
{
    char text[32];
    time_t t = (time_t)started;
    struct tm utc;

    if (!gmtime_r(&t, &utc) || !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc))
        return true;
    return attribute(w, "timestamp", text);
}

static enum err_code junit_open(const char *target, const struct report_options *o,
                                const struct run_info *run, void **self, struct errs *errs)
{
    struct junit *j = calloc(1, sizeof *j);
    enum err_code rc;

    if (!j)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the output '%s'", target);
    j->run = run;
    j->no_timing = o->no_timing;
    rc = sink_file_open(&j->file, target, errs);
    if (rc) {
        free(j);
        return rc;
    }
    *self = j;
    return ERR_NONE;
}

static struct junit_suite *suite_new(const char *name)
{
    struct junit_suite *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    s->body = xmlBufferCreate();
    s->writer = s->body ? xmlNewTextWriterMemory(s->body, 0) : NULL;
    if (s->writer && xmlTextWriterSetIndent(s->writer, 1) >= 0)
        return s;
    xmlFreeTextWriter(s->writer);
    xmlBufferFree(s->body);
    free(s);
    return NULL;
}

/* The suite's row, made when its first case arrives; NULL: no memory. */
static struct junit_suite *suite_of(struct junit *j, const char *name)
{
    struct junit_suite **p = &j->suites;

    while (*p && strcmp((*p)->name, name) != 0)
        p = &(*p)->next;
    if (!*p)
        *p = suite_new(name);
    return *p;
}

static double seconds_of(const struct record *r)
{
    double us = r->fill_us + r->reference_us + r->kernel_us + r->compare_us;

    return isfinite(us) && us > 0 ? us * 1e-6 : 0;
}

static bool write_details(xmlTextWriterPtr w, const struct record *r)
{
    char text[RECORD_WHERE + sizeof "\nrepro: " + sizeof r->repro];
    char clean[ESCAPE_GROWTH * sizeof text], where[RECORD_WHERE];
    const char *separator = record_where(r, where, sizeof where)[0] ? "\n" : "";

    (void)snprintf(text, sizeof text, "%s%srepro: %s", where, separator, r->repro);
    return xmlTextWriterWriteString(w, xml(escape_xml(text, clean, sizeof clean))) >= 0;
}

/* clang-format off */
static const struct {
    const char *element; /* NULL: a pass has none */
    bool details;
} results[] = {
    [VERDICT_PASS]      = {NULL,      false},
    [VERDICT_SKIP]      = {"skipped", false},
    [VERDICT_UNTRUSTED] = {"failure", true},
    [VERDICT_INFRA]     = {"error",   true},
    [VERDICT_FAIL]      = {"failure", true},
};
/* clang-format on */
_Static_assert(sizeof results / sizeof results[0] == VERDICT_COUNT, "one row a verdict");

/* A known fault is not to be looked at again, one that passes is: expected failures are `skipped`
 * in this dialect, and passes that were not expected are failures. */
static bool write_known(xmlTextWriterPtr w, const struct record *r)
{
    char text[sizeof r->known + sizeof r->reason + 64];
    bool fails = r->verdict == VERDICT_FAIL;

    (void)snprintf(text, sizeof text, "%s (%s)%s%s",
                   fails ? "known fault" : "known fault passes now", r->known,
                   r->reason[0] ? ": " : "", r->reason);
    return start(w, fails ? "skipped" : "failure") && attribute(w, "message", text) &&
           (fails || write_details(w, r)) && end(w);
}

static bool write_result(xmlTextWriterPtr w, const struct record *r)
{
    bool ok = true;

    if (record_known_fails(r) || record_known_passes(r))
        return write_known(w, r);
    if (!results[r->verdict].element)
        return true;
    ok = start(w, results[r->verdict].element);
    if (ok && results[r->verdict].details)
        ok = attribute(w, "type", verdict_name(r->verdict));
    ok = ok && attribute(w, "message", r->reason);
    if (ok && results[r->verdict].details)
        ok = write_details(w, r);
    return ok && end(w);
}

/* What an earlier run had instead. */
static bool write_change(xmlTextWriterPtr w, const struct record *r)
{
    char line[AGAINST_LINE], clean[ESCAPE_GROWTH * sizeof line];

    if (!against_line(r, line, sizeof line)[0])
        return true;
    return start(w, "system-out") &&
           xmlTextWriterWriteString(w, xml(escape_xml(line, clean, sizeof clean))) >= 0 && end(w);
}

static void count(struct tally *t, const struct record *r)
{
    enum verdict as = record_known_fails(r)    ? VERDICT_SKIP
                      : record_known_passes(r) ? VERDICT_FAIL
                                               : r->verdict;

    t->counts[as]++;
    t->seconds += seconds_of(r);
}

static enum err_code no_memory(struct junit *j, struct errs *errs)
{
    j->failed = true;
    return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the output '%s'", j->file.target);
}

static enum err_code junit_row(void *self, const struct record *r, struct errs *errs)
{
    struct junit *j = self;
    struct junit_suite *s = suite_of(j, r->suite);
    char classname[sizeof r->family + sizeof r->check];
    bool ok = s != NULL;

    (void)snprintf(classname, sizeof classname, "%s.%s", r->family, r->check);
    ok = ok && start(s->writer, "testcase") && attribute(s->writer, "classname", classname) &&
         attribute(s->writer, "name", r->id);
    if (ok && !j->no_timing)
        ok = attribute_seconds(s->writer, seconds_of(r));
    if (!ok || !write_result(s->writer, r) || !write_change(s->writer, r) || !end(s->writer))
        return no_memory(j, errs);
    count(&s->tally, r);
    count(&j->tally, r);
    return ERR_NONE;
}

/* name, tests, failures, errors, skipped, time, timestamp: of <testsuites> and of <testsuite>. */
static bool write_head(xmlTextWriterPtr w, const struct junit *j, const char *element,
                       const char *name, const struct tally *t)
{
    const unsigned long *n = t->counts;
    unsigned long tests = 0;
    bool ok;

    for (int v = 0; v < VERDICT_COUNT; v++)
        tests += n[v];
    ok = start(w, element) && attribute(w, "name", name) && attribute_count(w, "tests", tests) &&
         attribute_count(w, "failures", n[VERDICT_FAIL] + n[VERDICT_UNTRUSTED]) &&
         attribute_count(w, "errors", n[VERDICT_INFRA]) &&
         attribute_count(w, "skipped", n[VERDICT_SKIP]);
    if (ok && !j->no_timing)
        ok = attribute_seconds(w, t->seconds) && attribute_timestamp(w, j->run->started);
    return ok;
}

static bool write_property(xmlTextWriterPtr w, const char *name, const char *value)
{
    return start(w, "property") && attribute(w, "name", name) && attribute(w, "value", value) &&
           end(w);
}

/* Of the whole run, in each suite: cases that were left out are no results. */
static bool write_left(xmlTextWriterPtr w, const struct left *l)
{
    char name[64], count[64];

    if (!l || !l->cases)
        return true;
    (void)snprintf(count, sizeof count, "%zu of %zu cases", l->cases, l->of);
    (void)snprintf(name, sizeof name, "left out %s", l->why);
    return write_property(w, name, count);
}

static bool write_suite(xmlTextWriterPtr w, const struct junit *j, struct junit_suite *s)
{
    char host[256] = "";

    if (!write_head(w, j, "testsuite", s->name, &s->tally))
        return false;
    if (!j->no_timing && !gethostname(host, sizeof host - 1) && !attribute(w, "hostname", host))
        return false;
    xmlFreeTextWriter(s->writer); /* flushes it into s->body */
    s->writer = NULL;
    return start(w, "properties") && write_property(w, "program", j->run->program) &&
           write_property(w, "provider", j->run->provider) && write_left(w, j->run->left) &&
           end(w) && xmlTextWriterWriteRaw(w, xml("\n")) >= 0 &&
           xmlTextWriterWriteRaw(w, xmlBufferContent(s->body)) >= 0 && end(w);
}

/* Always content: libxml2 would print a failed write itself; the stream remembers it, and
 * sink_file_close makes it an error. */
static int write_bytes(void *stream, const char *bytes, int count)
{
    (void)fwrite(bytes, 1, (size_t)count, stream);
    return count;
}

static bool write_all(struct junit *j)
{
    xmlOutputBufferPtr out = xmlOutputBufferCreateIO(write_bytes, NULL, j->file.stream, NULL);
    xmlTextWriterPtr w = out ? xmlNewTextWriter(out) : NULL;
    bool ok;

    if (!w) {
        if (out)
            (void)xmlOutputBufferClose(out);
        return false;
    }
    (void)xmlTextWriterSetIndent(w, 1);
    ok = xmlTextWriterStartDocument(w, NULL, "UTF-8", NULL) >= 0 &&
         write_head(w, j, "testsuites", "humcheck", &j->tally);
    for (struct junit_suite *s = j->suites; ok && s; s = s->next)
        ok = write_suite(w, j, s);
    ok = ok && xmlTextWriterEndDocument(w) >= 0;
    xmlFreeTextWriter(w);
    return ok;
}

static void free_suites(struct junit *j)
{
    while (j->suites) {
        struct junit_suite *s = j->suites;

        j->suites = s->next;
        xmlFreeTextWriter(s->writer);
        xmlBufferFree(s->body);
        free(s);
    }
}

static enum err_code junit_close(void *self, enum verdict run, bool complete, struct errs *errs)
{
    struct junit *j = self;
    bool written = !j->failed && write_all(j);
    enum err_code rc = ERR_NONE, closed;

    (void)run;
    if (!written)
        rc = no_memory(j, errs);
    closed = sink_file_close(&j->file, complete && written, errs);
    free_suites(j);
    free(j);
    return rc ? rc : closed;
}

const struct sink sink_junit = {"junit", junit_open, junit_row, junit_close,
                                "JUnit XML, for CI systems"};
