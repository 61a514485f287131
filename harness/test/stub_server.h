/* stub_server.h - a small OpenAI-like HTTP server for tests and benches, which can also misbehave.
 *
 * HTTP/1.1 with keep-alive on 127.0.0.1, one thread, epoll. It answers POST /v1/completions and
 * /v1/chat/completions, GET /health, /v1/models and /metrics. The right answer is a pure function
 * of the prompt (stub_answer), so the score of a client that loses, doubles or mixes up nothing is
 * known beforehand, whatever went wrong on the way.
 *
 * Misbehaviour is a function of (seed, prompt, how often this prompt came before), from the table
 * in stub_server_chaos.c; after `max_chaos` times a prompt gets its right answer.
 */
#ifndef HARNESS_TEST_STUB_SERVER_H
#define HARNESS_TEST_STUB_SERVER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happens to one request. Names for the command line: stub_chaos_names. */
enum stub_chaos {
    STUB_RIGHT,        /* the right answer, connection kept */
    STUB_CLOSE,        /* the right answer, then the connection is closed without notice */
    STUB_TWICE,        /* the right answer, sent two times */
    STUB_TRICKLE,      /* the right answer in pieces, trickle_ms apart */
    STUB_REFUSE,       /* reset, and no new connection is accepted for refuse_ms */
    STUB_HANG_UP,      /* closed before a byte of the reply */
    STUB_RESET,        /* reset in the middle of the body */
    STUB_STALL,        /* half of the head, then nothing more */
    STUB_TRUNCATED,    /* Content-Length says more than comes before the connection is closed */
    STUB_SHORT,        /* Content-Length says less than comes */
    STUB_GARBAGE,      /* not HTTP */
    STUB_429,          /* 429 */
    STUB_429_SECONDS,  /* 429, Retry-After: retry_after_s */
    STUB_429_DATE,     /* 429, Retry-After as an HTTP date */
    STUB_503,          /* 503 */
    STUB_503_SECONDS,  /* 503, Retry-After: retry_after_s */
    STUB_500,          /* 500 with an error object */
    STUB_400,          /* 400 with an error object */
    STUB_NOT_JSON,     /* 200 with a page of HTML */
    STUB_BAD_UTF8,     /* 200, the right answer with bytes that are not UTF-8 before it */
    STUB_NULL,         /* 200, the text is null, finish_reason "length" */
    STUB_EMPTY,        /* 200, the text is "" */
    STUB_NO_CHOICES,   /* 200, no choices */
    STUB_HUGE,         /* 200, huge_bytes of white space and then the answer */
    STUB_HUGE_UNKNOWN, /* the same without Content-Length, ended by closing */
    STUB_CHAOS_COUNT
};

extern const char *const stub_chaos_names[STUB_CHAOS_COUNT];

/* A bit of 1 << STUB_...: those that cannot change the score of a client that repeats. */
extern const uint32_t stub_chaos_curable;

/* "429,reset", "all" (the curable ones), "" (none) into bits; false: unknown name. */
bool stub_chaos_parse(const char *names, uint32_t *set);

struct stub_options {
    int port;            /* 0: any */
    double latency_ms;   /* from the last byte of a request to the first of its reply */
    int tokens;          /* length of an answer, in words; at least what the answer needs */
    const char *answers; /* JSON lines with "question" and "answer" (GSM8K's); NULL: sums */
    int wrong_permille;  /* share of the prompts whose answer is wrong by one */
    uint64_t seed;       /* of the misbehaviour and the wrong answers */
    uint32_t chaos;      /* which kinds; 0: none */
    int chaos_permille;  /* share of the requests that are met with one of them */
    int max_chaos;       /* times a prompt */
    int retry_after_s;
    double refuse_ms, trickle_ms;
    size_t huge_bytes;
    int drafts, accepted; /* what each completion adds to the counters of speculative decoding;
                             drafts 0: there are no such counters */
};

extern const struct stub_options stub_defaults;

struct stub_stats {
    size_t connections, connections_now, connections_most;
    size_t requests;                  /* completions */
    size_t others;                    /* all other requests */
    size_t in_flight, in_flight_most; /* completions being answered */
    size_t chaos[STUB_CHAOS_COUNT];
    size_t keyed;         /* requests with "Authorization: Bearer KEY" */
    double retry_early_s; /* how much too early a prompt came back after a Retry-After, at most */
};

struct stub_server;

/* NULL: `why` has a sentence. */
struct stub_server *stub_open(const struct stub_options *o, char *why, size_t size);
int stub_port(const struct stub_server *s);

/* Serve until *stop is not zero (noticed within 5 ms). */
void stub_run(struct stub_server *s, const volatile sig_atomic_t *stop);

const struct stub_stats *
stub_stats(const struct stub_server *s); /* not while another thread runs it */
void stub_close(struct stub_server *s);

/* The number that a prompt's right answer ends with, when there is no file of answers: the sum of
 * the whole numbers (without sign) in its last question, modulo 10^15. */
uint64_t stub_sum(const char *prompt);

/* ---- the same in a thread of a test ---- */

struct stub_thread {
    struct stub_server *server;
    pthread_t thread;
    volatile sig_atomic_t stop;
    char base[40], url[64]; /* "http://127.0.0.1:PORT", and with "/v1/completions" */
};

/* Ends the program with a sentence if there can be no server. */
void stub_start(struct stub_thread *t, const struct stub_options *o);

/* The counters, once it serves no more; then stub_close(t->server). */
const struct stub_stats *stub_stop(struct stub_thread *t);

#endif
