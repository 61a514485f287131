/* recorder.h - for tests: the cpu provider, made to record launches and to replay them wrongly.
 *
 * A recording is a copy of the arguments; a replay is the same call again. A provider has no other
 * state than its handle's, and the cpu provider's handle has no room: one recording a process.
 */
#ifndef HARNESS_TEST_RECORDER_H
#define HARNESS_TEST_RECORDER_H

#include "kernels/abi/humming.h"

/* How replays are wrong. */
enum recorder_fault {
    RECORDER_RIGHT,
    RECORDER_STALE_INPUTS,  /* what is taken is what lay there when it was recorded: inputs, */
    RECORDER_STALE_SCALES,  /* input scales, */
    RECORDER_STALE_ROUTING, /* what tells the routing */
    RECORDER_OLD_TILE,      /* the first row tile stays as it was */
    RECORDER_NOTHING,       /* nothing is computed */
    RECORDER_ONCE,          /* nothing after the first */
    RECORDER_LOCK,          /* a lock stays behind */
    RECORDER_BESIDE,        /* a byte behind the outputs is written */
    RECORDER_REFUSES,       /* a replay is refused */
    RECORDER_UNABLE         /* the launch cannot be recorded */
};

/* Until the next call. */
const struct hum_provider *recorder_provider(enum recorder_fault fault);

#endif
