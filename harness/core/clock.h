/* clock.h - microseconds of the monotonic clock. */
#ifndef HARNESS_CORE_CLOCK_H
#define HARNESS_CORE_CLOCK_H

#include <time.h>

static inline double clock_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

#endif
