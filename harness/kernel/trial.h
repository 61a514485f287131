/* trial.h - one case at a provider: tuning, tensors and launches; every launch is looked at byte by
 * byte afterwards.
 *
 * A launch lays its tensors in one slab of device memory: inputs, input scales, routing tensors,
 * locks, outputs and, where asked for, the weights, in a chosen order, with gaps of a poison byte
 * before, between and behind them. After it, everything but the outputs must be what it was (locks
 * are zero before and after); of outputs, the rows that no expert has; of a refused launch, all of
 * them. Checks say what a launch is to look like (struct trial_options) and get what came of it
 * (struct trial_out).
 */
#ifndef HARNESS_KERNEL_TRIAL_H
#define HARNESS_KERNEL_TRIAL_H

#include "harness/kernel/checks.h"
#include "harness/kernel/device.h"
#include "harness/kernel/runner.h"

/* ---- what is shared -------------------------------------------------------------------------- */

/* What the cases of one problem share on the provider's side. */
struct trial_problem {
    const struct problem *q;
    struct problem_tensors tensors; /* host memory */
    struct device device;
    struct hum_weights kernel_form; /* device memory; once ready */
    bool ready;
    enum hum_mma_type made_for; /* of the kernel form: some providers have a layout for each */
    size_t bare_used;           /* `used` and `held` without the kernel form */
    int bare_held;
    size_t used; /* of the arena and of the device's buffers: what lives as long as the problem */
    int held;
};

/* Makes the standard tensors. NULL, or a sentence: memory is out (the arena's limit). */
const char *trial_prepare(struct trial_problem *p, const struct problem *q, struct arena *arena,
                          const struct hum_provider *provider, void *handle);
/* Releases the device memory of a problem. */
void trial_forget(struct trial_problem *p);

/* One case. Borrows everything; `mark` and `held` are where the memory of launches begins. */
struct trial {
    struct trial_problem *shared;
    const struct hum_provider *provider;
    void *handle;
    const int64_t *v; /* the case's axes */
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    const struct runner_hooks *hooks;
    size_t index;                   /* of the case, for the hooks */
    const struct routing *routed;   /* of the last launch: what was routed, */
    struct routing_tensors routing; /* and how a kernel was told, until the next; host memory */
    size_t mark;
    int held;
};

/* The tuning of v for m rows: what the case states, else the provider's heuristics; it must be
 * supported. False: `f` says why (skip: unsupported; fail: a legal configuration called
 * invalid). */
bool trial_tuning(const struct trial *t, int64_t m, struct hum_tuning_config *out,
                  struct finding *f);

/* Asks the provider; a crash there counts as the launch's. */
enum hum_code trial_supports(const struct trial *t, const struct hum_layer_config *layer,
                             const struct hum_compute_config *compute,
                             const struct hum_tuning_config *tuning, char reason[HUM_REASON_BYTES]);

/* `standard` (host memory) in kernel form, in device memory that lives as long as the problem,
 * or as the case when the problem is ready already. False: `f` says why. */
bool trial_transform(struct trial *t, const struct hum_weights *standard, struct hum_weights *out,
                     struct finding *f);

/* shared, provider, handle, v, hooks and index are set: fills the rest and makes the kernel form
 * unless the problem has it, for the same mma_type. False: `f` says why. To be closed either
 * way. */
bool trial_open(struct trial *t, struct finding *f);
void trial_close(struct trial *t);

/* The launch of m rows as order.h describes it; with experts, for as long as no other launch is
 * made. */
struct launch trial_describe(const struct trial *t, const struct hum_tuning_config *tuning,
                             int64_t m);

/* Output tiles of m rows: the locks that Stream-K may need. */
int64_t trial_tiles(const struct trial *t, const struct hum_tuning_config *tuning, int64_t m);

/* Numbers that M-major input scales have for each group (humming.h). */
static inline int64_t trial_m_major_rows(int64_t m)
{
    return (m + 3) / 4 * 4;
}

/* ---- launches -------------------------------------------------------------------------------- */

enum trial_part {
    PART_INPUTS,
    PART_INPUT_SCALE,
    PART_WEIGHT,
    PART_WEIGHT_SCALE,
    PART_ZERO_POINT,
    PART_WEIGHT_SCALE_2,
    PART_BIAS,
    PART_LOCKS,
    PART_SORTED_IDS,
    PART_EXPERT_IDS,
    PART_NUM_TOKENS_PADDED,
    PART_EXPERT_LAYOUT,
    PART_OUTPUTS,
    PART_COUNT
};
const char *trial_part_name(enum trial_part part); /* as in humming.h */

/* Rows of A that no problem has. Formats without NaN get a NaN input scale instead. */
enum { ROW_NAN = -1, ROW_ZERO = -2, ROW_MINUS_ZERO = -3 };

enum trial_locks {
    LOCKS_AS_NEEDED, /* zeros, with Stream-K; else absent */
    LOCKS_DIRTY,     /* the first and the last are not zero */
    LOCKS_SMALL,     /* one fewer than there are tiles */
    LOCKS_ABSENT
};

/* Everything a launch hands over, writable, before it is handed over. `args` points at the other
 * members. */
struct trial_call {
    struct hum_layer_config layer;
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    struct hum_weights weights;
    struct hum_gemm_args args;
    bool without_args; /* forward gets NULL */
};

struct hum_tensor *trial_tensor(struct trial_call *call, enum trial_part part);

struct trial_options {
    int64_t m;                     /* rows; may be 0 */
    const struct routing *routing; /* with experts, of m rows of A; NULL: the problem's */
    const int64_t *rows; /* m entries: rows of the problem or ROW_NAN, ...; NULL: 0, 1, ... */
    uint8_t poison;      /* every byte of outputs and gaps */
    size_t gap;          /* bytes between tensors, a multiple of 64; 0: only what alignment needs */
    size_t margin;       /* bytes before the first and behind the last, a multiple of 64 */
    int outputs_at; /* how many tensors of the slab lie before the outputs, if there are so many */
    bool own_weights; /* the slab holds copies of the weights */
    enum trial_locks locks;
    const struct hum_tuning_config *tuning; /* NULL: the trial's */
    const struct hum_weights *weights;      /* kernel form in device memory; NULL: the problem's */
    /* values of routing tensors, before the launch gets them; NULL: none */
    void (*spoil)(struct routing_tensors *tensors, const void *context);
    void (*change)(struct trial_call *call, const void *context); /* NULL: none */
    const void *context;
};

/* m rows of the problem with 0xff (a NaN in f16 and bf16) in outputs and gaps of 256 bytes,
 * outputs last. */
struct trial_options trial_plain(int64_t m);

struct trial_out {
    enum hum_code code;
    char reason[HUM_REASON_BYTES];
    /* Rows of the output x n, until the next launch; poison where the launch was refused. */
    const uint16_t *codes;
    char damage[160]; /* "", or what changed that must not, as a sentence */
    double kernel_us;
};

/* False: the harness could not run it, the reason is in shared->device.reason. */
bool trial_launch(struct trial *t, const struct trial_options *o, struct trial_out *out);

/* The plain launch of a mix; rows left over are ROW_NAN. `l` holds what `o` points at, in
 * `arena`. False: `f` says that memory is out. */
bool trial_mix(const struct trial *t, const struct mix *b, struct arena *arena,
               struct mix_launch *l, struct trial_options *o, struct finding *f);

/* Launches and requires HUM_OK without damage; false: `f` says what happened. */
bool trial_run(struct trial *t, const struct trial_options *o, struct trial_out *out,
               struct finding *f);

/* Launches and requires HUM_INVALID (or, with `unsupported`, HUM_UNSUPPORTED), one sentence, and
 * nothing written; false: `f` says what happened, `what` is what should have been refused. */
bool trial_refuses(struct trial *t, const struct trial_options *o, bool unsupported,
                   const char *what, struct finding *f);

#endif
