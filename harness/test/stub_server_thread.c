#include "harness/test/stub_server.h"

#include <stdio.h>
#include <stdlib.h>

static void *serve(void *p)
{
    struct stub_thread *t = p;

    stub_run(t->server, &t->stop);
    return NULL;
}

void stub_start(struct stub_thread *t, const struct stub_options *o)
{
    char why[256] = "no thread";

    *t = (struct stub_thread){.server = stub_open(o, why, sizeof why)};
    if (!t->server || pthread_create(&t->thread, NULL, serve, t)) {
        (void)fprintf(stderr, "stub_server: %s\n", why);
        abort();
    }
    (void)snprintf(t->base, sizeof t->base, "http://127.0.0.1:%d", stub_port(t->server));
    (void)snprintf(t->url, sizeof t->url, "%s/v1/completions", t->base);
}

const struct stub_stats *stub_stop(struct stub_thread *t)
{
    t->stop = 1;
    (void)pthread_join(t->thread, NULL);
    return stub_stats(t->server);
}
