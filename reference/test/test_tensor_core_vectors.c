/* Vectors worked out by hand from the rules in tensor_core.h: the corner cases that recordings of
 * hardware (test_dumps) do not hold. */
#include "reference/tensor_core.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INF  HUGE_VAL
#define QNAN ((double)NAN)
#define FMAX (0x1p128 - 0x1p104) /* the largest f32 */

enum { MAX_K = 64, MAX_TERMS = 4 };

/* Products a b at places `at` of k; all other operands are 0. */
struct vector {
    const char *what;
    int sm;
    enum tc_instruction instruction;
    const char *format;
    bool f16;
    int k;
    struct {
        int at;
        double a, b;
    } terms[MAX_TERMS];
    double c, want;
};

/* Units of the vectors: sm, instruction, format, f16 accumulator. */
#define V100         70, TC_MMA, "f16", false
#define A100         80, TC_MMA, "f16", false
#define A100_BF16    80, TC_MMA, "bf16", false
#define A100_HALF    80, TC_MMA, "f16", true
#define L40S_E4M3    89, TC_MMA, "e4m3", false
#define L40S_E5M2    89, TC_MMA, "e5m2", false
#define H100         90, TC_MMA, "f16", false
#define H100_BF16    90, TC_MMA, "bf16", false
#define H100_HALF    90, TC_MMA, "f16", true
#define WG_F16       90, TC_WGMMA, "f16", false
#define WG_E4M3      90, TC_WGMMA, "e4m3", false
#define WG_E5M2      90, TC_WGMMA, "e5m2", false
#define WG_E5M2_HALF 90, TC_WGMMA, "e5m2", true
#define EMU_E4M3     90, TC_MMA, "e4m3", false
#define EMU_HALF     90, TC_MMA, "e5m2", true
#define B200_E4M3    100, TC_MMA, "e4m3", false
#define B200_E5M2    100, TC_MMA, "e5m2", false
#define B200_HALF    100, TC_MMA, "e5m2", true

/* clang-format off */
static const struct vector vectors[] = {
    /* E = 0 because of the pair 1 - 1, so the small product must be a multiple of 2^-T: T = 23,
     * 24, 25, 13. */
    {"T = 23 kept", V100, 4, {{0, 1, 1}, {1, 0x1p-12, 0x1p-11}, {2, -1, 1}}, 0, 0x1p-23},
    {"T = 23 lost", V100, 4, {{0, 1, 1}, {1, 0x1p-12, 0x1p-12}, {2, -1, 1}}, 0, 0},
    {"T = 24 kept", A100, 8, {{0, 1, 1}, {1, 0x1p-12, 0x1p-12}, {2, -1, 1}}, 0, 0x1p-24},
    {"T = 24 lost", A100, 8, {{0, 1, 1}, {1, 0x1p-12, 0x1p-13}, {2, -1, 1}}, 0, 0},
    {"T = 25 kept", H100, 8, {{0, 1, 1}, {1, 0x1p-12, 0x1p-13}, {2, -1, 1}}, 0, 0x1p-25},
    {"T = 25 lost", H100, 8, {{0, 1, 1}, {1, 0x1p-13, 0x1p-13}, {2, -1, 1}}, 0, 0},
    {"T = 13 kept", WG_E5M2, 8, {{0, 1, 1}, {1, 0x1p-7, -0x1p-6}, {2, -1, 1}}, 0, -0x1p-13},
    {"T = 13 lost", WG_E5M2, 8, {{0, 1, 1}, {1, 0x1p-7, -0x1p-7}, {2, -1, 1}}, 0, 0},
    /* 2^-24 (1 + 1/2) keeps one of its two bits: truncation, not rounding, and toward zero for
     * both signs. */
    {"trunc, up", A100, 8, {{0, 1, 1}, {1, 0x1.8p-12, 0x1p-12}, {2, -1, 1}}, 0, 0x1p-24},
    {"trunc, down", A100, 8, {{0, 1, 1}, {1, -0x1.8p-12, 0x1p-12}, {2, -1, 1}}, 0, -0x1p-24},
    /* 1.5 x 1.5 = 2.25 counts as 2^0: were it normalized, E = 1 would lose 2^-24. */
    {"product in [2, 4)", A100, 8,
     {{0, 1.5, 1.5}, {1, 0x1p-12, 0x1p-12}, {2, -1.5, 1.5}}, 0, 0x1p-24},

    /* The pair 1 - 1 leaves 0; a product too small beside it survives only in the next block:
     * places b - 1 and b. */
    {"b = 4, last", V100, 8, {{0, 1, 1}, {1, -1, 1}, {3, 0x1p-12, 0x1p-13}}, 0, 0},
    {"b = 4, next", V100, 8, {{0, 1, 1}, {1, -1, 1}, {4, 0x1p-12, 0x1p-13}}, 0, 0x1p-25},
    {"b = 8, last", A100_BF16, 16, {{0, 1, 1}, {1, -1, 1}, {7, 0x1p-12, 0x1p-13}}, 0, 0},
    {"b = 8, next", A100_BF16, 16, {{0, 1, 1}, {1, -1, 1}, {8, 0x1p-12, 0x1p-13}}, 0, 0x1p-25},
    {"b = 16, last", WG_F16, 32, {{0, 1, 1}, {1, -1, 1}, {15, 0x1p-13, 0x1p-13}}, 0, 0},
    {"b = 16, next", WG_F16, 32, {{0, 1, 1}, {1, -1, 1}, {16, 0x1p-13, 0x1p-13}}, 0, 0x1p-26},
    {"fp8 b = 16, last", L40S_E5M2, 32, {{0, 1, 1}, {1, -1, 1}, {15, 0x1p-7, 0x1p-7}}, 0, 0},
    {"fp8 b = 16, next", L40S_E5M2, 32, {{0, 1, 1}, {1, -1, 1}, {16, 0x1p-7, 0x1p-7}}, 0, 0x1p-14},
    {"fp8 b = 32, last", WG_E5M2, 64, {{0, 1, 1}, {1, -1, 1}, {31, 0x1p-7, 0x1p-7}}, 0, 0},
    {"fp8 b = 32, next", WG_E5M2, 64, {{0, 1, 1}, {1, -1, 1}, {32, 0x1p-7, 0x1p-7}}, 0, 0x1p-14},
    /* 1 + 2^-24 truncates to 1, in each block anew; two halves of 2^-23 in one block add up
     * first. */
    {"chain, two blocks", A100, 16, {{0, 0x1p-12, 0x1p-12}, {8, 0x1p-12, 0x1p-12}}, 1, 1},
    {"chain, one block", A100, 16, {{8, 0x1p-12, 0x1p-12}, {9, 0x1p-12, 0x1p-12}}, 1, 1 + 0x1p-23},

    /* A zero product has no exponent: 2^15 x 0 would count as 2^(15 - 14) and lose 2^-24. */
    {"zero product", A100, 8, {{0, 0x1p15, 0}, {1, 0x1p-12, 0x1p-12}}, 0, 0x1p-24},
    {"only zeros", A100, 8, {{0, 0x1p15, 0}}, 0, 0},

    /* f16 2^-24 is 2^-10 x 2^-14: E = -14, the quantum 2^-38. e4m3 2^-9 is 2^-3 x 2^-6: E = -6,
     * the quantum 2^-19. */
    {"subnormal f16, kept", A100, 8, {{0, 0x1p-24, 1}}, 0x1p-38, 0x1p-24 + 0x1p-38},
    {"subnormal f16, lost", A100, 8, {{0, 0x1p-24, 1}}, 0x1p-39, 0x1p-24},
    {"subnormal e4m3, kept", WG_E4M3, 32, {{0, 1, 0x1p-9}}, 0x1p-19, 0x1p-9 + 0x1p-19},
    {"subnormal e4m3, lost", WG_E4M3, 32, {{0, 1, 0x1p-9}}, 0x1p-20, 0x1p-9},
    /* The f32 2^-149 is 2^-23 x 2^-126: E = -126 and the quantum 2^-150, or 2^-149 (T = 23). */
    {"subnormal c", A100, 8, {{0, 0, 0}}, -0x1p-149, -0x1p-149},
    {"subnormal c, T 23", V100, 4, {{0, 0, 0}}, 0x1p-149, 0x1p-149},

    /* Subnormal results are truncated to multiples of 2^-149, not flushed. */
    {"subnormal f32 result", A100_BF16, 8, {{0, 0x1p-75, 0x1.8p-73}}, 0, 0x1.8p-148},
    {"subnormal f32, trunc", A100_BF16, 8, {{0, 0x1p-75, 0x1.8p-74}}, 0, 0x1p-149},
    /* c subnormal sets E = -126, not -149: the quantum is 2^-150; f16: E = -14, 2^-38, and 1.5 x
     * 2^-24 is a tie, to 2^-23. */
    {"c's exponent, kept", A100_BF16, 8, {{0, -0x1p-75, 0x1p-75}}, 0x1p-149, 0},
    {"c's exponent, lost", A100_BF16, 8, {{0, -0x1p-76, 0x1p-75}}, 0x1p-149, 0x1p-149},
    {"f16 c, kept", A100_HALF, 8,
     {{0, 0x1p-12, 0x1p-13}, {1, -0x1p-19, 0x1p-19}}, 0x1p-24, 0x1p-24},
    {"f16 c, lost", A100_HALF, 8,
     {{0, 0x1p-12, 0x1p-13}, {1, -0x1p-20, 0x1p-19}}, 0x1p-24, 0x1p-23},
    {"below f32", A100_BF16, 8, {{0, 0x1p-75, 0x1.8p-75}}, 0, 0},
    {"subnormal f16 result", A100_HALF, 8, {{0, 0x1p-12, 0x1p-12}}, 0, 0x1p-24},
    {"subnormal f16, tie", A100_HALF, 8, {{0, 0x1p-12, 0x1p-13}}, 0, 0},
    {"subnormal f16, tie up", A100_HALF, 8, {{0, 0x1.8p-12, 0x1p-12}}, 0, 0x1p-23},

    /* E >= -132 makes the quantum 2^-156 (T = 24), E >= -133 makes it 2^-158 (T = 25): 2^-149
     * less a quantum truncates to 0, less half of one stays. */
    {"clamp f32, kept", A100_BF16, 8, {{0, 0x1p-75, 0x1p-74}, {1, -0x1p-78, 0x1p-78}}, 0, 0},
    {"clamp f32, lost", A100_BF16, 8, {{0, 0x1p-75, 0x1p-74}, {1, -0x1p-79, 0x1p-78}}, 0, 0x1p-149},
    {"clamp f32, 90 kept", H100_BF16, 8, {{0, 0x1p-75, 0x1p-74}, {1, -0x1p-79, 0x1p-79}}, 0, 0},
    {"clamp f32, 90 lost", H100_BF16, 8,
     {{0, 0x1p-75, 0x1p-74}, {1, -0x1p-80, 0x1p-79}}, 0, 0x1p-149},
    /* E >= -20: quantum 2^-44; E >= -21: 2^-46. 2^-25 is a tie, to 0; anything more goes up to
     * 2^-24. */
    {"clamp f16, kept", A100_HALF, 8, {{0, 0x1p-12, 0x1p-13}, {1, 0x1p-22, 0x1p-22}}, 0, 0x1p-24},
    {"clamp f16, lost", A100_HALF, 8, {{0, 0x1p-12, 0x1p-13}, {1, 0x1p-22, 0x1p-23}}, 0, 0},
    {"clamp f16, 90 kept", H100_HALF, 8,
     {{0, 0x1p-12, 0x1p-13}, {1, 0x1p-23, 0x1p-23}}, 0, 0x1p-24},
    {"clamp f16, 90 lost", H100_HALF, 8, {{0, 0x1p-12, 0x1p-13}, {1, 0x1p-23, 0x1p-24}}, 0, 0},

    /* c = 2^24 sets E: the quantum is 1 (T = 24), 2 (T = 23), 1/2 (T = 25). */
    {"c largest, kept", A100, 8, {{0, -1, 1}}, 0x1p24, 0x1p24 - 1},
    {"c largest, lost", A100, 8, {{0, -0.5, 1}}, 0x1p24, 0x1p24},
    {"c largest, 70 lost", V100, 4, {{0, -1, 1}}, 0x1p24, 0x1p24},
    {"c largest, 90 kept", H100, 8, {{0, -0.5, 1}}, 0x1p24, 0x1p24 - 1},
    {"c largest, 90 lost", H100, 8, {{0, -0.25, 1}}, 0x1p24, 0x1p24},
    {"c smallest, kept", A100, 8, {{0, 1, 1}, {1, -1, 1}}, 0x1p-24, 0x1p-24},
    {"c smallest, lost", A100, 8, {{0, 1, 1}, {1, -1, 1}}, 0x1p-25, 0},

    /* 13 fraction bits: c is chopped even where A B = 0, and the sum 3 + 2^-13 has 15
     * significant bits. */
    {"fp8 chops c", WG_E4M3, 32, {{0, 0, 1}}, 1 + 0x1.8p-13, 1 + 0x1p-13},
    {"fp8 chops -c", L40S_E4M3, 32, {{0, 0, 1}}, -1 - 0x1p-23, -1},
    {"fp8 14 bits", WG_E5M2, 32, {{0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {3, 0x1p-7, 0x1p-6}}, 0, 3},
    {"f16 keeps c", WG_F16, 32, {{0, 0, 1}}, 1 + 0x1p-23, 1 + 0x1p-23},
    {"fp8 f16, above tie", WG_E5M2_HALF, 32,
     {{0, 0x1p-6, 0x1p-5}, {1, 0x1p-7, 0x1p-6}}, 1, 1 + 0x1p-10},
    {"fp8 f16, lost", WG_E5M2_HALF, 32, {{0, 0x1p-6, 0x1p-5}, {1, 0x1p-7, 0x1p-7}}, 1, 1},

    /* To nearest even: 1 + 2^-11 is halfway between 1 and 1 + 2^-10. */
    {"tie to even", A100_HALF, 8, {{0, 0x1p-11, 1}}, 1, 1},
    {"tie from odd", A100_HALF, 8, {{0, 0x1p-11, 1}}, 1 + 0x1p-10, 1 + 0x1p-9},
    {"tie, negative", A100_HALF, 8, {{0, -0x1p-11, 1}}, -1 - 0x1p-10, -1 - 0x1p-9},
    {"above a tie", A100_HALF, 8, {{0, 0x1p-11, 1}, {1, 0x1p-12, 0x1p-12}}, 1, 1 + 0x1p-10},
    {"back to a tie", A100_HALF, 8, {{0, 0x1p-11, 1}, {1, 0x1p-12, 0x1p-13}}, 1, 1},
    {"f16 each block", A100_HALF, 16, {{0, 0x1p-11, 1}, {8, 0x1p-11, 1}}, 1, 1},

    {"f16 largest", A100_HALF, 8, {{0, 15.5, 1}}, 65504, 65504},
    {"f16 overflow", A100_HALF, 8, {{0, 16, 1}}, 65504, INF},
    {"f16 underside", A100_HALF, 8, {{0, -256, 256}}, 0, -INF},
    {"f32 largest", A100_BF16, 8, {{0, 0x1p60, 0x1p43}}, FMAX, FMAX},
    {"f32 overflow", A100_BF16, 8, {{0, 0x1p60, 0x1p44}}, FMAX, INF},
    {"f32 underside", A100_BF16, 8, {{0, 0x1p64, -0x1p64}}, 0, -INF},
    {"beyond f32 within a block", A100_BF16, 8,
     {{0, 0x1p100, 0x1p100}, {1, -0x1p100, 0x1p100}}, 0, 0},
    {"infinity stays", A100_BF16, 16, {{0, 0x1p64, 0x1p64}, {8, -0x1p64, 0x1p63}}, 0, INF},
    {"then NaN", A100_BF16, 16, {{0, 0x1p64, 0x1p64}, {8, -INF, 1}}, 0, QNAN},
    {"NaN operand", H100, 8, {{0, QNAN, 0}}, 1, QNAN},
    {"NaN e4m3", WG_E4M3, 8, {{0, 1, 1}, {5, 1, QNAN}}, 1, QNAN},
    {"NaN c", H100_HALF, 8, {{0, 1, 1}}, QNAN, QNAN},
    {"inf x 0", H100, 8, {{0, INF, 0}}, 1, QNAN},
    {"inf - inf", H100, 8, {{0, INF, 1}, {1, INF, -1}}, 1, QNAN},
    {"inf + c", H100, 8, {{0, INF, 1}}, -INF, QNAN},
    {"inf", H100, 8, {{0, INF, 2}, {1, -INF, -2}}, INF, INF},
    {"-inf", WG_E5M2, 8, {{0, -INF, 2}}, 5, -INF},
    {"inf c", H100_HALF, 8, {{0, -1024, 1024}}, INF, INF},

    /* Emulated: {k : bit 1 clear}, then {k : bit 1 set}, each rounded to f16, then c by itself.
     * 2^-11 beside 1 is a tie. */
    {"split: 0 | 2 3", EMU_HALF, 32,
     {{0, 1, 1}, {2, 0x1p-5, 0x1p-6}, {3, 0x1p-5, 0x1p-6}}, 0, 1 + 0x1p-10},
    {"split: 0 1 | 2", EMU_HALF, 32, {{0, 1, 1}, {1, 0x1p-5, 0x1p-6}, {2, 0x1p-5, 0x1p-6}}, 0, 1},
    {"split: 0 4 29 |", EMU_HALF, 32,
     {{0, 1, 1}, {4, 0x1p-5, 0x1p-6}, {29, 0x1p-5, 0x1p-6}}, 0, 1 + 0x1p-10},
    {"split: then c", EMU_HALF, 32, {{0, 1, 1}, {2, 0x1p-5, 0x1p-6}}, 0x1p-11, 1},
    {"order: 0 after 2", EMU_HALF, 32, {{0, 0x1p-5, 0x1p-6}, {2, 1, 1}, {3, -1, 1}}, 0, 0x1p-11},
    {"order: 2 after 0", EMU_HALF, 32, {{0, 1, 1}, {1, 0x1p-5, 0x1p-6}, {2, -1, 1}}, 0, 0},
    {"two instructions", EMU_HALF, 64,
     {{0, 1, 1}, {32, 0x1p-5, 0x1p-6}, {34, 0x1p-5, 0x1p-6}}, 0, 1 + 0x1p-10},
    {"f32 c is kept", EMU_E4M3, 32, {{0, 0, 1}}, 1 + 0x1p-23, 1 + 0x1p-23},
    {"f32 c to nearest", EMU_E4M3, 32, {{0, 1, 1}}, 0x1.8p-24, 1 + 0x1p-23},
    {"f32 c, tie", B200_E4M3, 32, {{0, 1, 1}}, 0x1p-24, 1},
    {"emulated NaN", B200_E5M2, 32, {{0, INF, 1}, {2, -INF, 1}}, 0, QNAN},
    {"emulated NaN c", EMU_E4M3, 32, {{0, 1, 1}}, QNAN, QNAN},
    {"emulated inf", B200_HALF, 32, {{0, 57344, 2}}, -65504, INF},
};
/* clang-format on */

static bool same(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

START_TEST(by_hand)
{
    const struct vector *v = &vectors[_i];
    const struct dtype *t = dtype_find(v->format);
    const struct tc_row *row = tc_find(v->sm, v->instruction, t, v->f16);
    float a[MAX_K] = {0.0f}, b[MAX_K] = {0.0f}, pattern;
    uint32_t bits;
    double got;

    ck_assert_ptr_nonnull(row);
    for (int i = 0; i < MAX_TERMS; i++)
        if (v->terms[i].a != 0.0) {
            a[v->terms[i].at] = (float)v->terms[i].a;
            b[v->terms[i].at] = (float)v->terms[i].b;
        }
    got = tc_run(row, t, a, t, b, v->k, v->c);
    ck_assert_msg(same(got, v->want), "%s: got %a, want %a", v->what, got, v->want);
    pattern = (float)got;
    memcpy(&bits, &pattern, sizeof bits);
    ck_assert(!isnan(got) || bits == 0x7FFFFFFFu);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tensor_core_vectors");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, by_hand, 0, (int)(sizeof vectors / sizeof vectors[0]));
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
