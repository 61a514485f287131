/* experts_run.h - the experts pipeline at a provider: its steps composed of the provider's
 * functions, every one looked at byte by byte afterwards.
 *
 * A run lays everything (tokens, routing tensors, weights in kernel form, token scales, buffers,
 * result) in one slab of device memory with gaps of a poison byte. The buffers that the contract
 * names stand where buffer_metas puts them, in workspace1 and workspace2, or each in a place of its
 * own; what a form needs beside them (rows gathered for 16-bit activations, rows put back into the
 * order of the slots) is the caller's own memory. Steps (those that a form has no use for are left
 * out):
 *
 *   enter     tokens to rows of gate_up: quantized, and grouped: scattered, batched: padded
 *   gate_up   GEMM
 *   activate  the activation, to format c
 *   quantize  to format a, with a scale a row
 *   down      GEMM
 *   order     grouped: routed rows back to token * top_k + slot
 *   sum       not batched: the weighted sum
 *
 * After each step everything but the rows it writes must be what it was.
 */
#ifndef HARNESS_KERNEL_EXPERTS_RUN_H
#define HARNESS_KERNEL_EXPERTS_RUN_H

#include "harness/kernel/checks.h"
#include "harness/kernel/device.h"
#include "harness/kernel/experts.h"
#include "harness/kernel/order.h"
#include "harness/kernel/runner.h"

enum experts_step {
    STEP_ENTER,
    STEP_GATE_UP,
    STEP_ACTIVATE,
    STEP_QUANTIZE,
    STEP_DOWN,
    STEP_ORDER,
    STEP_SUM,
    STEP_COUNT
};
const char *experts_step_name(enum experts_step step);

/* Does a pipeline have this step? */
bool experts_has(const struct experts *x, enum experts_step step);

/* The last step that a pipeline has, and the one before `step` (STEP_COUNT: the tokens). */
enum experts_step experts_last(const struct experts *x);
enum experts_step experts_before(const struct experts *x, enum experts_step step);

/* What a step has left: a code an element, host memory. */
struct step_data {
    bool there;
    int64_t rows, cols;
    const struct dtype *t;
    uint32_t *codes;
    uint32_t *scales; /* rows f32 patterns of the token scales; NULL without */
    const bool *live; /* rows that mean something; NULL: all */
};

struct experts_trial {
    const struct experts *x;
    const struct hum_provider *provider;
    void *handle;
    struct arena *arena; /* of runs and their results */
    const struct runner_hooks *hooks;
    size_t index;   /* of the case */
    uint32_t rules; /* of the provider (semantics.h) */
    struct hum_compute_config compute;
    struct hum_tuning_config tuning[LAYER_COUNT];
    struct hum_weights kernel_form[LAYER_COUNT]; /* host copies */
    struct hum_buffer_meta metas[HUM_BUFFER_COUNT];
    double kernel_us; /* of the last run */
    uint64_t hash;    /* of the first one that ended well; output_hash.h */
};

/* x, provider, handle, hooks and index are set: asks for tunings, kernel forms (in `arena`, which
 * must be warm for as long as the trial) and buffers, and compares these with the oracle's. False:
 * `f` says why (skip: the provider lacks a function or does not support a layer). */
bool experts_open(struct experts_trial *t, struct arena *arena, struct finding *f);

/* buffer_metas for m tokens of each of so many dispatchers (more than one matters to the batched
 * form alone), compared with the oracle's. False: `f` says what differs. */
bool experts_metas(const struct experts_trial *t, int64_t m, int64_t dispatchers,
                   struct hum_buffer_meta out[HUM_BUFFER_COUNT], struct finding *f);

struct run_options {
    const struct batch *batch;
    uint8_t poison;        /* every byte that is not given */
    bool shared;           /* buffers in the two workspaces; else each in its own place */
    bool result_in_shared; /* the result, too, lies where buffer_metas puts it; else in a place of
                             * its own */
};

struct run_out {
    struct step_data step[STEP_COUNT];
    struct routing_tensors routing[LAYER_COUNT];
    bool refused; /* a step's function did not return HUM_OK */
};

/* Everything in `out` lives in t->arena until it is reset. False: `f` says what happened. */
bool experts_run(struct experts_trial *t, const struct run_options *o, struct run_out *out,
                 struct finding *f);

#endif
