#include "kernels/cpu/ops.h"
#include "kernels/test/ops_tensor.h"
#include "kernels/test/oracle.h"

#include <math.h>

static char reason[HUM_REASON_BYTES];

/* ---- the oracle: section 7 and 8 for one row, one scalar step after the other ---------------- */

enum { MAX_WIDTH = 128 };

struct oracle_row {
    uint32_t code[MAX_WIDTH]; /* of the data */
    uint32_t scale[MAX_WIDTH];
    float token;
};

static const struct {
    int32_t dtype;
    float target_max;
    uint32_t top; /* code of the largest number */
} targets[] = {
    {HUM_E4M3, 448, 0x7e}, {HUM_E5M2, 57344, 0x7b}, {HUM_E3M4, 30, 0x7e}, {HUM_E2M1, 6, 7},
    {HUM_E0M3, 7, 7},      {HUM_INT8, 127, 0},      {HUM_INT4, 7, 0},
};

static int target_index(int32_t dtype)
{
    int i = 0;

    while (targets[i].dtype != dtype)
        i++;
    return i;
}

/* Nearest code, ties to even, saturating; numbers only. */
static uint32_t nearest(int32_t dtype, float y)
{
    const double x = fabs((double)y);
    uint32_t best = 0;

    for (uint32_t c = 1; c <= targets[target_index(dtype)].top; c++) {
        const double d = fabs(oracle_decode(dtype, c, true) - x);
        const double e = fabs(oracle_decode(dtype, best, true) - x);

        if (d < e || (!(d > e) && c % 2 == 0))
            best = c;
    }
    return best | (signbit(y) ? 1u << (hum_dtype_bits(dtype) - 1) : 0);
}

static uint32_t oracle_data(int32_t dtype, float y)
{
    if (dtype == HUM_INT8)
        return (uint32_t)(int32_t)fminf(fmaxf(rintf(y), -128), 127) & 255u;
    if (dtype == HUM_INT4)
        return (uint32_t)(int32_t)rintf(y) & 15u;
    return nearest(dtype, y);
}

static float raw_scale(int32_t dtype, const float *v, int64_t n)
{
    float most = 0;

    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(v[i]));
    return fmaxf(most / targets[target_index(dtype)].target_max, 1e-30f);
}

/* The group scale as stored, and the number that it stands for. */
static uint32_t oracle_encode(int32_t scale_dtype, float raw, float *decoded)
{
    uint32_t u;
    int e;

    *decoded = raw;
    memcpy(&u, &raw, sizeof u);
    if (scale_dtype == HUM_F32)
        return u;
    if (scale_dtype == HUM_E4M3) {
        u = nearest(HUM_E4M3, raw);
        *decoded = (float)oracle_decode(HUM_E4M3, u, true);
        return u;
    }
    e = frexpf(raw, &e) > 0.5f ? ilogbf(raw) + 1 : ilogbf(raw);
    *decoded = ldexpf(1.0f, e);
    return (uint32_t)(e + 127);
}

static float round_m3(float x)
{
    int e;
    const float m = frexpf(x, &e);

    return ldexpf(rintf(m * 16), e - 4);
}

static void oracle_row(const struct hum_process_input_args *a, float *v, int64_t n,
                       struct oracle_row *out)
{
    const enum hum_input_quant_mode mode = a->quant_mode;
    const bool group_token = mode == HUM_QUANT_DYNAMIC_GROUP_TOKEN;
    const int64_t g = a->quant_group_size ? a->quant_group_size : n;
    float decoded[MAX_WIDTH] = {0}, most = 0, fixed = 1, token = 0x1p-140f;

    if (a->static_scales.data)
        fixed = 1 / *(float *)a->static_scales.data;
    for (int64_t i = 0; i < n; i++)
        v[i] *= fixed;
    for (int64_t at = 0; at < n; at += g) {
        const float raw = raw_scale(a->quant_dtype, v + at, n - at < g ? n - at : g);

        decoded[at / g] = group_token ? round_m3(raw) : raw;
        most = fmaxf(most, decoded[at / g]);
        if (mode == HUM_QUANT_DYNAMIC_TOKEN)
            out->token = raw;
    }
    while ((double)most / (double)token > 448)
        token *= 2;
    if (group_token)
        out->token = token;
    for (int64_t at = 0; at < n; at += g) {
        float scale = decoded[at / g], unused;

        if (mode == HUM_QUANT_STATIC_TENSOR)
            scale = 1;
        else if (group_token)
            out->scale[at / g] = oracle_encode(HUM_E4M3, scale / token, &unused);
        else if (a->quant_group_size)
            out->scale[at / g] = oracle_encode(a->group_scale_dtype, scale, &scale);
        for (int64_t i = at; i < n && i < at + g; i++)
            out->code[i] = oracle_data(a->quant_dtype, scale > 0 ? v[i] * (1 / scale) : 0 * v[i]);
    }
}

/* Writes a row into outputs and scales that hold what they held before. */
static void oracle_put(const struct hum_process_input_args *a, const struct oracle_row *r,
                       int64_t row, int64_t n)
{
    const int64_t rows = (a->outputs.shape[0] + 3) / 4 * 4;
    const int64_t g = a->quant_group_size, groups = g ? (n + g - 1) / g : 0;
    uint8_t *out = a->outputs.data;

    for (int64_t i = 0; i < n && hum_dtype_bits(a->quant_dtype) == 8; i++)
        out[row * n + i] = (uint8_t)r->code[i];
    for (int64_t i = 0; i < n && hum_dtype_bits(a->quant_dtype) == 4; i += 2)
        out[(row * n + i) / 2] = (uint8_t)(r->code[i] + 16 * r->code[i + 1]);
    if (a->token_scales.data)
        ((float *)a->token_scales.data)[row] = r->token;
    for (int64_t i = 0; i < (groups + 3) / 4 * 4; i++) {
        const bool wide = a->group_scale_dtype == HUM_F32, pad = i >= groups;
        int64_t at = row * (wide ? groups : (groups + 3) / 4 * 4) + i;

        if (pad && (wide || a->scale_layout != HUM_SCALES_ROW_MAJOR))
            continue;
        if (a->scale_layout == HUM_SCALES_M_MAJOR)
            at = i * rows + row;
        if (a->scale_layout == HUM_SCALES_MX_PACKED)
            at = i / 4 * rows * 4 + row * 4 + i % 4;
        if (wide)
            ((uint32_t *)a->group_scales.data)[at] = r->scale[i];
        else
            ((uint8_t *)a->group_scales.data)[at] = (uint8_t)(pad ? 0 : r->scale[i]);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The choices of a call, no tensor yet. */
static struct hum_process_input_args args_make(enum hum_input_quant_mode mode, int32_t dtype,
                                               int32_t scale_dtype, enum hum_scale_layout layout,
                                               int64_t group)
{
    const bool groups = mode >= HUM_QUANT_DYNAMIC_GROUP;

    return (struct hum_process_input_args){.quant_mode = mode,
                                           .quant_dtype = dtype,
                                           .group_scale_dtype = groups ? scale_dtype : HUM_NONE,
                                           .scale_layout = layout,
                                           .quant_group_size = groups ? group : 0};
}

static void make_tensors(struct hum_process_input_args *a, int64_t out_rows, int64_t width)
{
    const int64_t g = a->quant_group_size, groups = g ? (width + g - 1) / g : 0;
    const int64_t groups_4 = (groups + 3) / 4 * 4, rows_4 = (out_rows + 3) / 4 * 4;
    const int32_t t = a->group_scale_dtype;
    const enum hum_input_quant_mode mode = a->quant_mode;

    a->outputs = tensor_make(a->quant_dtype, 2, out_rows,
                             hum_dtype_bits(a->quant_dtype) == 4 ? width / 2 : width, 0);
    if (groups && a->scale_layout == HUM_SCALES_ROW_MAJOR)
        a->group_scales = tensor_make(t, 2, out_rows, t == HUM_F32 ? groups : groups_4, 0);
    if (groups && a->scale_layout == HUM_SCALES_M_MAJOR)
        a->group_scales = tensor_make(t, 2, groups, rows_4, 0);
    if (groups && a->scale_layout == HUM_SCALES_MX_PACKED)
        a->group_scales = tensor_make(t, 3, groups_4 / 4, rows_4, 4);
    if (mode == HUM_QUANT_DYNAMIC_TOKEN || mode == HUM_QUANT_DYNAMIC_GROUP_TOKEN)
        a->token_scales = tensor_make(HUM_F32, 1, out_rows, 0, 0);
    if (mode == HUM_QUANT_STATIC_TENSOR || mode == HUM_QUANT_STATIC_TENSOR_DYNAMIC_GROUP) {
        a->static_scales = tensor_make(HUM_F32, 1, 1, 0, 0);
        *(float *)a->static_scales.data = 0.3f;
    }
}

static void free_tensors(struct hum_process_input_args *a)
{
    free(a->inputs.data);
    free(a->outputs.data);
    free(a->group_scales.data);
    free(a->token_scales.data);
    free(a->static_scales.data);
    free(a->expert_layout.data);
    free(a->indices.data);
}

static void fill_inputs(struct hum_tensor *t, int64_t rows, int64_t width, uint64_t seed)
{
    float *v;

    *t = tensor_make(HUM_F32, 2, rows, width, 0);
    v = t->data;
    for (int64_t i = 0; i < rows * width; i++) {
        const float x = ldexpf(random_unit(&seed), (int)(next_random(&seed) % 9) - 6);

        v[i] = next_random(&seed) % 8 ? x : 0.0f * x; /* both zeros too */
        if (i / width == 2)
            v[i] = 0.0f; /* a row of zeros: the smallest scale */
    }
}

/* Output row of input row `in`, its i-th; -1: none left, -2: skip. */
static int64_t destination(const struct hum_process_input_args *a, int64_t in, int64_t i)
{
    const int32_t *layout = a->expert_layout.data;
    const int64_t *indices = a->indices.data;
    int64_t e = 0, before = 0;

    switch (a->layout) {
    case HUM_LAYOUT_NORMAL:
        return i ? -1 : in;
    case HUM_LAYOUT_GROUPED:
        return i || in >= layout[a->expert_layout.shape[0] - 1] ? -1 : in;
    case HUM_LAYOUT_GROUPED_PADDED:
        while (e < a->expert_layout.shape[0] && in >= before + layout[e])
            before += layout[e++];
        return i || e == a->expert_layout.shape[0] ? -1 : e * a->max_tokens + in - before;
    case HUM_LAYOUT_PERMUTE:
        return i ? -1 : indices[in] < 0 ? -2 : indices[in];
    case HUM_LAYOUT_SCATTER:
        return i == a->indices.shape[1]                    ? -1
               : indices[in * a->indices.shape[1] + i] < 0 ? -2
                                                           : indices[in * a->indices.shape[1] + i];
    }
    return -1;
}

static struct hum_tensor copy_if(const struct hum_tensor *t)
{
    return t->data ? tensor_copy(t) : (struct hum_tensor){0};
}

static bool same_with_guard(const struct hum_tensor *x, const struct hum_tensor *y)
{
    return !x->data || memcmp(x->data, y->data, x->bytes + GUARD) == 0;
}

/* Runs the call, and compares all bytes of all outputs, those not written and the guards too. */
static void check_call(struct hum_process_input_args *a)
{
    const int64_t width = a->inputs.shape[1];
    const struct hum_tensor before = tensor_copy(&a->inputs);
    struct hum_process_input_args want = *a;
    struct oracle_row row = {{0}, {0}, 0};
    enum hum_code rc;

    want.outputs = copy_if(&a->outputs);
    want.group_scales = copy_if(&a->group_scales);
    want.token_scales = copy_if(&a->token_scales);
    rc = hum_cpu_ops.process_input(NULL, a, reason);
    ck_assert_msg(rc == HUM_OK, "%s", reason);
    for (int64_t e = 0; a->zero_invalid && e < a->expert_layout.shape[0]; e++) {
        const int64_t count = ((int32_t *)a->expert_layout.data)[e];
        const size_t bytes = a->outputs.bytes / (size_t)a->outputs.shape[0];

        memset((char *)want.outputs.data + (size_t)(e * a->max_tokens + count) * bytes, 0,
               (size_t)(a->max_tokens - count) * bytes);
    }
    for (int64_t in = 0; in < a->inputs.shape[0]; in++) {
        float v[MAX_WIDTH];

        memcpy(v, (float *)a->inputs.data + in * width, (size_t)width * sizeof *v);
        oracle_row(a, v, width, &row);
        for (int64_t i = 0, to; (to = destination(a, in, i)) != -1; i++)
            if (to >= 0 && to < a->outputs.shape[0])
                oracle_put(&want, &row, to, width);
    }
    ck_assert_msg(same_with_guard(&a->outputs, &want.outputs), "data");
    ck_assert_msg(same_with_guard(&a->group_scales, &want.group_scales), "group scales");
    ck_assert_msg(same_with_guard(&a->token_scales, &want.token_scales), "token scales");
    ck_assert(same_with_guard(&before, &a->inputs));
    free(before.data);
    free(want.outputs.data);
    free(want.group_scales.data);
    free(want.token_scales.data);
}

static bool is_legal(const struct hum_process_input_args *a)
{
    if (a->scale_layout == HUM_SCALES_MX_PACKED && a->group_scale_dtype == HUM_F32)
        return false;
    return a->quant_mode != HUM_QUANT_DYNAMIC_GROUP_TOKEN || a->group_scale_dtype == HUM_E4M3;
}

/* One target format: all modes, scale formats, scale layouts; whole and broken last groups. */
START_TEST(quantizes_by_the_page)
{
    static const int32_t scales[] = {HUM_F32, HUM_E8M0, HUM_E4M3};
    static const int64_t widths[] = {128, 72, 16};

    for (int mode = HUM_QUANT_STATIC_TENSOR; mode <= HUM_QUANT_DYNAMIC_GROUP_TOKEN; mode++)
        for (int s = 0; s < 9; s++)
            for (int w = 0; w < 3; w++) {
                struct hum_process_input_args a =
                    args_make((enum hum_input_quant_mode)mode, targets[_i].dtype, scales[s % 3],
                              (enum hum_scale_layout)(s / 3), 16);

                if (!is_legal(&a))
                    continue;
                fill_inputs(&a.inputs, 5, widths[w],
                            (uint64_t)_i * 1000 + (uint64_t)mode * 100 + (uint64_t)s);
                make_tensors(&a, 5, widths[w]);
                check_call(&a);
                free_tensors(&a);
            }
}
END_TEST

struct routing {
    enum hum_input_layout layout;
    int64_t rows, out_rows, max_tokens, length, width;
    bool zero_invalid;
    int64_t values[12];
};

static const struct routing routings[] = {
    {HUM_LAYOUT_NORMAL, 0, 0, 0, 0, 0, false, {0}},
    {HUM_LAYOUT_GROUPED, 6, 6, 0, 4, 0, false, {0, 2, 2, 5}},
    {HUM_LAYOUT_GROUPED, 3, 3, 0, 1, 0, false, {0}},
    {HUM_LAYOUT_GROUPED, 3, 3, 0, 3, 0, false, {0, 3, 3}},
    {HUM_LAYOUT_GROUPED_PADDED, 5, 9, 3, 3, 0, false, {1, 0, 3}},
    {HUM_LAYOUT_GROUPED_PADDED, 5, 9, 3, 3, 0, true, {1, 0, 3}},
    {HUM_LAYOUT_GROUPED_PADDED, 0, 4, 2, 2, 0, true, {0, 0}},
    {HUM_LAYOUT_PERMUTE, 5, 6, 0, 5, 0, false, {4, -1, 0, 100, 2}},
    {HUM_LAYOUT_SCATTER, 4, 7, 0, 4, 3, false, {0, 6, -1, 7, 1, 2, -9, -1, -1, 3, 5, 4}},
    {HUM_LAYOUT_SCATTER, 2, 3, 0, 2, 0, false, {0}},
};

static void set_routing(struct hum_process_input_args *a, const struct routing *r)
{
    const bool scatter = r->layout == HUM_LAYOUT_SCATTER;

    a->layout = r->layout;
    a->max_tokens = r->max_tokens;
    a->zero_invalid = r->zero_invalid;
    if (r->layout == HUM_LAYOUT_GROUPED || r->layout == HUM_LAYOUT_GROUPED_PADDED) {
        a->expert_layout = tensor_make(HUM_INT32, 1, r->length, 0, 0);
        for (int64_t i = 0; i < r->length; i++)
            ((int32_t *)a->expert_layout.data)[i] = (int32_t)r->values[i];
    }
    if (scatter || r->layout == HUM_LAYOUT_PERMUTE) {
        a->indices = tensor_make(HUM_INT64, scatter ? 2 : 1, r->length, r->width, 0);
        memcpy(a->indices.data, r->values, a->indices.bytes);
    }
}

START_TEST(puts_rows_where_they_belong)
{
    const struct routing *r = &routings[_i];

    for (int i = 0; i < 4; i++) {
        static const int32_t formats[] = {HUM_E4M3, HUM_E2M1};
        struct hum_process_input_args a = args_make(
            i < 2 ? HUM_QUANT_DYNAMIC_GROUP_TOKEN : HUM_QUANT_DYNAMIC_GROUP, formats[i % 2],
            i < 2 ? HUM_E4M3 : HUM_F32, i < 2 ? HUM_SCALES_MX_PACKED : HUM_SCALES_M_MAJOR, 16);

        set_routing(&a, r);
        fill_inputs(&a.inputs, r->rows, 48, (uint64_t)i);
        make_tensors(&a, r->out_rows, 48);
        check_call(&a);
        free_tensors(&a);
    }
}
END_TEST

/* ---- published values and special values ----------------------------------------------------- */

/* OCP 8-bit specification and MX specification, RN and saturation; PTX for integers. */
static const struct {
    int32_t dtype;
    float x;
    int code;
} published[] = {
    {HUM_E4M3, 448.0f, 0x7e},  {HUM_E4M3, 465.0f, 0x7e},   {HUM_E4M3, -1e30f, 0xfe},
    {HUM_E4M3, NAN, 0x7f},     {HUM_E4M3, -NAN, 0x7f},     {HUM_E4M3, INFINITY, 0x7e},
    {HUM_E4M3, 0x1p-10f, 0},   {HUM_E4M3, 0x1.8p-9f, 2},   {HUM_E4M3, -0.0f, 0x80},
    {HUM_E4M3, 17.0f, 0x58},   {HUM_E4M3, 19.0f, 0x5a},    {HUM_E5M2, 1e9f, 0x7b},
    {HUM_E5M2, NAN, 0x7f},     {HUM_E5M2, 57344.0f, 0x7b}, {HUM_E3M4, 31.0f, 0x7e},
    {HUM_E3M4, NAN, 0x7f},     {HUM_E2M1, 0.25f, 0},       {HUM_E2M1, 0.75f, 2},
    {HUM_E2M1, 1.25f, 2},      {HUM_E2M1, 1.75f, 4},       {HUM_E2M1, 2.5f, 4},
    {HUM_E2M1, 3.5f, 6},       {HUM_E2M1, 5.0f, 6},        {HUM_E2M1, -5.0f, 14},
    {HUM_E2M1, 1e9f, 7},       {HUM_E0M3, 2.5f, 2},        {HUM_E0M3, -3.5f, 12},
    {HUM_E0M3, 9.0f, 7},       {HUM_E0M3, -INFINITY, 15},  {HUM_INT8, 2.5f, 2},
    {HUM_INT8, -1000.0f, 128}, {HUM_INT8, INFINITY, 127},  {HUM_INT8, 127.5f, 127},
    {HUM_INT8, NAN, 0},        {HUM_INT4, -3.5f, 12},      {HUM_INT4, 7.0f, 7},
    {HUM_INT4, 1e30f, 0},      {HUM_E4M3, 0x1.1p-10f, 1},
};

START_TEST(converts_published_values)
{
    struct hum_process_input_args a =
        args_make(HUM_QUANT_STATIC_TENSOR, published[_i].dtype, HUM_NONE, HUM_SCALES_ROW_MAJOR, 0);

    fill_inputs(&a.inputs, 1, 2, 1);
    make_tensors(&a, 1, 2);
    *(float *)a.static_scales.data = 1.0f;
    ((float *)a.inputs.data)[0] = published[_i].x;
    ((float *)a.inputs.data)[1] = 0.0f;
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    ck_assert_int_eq(((uint8_t *)a.outputs.data)[0], published[_i].code);
    free_tensors(&a);
}
END_TEST

/* A NaN reaches the scale of its own group and no other; tiny groups give finite scales and data.
 * */
START_TEST(contains_nan)
{
    static const int32_t scales[] = {HUM_F32, HUM_E8M0, HUM_E4M3};
    struct hum_process_input_args a =
        args_make(HUM_QUANT_DYNAMIC_GROUP, HUM_E4M3, scales[_i], HUM_SCALES_ROW_MAJOR, 16);
    const uint8_t *out, *s;

    fill_inputs(&a.inputs, 1, 64, 1);
    make_tensors(&a, 1, 64);
    out = a.outputs.data;
    s = a.group_scales.data;
    ((float *)a.inputs.data)[5] = -NAN;
    for (int i = 16; i < 32; i++)
        ((float *)a.inputs.data)[i] = 1e-40f;
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    for (int i = 0; i < 64; i++)
        ck_assert((out[i] == 0x7f) == (i < 16));
    for (int g = 0; g < 4; g++)
        if (scales[_i] == HUM_F32)
            ck_assert(isnan(((const float *)a.group_scales.data)[g]) == (g == 0));
        else
            ck_assert((s[g] == (scales[_i] == HUM_E8M0 ? 255 : 0x7f)) == (g == 0));
    free_tensors(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_ops_input");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, quantizes_by_the_page, 0, COUNT(targets));
    tcase_add_loop_test(tc, puts_rows_where_they_belong, 0, COUNT(routings));
    tcase_add_loop_test(tc, converts_published_values, 0, COUNT(published));
    tcase_add_loop_test(tc, contains_nan, 0, 3);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
