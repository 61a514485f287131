#include "harness/cli/commands.h"
#include "harness/cli/interrupt.h"
#include "harness/eval/replay_http.h"

#include <poll.h>

enum { PAUSE_MS = 100 };

/* clang-format off */
static const struct cli_option options[] = {
    {"port", OPT_COUNT, OPTION_AT(port), "P", NULL, 65535,
     "of 127.0.0.1; left out: one that is free, which is printed"},
};
/* clang-format on */

static int serve(struct store *from, int port, struct errs *errs)
{
    struct replay_http_counts counts;
    struct replay_http *server;

    interrupt_catch();
    interrupt_ignore_pipe();
    if (replay_http_open(from, port, &server, errs))
        return commands_failed(errs);
    (void)printf("http://127.0.0.1:%d\n", replay_http_port(server));
    (void)fflush(stdout);
    while (!interrupted)
        (void)poll(NULL, 0, PAUSE_MS);
    counts = replay_http_stop(server);
    (void)printf("%zu requests answered, %zu for prompts that are not recorded\n", counts.answered,
                 counts.unknown);
    replay_http_close(server);
    return 0;
}

static int run_replay_server(const struct options *o, struct arena *arena, struct errs *errs)
{
    struct store *from;
    int code;

    (void)arena;
    if (store_view(o->operands[0], &from, errs))
        return commands_failed(errs);
    code = serve(from, (int)o->port, errs);
    store_close(from);
    return code;
}

const struct command command_replay_server = {
    .name = "replay-server",
    .operands = "RUN",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_replay_server,
    .help = "serve the recorded answers of a run over HTTP, for other harnesses",
    .about = "RUN is a .sqlite file of humcheck eval. Requests are answered by their prompt alone; "
             "a prompt\n"
             "that is not recorded is 404. Serves until it is interrupted (exit code 0).\n",
};
