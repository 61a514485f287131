#include "harness/kernel/op_trial.h"

#include "harness/core/clock.h"
#include "harness/kernel/op_slab.h"
#include "harness/kernel/output_hash.h"
#include "reference/fault.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- describing a call ----------------------------------------------------------------------- */

void op_call_init(struct op_call *c, const char *name, const void *args, size_t size)
{
    memset(c, 0, sizeof *c);
    c->name = name;
    c->args_size = size;
    memcpy(c->args, args, size);
}

struct op_part *op_call_add(struct op_call *c, const char *name, size_t at, enum op_role role,
                            struct hum_tensor tensor, int bits)
{
    struct op_part *p = &c->parts[c->count++];

    *p = (struct op_part){
        .name = name, .at = at, .role = role, .tensor = tensor, .bits = tensor.bytes ? bits : 0};
    tensor.data = NULL;
    memcpy(c->args + at, &tensor, sizeof tensor);
    return p;
}

static struct hum_tensor dense(int32_t dtype, int32_t rank, const int64_t *shape, void *data)
{
    struct hum_tensor t = {.data = data, .dtype = dtype, .rank = rank};
    int64_t bits = hum_dtype_bits(dtype);

    for (int32_t i = 0; i < rank; i++) {
        t.shape[i] = shape[i];
        bits *= shape[i];
    }
    t.bytes = (size_t)bits / 8;
    return t;
}

struct hum_tensor op_tensor_1(int32_t dtype, int64_t size0, void *data)
{
    return dense(dtype, 1, &size0, data);
}

struct hum_tensor op_tensor_2(int32_t dtype, int64_t size0, int64_t size1, void *data)
{
    const int64_t shape[] = {size0, size1};

    return dense(dtype, 2, shape, data);
}

struct hum_tensor op_tensor_3(int32_t dtype, int64_t size0, int64_t size1, int64_t size2,
                              void *data)
{
    const int64_t shape[] = {size0, size1, size2};

    return dense(dtype, 3, shape, data);
}

struct hum_tensor op_tensor_of(const struct op_call *c, const struct op_part *p)
{
    struct hum_tensor t;

    memcpy(&t, c->args + p->at, sizeof t);
    return t;
}

uint32_t op_element(const struct op_part *p, const uint8_t *bytes, int64_t index)
{
    uint32_t wide = 0;

    if (p->bits == 4)
        return (uint32_t)bytes[index / 2] >> index % 2 * 4 & 15u;
    memcpy(&wide, bytes + index * (p->bits / 8), (size_t)p->bits / 8);
    return wide;
}

/* ---- life ------------------------------------------------------------------------------------ */

void op_trial_open(struct op_trial *t)
{
    t->device = (struct device){.provider = t->provider, .handle = t->handle, .arena = t->arena};
    t->mark = t->arena->used;
    t->hash = OUTPUT_HASH_NONE;
}

void op_forget_launch(struct op_trial *t)
{
    t->arena->used = t->mark;
    device_release(&t->device, 0);
}

void op_trial_close(struct op_trial *t)
{
    op_forget_launch(t);
}

struct op_options op_plain(void)
{
    return (struct op_options){.poison = 0xff, .gap = 256, .margin = 256, .moved = -1};
}

/* ---- launches -------------------------------------------------------------------------------- */

/* False: the harness could not run it, the reason is in t->device.reason. */
static bool launch(struct op_trial *t, const struct op_call *c, const struct op_options *o,
                   struct op_out *out)
{
    struct op_call call = *c;
    struct op_slab s;
    double start;

    op_forget_launch(t);
    memset(out, 0, sizeof *out);
    if (!op_slab_make(t, &call, o, &s))
        return false;
    if (o->change)
        o->change(&call, o->context);
    t->hooks->stage(t->hooks->context, t->index, STAGE_LAUNCH);
    start = clock_us();
    out->code =
        call.run(t->provider->ops, t->handle, call.without_args ? NULL : call.args, out->reason);
    out->kernel_us = clock_us() - start;
    t->hooks->stage(t->hooks->context, t->index, STAGE_JUDGE);
    if (out->code == HUM_DEVICE_LOST) /* and with it what the launch wrote */
        return true;
    return op_slab_look(t, c, &s, out);
}

static bool infra(const struct op_trial *t, struct finding *f)
{
    finding_give(f, VERDICT_INFRA, "%s", t->device.reason);
    return false;
}

bool op_run(struct op_trial *t, const struct op_call *c, const struct op_options *o,
            struct op_out *out, struct finding *f)
{
    if (!t->provider->ops || !c->is_there(t->provider->ops)) {
        finding_give(f, VERDICT_SKIP, "provider %s has no %s", t->provider->name, c->name);
        return false;
    }
    if (!launch(t, c, o, out))
        return infra(t, f);
    if (out->code == HUM_OK && !out->damage[0])
        return true;
    out->reason[sizeof out->reason - 1] = '\0';
    if (out->damage[0])
        finding_give(f, VERDICT_FAIL, "%s", out->damage);
    else if (out->code == HUM_UNSUPPORTED && out->reason[0])
        finding_give(f, VERDICT_SKIP, "%s", out->reason);
    else if (out->code == HUM_NO_MEMORY || out->code == HUM_DEVICE_LOST)
        finding_give(f, out->code == HUM_NO_MEMORY ? VERDICT_INFRA : VERDICT_FAIL, "%s failed: %s",
                     c->name, out->reason);
    else
        finding_give(f, VERDICT_FAIL, "%s refused a legal call: %s", c->name, out->reason);
    return false;
}

bool op_refuses(struct op_trial *t, const struct op_call *c, const struct op_options *o,
                bool unsupported, const char *what, struct finding *f)
{
    struct op_out out;
    const char *why;

    if (!launch(t, c, o, &out))
        return infra(t, f);
    f->compared++;
    why = out.code == HUM_OK ? "it was accepted"
          : out.damage[0]    ? out.damage
                             : refusal_fault(out.code, out.reason, unsupported);
    if (!why)
        return true;
    f->wrong++;
    finding_give(f, VERDICT_FAIL, "%s must refuse %s: %s", c->name, what, why);
    return false;
}

/* Elements from `first` on, `count` of them in `block`, about which nothing is required: zero. */
static void clear_open(const struct op_part *p, int64_t first, int64_t count, uint8_t *block)
{
    const uint32_t *want = p->want + first;
    const int bits = p->bits;
    int any = 0;

    for (int64_t i = 0; i < count; i++)
        any |= (want[i] == OP_KEPT) | (want[i] == REF_CODE_ANY);
    for (int64_t i = 0; any && i < count; i++)
        if (op_part_is_open(p, first + i)) {
            if (bits == 4)
                block[i / 2] &= i % 2 ? 0x0f : 0xf0;
            else
                memset(block + i * bits / 8, 0, (size_t)bits / 8);
        }
}

void op_hash(struct op_trial *t, const struct op_call *c, const struct op_out *out)
{
    uint8_t block[64]; /* whole words of the hash */

    for (int part = 0; part < c->count; part++) {
        const struct op_part *p = &c->parts[part];
        const size_t bytes = op_part_is_written(p) ? p->tensor.bytes : 0;

        for (size_t at = 0; at < bytes; at += sizeof block) {
            const size_t n = bytes - at < sizeof block ? bytes - at : sizeof block;

            memcpy(block, out->got[part] + at, n);
            if (p->want)
                clear_open(p, (int64_t)at * 8 / p->bits, (int64_t)n * 8 / p->bits, block);
            t->hash = output_hash_bytes(t->hash, block, n);
        }
    }
}

/* ---- judging --------------------------------------------------------------------------------- */

static double value_of(const struct op_part *p, uint32_t code)
{
    return p->type ? dtype_decode(p->type, code) : (double)code;
}

/* Neighbouring codes differ by 1; of formats with a sign bit, through zero. */
static double ordered(const struct op_part *p, uint32_t code)
{
    const uint32_t sign =
        p->type && p->type->is_float && p->type->is_signed ? UINT32_C(1) << (p->type->bits - 1) : 0;

    return code & sign ? -(double)(code & (sign - 1u)) : (double)code;
}

static bool same(const struct op_part *p, uint32_t got, uint32_t want)
{
    const bool both = p->type && isnan(dtype_decode(p->type, got)) &&
                      (isnan(dtype_decode(p->type, want)) || REF_FAULT(OP_COMPARE_NAN_PASSES));

    return got == want || both;
}

static void compare_element(const struct op_part *p, const uint8_t *got, int64_t index,
                            uint32_t want, struct finding *f)
{
    const uint32_t code = op_element(p, got, index);
    const int64_t width = p->width ? p->width : op_part_count(p);

    if (want == OP_KEPT)
        return;
    f->compared++;
    f->vacuous += want == REF_CODE_ANY;
    if (want == REF_CODE_ANY || same(p, code, want))
        return;
    f->wrong++;
    if (f->at_row >= 0)
        return;
    f->at_row = index / width;
    f->at_col = index % width;
    f->got_code = code;
    f->want_code = want;
    f->got = value_of(p, code);
    f->want = value_of(p, want);
    f->error = fabs(ordered(p, code) - ordered(p, want));
    (void)snprintf(f->note, sizeof f->note, "first wrong: %s", p->name);
}

void op_compare(const struct op_call *c, const struct op_out *out, struct finding *f)
{
    for (int part = 0; part < c->count; part++) {
        const struct op_part *p = &c->parts[part];
        const int64_t count = op_part_count(p);

        if (!op_part_is_written(p) || !p->want)
            continue;
        for (int64_t i = 0; i < count; i++)
            compare_element(p, out->got[part], i, p->want[i], f);
        if (REF_FAULT(OP_COMPARE_FIRST_ONLY))
            return;
    }
}
