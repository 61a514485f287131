#include "harness/eval/client_retry.h"

#include <curl/curl.h>

/* Ranges of statuses (RFC 9110; 429: RFC 6585; 520 to 529 are what reverse proxies of hosted
 * services answer when the machine behind them is in trouble). What is not listed is final: the
 * same request would get the same answer. */
/* clang-format off */
static const struct {
    long first, last;
    enum client_next next;
} statuses[] = {
    {408, 408, CLIENT_AGAIN},       /* request timeout */
    {425, 425, CLIENT_AGAIN},       /* too early */
    {429, 429, CLIENT_AGAIN_LATER}, /* too many requests */
    {500, 500, CLIENT_AGAIN},
    {502, 502, CLIENT_AGAIN},
    {503, 503, CLIENT_AGAIN_LATER}, /* overloaded, or still loading */
    {504, 504, CLIENT_AGAIN},
    {520, 529, CLIENT_AGAIN},
};

/* Failures below HTTP that no repetition cures. All others (refused, reset, timeout, cut off, too
 * long, garbled, name not resolved) may pass, and a repeated greedy request does no harm. */
static const CURLcode final_codes[] = {
    CURLE_URL_MALFORMAT, CURLE_OUT_OF_MEMORY,
    CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
    CURLE_SSL_CIPHER,           CURLE_NOT_BUILT_IN,     CURLE_FAILED_INIT,
};
/* clang-format on */

enum client_next client_after_status(long status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (status >= statuses[i].first && status <= statuses[i].last)
            return statuses[i].next;
    return CLIENT_FINAL;
}

enum client_next client_after_transport(int code)
{
    for (size_t i = 0; i < sizeof final_codes / sizeof final_codes[0]; i++)
        if (code == (int)final_codes[i])
            return CLIENT_FINAL;
    return CLIENT_AGAIN;
}

/* The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

double client_backoff_s(const struct client_options *o, size_t index, int attempt,
                        double retry_after_s)
{
    uint64_t word = mix(mix(mix(o->seed) ^ (uint64_t)index) ^ (uint64_t)attempt);
    double u = (double)(word >> 11) * 0x1p-53; /* in [0, 1) */
    double most = o->backoff_base_s;

    if (retry_after_s > CLIENT_RETRY_AFTER_MAX_S)
        retry_after_s = CLIENT_RETRY_AFTER_MAX_S;
    if (retry_after_s > 0)
        return retry_after_s + u * most;
    for (int i = 1; i < attempt && most < o->backoff_cap_s; i++)
        most *= 2;
    return u * (most < o->backoff_cap_s ? most : o->backoff_cap_s);
}
