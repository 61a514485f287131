#include "harness/test/stub_server_parts.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* clang-format off */
const char *const stub_chaos_names[STUB_CHAOS_COUNT] = {
    [STUB_RIGHT] = "right",             [STUB_CLOSE] = "close",
    [STUB_TWICE] = "twice",             [STUB_TRICKLE] = "trickle",
    [STUB_REFUSE] = "refuse",           [STUB_HANG_UP] = "hang-up",
    [STUB_RESET] = "reset",             [STUB_STALL] = "stall",
    [STUB_TRUNCATED] = "truncated",     [STUB_SHORT] = "short",
    [STUB_GARBAGE] = "garbage",         [STUB_429] = "429",
    [STUB_429_SECONDS] = "429-seconds", [STUB_429_DATE] = "429-date",
    [STUB_503] = "503",                 [STUB_503_SECONDS] = "503-seconds",
    [STUB_500] = "500",                 [STUB_400] = "400",
    [STUB_NOT_JSON] = "not-json",       [STUB_BAD_UTF8] = "bad-utf8",
    [STUB_NULL] = "null",               [STUB_EMPTY] = "empty",
    [STUB_NO_CHOICES] = "no-choices",   [STUB_HUGE] = "huge",
    [STUB_HUGE_UNKNOWN] = "huge-unknown",
};
/* clang-format on */

/* 400 is final; a null or empty text is an answer of a model, and is not asked for again. */
const uint32_t stub_chaos_curable = ((1u << STUB_CHAOS_COUNT) - 1) & ~(1u << STUB_400) &
                                    ~(1u << STUB_NULL) & ~(1u << STUB_EMPTY) & ~(1u << STUB_RIGHT);

static bool name_bit(const char *name, size_t n, uint32_t *set)
{
    if (n == 3 && !memcmp(name, "all", n)) {
        *set |= stub_chaos_curable;
        return true;
    }
    for (int i = 0; i < STUB_CHAOS_COUNT; i++)
        if (strlen(stub_chaos_names[i]) == n && !memcmp(stub_chaos_names[i], name, n)) {
            *set |= 1u << i;
            return true;
        }
    return false;
}

bool stub_chaos_parse(const char *names, uint32_t *set)
{
    *set = 0;
    while (*names) {
        size_t n = strcspn(names, ",");

        if (!name_bit(names, n, set))
            return false;
        names += n + (names[n] == ',');
    }
    return true;
}

enum stub_chaos stub_chaos_pick(const struct stub_options *o, uint64_t prompt_hash, int before)
{
    uint64_t word = stub_mix(stub_mix(o->seed ^ prompt_hash) + (uint64_t)before);
    int count = 0, nth;

    if (!o->chaos || before >= o->max_chaos || (int)(word % 1000) >= o->chaos_permille)
        return STUB_RIGHT;
    for (int i = 0; i < STUB_CHAOS_COUNT; i++)
        count += (o->chaos >> i & 1) != 0;
    nth = (int)(stub_mix(word) % (uint64_t)count);
    for (int i = 0; i < STUB_CHAOS_COUNT; i++)
        if ((o->chaos >> i & 1) && nth-- == 0)
            return (enum stub_chaos)i;
    return STUB_RIGHT;
}

/* ---- replies ---- */

static const char *reason(int status)
{
    return status == 200   ? "OK"
           : status == 400 ? "Bad Request"
           : status == 404 ? "Not Found"
           : status == 429 ? "Too Many Requests"
           : status == 503 ? "Service Unavailable"
                           : "Internal Server Error";
}

static void head(struct stub_text *t, int status, const char *type, const char *more, size_t length)
{
    text_printf(t, "HTTP/1.1 %d %s\r\nserver: stub\r\n%scontent-type: %s\r\n", status,
                reason(status), more, type);
    text_printf(t, "content-length: %zu\r\n\r\n", length);
}

void stub_reply_status(struct stub_reply *r, int status, const char *type, const char *body)
{
    head(&r->text, status, type, "", strlen(body));
    text_add(&r->text, body, strlen(body));
}

void stub_reply_metrics(struct stub_reply *r, const struct stub_options *o,
                        const struct stub_stats *s, double started_s)
{
    struct stub_text t = {0};
    size_t answered = s->requests - s->in_flight;

    text_printf(&t, "process_start_time_seconds %.6f\n", started_s);
    text_printf(&t, "vllm:num_requests_running %zu\nvllm:request_success_total %zu\n", s->in_flight,
                answered);
    if (o->drafts)
        text_printf(&t,
                    "vllm:spec_decode_num_drafts_total{model_name=\"stub\"} %zu.0\n"
                    "vllm:spec_decode_num_accepted_tokens_total{model_name=\"stub\"} %zu.0\n",
                    answered * (size_t)o->drafts, answered * (size_t)o->accepted);
    text_printf(&t, "stub:connections_total %zu\nstub:connections_most %zu\n", s->connections,
                s->connections_most);
    text_printf(&t, "stub:requests_total %zu\nstub:in_flight_most %zu\n", s->requests,
                s->in_flight_most);
    stub_reply_status(r, 200, "text/plain", t.at);
    text_free(&t);
}

static void refuse_with(struct stub_reply *r, int status, const char *more)
{
    char body[160];

    (void)snprintf(body, sizeof body,
                   "{\"error\":{\"message\":\"stub: %s\",\"type\":\"stub\",\"code\":%d}}",
                   reason(status), status);
    head(&r->text, status, "application/json", more, strlen(body));
    text_add(&r->text, body, strlen(body));
}

/* A JSON string; bytes above 0x7f stand for themselves. */
static void add_string(struct stub_text *t, const char *s, size_t n)
{
    text_add(t, "\"", 1);
    for (size_t i = 0, from = 0; i <= n; i++) {
        unsigned char c = i < n ? (unsigned char)s[i] : '"';

        if (c != '"' && c != '\\' && c >= ' ')
            continue;
        text_add(t, s + from, i - from);
        from = i + 1;
        if (i < n)
            text_printf(t, "\\u%04x", c);
    }
    text_add(t, "\"", 1);
}

static void add_choice(struct stub_text *t, bool is_chat, const struct stub_text *answer,
                       enum stub_chaos chaos)
{
    static const char bad[] = "\xff\xc0\xaf\xed\xa0\x80";
    struct stub_text said = {0};

    text_printf(t, is_chat ? "{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
                           : "{\"index\":0,\"logprobs\":null,\"text\":");
    if (chaos == STUB_BAD_UTF8)
        text_add(&said, bad, sizeof bad - 1);
    if (chaos != STUB_EMPTY)
        text_add(&said, answer->at, answer->bytes);
    if (chaos == STUB_NULL)
        text_add(t, "null", 4);
    else
        add_string(t, said.at, said.bytes);
    text_printf(t, "%s,\"finish_reason\":\"%s\"}", is_chat ? "}" : "",
                chaos == STUB_NULL ? "length" : "stop");
    text_free(&said);
}

static void add_completion(struct stub_text *t, const struct stub_options *o, bool is_chat,
                           const struct stub_text *answer, enum stub_chaos chaos)
{
    text_printf(t,
                "{\"id\":\"%s-stub\",\"object\":\"%s\",\"created\":1700000000,\"model\":\"stub\","
                "\"choices\":[",
                is_chat ? "chatcmpl" : "cmpl", is_chat ? "chat.completion" : "text_completion");
    if (chaos != STUB_NO_CHOICES)
        add_choice(t, is_chat, answer, chaos);
    text_printf(t,
                "],\"usage\":{\"prompt_tokens\":100,\"total_tokens\":%d,\"completion_tokens\":%d}}",
                100 + o->tokens, o->tokens);
}

/* A date has whole seconds: the one that begins retry_after_s from now at the latest. */
static void retry_header(struct stub_reply *r, char *buf, size_t size, const struct stub_options *o,
                         enum stub_chaos chaos)
{
    struct timespec now;
    struct tm tm;
    time_t at;

    buf[0] = '\0';
    (void)clock_gettime(CLOCK_REALTIME, &now);
    at = now.tv_sec + o->retry_after_s;
    if (chaos == STUB_429_SECONDS || chaos == STUB_503_SECONDS) {
        r->retry_in_s = o->retry_after_s;
        (void)snprintf(buf, size, "retry-after: %d\r\n", o->retry_after_s);
    } else if (chaos == STUB_429_DATE && gmtime_r(&at, &tm)) {
        r->retry_in_s = (double)(at - now.tv_sec) - (double)now.tv_nsec * 1e-9;
        (void)strftime(buf, size, "retry-after: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
    }
}

/* Changes of a right reply whose head ends at `body`. */
static void spoil(struct stub_reply *r, const struct stub_options *o, enum stub_chaos chaos,
                  size_t body)
{
    struct stub_text *t = &r->text;

    if (chaos == STUB_CLOSE || chaos == STUB_TRUNCATED || chaos == STUB_HUGE_UNKNOWN)
        r->then = STUB_THEN_CLOSE;
    if (chaos == STUB_TRICKLE)
        r->piece = t->bytes / 8 + 1;
    if (chaos == STUB_TRUNCATED || chaos == STUB_RESET)
        t->bytes = body + (t->bytes - body) / 2;
    if (chaos == STUB_RESET)
        r->then = STUB_THEN_RESET;
    if (chaos == STUB_STALL) {
        t->bytes = body / 2;
        r->then = STUB_THEN_STALL;
    }
    if (chaos == STUB_HUGE || chaos == STUB_HUGE_UNKNOWN) {
        r->fill_at = body;
        r->fill = o->huge_bytes;
    }
    if (chaos == STUB_TWICE) {
        size_t n = t->bytes;

        text_add(t, "", 0);
        t->at = stub_grow(t->at, 2 * n);
        t->capacity = 2 * n;
        memcpy(t->at + n, t->at, n);
        t->bytes = 2 * n;
    }
}

static void answer_200(struct stub_reply *r, const struct stub_options *o, enum stub_chaos chaos,
                       bool is_chat, const struct stub_text *answer)
{
    struct stub_text body = {0};
    size_t length;

    add_completion(&body, o, is_chat, answer, chaos);
    length = body.bytes + (chaos == STUB_HUGE ? o->huge_bytes : 0);
    if (chaos == STUB_SHORT)
        length -= 20;
    if (chaos == STUB_HUGE_UNKNOWN)
        text_printf(&r->text, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
    else
        head(&r->text, 200, "application/json", "", length);
    length = r->text.bytes;
    text_add(&r->text, body.at, body.bytes);
    text_free(&body);
    spoil(r, o, chaos, length);
}

void stub_reply_completion(struct stub_reply *r, const struct stub_options *o,
                           enum stub_chaos chaos, bool is_chat, const struct stub_text *answer)
{
    static const int statuses[STUB_CHAOS_COUNT] = {
        [STUB_429] = 429, [STUB_429_SECONDS] = 429, [STUB_429_DATE] = 429, [STUB_503] = 503,
        [STUB_500] = 500, [STUB_503_SECONDS] = 503, [STUB_400] = 400};
    char more[80];

    if (statuses[chaos]) {
        retry_header(r, more, sizeof more, o, chaos);
        refuse_with(r, statuses[chaos], more);
    } else if (chaos == STUB_REFUSE) {
        r->refuse = true;
        r->then = STUB_THEN_RESET;
    } else if (chaos == STUB_HANG_UP) {
        r->then = STUB_THEN_CLOSE;
    } else if (chaos == STUB_GARBAGE) {
        text_printf(&r->text, "SSH-2.0-stub\r\n\r\nnot HTTP at all\r\n");
        r->then = STUB_THEN_CLOSE;
    } else if (chaos == STUB_NOT_JSON) {
        stub_reply_status(r, 200, "text/html", "<html><body>gateway is warming up</body></html>");
    } else {
        answer_200(r, o, chaos, is_chat, answer);
    }
}
