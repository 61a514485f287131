/* Sums worked out by hand, in which any other order, grouping or rounding gives other bits. One
 * row, one column; operands are written where ref_operand_* would put them, scales are 1 unless
 * said. */
#include "reference/model.h"
#include "reference/tensor_core.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_K = 256, MAX_GROUPS = 8, CODE_BF16_1 = 0x3F80 };

/* A problem of one output. */
struct one {
    struct ref_gemm p;
    struct ref_accum s;
    struct ref_epilogue epilogue;
    float a[MAX_K], w[MAX_K], input_scale[MAX_GROUPS];
    uint32_t bs_codes[MAX_GROUPS];
    int32_t s_int[MAX_GROUPS];
};

/* Formats a and c, k = block_k x blocks in one slice, channel scale 1, all weights 1, A = 0. */
static void make_one(struct one *q, const char *a, const char *c, int64_t blocks, int64_t block_k,
                     int64_t warp_k)
{
    *q = (struct one){.p = {.a = dtype_find(a),
                            .b = dtype_find_weight("uint4"),
                            .c = dtype_find(c),
                            .bs = dtype_find(c),
                            .m = 1,
                            .n = 1,
                            .k = block_k * blocks,
                            .group_n = 1},
                      .s = {.instruction_k = 256 / dtype_find(a)->bits,
                            .block_k = block_k,
                            .warp_k = warp_k,
                            .slices = 1,
                            .ordered = true,
                            .slice = {{0, block_k * blocks}}}};
    q->p.bs_codes = q->bs_codes;
    for (int i = 0; i < MAX_K; i++)
        q->w[i] = 1.0f;
    for (int i = 0; i < MAX_GROUPS; i++) {
        q->bs_codes[i] = dtype_encode(q->p.bs, 1.0, DTYPE_SATURATE);
        q->input_scale[i] = 1.0f;
    }
}

static double run_one(struct one *q)
{
    const struct ref_model model = {&q->epilogue, &q->s, q->s_int, q->a};
    const int64_t row = 0;
    uint16_t code = 0;

    q->p.input_scale = q->p.a->bits < 16 ? q->input_scale : NULL;
    ref_epilogue_init(&q->p, 1.0f, &q->epilogue);
    ck_assert_msg(ref_model_column(&model, q->w, 0, &row, 1, &code), "%s",
                  ref_model_refuses(&model));
    return dtype_decode(q->p.c, code);
}

/* Four warps hold 2^24, 1, -2^24, 1: (2^24 - 2^24) + (1 + 1) = 2, where 2^24 + 1 first would
 * leave 1. */
START_TEST(tree)
{
    struct one q;

    make_one(&q, "bf16", "bf16", 1, 64, 16);
    q.a[0] = 0x1p24f;
    q.a[17] = 1.0f;
    q.a[33] = -0x1p24f;
    q.a[63] = 1.0f;
    ck_assert_double_eq(run_one(&q), 2.0);
}
END_TEST

/* The same one after the other: ((2^24 + 1) - 2^24) + 1 = 1. With f16 accumulators 1, 2^-11, 0 and
 * 2^-11 stay 1, where 2^-11 + 2^-11 first makes 1 + 2^-10. */
START_TEST(warps_in_order)
{
    struct one q;

    make_one(&q, "bf16", "bf16", 1, 64, 16);
    q.a[0] = 0x1p24f;
    q.a[17] = 1.0f;
    q.a[33] = -0x1p24f;
    q.a[63] = 1.0f;
    q.s.warps_in_order = true;
    ck_assert_double_eq(run_one(&q), 1.0);
    make_one(&q, "f16", "f16", 1, 64, 16);
    q.p.f16_accum = true;
    q.a[0] = 1.0f;
    q.a[16] = q.a[48] = 0x1p-11f;
    ck_assert_double_eq(run_one(&q), 1.0 + 0x1p-10);
    q.s.warps_in_order = true;
    ck_assert_double_eq(run_one(&q), 1.0);
}
END_TEST

/* 1025 x 2^-16 is a number of f16. 2^-9 of it is 512.5 quanta of f16's subnormals: a tie, to 512,
 * 2^-6 when the power is put back. A bias of 1 comes behind that; a tensor scale takes the power
 * before. */
START_TEST(output_shift)
{
    const uint16_t one = 0x3C00;
    struct one q;

    make_one(&q, "e4m3", "f16", 1, 32, 32);
    q.a[0] = 0x1p-6f;
    q.a[1] = 0x1p-16f;
    ck_assert_double_eq(run_one(&q), 1025.0 * 0x1p-16);
    q.s.operand_shift = 9;
    ck_assert_double_eq(run_one(&q), 1025.0 * 0x1p-16);
    q.s.output_shift = 9;
    ck_assert_double_eq(run_one(&q), 0x1p-6);
    q.p.has_bias = true;
    q.p.bias_codes = &one;
    ck_assert_double_eq(run_one(&q), 1.0 + 0x1p-6);
    q.p.has_bias = false;
    q.p.scale = REF_SCALE_TENSOR;
    q.bs_codes[0] = 0x3F800000;
    ck_assert_double_eq(run_one(&q), 1025.0 * 0x1p-16);
}
END_TEST

/* f16 accumulators round 2^-9 of the sum: 512.5 quanta again, whatever the epilogue does. A flush
 * with the factor 1.5 makes 1.5 quanta of one quantum, a tie, to 2, but 6 quanta exactly where it
 * puts 2^2 back. */
START_TEST(flush_shift)
{
    struct one q;

    make_one(&q, "e4m3", "f16", 1, 32, 32);
    q.p.f16_accum = true;
    q.a[0] = 0x1p-6f;
    q.a[1] = 0x1p-16f;
    ck_assert_double_eq(run_one(&q), 1025.0 * 0x1p-16);
    q.s.operand_shift = 9;
    ck_assert_double_eq(run_one(&q), 0x1p-6);
    q.s.output_shift = 9;
    ck_assert_double_eq(run_one(&q), 0x1p-6);
    q.p.input_group = q.s.flush_k = 32;
    q.input_scale[0] = 1.5f;
    q.a[0] = 0x1p-15f;
    q.a[1] = 0.0f;
    ck_assert_double_eq(run_one(&q), 0x1p-14);
    q.s.flush_shift = 2;
    q.s.output_shift = 7;
    ck_assert_double_eq(run_one(&q), 0x1.8p-15);
}
END_TEST

/* 2^24 and -2^24 meet in warp 0's chain, which goes on into the next K block. A 1 of warp 1
 * survives beside it; a 1 of warp 0 is lost on 2^24. */
START_TEST(chain_over_blocks)
{
    struct one q;

    make_one(&q, "bf16", "bf16", 2, 32, 16);
    q.a[0] = 0x1p24f;
    q.a[16] = 1.0f; /* the other warp */
    q.a[32] = -0x1p24f;
    q.a[33] = 4.0f;
    ck_assert_double_eq(run_one(&q), 5.0);
    q.a[15] = 1.0f; /* the same warp, before -2^24 */
    ck_assert_double_eq(run_one(&q), 5.0);
}
END_TEST

/* Slices 1, 2^-8, 2^-8 from the last k down, in bf16: 1 + 2^-8 is a tie, to 1, twice. From the
 * first k up 2^-8 + 2^-8 would come first and give 1 + 2^-7; so would one slice. */
START_TEST(slices)
{
    struct one q;

    make_one(&q, "bf16", "bf16", 3, 32, 32);
    q.a[64] = 1.0f;
    q.a[32] = q.a[0] = 0x1p-8f;
    ck_assert_double_eq(run_one(&q), 1.0 + 0x1p-7);
    q.s.slices = 3;
    for (int i = 0; i < 3; i++) {
        q.s.slice[i].k_begin = 64 - 32 * i;
        q.s.slice[i].k_end = 96 - 32 * i;
    }
    ck_assert_double_eq(run_one(&q), 1.0);
}
END_TEST

/* The bias, 1, belongs to slice 0, the last k. One slice: 0 + 1. Two: 2^-8 + 1 is a tie, to 1, and
 * 1 + 1.5 x 2^-8 rounds to 1 + 2^-7; with the bias in slice 1, 1 + 2^-7 + 2^-8 would be a tie, to
 * 1 + 2^-6. */
START_TEST(bias)
{
    const uint16_t one = CODE_BF16_1;
    struct one q;

    make_one(&q, "bf16", "bf16", 2, 32, 32);
    q.p.has_bias = true;
    q.p.bias_codes = &one;
    q.a[0] = -0x1p-9f;
    q.a[32] = 0x1p-9f;
    ck_assert_double_eq(run_one(&q), 1.0);
    q.a[0] = 0x1.8p-8f;
    q.a[32] = 0x1p-8f;
    q.s.slices = 2;
    q.s.slice[0].k_begin = 32;
    q.s.slice[1].k_end = 32;
    ck_assert_double_eq(run_one(&q), 1.0 + 0x1p-7);
}
END_TEST

/* f16 accumulators: 1 + 2^-11 + 2^-21 in one instruction is above a tie; in two it is a tie, to
 * 1, and a rest that is lost. The tree rounds as well: 1 + 2^-11 from two warps, twice, is 1. */
START_TEST(f16_accumulator)
{
    struct one q;

    make_one(&q, "f16", "f16", 2, 32, 32);
    q.p.f16_accum = true;
    q.a[0] = 1.0f;
    q.a[1] = 0x1p-11f;
    q.a[15] = 0x1p-21f;
    ck_assert_double_eq(run_one(&q), 1.0 + 0x1p-10);
    q.a[15] = 0.0f;
    q.a[16] = 0x1p-21f;
    ck_assert_double_eq(run_one(&q), 1.0);
    make_one(&q, "f16", "f16", 1, 64, 16);
    q.p.f16_accum = true;
    q.a[0] = 1.0f;
    q.a[32] = q.a[16] = 0x1p-11f; /* warps 2 and 1: (1 + 2^-11) + 2^-11 */
    ck_assert_double_eq(run_one(&q), 1.0);
}
END_TEST

/* One rounding at a flush: f = c0 / 2^12 = 1 + 2^-12, f c0 = 2^12 + 2 + 2^-12 and c1 = -(2^12 +
 * 2). Rounding the product to f32 first would lose the 2^-12. */
START_TEST(flush_is_fma)
{
    struct one q;

    make_one(&q, "e4m3", "bf16", 1, 64, 64);
    q.p.input_group = q.s.flush_k = 32;
    q.a[0] = -0x1p12f;
    q.a[1] = -2.0f;
    q.a[32] = 0x1p12f;
    q.a[33] = 1.0f;
    q.input_scale[1] = 1.0f + 0x1p-12f;
    ck_assert_double_eq(run_one(&q), 0x1p-12);
}
END_TEST

/* The same with f16: f = c0 = 1 + 2^-10, f c0 = 1 + 2^-9 + 2^-20, c1 = -(1 + 2^-9). */
START_TEST(flush_f16)
{
    struct one q;

    make_one(&q, "e4m3", "f16", 1, 64, 64);
    q.p.f16_accum = true;
    q.p.input_group = q.s.flush_k = 32;
    q.a[0] = -1.0f;
    q.a[1] = -0x1p-9f;
    q.a[32] = 1.0f;
    q.a[33] = 0x1p-10f;
    q.input_scale[1] = 1.0f + 0x1p-10f;
    ck_assert_double_eq(run_one(&q), 0x1p-20);
}
END_TEST

/* 32 products 127 x 127 make 516128; 8 x 1024 of that is 4228120576, 2^32 less 66846720. */
START_TEST(int_scale_wraps)
{
    struct one q;

    make_one(&q, "int8", "bf16", 2, 128, 64);
    q.p.scale = REF_SCALE_GROUP;
    q.p.int_scale = true;
    q.p.group = q.s.flush_k = 32;
    for (int i = 0; i < 256; i++)
        q.a[i] = q.w[i] = 127.0f;
    for (int i = 0; i < 8; i++)
        q.s_int[i] = 1024;
    ck_assert_double_eq(run_one(&q), -66846720.0);
}
END_TEST

/* Fused e8m0: the code of 0.5 moved into e4m3 is the subnormal 2^-7, whose exponent is -6. With
 * 256 beside it E = 2 and the quantum is 2^-11 (T = 13): 2^-12 is lost, 2^-11 is kept. Its true
 * value is 2^6 times that. */
START_TEST(fused_operand)
{
    struct one q;

    make_one(&q, "e4m3", "bf16", 1, 32, 32);
    q.s.tensor_core = tc_find(90, TC_WGMMA, q.p.a, false);
    q.p.b = dtype_find_weight("e2m1");
    q.p.bs = dtype_find("e8m0");
    q.p.scale = REF_SCALE_GROUP;
    q.p.group = 32;
    q.p.fused_e8m0 = true;
    q.p.fused_range = 11;
    q.bs_codes[0] = 127;
    for (int i = 0; i < 32; i++)
        q.w[i] = 0.5f;
    q.a[0] = 256.0f;
    q.a[1] = -256.0f;
    q.a[2] = 0x1p-5f;
    ck_assert_double_eq(run_one(&q), 0.0);
    q.a[2] = 0x1p-4f;
    ck_assert_double_eq(run_one(&q), 0x1p-5);
}
END_TEST

START_TEST(special_values)
{
    struct one q;

    make_one(&q, "bf16", "bf16", 1, 64, 16);
    q.a[3] = (float)HUGE_VAL;
    ck_assert_double_eq(run_one(&q), HUGE_VAL);
    q.a[40] = (float)-HUGE_VAL; /* another warp */
    ck_assert(isnan(run_one(&q)));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("model_by_hand");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, tree);
    tcase_add_test(tc, warps_in_order);
    tcase_add_test(tc, output_shift);
    tcase_add_test(tc, flush_shift);
    tcase_add_test(tc, chain_over_blocks);
    tcase_add_test(tc, slices);
    tcase_add_test(tc, bias);
    tcase_add_test(tc, f16_accumulator);
    tcase_add_test(tc, flush_is_fma);
    tcase_add_test(tc, flush_f16);
    tcase_add_test(tc, int_scale_wraps);
    tcase_add_test(tc, fused_operand);
    tcase_add_test(tc, special_values);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
