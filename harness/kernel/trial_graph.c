#include "harness/kernel/trial_graph.h"

#include "harness/core/clock.h"

#include <string.h>

static bool infra(const struct trial *t, struct finding *f)
{
    finding_give(f, VERDICT_INFRA, "%s", t->shared->device.reason);
    return false;
}

bool trial_capture(struct trial *t, const struct trial_options *o, struct trial_recording *r,
                   struct finding *f)
{
    char reason[HUM_REASON_BYTES] = "";
    enum hum_code code;

    memset(r, 0, sizeof *r);
    trial_forget_launch(t);
    if (!trial_make_call(t, o, &r->call) || !slab_make(t, o, &r->call, &r->slab))
        return infra(t, f);
    trial_enter(t, STAGE_LAUNCH);
    code = t->provider->capture(t->handle, reason);
    if (code == HUM_OK)
        code = t->provider->forward(t->handle, &r->call.args, reason);
    trial_enter(t, STAGE_JUDGE);
    return finding_well(code, "capture", reason, f);
}

static bool same_sizes(const struct trial_call *a, const struct trial_call *b)
{
    struct trial_call x = *a, y = *b;

    for (int i = 0; i < PART_COUNT; i++)
        if (trial_tensor(&x, (enum trial_part)i)->bytes !=
            trial_tensor(&y, (enum trial_part)i)->bytes)
            return false;
    return true;
}

bool trial_replay(struct trial *t, const struct trial_options *o, bool keep,
                  struct trial_recording *r, struct trial_out *out, struct finding *f)
{
    struct trial_call call;
    double start;

    memset(out, 0, sizeof *out);
    if (!trial_make_call(t, o, &call))
        return infra(t, f);
    if (!same_sizes(&call, &r->call)) {
        finding_give(f, VERDICT_INFRA, "a replay cannot have tensors of other sizes");
        return false;
    }
    if (!slab_refill(t, o, &call, keep, &r->slab))
        return infra(t, f);
    trial_enter(t, STAGE_LAUNCH);
    start = clock_us();
    out->code = t->provider->replay(t->handle, out->reason);
    out->kernel_us = clock_us() - start;
    trial_enter(t, STAGE_JUDGE);
    if (!finding_well(out->code, "replay", out->reason, f))
        return false;
    if (!slab_look(t, &r->slab, out))
        return infra(t, f);
    if (out->damage[0])
        finding_give(f, VERDICT_FAIL, "a replay: %s", out->damage);
    return !out->damage[0];
}

void trial_drop(struct trial *t)
{
    trial_enter(t, STAGE_LAUNCH);
    t->provider->drop(t->handle);
    trial_enter(t, STAGE_JUDGE);
}
