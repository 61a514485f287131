#include "harness/explain/ops_buffers.h"

#include <string.h>

static struct ref_experts_layer layer_of(const struct hum_layer_config *l)
{
    return (struct ref_experts_layer){.a = dtype_find_id(l->a_dtype, false),
                                      .c = dtype_find_id(l->c_dtype, false),
                                      .n = l->shape_n - l->pad_shape_n,
                                      .k = l->shape_k - l->pad_shape_k};
}

static struct ref_experts asked(const struct ops_buffers *b)
{
    const struct hum_experts_config *c = &b->config;

    return (struct ref_experts){.form = c->gemm_type == HUM_GEMM_INDEXED ? REF_EXPERTS_INDEXED
                                        : c->gemm_type == HUM_GEMM_GROUPED_MASKED
                                            ? REF_EXPERTS_BATCHED
                                            : REF_EXPERTS_GROUPED,
                                .gated = c->form != HUM_ACT_UNARY,
                                .m = c->m,
                                .top_k = c->top_k,
                                .experts = b->gate_up.num_experts,
                                .max_tokens = c->max_tokens,
                                .dispatchers = c->dispatchers,
                                .gate_up = layer_of(&b->gate_up),
                                .down = layer_of(&b->down)};
}

void ops_buffers_elements(const struct hum_buffer_meta metas[HUM_BUFFER_COUNT],
                          uint32_t out[OPS_BUFFER_COUNT])
{
    for (int i = 0; i < HUM_BUFFER_COUNT; i++, out += OPS_BUFFER_FIELDS) {
        out[0] = (uint32_t)metas[i].rows;
        out[1] = (uint32_t)metas[i].cols;
        out[2] = (uint32_t)metas[i].bytes;
        out[3] = (uint32_t)((uint64_t)metas[i].bytes >> 32);
        out[4] = (uint32_t)metas[i].dtype;
        out[5] = (uint32_t)metas[i].workspace;
    }
}

static struct hum_buffer_meta meta_of(const struct ref_buffer *r)
{
    return (struct hum_buffer_meta){.rows = r->rows,
                                    .cols = r->cols,
                                    .bytes = r->bytes,
                                    .dtype = r->t ? dtype_id(r->t) : HUM_NONE,
                                    .workspace = r->workspace};
}

static void set_rows(struct hum_buffer_meta *m, int64_t rows)
{
    m->bytes = m->rows ? m->bytes / (size_t)m->rows * (size_t)rows : 0;
    m->rows = rows;
}

static void widen(struct hum_buffer_meta *m, int64_t factor)
{
    m->cols *= factor;
    m->bytes *= (size_t)factor;
}

/* Columns of buffer i as its layer has them with padding. */
static void pad(const struct ops_buffers *b, int i, struct hum_buffer_meta *m)
{
    const int64_t columns[HUM_BUFFER_COUNT] = {b->gate_up.shape_k, b->gate_up.shape_n,
                                               b->down.shape_k,    b->down.shape_k,
                                               b->down.shape_n,    b->down.shape_n};
    const int64_t cols = hum_dtype_bits(m->dtype) == 4 ? columns[i] / 2 : columns[i];

    m->bytes = m->cols ? m->bytes / (size_t)m->cols * (size_t)cols : 0;
    m->cols = cols;
}

/* One needed buffer after the mistake. */
static void twist_one(const struct ops_buffers *b, enum ops_buffers_kind kind, int n, int i,
                      struct hum_buffer_meta *m)
{
    const bool batched = b->config.gemm_type == HUM_GEMM_GROUPED_MASKED;

    if (kind == BUFFERS_GATED && i == HUM_BUFFER_GATE_UP_OUTPUT && b->config.form == HUM_ACT_UNARY)
        widen(m, 2);
    if (kind == BUFFERS_PER_TOKEN && i == HUM_BUFFER_DOWN_OUTPUT && !batched)
        set_rows(m, b->config.m);
    if (kind == BUFFERS_TOP_K && !batched)
        set_rows(m, b->config.m);
    if (kind == BUFFERS_PADDED)
        pad(b, i, m);
    if (kind == BUFFERS_WORKSPACE)
        m->workspace = n;
    if (kind == BUFFERS_EXCHANGED)
        m->workspace = 3 - m->workspace;
    if (kind == BUFFERS_BITS && hum_dtype_bits(m->dtype) == 4)
        widen(m, 2);
}

/* Of a buffer that is not needed nothing else counts. */
static bool is_bytes(int field)
{
    return field == 2 || field == 3;
}

/* Places for everything that looks needed. */
static void place_all(struct hum_buffer_meta metas[HUM_BUFFER_COUNT])
{
    int place = 0;

    for (int i = HUM_BUFFER_COUNT - 1; i >= 0; i--)
        if (metas[i].dtype != HUM_NONE)
            metas[i].workspace = 1 + place++ % 2;
}

bool ops_buffers_answer(const struct ops_buffers *b, enum ops_buffers_kind kind, int n,
                        uint32_t out[OPS_BUFFER_COUNT])
{
    struct ref_experts e = asked(b);
    struct hum_buffer_meta metas[HUM_BUFFER_COUNT] = {{0}};
    struct ref_buffer buffers[REF_BUFFER_COUNT];

    if (kind == BUFFERS_DISPATCHERS)
        e.dispatchers = 1;
    if (ref_buffers(&e, buffers))
        return false;
    for (int i = 0; i < HUM_BUFFER_COUNT; i++) {
        metas[i] = meta_of(&buffers[i]);
        if (buffers[i].t)
            twist_one(b, kind, n, i, &metas[i]);
        else if (kind == BUFFERS_STALE)
            metas[i] = b->before[i];
    }
    if (kind == BUFFERS_STALE && n)
        place_all(metas);
    ops_buffers_elements(metas, out);
    for (int i = 0; i < OPS_BUFFER_COUNT; i++)
        if (!buffers[i / OPS_BUFFER_FIELDS].t && !is_bytes(i % OPS_BUFFER_FIELDS))
            out[i] = REF_CODE_ANY;
    return true;
}

bool ops_buffers_note(const struct hum_experts_config *config, struct ops_buffers *b)
{
    uint32_t got[OPS_BUFFER_COUNT], want[OPS_BUFFER_COUNT];

    b->wrong = false;
    b->config = *config;
    b->gate_up = *config->gate_up;
    b->down = *config->down;
    if (!ops_buffers_answer(b, BUFFERS_RIGHT, 0, want))
        return false;
    ops_buffers_elements(b->got, got);
    for (int i = 0; i < OPS_BUFFER_COUNT; i++)
        b->wrong = b->wrong || (want[i] != REF_CODE_ANY && got[i] != want[i]);
    return true;
}
