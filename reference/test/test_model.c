/* The model against a second reading of semantics.md, sections 4 to 6, that computes one output
 * with padded operands, one k after the other. Sums in which another order gives other bits,
 * worked out by hand: test_model_by_hand. */
#include "reference/model.h"

#include "reference/round.h"
#include "reference/tensor_core.h"

#include <check.h>
#include <stdlib.h>

enum { M = 11, N = 3, MAX_K = 512, MAX_WARPS = 4, MAX_GROUPS = MAX_K / 16 };

/* One configuration. k is valid, k_padded what the kernel runs over. In the table h, i, f stand for
 * f16_accum, int_scale and fused; g and ig for group and input_group. */
struct setup {
    const char *a, *b, *c;
    int64_t group, input_group; /* group 0: a channel scale */
    bool f16_accum, int_scale, fused;
    enum ref_scale_2 scale_2;
    int sm; /* 0: IEEE */
    enum tc_instruction instruction;
    int64_t k, k_padded, block_k, warp_k, flush_k;
    int slices;
};

#define NO2 REF_SCALE_2_NONE
#define OWN REF_SCALE_2_CHANNEL /* of each column */
#define MMA TC_MMA
#define WG  TC_WGMMA

/* clang-format off */
static const struct setup setups[] = {
    /*a       b        c       g   ig  h  i  f  ws2  sm  on   k    pad  blk  wrp  Q   slices */
    {"f16",  "uint4", "f16",  64, 0,  0, 0, 0, NO2, 0,  MMA, 512, 512, 64,  64,  0,  1},
    {"bf16", "uint4", "bf16", 0,  0,  0, 0, 0, NO2, 0,  MMA, 300, 320, 64,  32,  0,  3},
    {"bf16", "uint8", "bf16", 0,  0,  0, 0, 0, NO2, 0,  MMA, 500, 512, 128, 32,  0,  2},
    {"f16",  "uint4", "f16",  64, 0,  1, 0, 0, NO2, 0,  MMA, 500, 512, 64,  32,  0,  2},
    {"e4m3", "uint4", "bf16", 0,  0,  0, 0, 0, NO2, 0,  MMA, 512, 512, 128, 128, 0,  1},
    {"e4m3", "uint4", "bf16", 64, 0,  0, 0, 0, NO2, 0,  MMA, 512, 512, 128, 128, 64, 1},
    {"e4m3", "uint4", "f16",  64, 32, 1, 0, 0, NO2, 0,  MMA, 460, 512, 128, 64,  32, 2},
    {"e5m2", "uint4", "f16",  64, 64, 0, 0, 0, NO2, 0,  MMA, 450, 512, 128, 64,  64, 4},
    {"int8", "uint8", "bf16", 0,  0,  0, 0, 0, NO2, 0,  MMA, 450, 512, 128, 32,  0,  2},
    {"int8", "uint4", "f16",  32, 0,  0, 0, 0, NO2, 0,  MMA, 450, 512, 128, 64,  32, 1},
    {"int8", "uint4", "bf16", 64, 0,  0, 1, 0, NO2, 0,  MMA, 450, 512, 128, 64,  64, 2},
    {"f16",  "uint4", "f16",  64, 0,  0, 0, 0, NO2, 90, WG,  500, 512, 64,  32,  0,  2},
    {"f16",  "uint4", "f16",  64, 0,  1, 0, 0, NO2, 80, MMA, 500, 512, 64,  64,  0,  1},
    {"bf16", "uint4", "bf16", 0,  0,  0, 0, 0, NO2, 80, MMA, 500, 512, 64,  64,  0,  3},
    {"e4m3", "uint4", "bf16", 64, 32, 0, 0, 0, NO2, 90, WG,  460, 512, 128, 64,  32, 2},
    {"e4m3", "uint4", "f16",  64, 0,  1, 0, 0, NO2, 90, MMA, 460, 512, 128, 128, 64, 1},
    {"e5m2", "uint4", "bf16", 0,  0,  0, 0, 0, NO2, 90, MMA, 460, 512, 128, 128, 0,  1},
    {"e4m3", "e2m1",  "bf16", 32, 0,  0, 0, 1, NO2, 0,  MMA, 512, 512, 128, 128, 0,  1},
    {"e4m3", "e2m1",  "bf16", 32, 0,  0, 0, 1, NO2, 90, WG,  500, 512, 128, 64,  0,  2},
    {"e4m3", "e2m1",  "bf16", 32, 0,  0, 0, 1, OWN, 90, WG,  500, 512, 128, 64,  0,  2},
    {"int8", "e2m1",  "bf16", 32, 0,  0, 0, 1, OWN, 0,  MMA, 500, 512, 128, 64,  0,  2},
};
/* clang-format on */

enum { SETUPS = sizeof setups / sizeof setups[0], FUSED_LOW = 110 };

/* A problem with its own arrays. */
struct problem {
    struct ref_gemm p;
    struct ref_accum s;
    struct ref_epilogue epilogue;
    uint16_t a_codes[M * MAX_K], zero_codes[N * MAX_GROUPS], bias_codes[N];
    uint8_t b_codes[N * MAX_K];
    uint32_t bs_codes[N * MAX_GROUPS], scale_2_codes[N];
    float input_scale[M * MAX_GROUPS], a[M * MAX_K], w[N * MAX_K];
    int32_t s_int[N * MAX_GROUPS];
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* A code near 1 in size: exponents 2^-3 to 2^0 for formats that have exponents, any code for
 * integers. */
static uint32_t random_code(const struct dtype *t, uint64_t *state)
{
    uint32_t r = next_random(state);
    double x = ldexp(1.0 + (r & 1023) / 1024.0, -(int)(r >> 10 & 3));

    if (!t->exp_bits)
        return r & ((1u << t->bits) - 1u);
    return dtype_encode(t, r >> 12 & 1 && t->is_signed ? -x : x, DTYPE_SATURATE);
}

static void fill_codes(struct problem *q, const struct setup *u, uint64_t *state)
{
    for (int i = 0; i < M * u->k; i++)
        q->a_codes[i] = (uint16_t)random_code(q->p.a, state);
    for (int i = 0; i < N * u->k; i++)
        q->b_codes[i] = (uint8_t)(next_random(state) & ((1u << q->p.b->bits) - 1u));
    for (int i = 0; i < N * MAX_GROUPS; i++)
        q->bs_codes[i] = u->fused ? FUSED_LOW + (uint32_t)i % 17 * (next_random(state) & 1)
                                  : random_code(q->p.bs, state);
    for (int i = 0; i < N; i++) {
        q->bias_codes[i] = (uint16_t)random_code(q->p.c, state);
        q->scale_2_codes[i] = random_code(q->p.c, state);
    }
    for (int i = 0; i < M * MAX_GROUPS; i++)
        q->input_scale[i] = 0.5f + (float)(next_random(state) & 0xFFFF) / 65536.0f;
}

/* Slices of whole K blocks, the first one (the last k) the shortest. */
static void fill_accum(struct problem *q, const struct setup *u)
{
    int64_t blocks = u->k_padded / u->block_k, end = u->k_padded;

    q->s = (struct ref_accum){.instruction_k = 256 / q->p.a->bits,
                              .block_k = u->block_k,
                              .warp_k = u->warp_k,
                              .flush_k = u->flush_k,
                              .slices = u->slices,
                              .ordered = true};
    if (u->sm)
        q->s.tensor_core = tc_find(u->sm, u->instruction, q->p.a, u->f16_accum);
    for (int i = 0; i < u->slices; i++) {
        int64_t begin = i == u->slices - 1 ? 0 : end - blocks / u->slices * u->block_k;

        q->s.slice[i].k_begin = begin;
        q->s.slice[i].k_end = end;
        end = begin;
    }
}

static void make_problem(struct problem *q, const struct setup *u, uint64_t seed)
{
    float factor = 0.0f;

    *q = (struct problem){.p = {.a = dtype_find(u->a),
                                .b = dtype_find_weight(u->b),
                                .c = dtype_find(u->c),
                                .bs = dtype_find(u->fused ? "e8m0" : u->c),
                                .m = M,
                                .n = N,
                                .k = u->k,
                                .scale = u->group ? REF_SCALE_GROUP : REF_SCALE_CHANNEL,
                                .scale_2 = u->scale_2,
                                .group = u->group,
                                .group_n = 1,
                                .input_group = u->input_group,
                                .has_bias = true,
                                .f16_accum = u->f16_accum,
                                .int_scale = u->int_scale,
                                .fused_e8m0 = u->fused}};
    q->p.fused_range = q->p.a->is_float ? 11 : 3;
    q->p.a_codes = q->a_codes;
    q->p.b_codes = q->b_codes;
    q->p.bs_codes = q->bs_codes;
    q->p.bias_codes = q->bias_codes;
    q->p.scale_2_codes = u->scale_2 ? q->scale_2_codes : NULL;
    q->p.input_scale = q->p.a->bits < 16 ? q->input_scale : NULL;
    fill_codes(q, u, &seed);
    fill_accum(q, u);
    if (u->int_scale)
        ref_int_scales(&q->p, q->s_int, &factor);
    ref_epilogue_init(&q->p, factor, &q->epilogue);
    ref_operand_a(&q->p, q->a);
    ref_operand_w(&q->p, 0, N, q->w);
}

/* ---- the second reading ---- */

/* State of one K-warp. Integers as exact sums, reduced modulo 2^32 where they are read. */
struct warp {
    double c0, c1;
    int64_t i0, i1;
    float a[MAX_K], w[MAX_K]; /* operands of the present instruction */
    int count;
};

static double wrapped(int64_t x)
{
    return (double)(float)(int32_t)(uint32_t)x;
}

static double rn_f16(double x)
{
    return round_to(dtype_find("f16"), x);
}

static void one_k(const struct problem *q, struct warp *x, float a, float w)
{
    const struct ref_accum *s = &q->s;

    x->a[x->count] = a;
    x->w[x->count++] = w;
    if (!q->p.a->is_float)
        x->i0 += (int64_t)a * (int64_t)w;
    else if (!s->tensor_core)
        x->c0 = (double)(float)(x->c0 + (double)(float)((double)a * (double)w));
    if (x->count < s->instruction_k)
        return;
    if (s->tensor_core)
        x->c0 = tc_run(s->tensor_core, q->p.a, x->a, q->p.a, x->w, x->count, x->c0);
    else if (q->p.f16_accum)
        x->c0 = rn_f16(x->c0);
    x->count = 0;
}

static void one_flush(const struct problem *q, struct warp *x, int row, int col, int64_t l)
{
    double c0 = q->p.a->is_float ? x->c0 : wrapped(x->i0);

    if (q->p.int_scale) {
        x->i1 += q->s_int[col * ref_groups(&q->p) + l / q->p.group] * x->i0;
    } else {
        double f = ref_flush_factor(&q->p, row, col, l);

        x->c1 = q->p.f16_accum ? round_fma(dtype_find("f16"), f, c0, x->c1)
                               : (double)(float)round_odd_sum(f * c0, x->c1);
    }
    x->c0 = 0.0;
    x->i0 = 0;
}

/* acc[w] += acc[w + count/2], recursively: what warp w holds once `count` warps are left. */
static struct warp tree(const struct problem *q, const struct warp *x, int64_t w, int64_t count,
                        int64_t all)
{
    struct warp left, right;

    if (count == all)
        return x[w];
    left = tree(q, x, w, 2 * count, all);
    right = tree(q, x, w + count, 2 * count, all);
    left.i1 += right.i1;
    left.c1 = q->p.f16_accum ? rn_f16(left.c1 + right.c1) : (double)(float)(left.c1 + right.c1);
    return left;
}

/* The chain's result of one slice, of operands w 2^-shift. */
static double one_slice(const struct problem *q, int slice, int row, int col, int shift)
{
    const struct ref_accum *s = &q->s;
    struct warp x[MAX_WARPS] = {{.c0 = 0.0}}, sum;

    for (int64_t l = s->slice[slice].k_begin; l < s->slice[slice].k_end; l++) {
        struct warp *warp = &x[l % s->block_k / s->warp_k];
        bool valid = l < q->p.k;

        one_k(q, warp, valid ? q->a[row * q->p.k + l] : 0.0f,
              valid ? ldexpf(q->w[col * q->p.k + l], -shift) : 0.0f);
        if (s->flush_k && (l + 1) % s->flush_k == 0 && l + 1 - s->flush_k < q->p.k)
            one_flush(q, warp, row, col, l + 1 - s->flush_k);
    }
    for (int i = 0; i < MAX_WARPS && !s->flush_k; i++) {
        x[i].c1 = x[i].c0;
        x[i].i1 = x[i].i0;
    }
    sum = tree(q, x, 0, 1, s->block_k / s->warp_k);
    if (!q->p.a->is_float && (q->p.int_scale || !s->flush_k))
        return ldexp(wrapped(sum.i1), shift);
    return ldexp(sum.c1, shift);
}

/* The smallest scale code kept, read off section 8; e2m1 to e4m3 bits is a factor 2^-6, to
 * doubled integers 2. */
static int true_shift(const struct problem *q, int col)
{
    int64_t groups = ref_groups(&q->p);
    int hi = 0, lo = 255;

    if (!q->p.fused_e8m0)
        return 0;
    for (int64_t i = 0; i < N * groups; i++)
        if (q->p.scale_2 != REF_SCALE_2_CHANNEL || i / groups == col) {
            hi = (int)q->bs_codes[i] > hi ? (int)q->bs_codes[i] : hi;
            lo = (int)q->bs_codes[i] < lo ? (int)q->bs_codes[i] : lo;
        }
    if (hi - lo > q->p.fused_range)
        lo = hi - q->p.fused_range;
    return lo - 127 + (q->p.a->is_float ? 6 : -1);
}

static uint16_t one_output(const struct problem *q, int row, int col, int operand_shift)
{
    int shift = operand_shift + true_shift(q, col);
    double out = 0.0;

    for (int i = 0; i < q->s.slices; i++) {
        double h =
            ref_epilogue_one(&q->epilogue, row, col, one_slice(q, i, row, col, shift), i == 0);

        out = i == 0 ? h : round_fma(q->p.c, h, 1.0, out);
    }
    return (uint16_t)dtype_encode(q->p.c, out, DTYPE_TO_TOP);
}

/* ---- tests ---- */

static struct ref_model model_of(const struct problem *q)
{
    return (struct ref_model){.epilogue = &q->epilogue,
                              .accum = &q->s,
                              .s_int = q->p.int_scale ? q->s_int : NULL,
                              .a = q->a};
}

static void compare(const struct problem *q, const char *what)
{
    static const int64_t rows[] = {3, 0, 10, 1, 2, 4, 5, 6, 7, 8, 9, 3};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct ref_model model = model_of(q);

    ck_assert_msg(!ref_model_refuses(&model), "%s", ref_model_refuses(&model));
    for (int col = 0; col < N; col++) {
        uint16_t codes[ROWS + 1] = {[ROWS] = 0xABCD};

        ck_assert(ref_model_column(&model, q->w + col * q->p.k, col, rows, ROWS, codes));
        ck_assert_uint_eq(codes[ROWS], 0xABCD);
        for (int i = 0; i < ROWS; i++) {
            uint16_t want = one_output(q, (int)rows[i], col, q->s.operand_shift);

            ck_assert_msg(codes[i] == want, "%s: row %d column %d: got %x, want %x", what,
                          (int)rows[i], col, codes[i], want);
        }
    }
}

START_TEST(second_reading)
{
    static struct problem q;

    for (uint64_t seed = 1; seed <= 3; seed++) {
        make_problem(&q, &setups[_i], seed);
        compare(&q, setups[_i].a);
    }
}
END_TEST

/* Codes fed as e4m3 bits, 2^-9 q: subnormal below 8, and then other bits come out than from the
 * plain values, provided that A spreads over enough exponents for the alignment to lose
 * something. */
START_TEST(operand_shift)
{
    static struct problem q;
    const struct setup u = {.a = "e4m3",
                            .b = "uint4",
                            .c = "f16",
                            .sm = 90,
                            .instruction = TC_WGMMA,
                            .k = 512,
                            .k_padded = 512,
                            .block_k = 128,
                            .warp_k = 128,
                            .slices = 1};
    struct ref_model model;
    int64_t rows[M];
    uint64_t state = 5;
    int differ = 0;

    for (int i = 0; i < M; i++)
        rows[i] = i;
    make_problem(&q, &u, 1);
    for (int i = 0; i < M * MAX_K; i++) /* no NaN: 0x7F, 0xFF */
        q.a[i] = (float)dtype_decode(q.p.a, next_random(&state) % 127 | (i % 3 ? 0x80 : 0));
    q.s.operand_shift = 9;
    compare(&q, "shift 9");
    model = model_of(&q);
    for (int col = 0; col < N; col++) {
        uint16_t plain[M], shifted[M];

        q.s.operand_shift = 0;
        ck_assert(ref_model_column(&model, q.w + col * q.p.k, col, rows, M, plain));
        q.s.operand_shift = 9;
        ck_assert(ref_model_column(&model, q.w + col * q.p.k, col, rows, M, shifted));
        for (int i = 0; i < M; i++)
            differ += plain[i] != shifted[i];
    }
    ck_assert_int_gt(differ, 0);
}
END_TEST

/* ---- refusals ---- */

START_TEST(model_refusals)
{
    static struct problem q;
    struct ref_model model;
    const int64_t row = 0;
    uint16_t code = 0xABCD;

    make_problem(&q, &setups[11], 1);
    model = model_of(&q);
    ck_assert_ptr_null(ref_model_refuses(&model));
    q.s.ordered = false;
    ck_assert_ptr_nonnull(ref_model_refuses(&model));
    ck_assert(!ref_model_column(&model, q.w, 0, &row, 1, &code));
    ck_assert_uint_eq(code, 0xABCD);
    q.s.slices = 1;
    q.s.slice[0].k_begin = 0;
    ck_assert_ptr_null(ref_model_refuses(&model));
    q.p.f16_accum = true;
    ck_assert_ptr_nonnull(ref_model_refuses(&model));
    q.p.f16_accum = false;
    q.s.operand_shift = 9;
    q.s.flush_shift = 2;
    q.s.output_shift = 7;
    ck_assert_ptr_null(ref_model_refuses(&model));
    q.s.output_shift = 8;
    ck_assert_ptr_nonnull(ref_model_refuses(&model));
    q.s.output_shift = 0;
    q.s.slice[0].k_end = 448;
    ck_assert_ptr_nonnull(ref_model_refuses(&model));
    make_problem(&q, &setups[10], 1);
    model = model_of(&q);
    model.s_int = NULL;
    ck_assert_ptr_nonnull(ref_model_refuses(&model));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("model");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, second_reading, 0, SETUPS);
    tcase_add_test(tc, operand_shift);
    tcase_add_test(tc, model_refusals);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
