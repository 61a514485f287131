#include "harness/kernel/trial_slab.h"

#include "reference/fault.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 64 };

/* ---- parts ----------------------------------------------------------------------------------- */

#define PART(id, field, text) [id] = {text, offsetof(struct trial_call, field)}

/* clang-format off */
static const struct {
    const char *name;
    size_t offset;
} parts[PART_COUNT] = {
    PART(PART_INPUTS,         args.inputs,            "inputs"),
    PART(PART_INPUT_SCALE,    args.input_scale,       "input_scale"),
    PART(PART_WEIGHT,         weights.weight,         "weight"),
    PART(PART_WEIGHT_SCALE,   weights.weight_scale,   "weight_scale"),
    PART(PART_ZERO_POINT,     weights.zero_point,     "zero_point"),
    PART(PART_WEIGHT_SCALE_2, weights.weight_scale_2, "weight_scale_2"),
    PART(PART_BIAS,           weights.bias,           "bias"),
    PART(PART_LOCKS,          args.locks,             "locks"),
    PART(PART_SORTED_IDS,     args.sorted_ids,        "sorted_ids"),
    PART(PART_EXPERT_IDS,     args.expert_ids,        "expert_ids"),
    PART(PART_NUM_TOKENS_PADDED, args.num_tokens_padded, "num_tokens_padded"),
    PART(PART_EXPERT_LAYOUT,  args.expert_layout,     "expert_layout"),
    PART(PART_OUTPUTS,        args.outputs,           "outputs"),
};
/* clang-format on */

const char *trial_part_name(enum trial_part part)
{
    return parts[part].name;
}

struct hum_tensor *trial_tensor(struct trial_call *call, enum trial_part part)
{
    return (struct hum_tensor *)(void *)((char *)call + parts[part].offset);
}

static bool is_weight(enum trial_part part)
{
    return part >= PART_WEIGHT && part <= PART_BIAS;
}

/* ---- layout ---------------------------------------------------------------------------------- */

static void choose_order(const struct trial_options *o, struct trial_call *call, struct slab *s)
{
    bool placed = false;

    for (int i = 0; i < PART_OUTPUTS; i++) {
        enum trial_part part = (enum trial_part)i;

        if (trial_tensor(call, part)->bytes == 0 || (is_weight(part) && !o->own_weights))
            continue;
        if (s->count == o->outputs_at) {
            s->order[s->count++] = PART_OUTPUTS;
            placed = true;
        }
        s->order[s->count++] = part;
    }
    if (!placed)
        s->order[s->count++] = PART_OUTPUTS;
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void lay_out(const struct trial_options *o, struct trial_call *call, struct slab *s)
{
    size_t at = o->margin;

    choose_order(o, call, s);
    for (int i = 0; i < s->count; i++) {
        size_t bytes = trial_tensor(call, s->order[i])->bytes;

        s->at[s->order[i]] = at;
        s->size[s->order[i]] = bytes;
        at = aligned(at + bytes) + (i + 1 < s->count ? o->gap : 0);
    }
    s->bytes = at + o->margin;
}

/* ---- contents -------------------------------------------------------------------------------- */

/* `bytes` bytes of one code of the activations' format. */
static void repeat_code(const struct dtype *a, uint16_t code, uint8_t *to, size_t bytes)
{
    uint8_t low = (uint8_t)code, high = (uint8_t)(a->bits == 16 ? code >> 8 : code);

    if (a->bits == 4)
        low = high = (uint8_t)(code | code << 4);
    for (size_t i = 0; i < bytes; i++)
        to[i] = i % 2 ? high : low;
}

static void special_inputs(const struct dtype *a, int64_t row, uint8_t *to, size_t bytes)
{
    if (row == ROW_ZERO)
        repeat_code(a, 0, to, bytes);
    if (row == ROW_MINUS_ZERO)
        repeat_code(a, (uint16_t)(a->is_float ? 1u << (a->bits - 1) : 0u), to, bytes);
    if (row == ROW_NAN && a->top != DTYPE_TOP_FINITE)
        repeat_code(a, (uint16_t)dtype_encode(a, (double)NAN, DTYPE_SATURATE), to, bytes);
}

/* The rows that the launch has; those that no problem has are row 0 but for what makes them
 * special. */
static void gather(const struct trial *t, const struct trial_options *o, uint8_t *to)
{
    const struct trial_problem *p = t->shared;
    const struct hum_tensor *from = &p->tensors.inputs;
    size_t bytes = from->bytes / (size_t)from->shape[0];

    for (int64_t i = 0; i < o->m; i++, to += bytes) {
        int64_t row = o->rows ? o->rows[i] : i;

        memcpy(to, (const uint8_t *)from->data + bytes * (size_t)(row < 0 ? 0 : row), bytes);
        if (row < 0)
            special_inputs(p->q->ref.a, row, to, bytes);
    }
}

/* Their scales. What M-major ones are padded with stays poison: nothing may depend on it. */
static void gather_scales(const struct trial *t, const struct trial_options *o, uint8_t *to)
{
    const struct hum_tensor *from = &t->shared->tensors.input_scale;
    const bool m_major = t->compute.use_m_major_input_scale;
    const int64_t groups = from->shape[1];
    const float *scales = from->data;

    for (int64_t i = 0; i < o->m; i++)
        for (int64_t g = 0; g < groups; g++) {
            int64_t row = o->rows ? o->rows[i] : i;
            int64_t at = m_major ? g * trial_m_major_rows(o->m) + i : i * groups + g;
            float s = row == ROW_NAN ? (float)NAN : scales[(row < 0 ? 0 : row) * groups + g];

            memcpy(to + (size_t)at * sizeof s, &s, sizeof s);
        }
}

/* The host's copy of a routing tensor; NULL: the part is none. */
static const void *routing_data(const struct trial *t, enum trial_part part)
{
    const struct hum_tensor *tensors[PART_COUNT] = {
        [PART_SORTED_IDS] = &t->routing.sorted_ids,
        [PART_EXPERT_IDS] = &t->routing.expert_ids,
        [PART_NUM_TOKENS_PADDED] = &t->routing.num_tokens_padded,
        [PART_EXPERT_LAYOUT] = &t->routing.expert_layout,
    };

    return tensors[part] ? tensors[part]->data : NULL;
}

static bool write_part(struct trial *t, const struct trial_options *o, struct trial_call *call,
                       enum trial_part part, uint8_t *to)
{
    const struct hum_tensor *tensor = trial_tensor(call, part);

    if (part == PART_OUTPUTS)
        return true; /* poisoned already */
    if (is_weight(part))
        return device_read(&t->shared->device, to, tensor->data, tensor->bytes);
    if (part == PART_LOCKS) {
        memset(to, 0, tensor->bytes);
        if (o->locks == LOCKS_DIRTY)
            to[0] = to[tensor->bytes - 1] = 1;
        return true;
    }
    if (routing_data(t, part))
        memcpy(to, routing_data(t, part), tensor->bytes);
    else if (part == PART_INPUT_SCALE)
        gather_scales(t, o, to);
    else
        gather(t, o, to);
    return true;
}

static bool fill_image(struct trial *t, const struct trial_options *o, struct trial_call *call,
                       struct slab *s)
{
    memset(s->image, o->poison, s->bytes);
    for (int i = 0; i < s->count; i++)
        if (!write_part(t, o, call, s->order[i], s->image + s->at[s->order[i]]))
            return false;
    return true;
}

static bool fill_slab(struct trial *t, const struct trial_options *o, struct trial_call *call,
                      struct slab *s)
{
    struct device *d = &t->shared->device;
    void *base;

    s->image = device_host(d, s->bytes);
    if (!s->image || !fill_image(t, o, call, s))
        return false;
    if (!device_copy(d, s->image, s->bytes, &base))
        return false;
    s->base = base;
    for (int i = 0; i < s->count; i++)
        if (s->size[s->order[i]])
            trial_tensor(call, s->order[i])->data = s->base + s->at[s->order[i]];
    return true;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

/* Where byte `at` lies: inside a tensor, or behind the last one that begins before it. */
static void describe_byte(const struct slab *s, size_t at, char *out, size_t size)
{
    for (int i = s->count - 1; i >= 0; i--) {
        enum trial_part part = s->order[i];
        bool behind = at >= s->at[part] + s->size[part];

        if (at < s->at[part])
            continue;
        if (part == PART_OUTPUTS && !behind)
            (void)snprintf(out, size, "the kernel wrote its output although it refused");
        else
            (void)snprintf(out, size, "the kernel wrote outside its output: %s%s",
                           behind ? "behind " : "", parts[part].name);
        return;
    }
    (void)snprintf(out, size, "the kernel wrote outside its output: before %s",
                   parts[s->order[0]].name);
}

static size_t first_change(const struct slab *s, size_t begin, size_t end)
{
    if (memcmp(s->got + begin, s->image + begin, end - begin) == 0)
        return end;
    while (s->got[begin] == s->image[begin])
        begin++;
    return begin;
}

/* Rows of the output that no expert has stay as they were. */
static void look_for_stray_rows(const struct trial *t, const struct slab *s, struct trial_out *out)
{
    const struct routing *r = t->routed;
    size_t bytes = (size_t)t->shared->q->ref.n * 2;

    for (int64_t row = 0; r->type != HUM_GEMM_DENSE && row < r->rows; row++) {
        size_t at = s->at[PART_OUTPUTS] + (size_t)row * bytes;

        if (r->row_expert[row] >= 0 || first_change(s, at, at + bytes) == at + bytes)
            continue;
        (void)snprintf(out->damage, sizeof out->damage,
                       "the kernel wrote row %" PRId64 " of its output, which no expert has", row);
        return;
    }
}

static void look_for_damage(const struct trial *t, const struct slab *s, struct trial_out *out)
{
    size_t begin = s->at[PART_OUTPUTS];
    size_t end = begin + (out->code == HUM_OK ? s->size[PART_OUTPUTS] : 0);
    size_t at = first_change(s, 0, begin);

    if (at == begin)
        at = first_change(s, end, s->bytes);
    if (REF_FAULT(GUARD_NEVER_COMPARED))
        at = s->bytes;
    out->damage[0] = '\0';
    if (at != s->bytes)
        describe_byte(s, at, out->damage, sizeof out->damage);
    else if (out->code == HUM_OK)
        look_for_stray_rows(t, s, out);
}

bool slab_make(struct trial *t, const struct trial_options *o, struct trial_call *call,
               struct slab *s)
{
    lay_out(o, call, s);
    return fill_slab(t, o, call, s);
}

bool slab_refill(struct trial *t, const struct trial_options *o, struct trial_call *call, bool keep,
                 struct slab *s)
{
    if (!fill_image(t, o, call, s))
        return false;
    if (keep)
        memcpy(s->image + s->at[PART_OUTPUTS], s->got + s->at[PART_OUTPUTS], s->size[PART_OUTPUTS]);
    return device_write(&t->shared->device, s->base, s->image, s->bytes);
}

bool slab_look(struct trial *t, struct slab *s, struct trial_out *out)
{
    s->got = device_look(&t->shared->device, s->base, s->bytes);
    if (!s->got)
        return false;
    out->codes = (const uint16_t *)(const void *)(s->got + s->at[PART_OUTPUTS]);
    look_for_damage(t, s, out);
    return true;
}
