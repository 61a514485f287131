#include "harness/test/stub_server.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char usage[] =
    "usage: stub_server [OPTION]...\n"
    "An OpenAI-like server that knows the answers; prints \"port N\", and its counters at the "
    "end.\n"
    "  --port N            0: any free one (the default)\n"
    "  --latency-ms X      before each answer\n"
    "  --tokens N          length of an answer in words\n"
    "  --answers FILE      JSON lines with \"question\" and \"answer\"; otherwise the sum of the\n"
    "                      numbers in the last question is right\n"
    "  --wrong-permille N  share of the prompts that get a wrong answer\n"
    "  --seed N            of what goes wrong\n"
    "  --chaos LIST        what goes wrong, by name, or \"all\" (what a retry cures)\n"
    "  --chaos-permille N  share of the requests it happens to (1000)\n"
    "  --max-chaos N       times a prompt (2)\n"
    "  --retry-after N, --refuse-ms X, --trickle-ms X, --huge-bytes N\n"
    "  --drafts N          which each completion counts in /metrics (0: no such counter)\n"
    "  --accepted N        tokens of them that are accepted\n";

enum {
    OPT_PORT = 256,
    OPT_LATENCY,
    OPT_TOKENS,
    OPT_ANSWERS,
    OPT_WRONG,
    OPT_SEED,
    OPT_CHAOS,
    OPT_PERMILLE,
    OPT_MAX,
    OPT_RETRY,
    OPT_REFUSE,
    OPT_TRICKLE,
    OPT_HUGE,
    OPT_DRAFTS,
    OPT_ACCEPTED,
    OPT_HELP
};

static const struct option longs[] = {
    {"port", required_argument, NULL, OPT_PORT},
    {"latency-ms", required_argument, NULL, OPT_LATENCY},
    {"tokens", required_argument, NULL, OPT_TOKENS},
    {"answers", required_argument, NULL, OPT_ANSWERS},
    {"wrong-permille", required_argument, NULL, OPT_WRONG},
    {"seed", required_argument, NULL, OPT_SEED},
    {"chaos", required_argument, NULL, OPT_CHAOS},
    {"chaos-permille", required_argument, NULL, OPT_PERMILLE},
    {"max-chaos", required_argument, NULL, OPT_MAX},
    {"retry-after", required_argument, NULL, OPT_RETRY},
    {"refuse-ms", required_argument, NULL, OPT_REFUSE},
    {"trickle-ms", required_argument, NULL, OPT_TRICKLE},
    {"huge-bytes", required_argument, NULL, OPT_HUGE},
    {"drafts", required_argument, NULL, OPT_DRAFTS},
    {"accepted", required_argument, NULL, OPT_ACCEPTED},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static double number(const char *text, double most)
{
    char *end;
    double x = strtod(text, &end);

    if (end == text || *end || !(x >= 0 && x <= most)) {
        (void)fprintf(stderr, "stub_server: '%s' is not a number from 0 to %g\n", text, most);
        exit(2);
    }
    return x;
}

static void set(struct stub_options *o, int option, const char *text)
{
    switch (option) {
    case OPT_PORT:
        o->port = (int)number(text, 65535);
        break;
    case OPT_LATENCY:
        o->latency_ms = number(text, 1e6);
        break;
    case OPT_TOKENS:
        o->tokens = (int)number(text, 1e6);
        break;
    case OPT_ANSWERS:
        o->answers = text;
        break;
    case OPT_WRONG:
        o->wrong_permille = (int)number(text, 1000);
        break;
    case OPT_SEED:
        o->seed = (uint64_t)number(text, 1e15);
        break;
    case OPT_CHAOS:
        if (!stub_chaos_parse(text, &o->chaos)) {
            (void)fprintf(stderr, "stub_server: --chaos '%s': unknown; there are all", text);
            for (int i = 0; i < STUB_CHAOS_COUNT; i++)
                (void)fprintf(stderr, ", %s", stub_chaos_names[i]);
            (void)fputc('\n', stderr);
            exit(2);
        }
        break;
    case OPT_PERMILLE:
        o->chaos_permille = (int)number(text, 1000);
        break;
    case OPT_MAX:
        o->max_chaos = (int)number(text, 1e6);
        break;
    case OPT_RETRY:
        o->retry_after_s = (int)number(text, 3600);
        break;
    case OPT_REFUSE:
        o->refuse_ms = number(text, 1e6);
        break;
    case OPT_TRICKLE:
        o->trickle_ms = number(text, 1e6);
        break;
    case OPT_HUGE:
        o->huge_bytes = (size_t)number(text, 1e12);
        break;
    case OPT_DRAFTS:
        o->drafts = (int)number(text, 1e6);
        break;
    case OPT_ACCEPTED:
        o->accepted = (int)number(text, 1e6);
        break;
    case OPT_HELP:
        (void)fputs(usage, stdout);
        exit(0);
    }
}

static void print_stats(const struct stub_stats *s)
{
    (void)printf("connections %zu, at once %zu; requests %zu, at once %zu; others %zu\n",
                 s->connections, s->connections_most, s->requests, s->in_flight_most, s->others);
    for (int i = 0; i < STUB_CHAOS_COUNT; i++)
        if (s->chaos[i])
            (void)printf("  %-13s %zu\n", stub_chaos_names[i], s->chaos[i]);
}

int main(int argc, char **argv)
{
    struct stub_options o = stub_defaults;
    struct sigaction action = {.sa_handler = on_signal};
    struct rlimit files;
    struct stub_server *s;
    char why[256];
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (c == '?')
            return 2;
        set(&o, c, optarg);
    }
    if (optind < argc) {
        (void)fputs(usage, stderr);
        return 2;
    }
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    s = stub_open(&o, why, sizeof why);
    if (!s) {
        (void)fprintf(stderr, "stub_server: %s\n", why);
        return 3;
    }
    (void)printf("port %d\n", stub_port(s));
    (void)fflush(stdout);
    stub_run(s, &stopped);
    print_stats(stub_stats(s));
    stub_close(s);
    return 0;
}
