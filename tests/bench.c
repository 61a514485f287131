/* bench.c - the figures that the project promises, as ratios within one run: `ci/bench`.
 *
 * Each pair of times is taken alternately, REPEATS times; medians are printed. Arenas are warm: one
 * round runs before the clock.
 */
#include "harness/core/clock.h"
#include "harness/kernel/plan.h"
#include "harness/kernel/problem.h"
#include "kernels/cpu/cpu.h"
#include "reference/blas.h"
#include "reference/codec16.h"
#include "reference/rng.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 7, M = 512, N = 4096, K = 4096, THREADS = 2 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *t)
{
    qsort(t, REPEATS, sizeof *t, by_value);
    return t[REPEATS / 2];
}

static void *need(void *p)
{
    if (!p) {
        (void)fputs("bench: out of memory\n", stderr);
        exit(3);
    }
    return p;
}

static void line(const char *what, double value, const char *unit, double aim, bool at_most)
{
    bool met = at_most ? value <= aim : value >= aim;

    (void)printf("%-62s %10.3g %-9s aim %s %g%s\n", what, value, unit, at_most ? "<=" : ">=", aim,
                 met ? "" : "  MISSED");
}

/* ---- the product stage against bare BLAS ---- */

static void bench_product(struct arena *arena, double *dgemm_1, const char *what, bool is_double)
{
    size_t size = is_double ? sizeof(double) : sizeof(float);
    void *a = need(arena_zalloc(arena, (size_t)M * K, size)),
         *w = need(arena_zalloc(arena, (size_t)N * K, size));
    void *c = need(arena_zalloc(arena, (size_t)M * N, size));
    double ours[REPEATS], bare[REPEATS], single[REPEATS];

    for (size_t i = 0; i < (size_t)N * K; i++) {
        double x = (double)(rng_word(1, RNG_TEST, i) >> 59) - 16.0; /* exact: 2^8 K < 2^24 */

        if (is_double)
            ((double *)w)[i] = ((double *)a)[i % ((size_t)M * K)] = x;
        else
            ((float *)w)[i] = ((float *)a)[i % ((size_t)M * K)] = (float)x;
    }
    for (int r = -1; r < REPEATS; r++) {
        double t[5];

        openblas_set_num_threads(THREADS);
        t[0] = clock_us();
        if (is_double)
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, M, N, K, 1.0, a, K, w, K, 0.0, c,
                        N);
        else
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, M, N, K, 1.0f, a, K, w, K, 0.0f, c,
                        N);
        t[1] = clock_us();
        openblas_set_num_threads(1);
        /* Its threads spin for a while when they are done (2^26 cycles), on the cores of ours. */
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        t[2] = clock_us();
        (void)(is_double ? ref_blas_exact_f64(M, N, K, a, w, c, THREADS)
                         : ref_blas_exact_f32(M, N, K, a, w, c, THREADS));
        t[3] = clock_us();
        if (is_double)
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, M, N, K, 1.0, a, K, w, K, 0.0, c,
                        N);
        t[4] = clock_us();
        if (r < 0)
            continue;
        bare[r] = t[1] - t[0];
        ours[r] = t[3] - t[2];
        single[r] = t[4] - t[3];
    }
    (void)printf("  %s: bare %.1f ms, reference stage %.1f ms, %d threads\n", what,
                 median(bare) * 1e-3, median(ours) * 1e-3, THREADS);
    line(is_double ? "product stage / bare cblas_dgemm, 512x4096x4096"
                   : "product stage / bare cblas_sgemm, 512x4096x4096",
         median(bare) / median(ours), "of bare", 0.9, false);
    if (is_double)
        *dgemm_1 = median(single);
}

/* ---- everything around the product ---- */

static void int4_problem(struct ref_gemm *p)
{
    *p = (struct ref_gemm){.a = dtype_find("bf16"),
                           .b = dtype_find("uint4"),
                           .c = dtype_find("bf16"),
                           .bs = dtype_find("bf16"),
                           .m = M,
                           .n = N,
                           .k = K,
                           .scale = REF_SCALE_GROUP,
                           .group = 128,
                           .group_n = 1};
}

static void bench_around(struct arena *arena, double dgemm_1)
{
    struct ref_gemm p;
    struct ref_fill_spec f = {.kind = REF_FILL_E1, .seed = 1};
    struct ref_input_sizes z;
    struct ref_inputs in = {0};
    float *a, *w;
    uint16_t *got, *want;
    size_t first, bitwise;
    double fill[REPEATS], dequant[REPEATS], compare[REPEATS];

    int4_problem(&p);
    z = ref_input_sizes(&p);
    p.a_codes = in.a = need(arena_zalloc(arena, z.a, sizeof *in.a));
    p.b_codes = in.b = need(arena_zalloc(arena, z.b, sizeof *in.b));
    p.bs_codes = in.bs = need(arena_zalloc(arena, z.bs, sizeof *in.bs));
    a = need(arena_zalloc(arena, z.a, sizeof *a));
    w = need(arena_zalloc(arena, z.b, sizeof *w));
    got = need(arena_zalloc(arena, (size_t)M * N, sizeof *got));
    want = need(arena_zalloc(arena, (size_t)M * N, sizeof *want));
    for (int r = -1; r < REPEATS; r++) {
        double t[4];

        t[0] = clock_us();
        (void)ref_fill(&f, &p, &in);
        t[1] = clock_us();
        ref_operand_a(&p, a);
        ref_operand_w(&p, 0, N, w);
        t[2] = clock_us();
        if (codec16_differ(p.c, got, want, (size_t)M * N, &first, &bitwise))
            exit(3);
        t[3] = clock_us();
        if (r < 0)
            continue;
        fill[r] = t[1] - t[0];
        dequant[r] = t[2] - t[1];
        compare[r] = t[3] - t[2];
    }
    (void)printf(
        "  int4 group 128, one thread: fill %.1f, dequantize %.1f, compare %.1f, dgemm %.1f ms\n",
        median(fill) * 1e-3, median(dequant) * 1e-3, median(compare) * 1e-3, dgemm_1 * 1e-3);
    line("fill + dequantize + compare / dgemm, int4, 512x4096x4096",
         (median(fill) + median(dequant) + median(compare)) / dgemm_1, "of dgemm", 0.2, true);
}

/* ---- codes ---- */

static void bench_codes(struct arena *arena)
{
    enum { COUNT = 1 << 20 };
    float *x = need(arena_zalloc(arena, COUNT, sizeof *x));
    uint16_t *codes = need(arena_zalloc(arena, COUNT, sizeof *codes));
    uint16_t *other = need(arena_zalloc(arena, COUNT, sizeof *other));
    const struct dtype *types[] = {dtype_find("f16"), dtype_find("bf16")};
    double encode[REPEATS], compare[REPEATS];
    size_t first, bitwise;

    for (size_t i = 0; i < COUNT; i++)
        x[i] = (float)(int32_t)(uint32_t)rng_word(1, RNG_TEST, i) * 0x1p-24f;
    for (int t = 0; t < 2; t++) {
        char text[80];

        for (int r = -1; r < REPEATS; r++) {
            double at = clock_us(), mid;

            codec16_encode_f32(types[t], x, codes, COUNT);
            mid = clock_us();
            memcpy(other, codes, sizeof *codes * COUNT);
            if (r >= 0)
                encode[r] = mid - at;
            at = clock_us();
            if (codec16_differ(types[t], codes, other, COUNT, &first, &bitwise))
                exit(3);
            if (r >= 0)
                compare[r] = clock_us() - at;
        }
        (void)snprintf(text, sizeof text, "encode to %s, codes a second a core", types[t]->name);
        line(text, COUNT * 2e-3 / median(encode), "GB/s", 2.0, false);
        (void)snprintf(text, sizeof text, "exact compare of %s codes, a second a core",
                       types[t]->name);
        line(text, COUNT * 2e-3 / median(compare), "GB/s", 2.0, false);
    }
}

/* ---- the CPU kernel ---- */

static void kernel_axes(const char *a, const char *b, const char *c, bool f16_accum,
                        int64_t v[AX_COUNT])
{
    char text[64];

    for (int i = 0; i < AX_COUNT; i++)
        if (!axes[i].fallback || axis_parse(&axes[i], axes[i].fallback, &v[i], text, sizeof text))
            v[i] = 0;
    (void)axis_parse(&axes[AX_A], a, &v[AX_A], text, sizeof text);
    (void)axis_parse(&axes[AX_B], b, &v[AX_B], text, sizeof text);
    (void)axis_parse(&axes[AX_C], c, &v[AX_C], text, sizeof text);
    v[AX_BS] = v[AX_C];
    v[AX_M] = 128;
    v[AX_N] = v[AX_K] = 2048;
    v[AX_PAD_N] = v[AX_PAD_K] = v[AX_GROUP_N] = v[AX_INT_SCALE] = v[AX_FUSED] = 0;
    v[AX_SCALE] = 1;
    v[AX_GROUP] = 128;
    v[AX_F16_ACCUM] = f16_accum;
    v[AX_FILL] = REF_FILL_R;
    v[AX_SEED] = 1;
}

static double kernel_gflops(struct arena *arena, const char *a, const char *b, const char *c,
                            bool f16_accum)
{
    int64_t v[AX_COUNT];
    struct problem q;
    struct problem_tensors t;
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    struct hum_weights form = {0};
    struct hum_tensor *parts[] = {&form.weight, &form.weight_scale, &form.zero_point,
                                  &form.weight_scale_2, &form.bias};
    struct hum_tensor out = {.rank = 2, .shape = {128, 2048}, .bytes = (size_t)128 * 2048 * 2};
    char reason[HUM_REASON_BYTES];
    double times[REPEATS];
    void *handle;

    arena_reset(arena);
    kernel_axes(a, b, c, f16_accum, v);
    if (problem_make(v, 128, 1, arena, &q) || problem_tensors_make(&q, arena, &t))
        exit(3);
    layer_compute(v, &compute);
    if (hum_cpu_provider.open(1, &handle, reason) ||
        hum_cpu_provider.heuristics(handle, &t.layer, &compute, 128, &tuning, reason) ||
        hum_cpu_provider.transform_shapes(handle, &t.layer, &form, reason))
        exit(3);
    tuning.use_stream_k = false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i]->bytes)
            parts[i]->data = need(arena_alloc(arena, parts[i]->bytes, 1));
    if (hum_cpu_provider.transform(handle, &t.layer, &t.standard, &form, reason))
        exit(3);
    out.data = need(arena_alloc(arena, out.bytes, 1));
    out.dtype = t.layer.c_dtype;
    for (int r = -1; r < REPEATS; r++) {
        struct hum_gemm_args args = {.layer = &t.layer,
                                     .compute = &compute,
                                     .tuning = &tuning,
                                     .inputs = t.inputs,
                                     .input_scale = t.input_scale,
                                     .weights = &form,
                                     .outputs = out,
                                     .top_k = 1};
        double at = clock_us();

        if (hum_cpu_provider.forward(handle, &args, reason) != HUM_OK) {
            (void)fprintf(stderr, "bench: %s\n", reason);
            exit(3);
        }
        if (r >= 0)
            times[r] = clock_us() - at;
    }
    hum_cpu_provider.close(handle);
    return 2.0 * 128 * 2048 * 2048 / median(times) * 1e-3;
}

static void bench_kernel(struct arena *arena)
{
    line("cpu kernel, bf16 x uint4 group 128, f32 accumulation",
         kernel_gflops(arena, "bf16", "uint4", "bf16", false), "GF/s/core", 20.0, false);
    line("cpu kernel, e4m3 x uint4 group 128, f32 accumulation",
         kernel_gflops(arena, "e4m3", "uint4", "bf16", false), "GF/s/core", 20.0, false);
    line("cpu kernel, f16 x uint4 group 128, f16 accumulation",
         kernel_gflops(arena, "f16", "uint4", "f16", true), "GF/s/core", 8.0, false);
}

/* ---- planning ---- */

static void bench_plan(struct arena *arena)
{
    struct errs errs = {0};
    struct suite suite;
    struct plan plan;
    struct plan_options o = {.shard = 1, .shards = 1};
    double t[REPEATS];

    arena_reset(arena);
    if (suite_load("tests/plan-100000.yaml", arena, &suite, &errs)) {
        (void)fprintf(stderr, "bench: tests/plan-100000.yaml: %s\n", errs.items[0].text);
        exit(3);
    }
    for (int r = 0; r < REPEATS; r++) {
        size_t mark = arena->used;
        double at = clock_us();

        if (plan_make(&suite, 1, &o, arena, &plan, &errs))
            exit(3);
        t[r] = (clock_us() - at) * 1e-6;
        arena->used = mark;
    }
    (void)printf("  %zu cases planned\n", plan.count);
    line("planning, scaled to 100,000 cases", median(t) * 100000.0 / (double)plan.count, "s", 0.5,
         true);
}

int main(void)
{
    struct arena arena;
    double dgemm_1 = 0.0;

    if (!arena_init(&arena, (size_t)8 << 30))
        return 3;
    bench_product(&arena, &dgemm_1, "sgemm", false);
    arena_reset(&arena);
    bench_product(&arena, &dgemm_1, "dgemm", true);
    arena_reset(&arena);
    bench_around(&arena, dgemm_1);
    arena_reset(&arena);
    bench_codes(&arena);
    bench_kernel(&arena);
    bench_plan(&arena);
    arena_free(&arena);
    return 0;
}
