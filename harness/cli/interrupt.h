/* interrupt.h - the first SIGINT or SIGTERM asks a command to stop and keep what is there; the
 * second one ends the program.
 */
#ifndef HARNESS_CLI_INTERRUPT_H
#define HARNESS_CLI_INTERRUPT_H

#include <signal.h>

/* 1 once a signal came; a command may set it to end its workers and loops alike. */
extern volatile sig_atomic_t interrupted;

void interrupt_catch(void);

/* A closed output or socket is then an error of its write, with a sentence. */
void interrupt_ignore_pipe(void);

#endif
