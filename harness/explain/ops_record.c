#include "harness/explain/ops_record.h"

#include "harness/explain/ops_buffers.h"
#include "harness/kernel/device.h"
#include "reference/codec16.h"

#include <string.h>

/* ---- tensors --------------------------------------------------------------------------------- */

struct hum_tensor ops_tensor_of(const struct ops_operation *op, const void *args, int i)
{
    struct hum_tensor t;

    memcpy(&t, (const uint8_t *)args + op->tensors[i].at, sizeof t);
    return t;
}

uint32_t ops_element(const uint8_t *bytes, int bits, int64_t i)
{
    uint32_t code = 0;

    if (bits == 4)
        return (uint32_t)bytes[i / 2] >> i % 2 * 4 & 15u;
    memcpy(&code, bytes + i * (bits / 8), (size_t)bits / 8);
    return code;
}

float *ops_values(const struct hum_tensor *t, struct arena *arena)
{
    const struct dtype *format = dtype_find_id(t->dtype, false);
    const int64_t count = (int64_t)t->bytes * 8 / format->bits;
    float *out = arena_alloc(arena, (size_t)count + 1, sizeof *out);

    if (out && format->bits == 16) {
        codec16_decode_f32(format, t->data, out, (size_t)count);
        return out;
    }
    for (int64_t i = 0; out && i < count; i++) {
        const uint32_t code = ops_element(t->data, format->bits, i);

        if (format->bits == 32) /* NaN keep their payload */
            memcpy(&out[i], &code, sizeof code);
        else
            out[i] = (float)dtype_decode(format, code);
    }
    return out;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* The bytes of a tensor of the call, as they are now. NULL: memory is out, or the device is. */
static uint8_t *copy_of(struct ops_recorder *r, const struct hum_tensor *t, struct arena *arena)
{
    struct device d = {.provider = r->real, .handle = r->handle, .arena = arena};
    uint8_t *to = device_host(&d, t->bytes + 8);

    return to && device_read(&d, to, t->data, t->bytes) ? to : NULL;
}

static uint32_t *elements_of(struct ops_recorder *r, const struct hum_tensor *t,
                             const struct ops_output *out)
{
    uint32_t *codes = arena_alloc(r->arena, (size_t)out->count + 1, sizeof *codes);
    const size_t mark = r->scratch->used;
    const uint8_t *bytes = copy_of(r, t, r->scratch);

    for (int64_t i = 0; codes && bytes && i < out->count; i++)
        codes[i] = ops_element(bytes, out->bits, i);
    r->scratch->used = mark;
    return bytes ? codes : NULL;
}

static bool add_output(struct ops_recorder *r, struct ops_seen *s, const void *args, int tensor)
{
    const struct hum_tensor t = ops_tensor_of(s->op, args, tensor);
    struct ops_output *out = &s->out[s->outs++];

    *out = (struct ops_output){.name = s->op->tensors[tensor].name,
                               .tensor = tensor,
                               .bits = hum_dtype_bits(t.dtype),
                               .width = t.rank ? t.shape[t.rank - 1] : 1};
    if (hum_dtype_is_float(t.dtype))
        out->type = dtype_find_id(t.dtype, false);
    if (s->op->shape)
        s->op->shape(args, out);
    out->count = (int64_t)t.bytes * 8 / out->bits;
    out->width = out->width > 0 ? out->width : 1;
    out->before = elements_of(r, &t, out);
    return out->before;
}

/* What was asked: arguments with copies of their tensors. False: memory is out. */
static bool note_asked(struct ops_recorder *r, const void *args, struct ops_seen *s)
{
    uint8_t *copy = arena_alloc(r->arena, s->op->args_size, 1);
    bool fine = copy;

    if (copy)
        memcpy(copy, args, s->op->args_size);
    for (int i = 0; fine && i < s->op->tensor_count; i++) {
        struct hum_tensor t = ops_tensor_of(s->op, args, i);

        if (t.bytes && s->op->tensors[i].use != OPS_READ)
            fine = add_output(r, s, args, i);
        if (t.bytes && s->op->tensors[i].use != OPS_WRITE) {
            t.data = copy_of(r, &t, r->arena);
            fine = fine && t.data;
        }
        memcpy(copy + s->op->tensors[i].at, &t, sizeof t);
    }
    s->args = copy;
    return fine;
}

static bool note_answered(struct ops_recorder *r, const void *args, struct ops_seen *s)
{
    bool fine = true;

    for (int i = 0; fine && i < s->outs; i++) {
        const struct hum_tensor t = ops_tensor_of(s->op, args, s->out[i].tensor);

        s->out[i].got = elements_of(r, &t, &s->out[i]);
        fine = s->out[i].got;
    }
    return fine;
}

bool ops_answer(const struct ops_seen *s, const struct ops_twist *twist, const bool *rows,
                struct arena *arena, struct ops_answer *out)
{
    static const struct ops_twist right = {0, OPS_AS_DOCUMENTED, 0};

    *out = (struct ops_answer){.rows = rows, .arena = arena};
    for (int i = 0; i < s->outs; i++) {
        const size_t count = (size_t)s->out[i].count;

        out->codes[i] = arena_alloc(arena, count + 1, sizeof *out->codes[i]);
        if (!out->codes[i])
            return false;
        for (size_t j = 0; j < count; j++)
            out->codes[i][j] = s->out[i].before[j];
    }
    return s->op->answer(s, twist ? twist : &right, out);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static bool is_wrong(const struct ops_call *c)
{
    for (int i = 0; i < c->seen.outs; i++)
        for (int64_t j = 0; j < c->seen.out[i].count; j++)
            if (!ops_holds(&c->seen.out[i], c->seen.out[i].got[j], c->want[i][j]))
                return true;
    return false;
}

static bool judge(struct ops_recorder *r, struct ops_call *c)
{
    struct ops_answer right;
    const size_t mark = r->scratch->used;
    bool fine = ops_answer(&c->seen, NULL, NULL, r->scratch, &right);

    for (int i = 0; fine && i < c->seen.outs; i++) {
        const size_t bytes = (size_t)c->seen.out[i].count * sizeof *c->want[i];

        c->want[i] = arena_alloc(r->arena, bytes + 1, 1);
        fine = c->want[i];
        if (fine)
            memcpy(c->want[i], right.codes[i], bytes);
    }
    c->wrong = fine && is_wrong(c);
    r->scratch->used = mark;
    return fine;
}

/* An elementary function's results are the provider's own: what it left for the same values. */
static void find_activated(const struct ops_recorder *r, struct ops_seen *s)
{
    for (int i = 0; i < r->count && s->op == &ops_process_input && !r->by_ulp; i++)
        if (ops_input_is_activation_of(&r->calls[i].seen, s))
            s->activated = (const float *)(const void *)r->calls[i].seen.out[0].got;
}

/* All wrong calls that there is room for, and half as many right ones. */
static bool is_kept(struct ops_recorder *r, const struct ops_call *c)
{
    const int right = r->count - r->wrong;

    if (c->wrong && r->count == OPS_CALLS)
        r->full = true;
    return r->count < OPS_CALLS && (c->wrong || right < OPS_CALLS / 2);
}

static enum hum_code see(void *recorder, const struct ops_operation *op, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    struct ops_recorder *r = recorder;
    struct ops_call c = {.seen = {.op = op, .rules = r->rules}};
    const size_t mark = r->arena->used;
    bool noted = args && note_asked(r, args, &c.seen);
    const enum hum_code rc = op->run(r->real->ops, r->handle, args, reason);

    if (rc == HUM_OK && noted && note_answered(r, args, &c.seen)) {
        find_activated(r, &c.seen);
        if (judge(r, &c) && is_kept(r, &c)) {
            r->calls[r->count++] = c;
            r->wrong += c.wrong;
            return rc;
        }
    }
    r->full = r->full || (rc == HUM_OK && !noted);
    r->arena->used = mark;
    return rc;
}

/* ---- the operations -------------------------------------------------------------------------- */

static enum hum_code see_quant_weight(void *handle, const struct hum_quant_weight_args *args,
                                      char reason[HUM_REASON_BYTES])
{
    return see(handle, &ops_quant_weight, args, reason);
}

static enum hum_code see_dequant_weight(void *handle, const struct hum_dequant_weight_args *args,
                                        char reason[HUM_REASON_BYTES])
{
    return see(handle, &ops_dequant_weight, args, reason);
}

static enum hum_code see_pack(void *handle, const struct hum_pack_args *args,
                              char reason[HUM_REASON_BYTES])
{
    return see(handle, &ops_pack, args, reason);
}

static enum hum_code see_unpack(void *handle, const struct hum_pack_args *args,
                                char reason[HUM_REASON_BYTES])
{
    return see(handle, &ops_unpack, args, reason);
}

static enum hum_code see_process_mxfp4(void *handle, const struct hum_process_mxfp4_args *args,
                                       char reason[HUM_REASON_BYTES])
{
    return see(handle, &ops_process_mxfp4, args, reason);
}

static enum hum_code see_process_input(void *handle, const struct hum_process_input_args *args,
                                       char reason[HUM_REASON_BYTES])
{
    return see(handle, &ops_process_input, args, reason);
}

static enum hum_code see_hadamard(void *handle, const struct hum_hadamard_args *args,
                                  char reason[HUM_REASON_BYTES])
{
    return see(handle, &ops_hadamard, args, reason);
}

static enum hum_code see_moe_sum(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    return see(handle, &ops_moe_sum, args, reason);
}

static enum hum_code see_buffer_metas(void *handle, const struct hum_experts_config *config,
                                      struct hum_buffer_meta out[HUM_BUFFER_COUNT],
                                      char reason[HUM_REASON_BYTES])
{
    struct ops_recorder *r = handle;
    struct ops_buffers b = {.there = true};
    enum hum_code rc;

    memcpy(b.before, out, sizeof b.before);
    rc = r->real->ops->buffer_metas(r->handle, config, out, reason);
    memcpy(b.got, out, sizeof b.got);
    if (rc != HUM_OK || r->buffers.wrong || !ops_buffers_note(config, &b))
        return rc;
    if (b.wrong || !r->buffers.there) {
        r->buffers = b;
        r->buffers.config.gate_up = &r->buffers.gate_up;
        r->buffers.config.down = &r->buffers.down;
    }
    return rc;
}

static struct hum_ops ops_of(const struct hum_ops *real)
{
    return (struct hum_ops){
        .quant_weight = real->quant_weight ? see_quant_weight : NULL,
        .dequant_weight = real->dequant_weight ? see_dequant_weight : NULL,
        .pack = real->pack ? see_pack : NULL,
        .unpack = real->unpack ? see_unpack : NULL,
        .process_mxfp4 = real->process_mxfp4 ? see_process_mxfp4 : NULL,
        .process_input = real->process_input ? see_process_input : NULL,
        .hadamard = real->hadamard ? see_hadamard : NULL,
        .moe_fused_mul_sum = real->moe_fused_mul_sum ? see_moe_sum : NULL,
        .buffer_metas = real->buffer_metas ? see_buffer_metas : NULL,
    };
}

/* ---- everything else goes through ------------------------------------------------------------ */

static enum hum_code through_supports(void *handle, const struct hum_layer_config *layer,
                                      const struct hum_compute_config *compute,
                                      const struct hum_tuning_config *tuning,
                                      char reason[HUM_REASON_BYTES])
{
    const struct ops_recorder *r = handle;

    return r->real->supports(r->handle, layer, compute, tuning, reason);
}

static enum hum_code through_heuristics(void *handle, const struct hum_layer_config *layer,
                                        const struct hum_compute_config *compute, int64_t m,
                                        struct hum_tuning_config *out,
                                        char reason[HUM_REASON_BYTES])
{
    const struct ops_recorder *r = handle;

    return r->real->heuristics(r->handle, layer, compute, m, out, reason);
}

static enum hum_code through_transform_shapes(void *handle, const struct hum_layer_config *layer,
                                              struct hum_weights *out,
                                              char reason[HUM_REASON_BYTES])
{
    const struct ops_recorder *r = handle;

    return r->real->transform_shapes(r->handle, layer, out, reason);
}

static enum hum_code through_transform(void *handle, const struct hum_layer_config *layer,
                                       const struct hum_weights *standard, struct hum_weights *out,
                                       char reason[HUM_REASON_BYTES])
{
    const struct ops_recorder *r = handle;

    return r->real->transform(r->handle, layer, standard, out, reason);
}

static enum hum_code through_forward(void *handle, const struct hum_gemm_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    const struct ops_recorder *r = handle;

    return r->real->forward(r->handle, args, reason);
}

/* NOLINTNEXTLINE(readability-function-size): the contract has nine parameters */
static enum hum_code through_accumulation(void *handle, const struct hum_layer_config *layer,
                                          const struct hum_compute_config *compute,
                                          const struct hum_tuning_config *tuning, int64_t m,
                                          int64_t row, int64_t col, struct hum_accumulation *out,
                                          char reason[HUM_REASON_BYTES])
{
    const struct ops_recorder *r = handle;

    return r->real->accumulation(r->handle, layer, compute, tuning, m, row, col, out, reason);
}

static enum hum_code through_alloc(void *handle, size_t bytes, void **out,
                                   char reason[HUM_REASON_BYTES])
{
    const struct ops_recorder *r = handle;

    return r->real->alloc(r->handle, bytes, out, reason);
}

static void through_release(void *handle, void *data)
{
    const struct ops_recorder *r = handle;

    r->real->release(r->handle, data);
}

static enum hum_code through_upload(void *handle, void *device, const void *host, size_t bytes,
                                    char reason[HUM_REASON_BYTES])
{
    const struct ops_recorder *r = handle;

    return r->real->upload(r->handle, device, host, bytes, reason);
}

static enum hum_code through_download(void *handle, void *host, const void *device, size_t bytes,
                                      char reason[HUM_REASON_BYTES])
{
    const struct ops_recorder *r = handle;

    return r->real->download(r->handle, host, device, bytes, reason);
}

void ops_recorder_init(struct ops_recorder *r, const struct hum_provider *real, void *handle,
                       struct arena *arena, struct arena *scratch)
{
    struct hum_provider *p = &r->provider;

    *r = (struct ops_recorder){.real = real, .handle = handle, .arena = arena, .scratch = scratch};
    *p = *real;
    p->supports = through_supports;
    p->heuristics = real->heuristics ? through_heuristics : NULL;
    p->transform_shapes = through_transform_shapes;
    p->transform = through_transform;
    p->forward = through_forward;
    p->accumulation = real->accumulation ? through_accumulation : NULL;
    p->alloc = real->alloc ? through_alloc : NULL;
    p->release = real->release ? through_release : NULL;
    p->upload = real->upload ? through_upload : NULL;
    p->download = real->download ? through_download : NULL;
    if (!real->ops)
        return;
    r->ops = ops_of(real->ops);
    p->ops = &r->ops;
}
