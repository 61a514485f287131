#include "harness/cli/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

void interrupt_catch(void)
{
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    (void)sigemptyset(&stop.sa_mask);
    (void)sigaction(SIGINT, &stop, NULL);
    (void)sigaction(SIGTERM, &stop, NULL);
}

void interrupt_ignore_pipe(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigemptyset(&ignore.sa_mask);
    (void)sigaction(SIGPIPE, &ignore, NULL);
}
