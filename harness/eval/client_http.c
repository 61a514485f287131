#include "harness/eval/client_http.h"

#include "harness/report/escape.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BODY_FIRST = 4096, /* a reply of 512 tokens fits */
    BODY_KEEP = 65536, /* a buffer that grew beyond is given back after its job */
    /* Connections older than this are not used again: uvicorn closes idle ones after 5 s, and a
     * request that meets the closing is lost. */
    IDLE_MAX_S = 4,
    DNS_CACHE_S = 600
};

static size_t body_add(char *data, size_t size, size_t n, void *p)
{
    struct client_body *b = p;

    n *= size;
    if (n > b->limit - b->bytes) {
        b->over = true;
        return 0;
    }
    if (b->bytes + n + 1 > b->capacity) {
        size_t capacity = 2 * (b->bytes + n + 1);
        char *grown = realloc(b->data, capacity);

        if (!grown) {
            b->no_memory = true;
            return 0;
        }
        b->data = grown;
        b->capacity = capacity;
    }
    memcpy(b->data + b->bytes, data, n);
    b->bytes += n;
    b->data[b->bytes] = '\0';
    return n;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;

    if (!strcasecmp(host, "localhost") || !strcmp(host, "[::1]"))
        return true;
    return inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

/* A part of a URL; "" if it has none. Free with curl_free. */
static char *url_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(u, part, &text, 0) == CURLUE_OK ? text : NULL;
}

static enum err_code check_parts(struct client_target *t, CURLU *u, struct errs *errs)
{
    char *scheme = url_part(u, CURLUPART_SCHEME), *host = url_part(u, CURLUPART_HOST),
         *user = url_part(u, CURLUPART_USER), *password = url_part(u, CURLUPART_PASSWORD);
    bool is_http = scheme && !strcmp(scheme, "http"), is_https = scheme && !strcmp(scheme, "https");
    enum err_code rc = ERR_NONE;

    t->is_loopback = host && is_loopback(host);
    if (user || password) /* not repeated: it may be a password */
        rc = errs_add(errs, ERR_USAGE, NOWHERE,
                      "the URL holds a user or password; keys are given as the name of an "
                      "environment variable");
    else if (!is_http && !is_https)
        rc = errs_add(errs, ERR_USAGE, NOWHERE, "%s: not an http or https URL", t->url);
    else if (t->api_key && is_http && !t->is_loopback)
        rc =
            errs_add(errs, ERR_USAGE, NOWHERE,
                     "%s: a key is not sent over plain http to another machine; use https", t->url);
    curl_free(scheme);
    curl_free(host);
    curl_free(user);
    curl_free(password);
    return rc;
}

/* A key with a line break would write headers of its own. */
static bool is_key(const char *key)
{
    for (; *key; key++)
        if ((unsigned char)*key <= ' ' || (unsigned char)*key >= 0x7f)
            return false;
    return true;
}

enum err_code client_target_check(struct client_target *t, struct errs *errs)
{
    CURLU *u = curl_url();
    enum err_code rc = ERR_NONE;
    CURLUcode bad;

    if (!u)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a URL");
    bad = curl_url_set(u, CURLUPART_URL, t->url, CURLU_NON_SUPPORT_SCHEME);
    if (bad)
        rc = errs_add(errs, ERR_USAGE, NOWHERE, "%s: not a URL with a scheme (%s)", t->url,
                      curl_url_strerror(bad));
    else
        rc = check_parts(t, u, errs);
    curl_url_cleanup(u);
    if (t->api_key && (!*t->api_key || !is_key(t->api_key)))
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "the key is empty or holds characters that no key has");
    return rc;
}

enum err_code client_target_open(struct client_target *t, struct errs *errs)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return errs_add(errs, ERR_INFRA, NOWHERE, "libcurl cannot be started");
    t->headers = curl_slist_append(NULL, "Content-Type: application/json");
    t->parts = curl_url();
    t->share = curl_share_init();
    if (!t->headers || !t->share || !t->parts || curl_url_set(t->parts, CURLUPART_URL, t->url, 0) ||
        curl_share_setopt(t->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS) ||
        curl_share_setopt(t->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for an HTTP client");
    return ERR_NONE;
}

void client_target_close(struct client_target *t)
{
    (void)curl_share_cleanup(t->share);
    curl_slist_free_all(t->headers);
    curl_url_cleanup(t->parts);
    curl_global_cleanup();
    t->share = NULL;
    t->headers = NULL;
    t->parts = NULL;
}

static long milliseconds(double s)
{
    return s * 1e3 < 1 ? 1 : (long)(s * 1e3);
}

/* false if an option could not be set. The head of a request is kept short: libcurl puts it
 * together character by character, which is a third of what it does for a request. Gateways may
 * turn away who does not say his name; a server on this machine does not care. */
static bool set_options(CURL *e, const struct client_target *t)
{
    unsigned bad = 0;

    bad |= curl_easy_setopt(e, CURLOPT_CURLU, t->parts);
    bad |= curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    bad |= curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
    bad |= curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    bad |= curl_easy_setopt(e, CURLOPT_SHARE, t->share);
    bad |= curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, milliseconds(t->timeout_s));
    bad |= curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(t->connect_timeout_s));
    bad |= curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->max_body_bytes);
    bad |= curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, (long)IDLE_MAX_S);
    bad |= curl_easy_setopt(e, CURLOPT_DNS_CACHE_TIMEOUT, (long)DNS_CACHE_S);
    if (t->is_loopback)
        bad |= curl_easy_setopt(e, CURLOPT_PROXY, "");
    else
        bad |= curl_easy_setopt(e, CURLOPT_USERAGENT, "humcheck");
    if (t->api_key) {
        bad |= curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        bad |= curl_easy_setopt(e, CURLOPT_XOAUTH2_BEARER, t->api_key);
    }
    return !bad;
}

bool client_exchange_open(struct client_exchange *x, const struct client_target *t)
{
    *x = (struct client_exchange){.easy = curl_easy_init()};
    x->body.limit = t->max_body_bytes;
    x->body.data = malloc(BODY_FIRST);
    if (!x->easy || !x->body.data)
        return false;
    x->body.capacity = BODY_FIRST;
    x->body.data[0] = '\0';
    return set_options(x->easy, t) &&
           !curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->curl_error) &&
           !curl_easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, body_add) &&
           !curl_easy_setopt(x->easy, CURLOPT_WRITEDATA, (void *)&x->body);
}

void client_exchange_close(struct client_exchange *x)
{
    curl_easy_cleanup(x->easy);
    free(x->body.data);
    *x = (struct client_exchange){0};
}

void client_exchange_reset(struct client_exchange *x)
{
    struct client_body *b = &x->body;

    if (b->capacity > BODY_KEEP) {
        char *small = realloc(b->data, BODY_FIRST);

        if (small) {
            b->data = small;
            b->capacity = BODY_FIRST;
        }
    }
    b->bytes = 0;
    b->data[0] = '\0';
    b->over = b->no_memory = false;
    x->curl_error[0] = '\0';
}

void client_exchange_explain(const struct client_exchange *x, CURLcode code, char *buf, size_t size)
{
    char text[CURL_ERROR_SIZE + 64];

    if (x->body.no_memory)
        (void)snprintf(text, sizeof text, "no memory for the reply");
    else if (x->body.over || code == CURLE_FILESIZE_EXCEEDED)
        (void)snprintf(text, sizeof text, "the reply is longer than %zu bytes", x->body.limit);
    else
        (void)snprintf(text, sizeof text, "%s",
                       x->curl_error[0] ? x->curl_error : curl_easy_strerror(code));
    (void)escape_terminal(text, buf, size);
}

void client_redact(char *s, size_t bytes, const char *secret)
{
    size_t n = secret ? strlen(secret) : 0;

    if (!n)
        return;
    for (size_t i = 0; i + n <= bytes; i++)
        if (s[i] == secret[0] && !memcmp(s + i, secret, n))
            memset(s + i, '*', n);
}
