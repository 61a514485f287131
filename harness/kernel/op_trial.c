#include "harness/kernel/op_trial.h"

#include "harness/core/clock.h"
#include "reference/fault.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 64 };

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
}

static void forget_launch(struct op_trial *t)
{
    t->arena->used = t->mark;
    device_release(&t->device, 0);
}

void op_trial_close(struct op_trial *t)
{
    forget_launch(t);
}

struct op_options op_plain(void)
{
    return (struct op_options){.poison = 0xff, .gap = 256, .margin = 256, .moved = -1};
}

/* ---- the slab -------------------------------------------------------------------------------- */

struct slab {
    int order[OP_PARTS]; /* numbers of parts that have bytes */
    int count;
    size_t at[OP_PARTS], size[OP_PARTS]; /* by number of the part */
    size_t bytes;
    uint8_t *image; /* what lies there before the launch */
    uint8_t *base;  /* on the device */
    const uint8_t *got;
};

static void choose_order(const struct op_call *c, const struct op_options *o, struct slab *s)
{
    for (int i = 0; i < c->count; i++)
        if (c->parts[i].tensor.bytes && i != o->moved)
            s->order[s->count++] = i;
    if (o->moved < 0 || !c->parts[o->moved].tensor.bytes)
        return;
    for (int i = s->count; i > o->to; i--)
        s->order[i] = s->order[i - 1];
    s->order[o->to < s->count ? o->to : s->count] = o->moved;
    s->count++;
}

static void lay_out(const struct op_call *c, const struct op_options *o, struct slab *s)
{
    size_t at = o->margin;

    choose_order(c, o, s);
    for (int i = 0; i < s->count; i++) {
        const int part = s->order[i];

        s->at[part] = at;
        s->size[part] = c->parts[part].tensor.bytes;
        at = (at + s->size[part] + ALIGN - 1) / ALIGN * ALIGN + (i + 1 < s->count ? o->gap : 0);
    }
    s->bytes = at + o->margin;
}

/* An empty tensor that the contract wants has an address too. */
static void place_tensors(struct op_call *c, const struct slab *s)
{
    for (int i = 0; i < c->count; i++) {
        const struct op_part *p = &c->parts[i];
        struct hum_tensor t = p->tensor;

        t.data = t.bytes ? s->base + s->at[i] : NULL;
        memcpy(c->args + p->at, &t, sizeof t);
    }
}

static bool fill_slab(struct op_trial *t, struct op_call *c, const struct op_options *o,
                      struct slab *s)
{
    void *base;

    s->image = device_host(&t->device, s->bytes);
    if (!s->image)
        return false;
    memset(s->image, o->poison, s->bytes);
    for (int i = 0; i < s->count; i++) {
        const int part = s->order[i];

        if (c->parts[part].role != OP_OUT)
            memcpy(s->image + s->at[part], c->parts[part].tensor.data, s->size[part]);
    }
    if (!device_copy(&t->device, s->image, s->bytes, &base))
        return false;
    s->base = base;
    place_tensors(c, s);
    return true;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static size_t first_change(const struct slab *s, size_t begin, size_t end)
{
    if (begin == end || memcmp(s->got + begin, s->image + begin, end - begin) == 0)
        return end;
    while (s->got[begin] == s->image[begin])
        begin++;
    return begin;
}

/* The first byte from `begin` on that was changed although it lies in no output. */
static size_t first_outside(const struct op_call *c, const struct slab *s, bool accepted)
{
    size_t begin = 0;

    for (int i = 0; i < s->count; i++) {
        const int part = s->order[i];
        size_t at;

        if (!accepted || !op_part_is_written(&c->parts[part]))
            continue;
        at = first_change(s, begin, s->at[part]);
        if (at != s->at[part])
            return at;
        begin = s->at[part] + s->size[part];
    }
    return first_change(s, begin, s->bytes);
}

/* Where byte `at` lies: inside a tensor, or behind the last one that begins before it. */
static void describe_byte(const struct op_call *c, const struct slab *s, size_t at, char *out,
                          size_t size)
{
    const struct op_part *p = NULL;
    bool behind = false;

    for (int i = 0; i < s->count && at >= s->at[s->order[i]]; i++) {
        p = &c->parts[s->order[i]];
        behind = at >= s->at[s->order[i]] + s->size[s->order[i]];
    }
    if (!p)
        (void)snprintf(out, size, "%s wrote before its tensors", c->name);
    else if (behind)
        (void)snprintf(out, size, "%s wrote behind %s", c->name, p->name);
    else if (op_part_is_written(p))
        (void)snprintf(out, size, "%s wrote %s although it refused", c->name, p->name);
    else
        (void)snprintf(out, size, "%s changed its input %s", c->name, p->name);
}

/* Elements that are not to be written stay as they were. */
static void look_for_stray(const struct op_call *c, const struct slab *s, int part,
                           struct op_out *out)
{
    const struct op_part *p = &c->parts[part];
    const uint8_t *got = s->got + s->at[part], *image = s->image + s->at[part];
    const int64_t count = op_part_count(p);

    if (!op_part_is_written(p) || !p->want || out->damage[0])
        return;
    for (int64_t i = 0; i < count; i++)
        if (p->want[i] == OP_KEPT && op_element(p, got, i) != op_element(p, image, i)) {
            (void)snprintf(out->damage, sizeof out->damage,
                           "%s wrote element %" PRId64 " of %s, which is not to be written",
                           c->name, i, p->name);
            return;
        }
}

static void look_for_damage(const struct op_call *c, const struct slab *s, struct op_out *out)
{
    const bool accepted = out->code == HUM_OK;
    const size_t at = REF_FAULT(OP_GUARD_NEVER_COMPARED) ? s->bytes : first_outside(c, s, accepted);

    if (at != s->bytes)
        describe_byte(c, s, at, out->damage, sizeof out->damage);
    for (int i = 0; accepted && i < s->count; i++)
        look_for_stray(c, s, s->order[i], out);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* False: the harness could not run it, the reason is in t->device.reason. */
static bool launch(struct op_trial *t, const struct op_call *c, const struct op_options *o,
                   struct op_out *out)
{
    struct op_call call = *c;
    struct slab s = {0};
    double start;

    forget_launch(t);
    memset(out, 0, sizeof *out);
    lay_out(&call, o, &s);
    if (!fill_slab(t, &call, o, &s))
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
    s.got = device_look(&t->device, s.base, s.bytes);
    if (!s.got)
        return false;
    for (int i = 0; i < s.count; i++)
        out->got[s.order[i]] = s.got + s.at[s.order[i]];
    look_for_damage(c, &s, out);
    return true;
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
