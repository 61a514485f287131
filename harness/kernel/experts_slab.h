/* experts_slab.h - the memory of one run of the pipeline: named places in one slab of device
 * memory, and what may change in it.
 *
 * Private to experts_run.c and experts_place.c.
 */
#ifndef HARNESS_KERNEL_EXPERTS_SLAB_H
#define HARNESS_KERNEL_EXPERTS_SLAB_H

#include "harness/kernel/device.h"
#include "harness/kernel/experts_run.h"

/* In this order in the slab. */
enum run_place {
    SLAB_INPUTS,
    SLAB_SCATTER,       /* (tokens, top_k) INT64: the row of a slot */
    SLAB_BACK,          /* (rows) INT32: the slot of a row */
    SLAB_EXPERT_LAYOUT, /* of process_input and both GEMMs */
    SLAB_TOPK_IDS,
    SLAB_TOPK_WEIGHTS,
    SLAB_SORTED_IDS, /* of gate_up, then of down */
    SLAB_EXPERT_IDS = SLAB_SORTED_IDS + LAYER_COUNT,
    SLAB_NUM_TOKENS_PADDED = SLAB_EXPERT_IDS + LAYER_COUNT,
    SLAB_KERNEL_FORM = SLAB_NUM_TOKENS_PADDED + LAYER_COUNT, /* five of gate_up, five of down */
    SLAB_TOKEN_SCALES = SLAB_KERNEL_FORM + 5 * LAYER_COUNT,
    SLAB_ENTERED = SLAB_TOKEN_SCALES + LAYER_COUNT, /* gathered rows of 16 bits */
    SLAB_ORDERED,
    SLAB_RESULT, /* outside of the workspaces */
    SLAB_BUFFER, /* each by itself: those of enum hum_buffer */
    SLAB_WORKSPACE = SLAB_BUFFER + HUM_BUFFER_COUNT,
    SLAB_COUNT = SLAB_WORKSPACE + 2
};

struct run_slab {
    struct {
        const void *contents; /* NULL: poison */
        size_t bytes, at;     /* bytes 0: not there */
    } place[SLAB_COUNT];
    size_t bytes;
    uint8_t *image, *device; /* what must be there now; where it is */
    bool *may;               /* a byte: the step at hand may write it */
};

/* experts_place.c: everything of a run in its places: sizes, contents and the routing tensors (in
 * `out`), all in d->arena. metas: of as many tokens. *slot_live: tokens x top_k, has the slot a
 * row? False: d->reason says why. */
bool run_slab_fill(struct run_slab *s, const struct experts_trial *t, const struct run_options *o,
                   const struct hum_buffer_meta metas[HUM_BUFFER_COUNT], struct device *d,
                   struct run_out *out, bool **slot_live);

/* Contents (or NULL) and size of a place, before run_slab_make. */
void run_slab_put(struct run_slab *s, int place, const void *contents, size_t bytes);
void run_slab_put_tensor(struct run_slab *s, int place, const struct hum_tensor *host);

/* Lays it out and uploads it. False: d->reason says why. */
bool run_slab_make(struct run_slab *s, struct device *d, uint8_t poison);

/* Poison from `at` on: what a step is to write must not be there before. False: d->reason says
 * why. */
bool run_slab_poison(struct run_slab *s, struct device *d, size_t at, size_t bytes, uint8_t poison);

/* Rows of `row_bytes` bytes from `at` on that the step at hand may write. mask NULL: all. */
void run_slab_allow(struct run_slab *s, size_t at, int64_t rows, size_t row_bytes,
                    const bool *mask);

/* Reads the slab back: what was not allowed must be the image still; the image becomes what is
 * there, and nothing is allowed. NULL, or where and what as a sentence in buf; *lost is set where
 * it could not be read (d->reason). */
const char *run_slab_look(struct run_slab *s, struct device *d, char *buf, size_t size, bool *lost);

#endif
