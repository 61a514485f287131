#include "harness/kernel/op_contract.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const char *const fault_names[FAULTS] = {
    [FAULT_DTYPE] = "another format",      [FAULT_RANK] = "another rank",
    [FAULT_SIZE_0] = "another first size", [FAULT_SIZE_1] = "another second size",
    [FAULT_ROWS] = "one row fewer",        [FAULT_BYTES] = "bytes that contradict the shape",
    [FAULT_NO_DATA] = "no data",           [FAULT_MISALIGNED] = "misaligned data",
    [FAULT_MISSING] = "nothing",           [FAULT_EXTRA] = "a tensor that must be absent",
};
/* clang-format on */

const char *fault_name(enum fault fault)
{
    return fault_names[fault];
}

void fault_make(struct hum_tensor *t, enum fault fault, const struct hum_tensor *other)
{
    switch (fault) {
    case FAULT_DTYPE:
        t->dtype = t->dtype == HUM_F32 ? HUM_F16 : HUM_F32;
        return;
    case FAULT_RANK:
        if (t->rank < HUM_MAX_RANK)
            t->shape[t->rank++] = 1;
        else
            t->rank--;
        return;
    case FAULT_SIZE_0:
        t->shape[0]++;
        return;
    case FAULT_SIZE_1:
        t->shape[1]++;
        return;
    case FAULT_ROWS:
        t->bytes -= t->bytes / (size_t)t->shape[0];
        t->shape[0]--;
        return;
    case FAULT_BYTES:
        t->bytes -= 1;
        return;
    case FAULT_NO_DATA:
        t->data = NULL;
        return;
    case FAULT_MISALIGNED:
        t->data = (char *)t->data + 2;
        return;
    case FAULT_MISSING:
        memset(t, 0, sizeof *t);
        return;
    case FAULT_EXTRA:
        *t = *other;
        return;
    case FAULTS:
        return;
    }
}

struct tensor_fault {
    const struct op_part *part, *other; /* other: one that is there */
    enum fault fault;
};

static void spoil_tensor(struct op_call *call, const void *context)
{
    const struct tensor_fault *x = context;
    struct hum_tensor t = op_tensor_of(call, x->part), other = op_tensor_of(call, x->other);

    fault_make(&t, x->fault, &other);
    memcpy(call->args + x->part->at, &t, sizeof t);
}

/* Is this change of a tensor, present or not, against the contract? */
static bool is_fault(const struct op_part *p, enum fault fault)
{
    if (p->tensor.rank == 0)
        return fault == FAULT_EXTRA && !p->optional;
    if (fault == FAULT_EXTRA || p->tensor.bytes == 0)
        return false;
    return !(fault == FAULT_ROWS && p->free_rows) && !(fault == FAULT_MISSING && p->optional) &&
           !(fault == FAULT_SIZE_1 && p->tensor.rank < 2);
}

static const struct op_part *present_part(const struct op_call *c)
{
    int i = 0;

    while (i + 1 < c->count && !c->parts[i].tensor.bytes)
        i++;
    return &c->parts[i];
}

static bool tensors_refused(struct op_trial *t, const struct op_call *call, struct finding *f)
{
    struct op_options o = op_plain();
    char what[100];

    o.change = spoil_tensor;
    for (int i = 0; i < call->count; i++)
        for (int fault = 0; fault < FAULTS; fault++) {
            const struct op_part *part = &call->parts[i];
            const struct tensor_fault spoiled = {part, present_part(call), (enum fault)fault};

            if (!is_fault(part, spoiled.fault))
                continue;
            o.context = &spoiled;
            (void)snprintf(what, sizeof what, "%s with %s", part->name, fault_name(spoiled.fault));
            if (!op_refuses(t, call, &o, true, what, f))
                return false;
        }
    return true;
}

static void apply(unsigned char *at, const struct op_change *c)
{
    const bool add = c->how == OP_ADD;
    int32_t narrow;
    int64_t wide;
    float real;
    bool truth;

    switch (c->width) {
    case OP_BOOL:
        memcpy(&truth, at, sizeof truth);
        truth = add ? !truth : c->value > 0;
        memcpy(at, &truth, sizeof truth);
        return;
    case OP_INT32:
        memcpy(&narrow, at, sizeof narrow);
        narrow = (int32_t)c->value + (add ? narrow : 0);
        memcpy(at, &narrow, sizeof narrow);
        return;
    case OP_INT64:
        memcpy(&wide, at, sizeof wide);
        wide = (int64_t)c->value + (add ? wide : 0);
        memcpy(at, &wide, sizeof wide);
        return;
    case OP_F32:
        memcpy(&real, at, sizeof real);
        real = (float)c->value + (add ? real : 0.0f);
        memcpy(at, &real, sizeof real);
        return;
    }
}

static void change_field(struct op_call *call, const void *context)
{
    const struct op_change *c = context;

    apply(call->args + c->at, c);
}

static void leave_out_args(struct op_call *call, const void *context)
{
    (void)context;
    call->without_args = true;
}

static bool fields_refused(struct op_trial *t, const struct op_call *call, struct finding *f)
{
    struct op_options o = op_plain();

    o.change = change_field;
    for (int i = 0; i < call->change_count; i++) {
        const struct op_change *c = &call->changes[i];

        if (c->unless && c->unless(call->args))
            continue;
        o.context = c;
        if (!op_refuses(t, call, &o, true, c->what, f))
            return false;
    }
    o.change = leave_out_args;
    return op_refuses(t, call, &o, true, "absent arguments", f);
}

bool op_contract_holds(struct op_trial *t, const struct op_call *call, struct finding *f)
{
    return tensors_refused(t, call, f) && fields_refused(t, call, f);
}
