/* Orders of summation that ref_accum_valid accepts, and one for each sentence with which it
 * refuses. */
#include "reference/accum.h"
#include "reference/tensor_core.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN false, 0, 0, 0 /* K-warps by halves, no powers of two */

/* clang-format off */
static const struct {
    const char *words; /* of the refusal; NULL: accepted */
    int64_t k;
    struct ref_accum s; /* tensor_core, instruction_k, block_k, warp_k, flush_k, slices, ... */
} cases[] = {
    {NULL, 512, {NULL, 32, 128, 64, 64, 2, true, {{256, 512}, {0, 256}}, PLAIN}},
    {NULL, 512, {NULL, 32, 128, 128, 0, 1, false, {{0, 512}}, PLAIN}},
    {NULL, 512, {NULL, 16, 64, 16, 32, 3, true, {{448, 512}, {64, 448}, {0, 64}}, PLAIN}},
    {NULL, 512, {NULL, 1, 512, 8, 2, 1, true, {{0, 512}}, PLAIN}},
    {"at least", 512, {NULL, 0, 128, 64, 64, 1, true, {{0, 512}}, PLAIN}},
    {"at least", 512, {NULL, 32, 0, 64, 64, 1, true, {{0, 512}}, PLAIN}},
    {"at least", 512, {NULL, 32, 128, 0, 64, 1, true, {{0, 512}}, PLAIN}},
    {"at least", 512, {NULL, 32, 128, 64, -64, 1, true, {{0, 512}}, PLAIN}},
    {"warp_k does not divide block_k", 512, {NULL, 32, 128, 96, 0, 1, true, {{0, 512}}, PLAIN}},
    {"warp_k does not divide block_k", 512, {NULL, 32, 128, 256, 0, 1, true, {{0, 512}}, PLAIN}},
    {"power of two", 384, {NULL, 32, 192, 64, 0, 1, true, {{0, 384}}, PLAIN}},
    {"does not divide warp_k", 512, {NULL, 48, 128, 64, 0, 1, true, {{0, 512}}, PLAIN}},
    {"does not divide warp_k", 512, {NULL, 128, 128, 64, 0, 1, true, {{0, 512}}, PLAIN}},
    {"flush_k neither", 768, {NULL, 32, 256, 128, 96, 1, true, {{0, 768}}, PLAIN}},
    {"does not divide flush_k", 512, {NULL, 32, 128, 64, 16, 1, true, {{0, 512}}, PLAIN}},
    {"1 to 64", 512, {NULL, 32, 128, 64, 64, 0, true, {{0, 512}}, PLAIN}},
    {"1 to 64", 512, {NULL, 32, 128, 64, 64, -1, true, {{0, 512}}, PLAIN}},
    {"1 to 64", 512, {NULL, 32, 128, 64, 64, REF_MAX_SLICES + 1, true, {{0, 512}}, PLAIN}},
    {"do not tile", 512, {NULL, 32, 128, 64, 64, 1, true, {{0, 256}}, PLAIN}},
    {"do not tile", 512, {NULL, 32, 128, 64, 64, 1, true, {{0, 640}}, PLAIN}},
    {"do not tile", 512, {NULL, 32, 128, 64, 64, 1, true, {{256, 512}}, PLAIN}},
    {"do not tile", 512, {NULL, 32, 128, 64, 64, 1, true, {{-128, 512}}, PLAIN}},
    {"do not tile", 512, {NULL, 32, 128, 64, 64, 2, true, {{0, 256}, {256, 512}}, PLAIN}},
    {"do not tile", 512, {NULL, 32, 128, 64, 64, 2, true, {{256, 512}, {0, 128}}, PLAIN}},
    {"do not tile", 512, {NULL, 32, 128, 64, 64, 2, true, {{0, 512}, {0, 0}}, PLAIN}},
    {"multiple of block_k", 512, {NULL, 32, 128, 64, 64, 2, true, {{320, 512}, {0, 320}}, PLAIN}},
    {NULL, 512, {NULL, 32, 128, 64, 64, 1, true, {{0, 512}}, true, 9, 2, 7}},
    {NULL, 512, {NULL, 32, 128, 64, 64, 1, true, {{0, 512}}, false, REF_MAX_SHIFT, 0, 0}},
    {"powers of two", 512, {NULL, 32, 128, 64, 64, 1, true, {{0, 512}}, false, 9, 2, 8}},
    {"powers of two", 512, {NULL, 32, 128, 64, 64, 1, true, {{0, 512}}, false, 9, -1, 8}},
    {"powers of two", 512, {NULL, 32, 128, 64, 64, 1, true, {{0, 512}}, false, 9, 8, -1}},
    {"powers of two", 512, {NULL, 32, 128, 64, 64, 1, true, {{0, 512}}, false, -1, 0, 0}},
    {"powers of two", 512, {NULL, 32, 128, 64, 64, 1, true, {{0, 512}}, false, 33, 0, 0}},
    {"the padded k", 448, {NULL, 32, 128, 64, 64, 1, true, {{0, 448}}, PLAIN}},
};
/* clang-format on */

START_TEST(sentences)
{
    const char *got = ref_accum_valid(&cases[_i].s, cases[_i].k);

    if (!cases[_i].words)
        ck_assert_msg(!got, "case %d: %s", _i, got);
    else
        ck_assert_msg(got && strstr(got, cases[_i].words), "case %d: %s", _i,
                      got ? got : "accepted");
}
END_TEST

/* Blocks of 32 products do not fit instructions of 16. */
START_TEST(tensor_core_block)
{
    struct ref_accum s = {.tensor_core = tc_find(90, TC_WGMMA, dtype_find("e4m3"), false),
                          .instruction_k = 32,
                          .block_k = 64,
                          .warp_k = 64,
                          .slices = 1,
                          .slice = {{0, 64}}};

    ck_assert_ptr_null(ref_accum_valid(&s, 64));
    s.instruction_k = 16;
    ck_assert_ptr_nonnull(ref_accum_valid(&s, 64));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("accum");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, sentences, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(tc, tensor_core_block);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
