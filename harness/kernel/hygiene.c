#include "harness/kernel/hygiene.h"

#include "harness/kernel/trial.h"
#include "reference/fault.h"

#include <stdio.h>
#include <string.h>

enum { REPEATS = 8, LOCK_LAUNCHES = 5, WIDE_GAP = 4096 };

static const uint8_t other_poison = 0x5a; /* the first launch of a case has 0xff */

static void compare_row(const struct check_in *in, int64_t row, const uint16_t *got,
                        struct finding *f)
{
    const uint16_t *want = in->got + row * in->q->ref.n;
    int64_t n = in->q->ref.n;

    f->compared += (uint64_t)n;
    if (memcmp(got, want, (size_t)n * sizeof *got) == 0)
        return;
    for (int64_t j = 0; j < n; j++)
        if (got[j] != want[j])
            finding_code(f, in->q->ref.c, row, j, got[j], want[j]);
}

/* Launches; the rows that are written must be the case's, byte by byte (of the others trial.h takes
 * care). False: `f` has the verdict. */
static bool same_bytes(const struct check_in *in, const struct trial_options *o, const char *what,
                       struct finding *f)
{
    int64_t rows = problem_rows(in->q, in->launch->m);
    struct trial_out out;

    if (!trial_run(in->trial, o, &out, f))
        return false;
    for (int64_t i = 0; i < rows; i++)
        if (problem_writes(in->q, i))
            compare_row(in, i, out.codes + i * in->q->ref.n, f);
    if (f->wrong == 0)
        return true;
    finding_give(f, VERDICT_FAIL, "%llu outputs differ %s", (unsigned long long)f->wrong, what);
    return false;
}

static bool no_memory(struct finding *f)
{
    finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
    return false;
}

/* ---- deterministic --------------------------------------------------------------------------- */

/* A launch of other data (other rows of A for the same experts), of fewer rows every other time. */
static bool disturb(const struct check_in *in, struct mix *b, int repeat, struct finding *f)
{
    int64_t m = in->launch->m;
    size_t mark = in->scratch->used;
    struct mix_launch l;
    struct trial_options o;
    struct trial_out out;
    bool fine;

    b->count = repeat % 2 ? m : (m + 1) / 2;
    for (int64_t i = 0; i < m; i++)
        b->rows[i] = repeat % 4 == 3 ? ROW_NAN : (i + repeat) % m;
    fine = trial_mix(in->trial, b, in->scratch, &l, &o, f) && trial_run(in->trial, &o, &out, f);
    in->scratch->used = mark;
    return fine;
}

void check_deterministic(const struct check_in *in, struct finding *f)
{
    int64_t m = in->launch->m;
    struct trial_options o = trial_plain(m);
    struct mix b;
    bool fine = mix_make(&in->q->routing, m, 0, in->scratch, &b) || no_memory(f);
    int repeats = REF_FAULT(DETERMINISTIC_ONCE) ? 1 : REPEATS;

    for (int i = 0; fine && i < repeats; i++) {
        o.poison = i % 2 ? 0xff : other_poison;
        fine = (i < REPEATS / 2 || disturb(in, &b, i, f)) &&
               same_bytes(in, &o, "from one launch to the next", f);
    }
}

/* ---- alias ----------------------------------------------------------------------------------- */

enum over { AT_BEGIN, AT_END, OVER_BEGIN };

/* Outputs moved over another tensor. */
struct overlap {
    enum trial_part part;
    enum over place;
};

static void move_outputs(struct trial_call *call, const void *context)
{
    const struct overlap *x = context;
    const struct hum_tensor *onto = trial_tensor(call, x->part);
    struct hum_tensor *outputs = &call->args.outputs;
    uint8_t *data = onto->data;

    switch (x->place) {
    case AT_BEGIN:
        outputs->data = data;
        return;
    case AT_END: /* the last 64 bytes or fewer */
        outputs->data = data + (onto->bytes - 1) / 64 * 64;
        return;
    case OVER_BEGIN: /* the end of the outputs lies on the first bytes */
        outputs->data = data - (outputs->bytes - 1) / 64 * 64;
        return;
    }
}

/* Is the part there at all? */
static bool is_present(const struct check_in *in, enum trial_part part)
{
    const struct routing_tensors *routing = &in->trial->routing;
    struct trial_call call = {.weights = in->trial->shared->kernel_form};

    call.args.sorted_ids.bytes = routing->sorted_ids.bytes;
    call.args.expert_ids.bytes = routing->expert_ids.bytes;
    call.args.num_tokens_padded.bytes = routing->num_tokens_padded.bytes;
    call.args.expert_layout.bytes = routing->expert_layout.bytes;
    call.args.inputs.bytes = 1;
    call.args.input_scale.bytes = in->trial->shared->tensors.input_scale.bytes;
    call.args.locks.bytes = in->trial->tuning.use_stream_k;
    return trial_tensor(&call, part)->bytes > 0;
}

static bool overlaps_refused(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(in->launch->m);
    size_t bytes = (size_t)(problem_rows(in->q, in->launch->m) * in->q->ref.n) * sizeof *in->got;
    char what[64];

    o.own_weights = true;
    o.margin += (bytes + 63) / 64 * 64; /* where the outputs may reach */
    o.change = move_outputs;
    for (int part = 0; part < PART_OUTPUTS; part++)
        for (int place = AT_BEGIN; place <= OVER_BEGIN; place++) {
            struct overlap x = {(enum trial_part)part, (enum over)place};

            if (!is_present(in, x.part))
                continue;
            o.context = &x;
            (void)snprintf(what, sizeof what, "outputs that overlap %s", trial_part_name(x.part));
            if (!trial_refuses(in->trial, &o, false, what, f))
                return false;
        }
    return true;
}

void check_alias(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(in->launch->m);
    int present = 0;

    for (int part = 0; part < PART_OUTPUTS; part++)
        present += is_present(in, (enum trial_part)part);
    o.gap = REF_FAULT(ALIAS_APART) ? o.gap : 0;
    o.own_weights = true;
    o.poison = other_poison;
    for (o.outputs_at = 0; o.outputs_at <= present; o.outputs_at++)
        if (!same_bytes(in, &o, "when the outputs lie beside the other tensors", f))
            return;
    (void)overlaps_refused(in, f);
}

/* ---- guard ----------------------------------------------------------------------------------- */

void check_guard(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(in->launch->m);

    o.own_weights = true;
    o.gap = o.margin = WIDE_GAP;
    if (!same_bytes(in, &o, "from one launch to the next", f))
        return;
    o.poison = REF_FAULT(GUARD_ONE_POISON) ? o.poison : other_poison;
    o.outputs_at = 1;
    (void)same_bytes(in, &o,
                     "with what lay there before: they are not written, or something outside of "
                     "the tensors is read",
                     f);
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* Is any tile divided among slices, as far as the provider tells? */
static bool has_slices(const struct check_in *in)
{
    int64_t rows = problem_rows(in->q, in->launch->m);
    struct hum_accumulation s = {0};

    for (int64_t row = 0; row < rows; row = s.row_end) {
        s.row_end = row + 1;
        for (int64_t col = 0; problem_writes(in->q, row) && col < in->q->ref.n; col = s.col_end)
            if (!order_stated(in->launch, row, col, &s) || s.slices > 1 || s.row_end <= row ||
                s.col_end <= col)
                return true;
    }
    return false;
}

static bool locks_refused(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(in->launch->m);

    o.locks = LOCKS_SMALL;
    if (!trial_refuses(in->trial, &o, false, "fewer locks than tiles", f))
        return false;
    o.locks = LOCKS_DIRTY;
    if (!in->launch->provider->alloc && !trial_refuses(in->trial, &o, false, "dirty locks", f))
        return false;
    o.locks = LOCKS_ABSENT;
    return trial_refuses(in->trial, &o, false, "absent locks", f);
}

void check_locks(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(in->launch->m);
    bool needed = in->trial->tuning.use_stream_k;

    for (int i = 0; i < LOCK_LAUNCHES; i++) {
        o.poison = i % 2 ? 0xff : other_poison;
        o.locks = needed || i % 2 ? LOCKS_AS_NEEDED : LOCKS_ABSENT;
        if (!same_bytes(in, &o, "from one launch to the next", f))
            return;
    }
    if (needed && locks_refused(in, f) && !has_slices(in))
        finding_give(f, VERDICT_UNTRUSTED, "no tile is divided: the locks are never used");
}
