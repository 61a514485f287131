#include "harness/kernel/op_graph.h"

#include "harness/core/clock.h"

#include <string.h>

static bool infra(const struct op_trial *t, struct finding *f)
{
    finding_give(f, VERDICT_INFRA, "%s", t->device.reason);
    return false;
}

static void enter(const struct op_trial *t, enum stage stage)
{
    t->hooks->stage(t->hooks->context, t->index, stage);
}

bool op_capture(struct op_trial *t, const struct op_call *c, struct op_recording *r,
                struct finding *f)
{
    const struct op_options plain = op_plain();
    char reason[HUM_REASON_BYTES] = "";
    enum hum_code code;

    op_forget_launch(t);
    r->call = *c;
    if (!op_slab_make(t, &r->call, &plain, &r->slab))
        return infra(t, f);
    enter(t, STAGE_LAUNCH);
    code = t->provider->capture(t->handle, reason);
    if (code == HUM_OK)
        code = r->call.run(t->provider->ops, t->handle, r->call.args, reason);
    enter(t, STAGE_JUDGE);
    return finding_well(code, "capture", reason, f);
}

bool op_replay(struct op_trial *t, const struct op_call *c, const struct op_options *o, bool keep,
               struct op_recording *r, struct op_out *out, struct finding *f)
{
    double start;

    memset(out, 0, sizeof *out);
    if (!op_slab_refill(t, c, o, keep, &r->slab))
        return infra(t, f);
    enter(t, STAGE_LAUNCH);
    start = clock_us();
    out->code = t->provider->replay(t->handle, out->reason);
    out->kernel_us = clock_us() - start;
    enter(t, STAGE_JUDGE);
    if (!finding_well(out->code, "replay", out->reason, f))
        return false;
    if (!op_slab_look(t, c, &r->slab, out))
        return infra(t, f);
    if (out->damage[0])
        finding_give(f, VERDICT_FAIL, "a replay: %s", out->damage);
    return !out->damage[0];
}

void op_drop(struct op_trial *t)
{
    enter(t, STAGE_LAUNCH);
    t->provider->drop(t->handle);
    enter(t, STAGE_JUDGE);
}
