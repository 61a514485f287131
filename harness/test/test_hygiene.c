/* Each check of several launches: a provider that is wrong in one way gets `fail`. (That the right
 * one passes is in test_trial.c.) */
#include "harness/test/case_run.h"

#include <stdlib.h>

/* ---- providers that are wrong ---- */

/* Right, then one fault. `fault` sees only calls that were accepted. */
#define WRONG(name, fault)                                                    \
    static enum hum_code name(void *handle, const struct hum_gemm_args *args, \
                              char reason[HUM_REASON_BYTES])                  \
    {                                                                         \
        enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);    \
                                                                              \
        if (rc == HUM_OK && rows_of(args))                                    \
            fault(args);                                                      \
        return rc;                                                            \
    }

static void flip_small_batches(const struct hum_gemm_args *args)
{
    outputs_of(args)[0] ^= rows_of(args) == 17;
}
WRONG(depends_on_m, flip_small_batches)

static void flip_by_place(const struct hum_gemm_args *args)
{
    for (int64_t i = 0; i < rows_of(args); i++)
        if (i % 16 == 5)
            outputs_of(args)[i * columns_of(args) + 3] ^= 1;
}
WRONG(depends_on_place, flip_by_place)

static void flip_beside_nan(const struct hum_gemm_args *args)
{
    for (int64_t i = 1; i < rows_of(args); i++)
        if ((outputs_of(args)[i * columns_of(args)] & 0x7fff) > 0x7c00)
            outputs_of(args)[(i - 1) * columns_of(args)] ^= 1;
}
WRONG(depends_on_nan, flip_beside_nan)

static void flip_with_padding(const struct hum_gemm_args *args)
{
    if (rows_of(args) > 33)
        outputs_of(args)[1] ^= 1;
}
WRONG(depends_on_padding, flip_with_padding)

static void flip_by_tile(const struct hum_gemm_args *args)
{
    if (args->tuning->block_m == 128)
        outputs_of(args)[1] ^= 1;
}
WRONG(depends_on_tile, flip_by_tile)

static void flip_sometimes(const struct hum_gemm_args *args)
{
    static int launches;

    if (launches++ % 4 == 3)
        outputs_of(args)[7] ^= 1;
}
WRONG(not_deterministic, flip_sometimes)

static void flip_after_others(const struct hum_gemm_args *args)
{
    static int64_t last;

    outputs_of(args)[7] ^= last && last != rows_of(args);
    last = rows_of(args);
}
WRONG(remembers_launches, flip_after_others)

static void write_behind(const struct hum_gemm_args *args)
{
    outputs_of(args)[rows_of(args) * columns_of(args)] = 0;
}
WRONG(writes_behind, write_behind)

static void write_poison_behind(const struct hum_gemm_args *args) /* the first poison hides it */
{
    outputs_of(args)[rows_of(args) * columns_of(args)] = 0xffff;
}
WRONG(writes_poison, write_poison_behind)

static void write_before(const struct hum_gemm_args *args)
{
    outputs_of(args)[-1] = 0;
}
WRONG(writes_before, write_before)

static void change_input(const struct hum_gemm_args *args)
{
    *(uint16_t *)args->inputs.data ^= 1;
}
WRONG(changes_input, change_input)

static void change_weight(const struct hum_gemm_args *args)
{
    ((uint8_t *)args->weights->weight.data)[5] ^= 1;
}
WRONG(changes_weight, change_weight)

static void read_behind_inputs(const struct hum_gemm_args *args)
{
    outputs_of(args)[2] ^= ((const uint8_t *)args->inputs.data)[args->inputs.bytes] & 1;
}
WRONG(reads_behind, read_behind_inputs)

/* What pads the first column of M-major scales. */
static void read_padded_scales(const struct hum_gemm_args *args)
{
    const uint32_t *scales = args->input_scale.data;

    outputs_of(args)[2] ^= scales[rows_of(args)] & 1;
}
WRONG(reads_padding, read_padded_scales)

/* M-major scales as if they were rows first. */
static enum hum_code scales_by_row(void *handle, const struct hum_gemm_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    const int64_t groups = args->input_scale.shape[0], stride = args->input_scale.shape[1];
    const float *in = args->input_scale.data;
    float *scales = aligned_alloc(64, (size_t)(groups * stride + 16) / 16 * 64);
    struct hum_gemm_args other = *args;
    enum hum_code rc;

    ck_assert_ptr_nonnull(scales);
    memset(scales, 0, (size_t)(groups * stride) * sizeof *scales);
    for (int64_t row = 0; row < rows_of(args); row++)
        for (int64_t g = 0; g < groups; g++)
            scales[g * stride + row] = in[row * groups + g];
    other.input_scale.data = scales;
    rc = hum_cpu_provider.forward(handle, &other, reason);
    free(scales);
    return rc;
}

/* As if it fetched what follows its inputs after it had written its outputs. */
static void fetch_beyond_inputs(const struct hum_gemm_args *args)
{
    const uint8_t *end = (const uint8_t *)args->inputs.data + args->inputs.bytes;

    if (end == args->outputs.data)
        outputs_of(args)[2] ^= 1;
}
WRONG(fetches_beyond, fetch_beyond_inputs)

static void leave_lock(const struct hum_gemm_args *args)
{
    if (args->locks.data)
        ((int32_t *)args->locks.data)[1] = 1;
}
WRONG(leaves_lock, leave_lock)

static void swallow_nan(const struct hum_gemm_args *args)
{
    for (int64_t i = 0; i < rows_of(args) * columns_of(args); i++)
        if ((outputs_of(args)[i] & 0x7fff) > 0x7c00)
            outputs_of(args)[i] = 0;
}
WRONG(swallows_nan, swallow_nan)

/* Zero rows, zero scales: what is all zero in the first columns is not what it should be. */
static void spoil_zeros(const struct hum_gemm_args *args)
{
    uint16_t any = 0;

    for (int64_t j = 0; j < 64; j++)
        any |= outputs_of(args)[j] & 0x7fff;
    outputs_of(args)[0] ^= any == 0;
}
WRONG(wrong_at_zero, spoil_zeros)

static void spoil_one_row(const struct hum_gemm_args *args)
{
    outputs_of(args)[9] ^= rows_of(args) == 1;
}
WRONG(wrong_at_one_row, spoil_one_row)

static void write_ones(const struct hum_gemm_args *args)
{
    for (int64_t i = 0; i < rows_of(args) * columns_of(args); i++)
        outputs_of(args)[i] = 0x3c00;
}
WRONG(constant, write_ones)

/* Row 11 of fill X has the largest value of the format. */
static void shift_largest(const struct hum_gemm_args *args)
{
    uint16_t *row = outputs_of(args) + 11 * columns_of(args);
    int64_t j = 0;

    if (rows_of(args) != 33)
        return;
    while (j + 1 < columns_of(args) && (row[j] & 0x7fff) > 0x7f00) /* not infinite, not NaN */
        j++;
    row[j] = (uint16_t)(row[j] + 1);
}
WRONG(wrong_at_largest, shift_largest)

static enum hum_code unwritten(void *handle, const struct hum_gemm_args *args,
                               char reason[HUM_REASON_BYTES])
{
    int64_t at = rows_of(args) * columns_of(args) - 1;
    uint16_t before = at >= 0 && args->outputs.data ? outputs_of(args)[at] : 0;
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc == HUM_OK && at >= 0)
        outputs_of(args)[at] = before;
    return rc;
}

static enum hum_code early(void *handle, const struct hum_gemm_args *args,
                           char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    reason[0] = '\0';
    return HUM_OK;
}

/* What the right provider refuses is called done. */
static enum hum_code accepts(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES])
{
    (void)hum_cpu_provider.forward(handle, args, reason);
    return HUM_OK;
}

static enum hum_code accepts_overlap(void *handle, const struct hum_gemm_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    return rc && strstr(reason, "overlap bias") ? HUM_OK : rc;
}

static enum hum_code accepts_locks(void *handle, const struct hum_gemm_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    return rc && args->locks.data && strstr(reason, "zero at entry") ? HUM_OK : rc;
}

static enum hum_code writes_then_refuses(void *handle, const struct hum_gemm_args *args,
                                         char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc && args && args->outputs.data)
        *(char *)args->outputs.data = 0;
    return rc;
}

static enum hum_code without_sentence(void *handle, const struct hum_gemm_args *args,
                                      char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc)
        reason[0] = '\0';
    return rc;
}

static enum hum_code two_lines(void *handle, const struct hum_gemm_args *args,
                               char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc)
        memcpy(reason, "one\ntwo", 8);
    return rc;
}

static enum hum_code wrong_code(void *handle, const struct hum_gemm_args *args,
                                char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    return rc ? HUM_NO_MEMORY : rc;
}

static enum hum_code refuses_no_rows(void *handle, const struct hum_gemm_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    if (rows_of(args))
        return hum_cpu_provider.forward(handle, args, reason);
    memcpy(reason, "no rows", 8);
    return HUM_INVALID;
}

static enum hum_code supports_all(void *handle, const struct hum_layer_config *layer,
                                  const struct hum_compute_config *compute,
                                  const struct hum_tuning_config *tuning,
                                  char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)layer;
    (void)compute;
    (void)tuning;
    reason[0] = '\0';
    return HUM_OK;
}

/* A class of its own for few rows: K blocks half as long. */
static enum hum_code other_class(void *handle, const struct hum_layer_config *layer,
                                 const struct hum_compute_config *compute, int64_t m,
                                 struct hum_tuning_config *out, char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.heuristics(handle, layer, compute, m, out, reason);

    if (m <= 16)
        out->block_k = out->warp_k /= 4;
    return rc;
}

/* ---- the table ---- */

#define STREAM_K " block_shape=16x64x64 warp_shape=16x32x64 use_stream_k=true num_sms=5"
#define M_MAJOR  " a_dtype=e4m3 input_scale_group_size=64 scale_layout=m_major"

/* clang-format off */
static const struct {
    forward_fn *forward;
    const char *text;
    enum verdict verdict;
    const char *reason;
} wrongs[] = {
    {depends_on_m,        "check=invariant",          VERDICT_FAIL, "how many rows there are (17 instead of 33)"},
    {depends_on_place,    "check=invariant",          VERDICT_FAIL, "the place of the row"},
    {depends_on_nan,      "check=invariant",          VERDICT_FAIL, "a NaN in another row"},
    {depends_on_padding,  "check=invariant",          VERDICT_FAIL, "padding rows behind it"},
    {depends_on_tile,     "check=invariant use_batch_invariant=true", VERDICT_FAIL, "the tile (block 128x"},
    {depends_on_tile,     "check=invariant",          VERDICT_PASS, ""},
    {depends_on_nan,      "check=invariant m=17" STREAM_K, VERDICT_FAIL, "a NaN in another row"},
    {early,               "check=invariant",          VERDICT_FAIL, ""},
    {unwritten,           "check=invariant",          VERDICT_FAIL, ""},
    {constant,            "check=invariant",          VERDICT_UNTRUSTED, "alike"},
    {not_deterministic,   "check=deterministic",      VERDICT_FAIL, "from one launch to the next"},
    {remembers_launches,  "check=deterministic",      VERDICT_FAIL, "from one launch to the next"},
    {early,               "check=deterministic",      VERDICT_FAIL, ""},
    {constant,            "check=deterministic",      VERDICT_UNTRUSTED, "alike"},
    {accepts_overlap,     "check=alias has_bias=true", VERDICT_FAIL, "overlap bias must be refused"},
    {accepts,             "check=alias",              VERDICT_FAIL, "outputs that overlap inputs must be refused"},
    {writes_behind,       "check=alias",              VERDICT_FAIL, "wrote outside its output"},
    {early,               "check=alias",              VERDICT_FAIL, ""},
    {wrong_code,          "check=alias",              VERDICT_FAIL, "the code is not HUM_INVALID"},
    {fetches_beyond,      "check=alias",              VERDICT_FAIL, "beside the other tensors"},
    {constant,            "check=alias",              VERDICT_UNTRUSTED, "alike"},
    {writes_behind,       "check=guard",              VERDICT_FAIL, "wrote outside its output: behind outputs"},
    {writes_poison,       "check=guard",              VERDICT_FAIL, "wrote outside its output: behind outputs"},
    {writes_before,       "check=guard",              VERDICT_FAIL, "wrote outside its output: behind"},
    {changes_input,       "check=guard",              VERDICT_FAIL, "wrote outside its output: inputs"},
    {changes_weight,      "check=guard",              VERDICT_FAIL, "wrote outside its output: weight"},
    {reads_behind,        "check=guard",              VERDICT_FAIL, "something outside"},
    {reads_padding,       "check=guard" M_MAJOR,      VERDICT_FAIL, "something outside"},
    {scales_by_row,       "check=exact" M_MAJOR,      VERDICT_FAIL, "the only right code"},
    {scales_by_row,       "check=bound" M_MAJOR,      VERDICT_FAIL, "outside the interval"},
    {unwritten,           "check=guard",              VERDICT_FAIL, "they are not written"},
    {early,               "check=guard",              VERDICT_FAIL, "they are not written"},
    {not_deterministic,   "check=guard",              VERDICT_PASS, ""}, /* two launches see nothing of it */
    {constant,            "check=guard",              VERDICT_UNTRUSTED, "alike"},
    {leaves_lock,         "check=locks m=17" STREAM_K, VERDICT_FAIL, "locks"},
    {accepts_locks,       "check=locks m=17" STREAM_K, VERDICT_FAIL, "dirty locks must be refused"},
    {accepts,             "check=locks m=17" STREAM_K, VERDICT_FAIL, "fewer locks than tiles must be refused"},
    {early,               "check=locks m=17" STREAM_K, VERDICT_FAIL, ""},
    {early,               "check=locks",              VERDICT_FAIL, ""},
    {NULL,                "check=locks m=65" STREAM_K, VERDICT_UNTRUSTED, "no tile is divided"},
    {swallows_nan,        "check=special",            VERDICT_FAIL, "the only right code"},
    {wrong_at_zero,       "check=special",            VERDICT_FAIL, "the only right code"},
    {wrong_at_one_row,    "check=special",            VERDICT_FAIL, "a single row"},
    {wrong_at_largest,    "check=special a_dtype=bf16",  VERDICT_FAIL, "the only right code"},
    {wrong_at_largest,    "check=exact fill=X a_dtype=bf16", VERDICT_FAIL, "the only right code"},
    {refuses_no_rows,     "check=special",            VERDICT_FAIL, "no rows"},
    {early,               "check=special",            VERDICT_FAIL, ""},
    {constant,            "check=special",            VERDICT_FAIL, ""},
    {accepts,             "check=contract",           VERDICT_FAIL, "must be refused: forward accepted it"},
    {writes_then_refuses, "check=contract",           VERDICT_FAIL, "although it refused"},
    {without_sentence,    "check=contract",           VERDICT_FAIL, "no reason was given"},
    {two_lines,           "check=contract",           VERDICT_FAIL, "more than one line"},
    {wrong_code,          "check=contract",           VERDICT_FAIL, "the code is not HUM_INVALID"},
    {early,               "check=contract",           VERDICT_FAIL, ""},
};
/* clang-format on */

START_TEST(wrong_providers_are_seen)
{
    struct hum_provider p =
        provider_with(wrongs[_i].forward ? wrongs[_i].forward : hum_cpu_provider.forward);

    expect_verdict(&p, wrongs[_i].text, wrongs[_i].verdict, wrongs[_i].reason);
}
END_TEST

/* ---- other functions of a provider ---- */

/* Tiles that give other bits are named, not judged, without batch invariance. */
START_TEST(tiles_are_reported)
{
    struct hum_provider p = provider_with(depends_on_tile);
    struct record r = run_case_text(&p, "check=invariant");

    ck_assert_ptr_nonnull(strstr(r.kernel, "other tiles give other bits"));
    ck_assert_ptr_null(strstr(r.kernel, "; 0 of"));
}
END_TEST

START_TEST(heuristics_must_stay_in_their_class)
{
    struct hum_provider p = hum_cpu_provider;

    p.heuristics = other_class;
    expect_verdict(&p,
                   "check=invariant use_batch_invariant=true a_dtype=e4m3 c_dtype=f16 "
                   "use_f16_accum=true",
                   VERDICT_FAIL, "how many rows there are");
}
END_TEST

START_TEST(supports_is_asked_too)
{
    struct hum_provider p = hum_cpu_provider;

    p.supports = supports_all;
    expect_verdict(&p, "check=contract", VERDICT_FAIL, "supports must refuse");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hygiene");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, wrong_providers_are_seen, 0, (int)(sizeof wrongs / sizeof wrongs[0]));
    tcase_add_test(tc, tiles_are_reported);
    tcase_add_test(tc, heuristics_must_stay_in_their_class);
    tcase_add_test(tc, supports_is_asked_too);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
