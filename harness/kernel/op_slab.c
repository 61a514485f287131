#include "harness/kernel/op_slab.h"

#include "reference/fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 64 };

static void choose_order(const struct op_call *c, const struct op_options *o, struct op_slab *s)
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

static void lay_out(const struct op_call *c, const struct op_options *o, struct op_slab *s)
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
static void place_tensors(struct op_call *c, const struct op_slab *s)
{
    for (int i = 0; i < c->count; i++) {
        const struct op_part *p = &c->parts[i];
        struct hum_tensor t = p->tensor;

        t.data = t.bytes ? s->base + s->at[i] : NULL;
        memcpy(c->args + p->at, &t, sizeof t);
    }
}

static void fill_image(const struct op_call *c, const struct op_options *o, struct op_slab *s)
{
    memset(s->image, o->poison, s->bytes);
    for (int i = 0; i < s->count; i++) {
        const int part = s->order[i];

        if (c->parts[part].role != OP_OUT)
            memcpy(s->image + s->at[part], c->parts[part].tensor.data, s->size[part]);
    }
}

bool op_slab_make(struct op_trial *t, struct op_call *c, const struct op_options *o,
                  struct op_slab *s)
{
    void *base;

    memset(s, 0, sizeof *s);
    lay_out(c, o, s);
    s->image = device_host(&t->device, s->bytes);
    if (!s->image)
        return false;
    fill_image(c, o, s);
    if (!device_copy(&t->device, s->image, s->bytes, &base))
        return false;
    s->base = base;
    place_tensors(c, s);
    return true;
}

bool op_slab_refill(struct op_trial *t, const struct op_call *c, const struct op_options *o,
                    bool keep, struct op_slab *s)
{
    fill_image(c, o, s);
    for (int i = 0; keep && i < s->count; i++) {
        const int part = s->order[i];

        if (c->parts[part].role == OP_OUT)
            memcpy(s->image + s->at[part], s->got + s->at[part], s->size[part]);
    }
    return device_write(&t->device, s->base, s->image, s->bytes);
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static size_t first_change(const struct op_slab *s, size_t begin, size_t end)
{
    if (begin == end || memcmp(s->got + begin, s->image + begin, end - begin) == 0)
        return end;
    while (s->got[begin] == s->image[begin])
        begin++;
    return begin;
}

/* The first byte from `begin` on that was changed although it lies in no output. */
static size_t first_outside(const struct op_call *c, const struct op_slab *s, bool accepted)
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
static void describe_byte(const struct op_call *c, const struct op_slab *s, size_t at, char *out,
                          size_t size)
{
    const struct op_part *p;
    bool behind = false;
    int part = -1;

    for (int i = 0; i < s->count && at >= s->at[s->order[i]]; i++) {
        part = s->order[i];
        behind = at >= s->at[part] + s->size[part];
    }
    if (part < 0) {
        (void)snprintf(out, size, "%s wrote before its tensors", c->name);
        return;
    }
    p = &c->parts[part];
    if (behind)
        (void)snprintf(out, size, "%s wrote behind %s", c->name, p->name);
    else if (op_part_is_written(p))
        (void)snprintf(out, size, "%s wrote %s although it refused", c->name, p->name);
    else
        (void)snprintf(out, size, "%s changed its input %s", c->name, p->name);
}

/* Elements that are not to be written stay as they were. */
static void look_for_stray(const struct op_call *c, const struct op_slab *s, int part,
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

static void look_for_damage(const struct op_call *c, const struct op_slab *s, struct op_out *out)
{
    const bool accepted = out->code == HUM_OK;
    const size_t at = REF_FAULT(OP_GUARD_NEVER_COMPARED) ? s->bytes : first_outside(c, s, accepted);

    if (at != s->bytes)
        describe_byte(c, s, at, out->damage, sizeof out->damage);
    for (int i = 0; accepted && i < s->count; i++)
        look_for_stray(c, s, s->order[i], out);
}

bool op_slab_look(struct op_trial *t, const struct op_call *c, struct op_slab *s,
                  struct op_out *out)
{
    s->got = device_look(&t->device, s->base, s->bytes);
    if (!s->got)
        return false;
    for (int i = 0; i < s->count; i++)
        out->got[s->order[i]] = s->got + s->at[s->order[i]];
    look_for_damage(c, s, out);
    return true;
}
