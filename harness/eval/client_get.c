#include "harness/eval/client_http.h"

#include "harness/report/escape.h"

#include <stdio.h>
#include <string.h>

static void say(struct client_page *page, const char *why)
{
    (void)escape_terminal(why, page->error, sizeof page->error);
}

static bool get(const struct client_target *t, struct arena *arena, struct client_exchange *x,
                struct client_page *page)
{
    CURLcode code = curl_easy_perform(x->easy);
    char *body;

    if (code) {
        client_exchange_explain(x, code, page->error, sizeof page->error);
        return false;
    }
    body = arena_alloc(arena, x->body.bytes + 1, 1);
    if (!body) {
        say(page, "no memory for the reply");
        return false;
    }
    client_redact(x->body.data, x->body.bytes, t->api_key);
    memcpy(body, x->body.data, x->body.bytes + 1);
    page->body = body;
    page->bytes = x->body.bytes;
    (void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &page->status);
    return true;
}

bool client_get(const char *url, const char *api_key, double timeout_s, struct arena *arena,
                struct client_page *page)
{
    struct client_target t = {.url = url,
                              .api_key = api_key,
                              .timeout_s = timeout_s,
                              .connect_timeout_s = timeout_s,
                              .max_body_bytes = CLIENT_PAGE_MAX};
    struct client_exchange x = {0};
    struct errs errs = {0};
    bool came = false;

    *page = (struct client_page){.body = ""};
    if (client_target_check(&t, &errs)) {
        say(page, errs.items ? errs.items[0].text : "the URL cannot be used");
        errs_free(&errs);
        return false;
    }
    if (!client_target_open(&t, &errs) && client_exchange_open(&x, &t))
        came = get(&t, arena, &x, page);
    else
        say(page, "no memory for an HTTP client");
    client_exchange_close(&x);
    client_target_close(&t);
    errs_free(&errs);
    return came;
}
