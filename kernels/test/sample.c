#include "kernels/test/sample.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64 (Steele, Lea, Flood, 2014) */
uint64_t sample_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t below(uint64_t *state, int64_t limit)
{
    return (int64_t)(sample_random(state) % (uint64_t)limit);
}

void *sample_open(const struct hum_provider *provider, int threads)
{
    void *handle = NULL;
    char reason[HUM_REASON_BYTES];

    ck_assert_int_eq(provider->open(threads, &handle, reason), HUM_OK);
    return handle;
}

struct sample sample_legal(void)
{
    return (struct sample){
        .layer = {.shape_n = 128,
                  .shape_k = 256,
                  .a_dtype = HUM_E4M3,
                  .b_dtype = HUM_UINT(4),
                  .c_dtype = HUM_BF16,
                  .bs_dtype = HUM_BF16,
                  .as_dtype = HUM_F32,
                  .weight_scale_type = HUM_SCALE_GROUP,
                  .weight_scale_group_size = 64},
        .tuning = {.block_m = 16,
                   .block_n = 64,
                   .block_k = 64,
                   .warp_m = 16,
                   .warp_n = 32,
                   .warp_k = 64,
                   .use_stream_k = true,
                   .num_stages = 2,
                   .num_ctas_per_sm = 1,
                   .num_sms = 5,
                   .num_write_splits = 1},
        .m = 20,
    };
}

static void *allocate(size_t bytes)
{
    void *data = aligned_alloc(64, (bytes + 2 * (size_t)SAMPLE_GUARD + 63) / 64 * 64);

    ck_assert_ptr_nonnull(data);
    return data;
}

struct hum_tensor sample_tensor(int32_t dtype, int64_t rows, int64_t columns, int rank)
{
    const int64_t count = rank == 2 ? rows * columns : rows;
    struct hum_tensor t = {.dtype = dtype, .rank = rank, .shape = {rows, rank == 2 ? columns : 0}};

    t.bytes = (size_t)count * (size_t)hum_dtype_bits(dtype) / 8;
    t.data = allocate(t.bytes);
    memset(t.data, 0, t.bytes);
    return t;
}

static void put(const struct hum_tensor *t, int64_t i, uint32_t code)
{
    if (hum_dtype_bits(t->dtype) == 8)
        ((uint8_t *)t->data)[i] = (uint8_t)code;
    else if (hum_dtype_bits(t->dtype) == 16)
        ((uint16_t *)t->data)[i] = (uint16_t)code;
    else
        ((uint32_t *)t->data)[i] = code;
}

/* A code whose exponent lies within `octaves` of 1, of either sign if the format has one; integers:
 * any. */
static uint32_t tame_code(uint64_t *state, int32_t dtype, int octaves)
{
    const int e_bits = hum_dtype_exponent_bits(dtype), m_bits = hum_dtype_mantissa_bits(dtype);
    const int bits = hum_dtype_bits(dtype), bias = e_bits ? (1 << (e_bits - 1)) - 1 : 0;
    const uint32_t mask = bits == 32 ? UINT32_MAX : (1u << bits) - 1u;
    uint32_t code = (uint32_t)sample_random(state) & mask;
    int64_t e;

    if (!hum_dtype_is_float(dtype) || e_bits < 4)
        return code;
    e = bias - octaves + below(state, 2 * octaves + 1);
    return (code & ~(((1u << e_bits) - 1u) << m_bits)) | (uint32_t)e << m_bits;
}

static void fill(const struct hum_tensor *t, uint64_t *state, int octaves, enum sample_style style)
{
    const int64_t count = (int64_t)(t->bytes / (size_t)(hum_dtype_bits(t->dtype) / 8));

    for (int64_t i = 0; i < count; i++) {
        uint32_t code = tame_code(state, t->dtype, octaves);

        if (style == SAMPLE_WILD && below(state, 64) == 0)
            code = (uint32_t)sample_random(state);
        put(t, i, code);
    }
}

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Powers of two over more octaves than a fused operand holds, so that groups are requantized, some
 * of them below what f16 holds. */
static void fill_e8m0(const struct hum_tensor *t, uint64_t *state, enum sample_style style)
{
    const int64_t spread = 1 + below(state, 17), least = below(state, 3) ? 120 : 98;

    for (int64_t i = 0; i < (int64_t)t->bytes; i++) {
        uint32_t code = (uint32_t)(least + below(state, spread));

        if (style == SAMPLE_WILD && below(state, 200) == 0)
            code = (uint32_t)sample_random(state);
        put(t, i, code);
    }
}

/* One of the weights; with experts their dimension is in front, instead of that of one number. */
static struct hum_tensor make(const struct hum_layer_config *l, int32_t dtype, int64_t rows,
                              int64_t columns, int rank)
{
    const int64_t experts = l->num_experts ? l->num_experts : 1;
    struct hum_tensor t = sample_tensor(dtype, experts * rows, columns, rank);

    if (l->num_experts && !(rank == 1 && rows == 1)) {
        t.rank = rank + 1;
        t.shape[0] = experts;
        t.shape[1] = rows;
        t.shape[2] = rank == 2 ? columns : 0;
    }
    return t;
}

static void fill_weights(struct sample *s, uint64_t *state, enum sample_style style)
{
    const struct hum_layer_config *l = &s->layer;
    const int64_t n = l->shape_n - l->pad_shape_n, k = l->shape_k - l->pad_shape_k;
    const int bits = hum_dtype_bits(l->b_dtype);
    const int64_t groups = l->weight_scale_group_size ? up(k, l->weight_scale_group_size) : 1;
    struct hum_weights *w = &s->standard;

    w->weight = make(l, HUM_INT32, n, k * bits / 32, 2);
    fill(&w->weight, state, 0, style);
    if (l->weight_scale_type == HUM_SCALE_TENSOR)
        w->weight_scale = make(l, HUM_F32, 1, 0, 1);
    else if (l->weight_scale_type == HUM_SCALE_BLOCK)
        w->weight_scale = make(l, HUM_F32, up(n, l->weight_scale_group_size_n), groups, 2);
    else
        w->weight_scale = make(l, l->bs_dtype, n, groups, 2);
    if (l->bs_dtype == HUM_E8M0)
        fill_e8m0(&w->weight_scale, state, style);
    else
        fill(&w->weight_scale, state, 2, style);
    if (l->is_fp_zero_point)
        w->zero_point = make(l, l->a_dtype, n, groups, 2);
    else if (l->has_zero_point)
        w->zero_point = make(l, HUM_INT32, up(n * bits, 32), groups, 2);
    if (l->weight_scale_2_type == HUM_SCALE_2_TENSOR)
        w->weight_scale_2 = make(l, HUM_F32, 1, 0, 1);
    if (l->weight_scale_2_type == HUM_SCALE_2_CHANNEL)
        w->weight_scale_2 = make(l, l->c_dtype, n, 0, 1);
    if (l->has_bias)
        w->bias = make(l, l->c_dtype, n, 0, 1);
    if (l->has_zero_point)
        fill(&w->zero_point, state, 3, style);
    if (w->weight_scale_2.data)
        fill(&w->weight_scale_2, state, 2, style);
    if (l->has_bias)
        fill(&w->bias, state, 4, style);
}

static void allocate_kernel(struct hum_weights *w)
{
    struct hum_tensor *const all[] = {&w->weight, &w->weight_scale, &w->zero_point,
                                      &w->weight_scale_2, &w->bias};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->bytes) {
            all[i]->data = allocate(all[i]->bytes);
            memset(all[i]->data, 0xff, all[i]->bytes);
        }
}

void sample_fill(struct sample *s, const struct hum_provider *provider, void *handle, uint64_t seed,
                 enum sample_style style)
{
    const struct hum_layer_config *l = &s->layer;
    const int64_t n = l->shape_n - l->pad_shape_n, k = l->shape_k - l->pad_shape_k;
    const int64_t gi = l->input_scale_group_size, input_groups = gi ? up(k, gi) : 1;
    const int bits_a = hum_dtype_bits(l->a_dtype);
    uint64_t state = seed;
    char reason[HUM_REASON_BYTES];

    fill_weights(s, &state, style);
    s->inputs = bits_a == 4 ? sample_tensor(HUM_UINT(8), s->m, k / 2, 2)
                            : sample_tensor(l->a_dtype, s->m, k, 2);
    fill(&s->inputs, &state, 2, style);
    if (l->as_dtype && s->compute.use_m_major_input_scale)
        s->input_scale = sample_tensor(HUM_F32, input_groups, up(s->m, 4) * 4, 2);
    else if (l->as_dtype)
        s->input_scale = sample_tensor(HUM_F32, s->m, input_groups, 2);
    if (l->as_dtype)
        fill(&s->input_scale, &state, 2, style);
    s->outputs = sample_tensor(l->c_dtype, s->m * (s->top_k ? s->top_k : 1), n, 2);
    memset(s->outputs.data, 0xff, s->outputs.bytes);
    memset((char *)s->outputs.data + s->outputs.bytes, 0xa5, SAMPLE_GUARD);
    s->locks = sample_tensor(HUM_INT32,
                             up(s->m, s->tuning.block_m) * (l->shape_n / s->tuning.block_n), 0, 1);
    ck_assert_int_eq(provider->transform_shapes(handle, l, &s->kernel, reason), HUM_OK);
    allocate_kernel(&s->kernel);
}

void sample_free(struct sample *s)
{
    struct hum_tensor *const all[] = {&s->standard.weight,
                                      &s->standard.weight_scale,
                                      &s->standard.zero_point,
                                      &s->standard.weight_scale_2,
                                      &s->standard.bias,
                                      &s->kernel.weight,
                                      &s->kernel.weight_scale,
                                      &s->kernel.zero_point,
                                      &s->kernel.weight_scale_2,
                                      &s->kernel.bias,
                                      &s->inputs,
                                      &s->input_scale,
                                      &s->outputs,
                                      &s->locks,
                                      &s->sorted_ids,
                                      &s->expert_ids,
                                      &s->num_tokens_padded,
                                      &s->expert_layout};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]->data);
        *all[i] = (struct hum_tensor){0};
    }
}

struct hum_gemm_args sample_args(const struct sample *s)
{
    return (struct hum_gemm_args){
        .layer = &s->layer,
        .compute = &s->compute,
        .tuning = &s->tuning,
        .inputs = s->inputs,
        .input_scale = s->input_scale,
        .weights = &s->kernel,
        .outputs = s->outputs,
        .sorted_ids = s->sorted_ids,
        .expert_ids = s->expert_ids,
        .num_tokens_padded = s->num_tokens_padded,
        .expert_layout = s->expert_layout,
        .locks = s->locks,
        .top_k = s->top_k ? s->top_k : 1,
    };
}

void sample_run(struct sample *s, const struct hum_provider *provider, void *handle)
{
    const struct hum_gemm_args args = sample_args(s);
    char reason[HUM_REASON_BYTES] = "";
    const char *guard = (const char *)s->outputs.data + s->outputs.bytes;

    ck_assert_msg(provider->transform(handle, &s->layer, &s->standard, &s->kernel, reason) ==
                      HUM_OK,
                  "transform: %s", reason);
    ck_assert_msg(provider->forward(handle, &args, reason) == HUM_OK, "forward: %s", reason);
    for (int i = 0; i < SAMPLE_GUARD; i++)
        ck_assert_int_eq((unsigned char)guard[i], 0xa5);
    for (int64_t i = 0; i < s->locks.shape[0]; i++)
        ck_assert_int_eq(((const int32_t *)s->locks.data)[i], 0);
}

static int32_t random_weight(uint64_t *state, int32_t a)
{
    const int64_t bits = 1 + below(state, 8), m = below(state, 5);
    const int64_t e = below(state, 8);

    if (a == HUM_INT8 && below(state, 3) == 0)
        return below(state, 2) ? HUM_INT8 : HUM_E2M1;
    if (a == HUM_E4M3 && below(state, 3) == 0)
        return HUM_E2M1;
    if (a == HUM_INT4 && below(state, 3) == 0)
        return HUM_INT4;
    if (a == HUM_E0M3)
        return HUM_FLOAT(1 + (int)(1 + m % 3), 0, (int)(1 + m % 3));
    if (hum_dtype_is_float(a) && below(state, 2))
        return HUM_FLOAT((int)(1 + e + m), (int)e, (int)m);
    return HUM_UINT((int)bits);
}

/* Sizes small enough for the oracle, with and without padding. */
static void random_shape(struct sample *s, uint64_t *state)
{
    const int bits = hum_dtype_bits(s->layer.a_dtype);
    const int64_t unit = 512 / bits;

    s->layer.shape_n = 64 * (1 + below(state, 3));
    s->layer.shape_k = unit * (1 + below(state, 8));
    if (below(state, 2))
        s->layer.shape_k = unit * 8;
    if (below(state, 3) == 0)
        s->layer.pad_shape_n = 8 * below(state, 8);
    if (below(state, 3) == 0)
        s->layer.pad_shape_k = 128 / bits * below(state, 5);
    if (s->layer.pad_shape_k >= s->layer.shape_k)
        s->layer.pad_shape_k = 0;
    s->m = 1 + below(state, 20);
}

static void random_scales(struct hum_layer_config *l, uint64_t *state)
{
    static const int32_t code_scales[] = {HUM_E4M3, HUM_E5M2, HUM_E8M0, HUM_E5M3};
    const int bits = hum_dtype_bits(l->a_dtype);

    l->weight_scale_type = (enum hum_scale_type)below(state, 4);
    if (below(state, 2))
        l->weight_scale_type = HUM_SCALE_GROUP;
    l->bs_dtype = below(state, 2) ? l->c_dtype : code_scales[below(state, 4)];
    if (l->weight_scale_type == HUM_SCALE_BLOCK || l->weight_scale_type == HUM_SCALE_TENSOR)
        l->bs_dtype = HUM_F32;
    if (l->weight_scale_type == HUM_SCALE_BLOCK || l->weight_scale_type == HUM_SCALE_GROUP)
        l->weight_scale_group_size = 256 / bits << below(state, 4);
    if (l->weight_scale_type == HUM_SCALE_BLOCK)
        l->weight_scale_group_size_n = 32 << below(state, 3);
    if (l->weight_scale_type == HUM_SCALE_GROUP)
        l->weight_scale_2_type = (enum hum_scale_2_type)below(state, 3);
    if (bits < 16 && below(state, 3) == 0)
        l->input_scale_group_size = 256 / bits << below(state, 3);
    if (l->weight_scale_type == HUM_SCALE_BLOCK && l->input_scale_group_size)
        l->input_scale_group_size = l->weight_scale_group_size;
    if (l->b_dtype == HUM_E2M1 && (l->a_dtype == HUM_E4M3 || l->a_dtype == HUM_INT8) &&
        below(state, 4)) {
        l->weight_scale_type = HUM_SCALE_GROUP;
        l->weight_scale_group_size = 32;
        l->weight_scale_group_size_n = 0;
        l->bs_dtype = HUM_E8M0;
        l->use_fused_e8m0_scale = true;
    }
    if (!hum_dtype_is_float(l->a_dtype) && l->weight_scale_type == HUM_SCALE_GROUP &&
        !l->use_fused_e8m0_scale && !l->input_scale_group_size)
        l->use_int_weight_scale = below(state, 2);
}

static void random_tuning(struct sample *s, uint64_t *state)
{
    const int32_t instruction_k = 256 / hum_dtype_bits(s->layer.a_dtype);

    s->tuning.block_m = 8 << below(state, 3);
    s->tuning.warp_m = 8;
    s->tuning.block_n = 16 << below(state, 4);
    s->tuning.warp_n = 16;
    s->tuning.warp_k = instruction_k << below(state, 3);
    s->tuning.block_k = s->tuning.warp_k << below(state, 3);
    s->tuning.num_stages = 2;
    s->tuning.num_ctas_per_sm = 1;
    s->tuning.num_sms = (int32_t)below(state, 14);
    s->tuning.use_stream_k = below(state, 2);
    s->tuning.num_write_splits = 1;
}

void sample_random_config(struct sample *s, uint64_t *state)
{
    static const int32_t activations[] = {HUM_F16,  HUM_BF16, HUM_E4M3, HUM_E5M2, HUM_E3M4,
                                          HUM_E2M1, HUM_E0M3, HUM_INT8, HUM_INT4};
    struct hum_layer_config *l = &s->layer;

    *s = (struct sample){0};
    l->a_dtype = activations[below(state, 9)];
    l->b_dtype = random_weight(state, l->a_dtype);
    l->c_dtype = below(state, 2) ? HUM_F16 : HUM_BF16;
    if (hum_dtype_bits(l->a_dtype) == 16)
        l->c_dtype = l->a_dtype;
    else
        l->as_dtype = HUM_F32;
    random_shape(s, state);
    random_scales(l, state);
    l->has_bias = below(state, 2);
    if (!hum_dtype_is_float(l->b_dtype) && l->weight_scale_type != HUM_SCALE_BLOCK)
        l->has_zero_point = below(state, 2);
    l->is_fp_zero_point = l->has_zero_point && hum_dtype_bits(l->a_dtype) == 16 && below(state, 2);
    s->compute.use_f16_accum =
        (l->a_dtype == HUM_F16 || (l->a_dtype == HUM_E4M3 && l->c_dtype == HUM_F16)) &&
        below(state, 2);
    s->compute.use_m_major_input_scale = l->as_dtype && below(state, 2);
    random_tuning(s, state);
}
