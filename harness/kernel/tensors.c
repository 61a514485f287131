/* Codes to the standard tensors of humming.h. */
#include "harness/kernel/problem.h"

#include "reference/pack.h"

#include <string.h>

static const char memory_out[] = "the tensors need more memory than the limit of a worker";

static struct hum_tensor tensor(void *data, int32_t dtype, int64_t rows, int64_t cols, size_t bytes)
{
    return (struct hum_tensor){
        .data = data, .dtype = dtype, .rank = 2, .shape = {rows, cols}, .bytes = bytes};
}

static struct hum_tensor vector(void *data, int32_t dtype, int64_t n, size_t bytes)
{
    return (struct hum_tensor){
        .data = data, .dtype = dtype, .rank = 1, .shape = {n}, .bytes = bytes};
}

/* With experts every tensor of the weights has them in front; `t` has the first dimension of one
 * expert. */
static struct hum_tensor of_experts(const struct problem *q, struct hum_tensor t)
{
    if (q->routing.type == HUM_GEMM_DENSE)
        return t;
    for (int i = t.rank++; i > 0; i--)
        t.shape[i] = t.shape[i - 1];
    t.shape[0] = q->ref.experts;
    return t;
}

/* One number an expert, or the only one. */
static struct hum_tensor one_each(const struct problem *q, void *data, int32_t dtype, size_t bytes)
{
    return vector(data, dtype, q->ref.experts, bytes);
}

/* Codes kept in wider integers, written in the format's own width (8, 16 or 32 bits), little end
 * first. */
static void *narrow(const void *codes, size_t width, size_t n, int bits, struct arena *arena)
{
    size_t size = (size_t)bits / 8;
    uint8_t *out = arena_alloc(arena, n, size);

    for (size_t i = 0; out && i < n; i++)
        memcpy(out + i * size, (const uint8_t *)codes + i * width, size);
    return out;
}

static bool make_weight(const struct problem *q, struct arena *arena, struct hum_tensor *out)
{
    const struct ref_gemm *p = &q->ref;
    int64_t columns = ref_columns(p);
    size_t words = pack_words((size_t)p->k, p->b->bits);
    uint32_t *data = arena_alloc(arena, (size_t)columns * words, sizeof *data);

    for (int64_t j = 0; data && j < columns; j++)
        pack_row(p->b_codes + j * p->k, (size_t)p->k, p->b->bits, data + (size_t)j * words);
    *out =
        of_experts(q, tensor(data, HUM_INT32, p->n, (int64_t)words, (size_t)columns * words * 4));
    return data != NULL;
}

static bool make_scale(const struct problem *q, struct arena *arena, struct hum_tensor *out)
{
    const struct ref_gemm *p = &q->ref;
    size_t count = ref_input_sizes(p).bs, bytes = count * (size_t)p->bs->bits / 8;
    void *data = narrow(p->bs_codes, sizeof *p->bs_codes, count, p->bs->bits, arena);
    int64_t groups = ref_groups(p);

    if (p->scale == REF_SCALE_TENSOR)
        *out = one_each(q, data, HUM_F32, bytes);
    else
        *out = of_experts(
            q, tensor(data, dtype_id(p->bs), (int64_t)count / groups / p->experts, groups, bytes));
    return data != NULL;
}

/* Integer zero points of an expert: column g of an (n bits / 32) x groups matrix is a bit stream
 * along n. */
static bool make_int_zero(const struct problem *q, struct arena *arena, struct hum_tensor *out)
{
    const struct ref_gemm *p = &q->ref;
    size_t groups = (size_t)ref_groups(p), n = (size_t)p->n, words = pack_words(n, p->b->bits);
    size_t experts = (size_t)p->experts, size = words * groups;
    uint32_t *data = arena_alloc(arena, experts * size, sizeof *data);
    uint32_t *column = arena_alloc(arena, words, sizeof *column);
    uint8_t *codes = arena_alloc(arena, n, 1);

    if (!data || !column || !codes)
        return false;
    for (size_t i = 0; i < experts * groups; i++) {
        size_t e = i / groups, g = i % groups;

        for (size_t j = 0; j < n; j++)
            codes[j] = (uint8_t)p->zero_codes[(e * n + j) * groups + g];
        pack_row(codes, n, p->b->bits, column);
        for (size_t w = 0; w < words; w++)
            data[e * size + w * groups + g] = column[w];
    }
    *out =
        of_experts(q, tensor(data, HUM_INT32, (int64_t)words, (int64_t)groups, experts * size * 4));
    return true;
}

static bool make_zero(const struct problem *q, struct arena *arena, struct hum_tensor *out)
{
    const struct ref_gemm *p = &q->ref;
    size_t count = ref_input_sizes(p).zero;
    void *data;

    if (p->zero == REF_ZERO_NONE)
        return true;
    if (p->zero == REF_ZERO_INT)
        return make_int_zero(q, arena, out);
    data = narrow(p->zero_codes, sizeof *p->zero_codes, count, 16, arena);
    *out = of_experts(q, tensor(data, dtype_id(p->a), p->n, ref_groups(p), count * 2));
    return data != NULL;
}

static bool make_vectors(const struct problem *q, struct arena *arena, struct hum_weights *out)
{
    const struct ref_gemm *p = &q->ref;
    struct ref_input_sizes z = ref_input_sizes(p);
    bool f32 = p->scale_2 == REF_SCALE_2_TENSOR;

    if (z.scale_2) {
        void *data =
            narrow(p->scale_2_codes, sizeof *p->scale_2_codes, z.scale_2, f32 ? 32 : 16, arena);

        if (!data)
            return false;
        out->weight_scale_2 =
            f32 ? one_each(q, data, HUM_F32, z.scale_2 * 4)
                : of_experts(q, vector(data, dtype_id(p->c), p->n, z.scale_2 * 2));
    }
    if (z.bias) {
        void *data = narrow(p->bias_codes, sizeof *p->bias_codes, z.bias, 16, arena);

        out->bias = of_experts(q, vector(data, dtype_id(p->c), p->n, z.bias * 2));
        return data != NULL;
    }
    return true;
}

/* 16-bit codes as they are, 8-bit ones as bytes, 4-bit ones two a byte with the even k low. */
static bool make_inputs(const struct problem *q, struct arena *arena, struct hum_tensor *out)
{
    const struct ref_gemm *p = &q->ref;
    size_t n = (size_t)(p->m * p->k);
    uint8_t *data;

    if (p->a->bits >= 8) {
        data = narrow(p->a_codes, sizeof *p->a_codes, n, p->a->bits, arena);
        *out = tensor(data, dtype_id(p->a), p->m, p->k, n * (size_t)p->a->bits / 8);
        return data != NULL;
    }
    data = arena_alloc(arena, n / 2, 1);
    for (size_t i = 0; data && i < n / 2; i++)
        data[i] = (uint8_t)((p->a_codes[2 * i] & 15) | (p->a_codes[2 * i + 1] & 15) << 4);
    *out = tensor(data, dtype_id(p->a), p->m, p->k / 2, n / 2);
    return data != NULL;
}

const char *problem_tensors_make(const struct problem *q, struct arena *arena,
                                 struct problem_tensors *out)
{
    const struct ref_gemm *p = &q->ref;
    size_t scales = ref_input_sizes(p).input_scale;

    memset(out, 0, sizeof *out);
    layer_config(q->v, &out->layer);
    if (scales)
        out->input_scale =
            tensor(q->in.input_scale, HUM_F32, p->m, ref_input_groups(p), scales * 4);
    return make_weight(q, arena, &out->standard.weight) &&
                   make_scale(q, arena, &out->standard.weight_scale) &&
                   make_zero(q, arena, &out->standard.zero_point) &&
                   make_vectors(q, arena, &out->standard) && make_inputs(q, arena, &out->inputs)
               ? NULL
               : memory_out;
}

struct hum_tensor tensor_rows(struct hum_tensor t, int64_t m)
{
    if (!t.data)
        return t;
    t.bytes = t.bytes / (size_t)t.shape[0] * (size_t)m;
    t.shape[0] = m;
    return t;
}
