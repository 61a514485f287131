/* client_world.h - jobs for the client whose right answers are known, for its tests.
 */
#ifndef HARNESS_TEST_CLIENT_WORLD_H
#define HARNESS_TEST_CLIENT_WORLD_H

#include "harness/eval/client.h"
#include "harness/test/stub_server.h"

enum { JOBS_MAX = 600, SMALL_BODY = 65536 };

/* What `done` was told of a job. */
struct got {
    char body[256];
    int times; /* that `done` was called */
    enum client_outcome outcome;
    int attempts;
    long status;
    double started_s, latency_s, total_s;
    unsigned long long number; /* after "####"; 0: none */
    char error[CLIENT_ERROR_TEXT];
};

struct job_world {
    struct got jobs[JOBS_MAX];
    size_t count, done;
    struct client_stats last;
    volatile sig_atomic_t interrupted;
    size_t interrupt_at_tick, ticks;
    size_t fail_at; /* `done` returns an error at so many; 0: never */
    bool is_chat;
};

/* Questions differ in their numbers, whose sum is 8 i + 3. A shot comes first, as in GSM8K. */
unsigned long long right_sum(size_t i);
void make_jobs(struct job_world *j, size_t count);

/* Limits for a server on this machine; waits of milliseconds. */
struct client_options options_for(const struct stub_thread *t, int concurrency);

/* client_run, with a judge that takes what is JSON, UTF-8 and has one choice. */
enum err_code run(const struct client_options *o, struct job_world *j, struct errs *errs);

/* The same; and the run must end well, and report each job once. */
void run_good(const struct client_options *o, struct job_world *j);

/* Every job has its own right answer: nothing lost, doubled or swapped. */
void assert_all_right(const struct job_world *j);

#endif
