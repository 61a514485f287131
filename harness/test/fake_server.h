/* fake_server.h - model servers that are good, slow, lying, dying, or have children that hide.
 */
#ifndef HARNESS_TEST_FAKE_SERVER_H
#define HARNESS_TEST_FAKE_SERVER_H

/* Be the server of that kind (a row of the table in fake_server.c) at a port of 127.0.0.1. Each of
 * its processes adds its number to the file `pids`. Returns an exit code. */
int fake_server(const char *kind, const char *port, const char *pids);

void fake_sleep_ms(long ms);

#endif
