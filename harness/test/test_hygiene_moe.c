/* Each check of several launches with experts: the right provider passes, one that is wrong in one
 * way gets `fail`. */
#include "harness/kernel/routing.h"
#include "harness/test/wrong_routing.h"

#include <stdlib.h>

/* ---- the tables ---- */

#define INDEXED  "gemm_type=indexed num_experts=4 top_k=2 n=128 k=128 "
#define OFFSETS  "gemm_type=grouped_contiguous num_experts=4 n=128 k=128 "
#define COUNTS   "gemm_type=grouped_masked num_experts=4 m=40 n=128 k=128 "
#define STREAM_K "block_shape=16x64x64 warp_shape=16x32x64 use_stream_k=true num_sms=5 "
#define ALL_CODES \
    "n=128 k=128 m=512 bs_dtype=e4m3 weight_scale_group_size=32 scales=all check=exhaustive"

/* clang-format off */
static const char *const rights[] = {
    INDEXED "check=guard routing=missing",
    INDEXED "check=guard routing=spare",
    INDEXED "check=alias routing=duplicate",
    INDEXED "check=deterministic routing=empty",
    INDEXED "check=locks",
    INDEXED "check=special routing=skewed",
    INDEXED "check=special routing=missing a_dtype=e4m3 c_dtype=f16",
    INDEXED "check=special m=1",
    INDEXED "check=special weight_scale_type=tensor has_bias=true",
    INDEXED "check=special weight_scale_type=channel a_dtype=int8",
    INDEXED "check=contract routing=missing",
    INDEXED "check=contract m=1 a_dtype=e4m3",
    INDEXED "check=invariant routing=uniform",
    INDEXED "check=invariant routing=duplicate a_dtype=e4m3",
    INDEXED "check=invariant routing=single use_batch_invariant=true",
    INDEXED "check=invariant routing=missing a_dtype=e2m1 b_dtype=e2m1",
    "gemm_type=indexed num_experts=4 top_k=2 n=192 k=256 " STREAM_K "check=invariant routing=skewed",
    "gemm_type=indexed num_experts=4 top_k=2 n=192 k=256 " STREAM_K "check=locks m=9",
    INDEXED STREAM_K "check=guard routing=spare",
    INDEXED STREAM_K "check=contract",
    OFFSETS "check=guard routing=spare",
    OFFSETS "check=guard routing=missing expert_layout_dtype=int64",
    OFFSETS "check=alias",
    OFFSETS "check=deterministic routing=empty a_dtype=bf16",
    OFFSETS "check=special routing=empty",
    OFFSETS "check=special weight_scale_type=block weight_scale_group_size_n=64",
    OFFSETS "check=special routing=spare a_dtype=int8 m=40",
    OFFSETS "check=contract expert_layout_dtype=int64 routing=spare",
    OFFSETS "check=contract num_experts=1",
    OFFSETS "check=invariant routing=skewed",
    OFFSETS "check=invariant routing=spare expert_layout_dtype=int64 a_dtype=e4m3",
    OFFSETS "check=invariant num_experts=1 m=17",
    OFFSETS STREAM_K "check=invariant",
    OFFSETS STREAM_K "check=deterministic",
    COUNTS "check=guard",
    COUNTS "check=guard routing=spare expert_layout_dtype=int64 a_dtype=e4m3",
    COUNTS "check=alias",
    COUNTS "check=special",
    COUNTS "check=special weight_scale_2_type=channel has_bias=true",
    COUNTS "check=contract expert_layout_dtype=int64",
    COUNTS "check=invariant routing=skewed",
    COUNTS "check=invariant use_batch_invariant=true a_dtype=e4m3 c_dtype=f16",
    "gemm_type=grouped_masked num_experts=4 m=40 n=192 k=256 " STREAM_K "check=locks",
    "gemm_type=grouped_contiguous num_experts=2 " ALL_CODES,
    "gemm_type=indexed num_experts=2 top_k=2 " ALL_CODES,
};

static const struct {
    forward_fn *forward;
    const char *text, *reason;
} wrongs[] = {
    {writes_untouched,    INDEXED "check=guard routing=missing",     "which no expert has"},
    {writes_untouched,    OFFSETS "check=guard routing=spare",       "which no expert has"},
    {writes_untouched,    COUNTS "check=deterministic",              "which no expert has"},
    {writes_untouched,    COUNTS "check=invariant",                  "which no expert has"},
    {writes_poison,       INDEXED "check=guard routing=missing",     "which no expert has"},
    {writes_poison,       COUNTS "check=guard",                      "which no expert has"},
    {writes_poison,       OFFSETS "check=deterministic routing=spare", "which no expert has"},
    {unwritten,           INDEXED "check=guard",                     "they are not written"},
    {unwritten,           OFFSETS "check=guard",                     "they are not written"},
    {unwritten,           OFFSETS "check=invariant",                 "depend on"},
    {unwritten,           COUNTS "check=deterministic",              "from one launch to the next"},
    {reads_neighbour,     INDEXED "check=invariant",                 "a NaN in another row"},
    {reads_neighbour,     OFFSETS "check=invariant",                 "a NaN in another row"},
    {reads_neighbour,     COUNTS "check=invariant",                  "a NaN in another row"},
    {reads_neighbour,     OFFSETS STREAM_K "check=invariant",        "a NaN in another row"},
    {reads_other_expert,  INDEXED "check=invariant top_k=1",         "a NaN in another row"},
    {reads_other_expert,  OFFSETS "check=invariant",                 "a NaN in another row"},
    {reads_other_expert,  COUNTS "check=invariant routing=skewed",   "a NaN in another row"},
    {reads_behind_expert, COUNTS "check=invariant",                  "depend on"},
    {depends_on_count,    INDEXED "check=invariant",                 "how many rows there are"},
    {depends_on_count,    COUNTS "check=invariant",                  "how many rows there are"},
    {depends_on_empty,    OFFSETS "check=invariant routing=skewed",  "depend on"},
    {depends_on_empty,    INDEXED "check=invariant routing=empty",   "depend on"},
    {depends_on_place,    INDEXED "check=invariant",                 "depend on"},
    {depends_on_last,     OFFSETS "check=invariant",                 "how many rows there are"},
    {changes_ids,         INDEXED "check=guard",                     "wrote outside its output: sorted_ids"},
    {changes_ids,         INDEXED "check=invariant",                 "wrote outside its output: sorted_ids"},
    {changes_experts,     INDEXED "check=deterministic",             "wrote outside its output: expert_ids"},
    {changes_layout,      OFFSETS "check=guard",                     "wrote outside its output: expert_layout"},
    {changes_layout,      COUNTS "check=alias",                      "wrote outside its output: expert_layout"},
    {reads_padding,       INDEXED "check=guard",                     "something outside"},
    {not_deterministic,   INDEXED "check=deterministic",             "from one launch to the next"},
    {not_deterministic,   COUNTS "check=deterministic",              "from one launch to the next"},
    {remembers_routing,   OFFSETS "check=deterministic",             "from one launch to the next"},
    {accepts_overlap,     INDEXED "check=alias",                     "overlap sorted_ids must be refused"},
    {accepts,             COUNTS "check=alias",                      "must be refused"},
    {leaves_lock,         INDEXED STREAM_K "check=locks",            "locks"},
    {accepts_few_locks,   OFFSETS STREAM_K "check=locks",            "fewer locks than tiles must be refused"},
    {swallows_nan,        INDEXED "check=special",                   "the case"},
    {swallows_nan,        OFFSETS "check=special",                   "the case"},
    {wrong_alone,         INDEXED "check=special top_k=1",           "a single row"},
    {wrong_alone,         COUNTS "check=special",                    "a single row"},
    {wrong_at_zero,       OFFSETS "check=special",                   "all-zero rows"},
    {wrong_at_zero,       INDEXED "check=special",                   "all-zero rows"},
    {wrong_at_duplicates, INDEXED "check=special",                   "one expert"},
    {wrong_at_duplicates, INDEXED "check=special routing=duplicate", "the case"},
    {refuses_no_rows,     INDEXED "check=special",                   "no rows"},
    {refuses_no_rows,     COUNTS "check=special",                    "no rows"},
    {refuses_nobody,      INDEXED "check=special",                   "nobody"},
    {refuses_nobody,      OFFSETS "check=special",                   "nobody"},
    {accepts_counts,      COUNTS "check=contract",                   "a negative count must be refused"},
    {low_half,            COUNTS "check=contract expert_layout_dtype=int64", "a count of 2^32 must be refused"},
    {accepts_falling,     OFFSETS "check=contract",                  "must be refused"},
    {accepts_first,       OFFSETS "check=contract",                  "a first offset of 1 must be refused"},
    {accepts_last,        OFFSETS "check=contract",                  "a last offset above m must be refused"},
    {accepts_padded,      INDEXED "check=contract",                  "a negative num_tokens_padded must be refused"},
    {accepts_experts,     INDEXED "check=contract",                  "an expert id of num_experts must be refused"},
    {accepts_negative,    INDEXED "check=contract",                  "a negative id must be refused"},
    {accepts_twice,       INDEXED "check=contract",                  "an id twice, side by side must be refused"},
    {accepts_length,      OFFSETS "check=contract",                  "expert_layout with another first size must be refused"},
    {accepts_length,      COUNTS "check=contract",                   "expert_layout with another first size must be refused"},
    {accepts_blocks,      INDEXED "check=contract",                  "sorted_ids with"},
    {accepts_format,      INDEXED "check=contract",                  "expert_ids with another format must be refused"},
    {accepts_missing,     INDEXED "check=contract",                  "num_tokens_padded with another format must be refused"},
    {accepts_extra,       INDEXED "check=contract",                  "expert_layout with a tensor that must be absent"},
    {writes_then_refuses, INDEXED "check=contract",                  "although it refused"},
    {accepts,             COUNTS "check=contract",                   "must be refused: forward accepted it"},
    {depends_on_last,     "gemm_type=indexed num_experts=2 top_k=2 " ALL_CODES, "the only right code"},
};
/* clang-format on */
enum { RIGHTS = sizeof rights / sizeof rights[0], WRONGS = sizeof wrongs / sizeof wrongs[0] };

START_TEST(right_provider_passes)
{
    expect_verdict(&hum_cpu_provider, rights[_i], VERDICT_PASS, "");
}
END_TEST

START_TEST(wrong_providers_are_seen)
{
    struct hum_provider p = provider_with(wrongs[_i].forward);

    expect_verdict(&p, wrongs[_i].text, VERDICT_FAIL, wrongs[_i].reason);
}
END_TEST

/* ---- what is not claimed ---- */

/* Without a statement of the order, slices in other places need not be alike. */
START_TEST(order_unstated)
{
    struct hum_provider p = hum_cpu_provider;
    struct record r;

    p.accumulation = NULL;
    r = run_case_text(&p, OFFSETS STREAM_K "check=invariant");
    ck_assert_msg(r.verdict == VERDICT_PASS, "%s", r.reason);
}
END_TEST

/* Pairs of codes that no routed row reads do not count as seen. */
START_TEST(unrouted_pairs_are_missed)
{
    expect_verdict(&hum_cpu_provider,
                   "gemm_type=grouped_contiguous num_experts=2 routing=spare " ALL_CODES " m=16",
                   VERDICT_UNTRUSTED, "do not occur");
}
END_TEST

/* ---- mixes ---- */

/* clang-format off */
static const char *const mixes[] = {
    "m=9",
    INDEXED "m=9 routing=missing",
    INDEXED "m=9 routing=skewed",
    OFFSETS "m=23 routing=spare",
    OFFSETS "m=23 routing=empty",
    COUNTS "routing=skewed",
    COUNTS "routing=spare",
};
/* clang-format on */

/* The rows of a routing, launched again, have the experts that they had, and no row is new. */
START_TEST(mix_keeps_pairs)
{
    int64_t v[AX_COUNT], pairs = 0, had = 0;
    struct arena arena;
    struct mix_launch l;
    struct routing r;
    struct mix mix;
    int32_t *index;

    make_case(mixes[_i], v);
    ck_assert(arena_init(&arena, (size_t)1 << 22));
    ck_assert(routing_make(v, v[AX_M], &arena, &r) && mix_make(&r, r.m, 0, &arena, &mix));
    ck_assert(mix_to_launch(&r, &mix, -7, &arena, &l));
    index = routing_index(&r, &arena);
    ck_assert(index && l.routing.m == l.m && l.routing.rows == l.m * r.top_k);
    for (int64_t i = 0; i < l.routing.rows; i++) {
        int32_t e = l.routing.row_expert[i];

        if (e < 0)
            continue;
        pairs++;
        ck_assert_int_ge(l.rows[l.routing.row_a[i]], 0);
        ck_assert_int_ge(index[l.rows[l.routing.row_a[i]] * r.experts + e], 0);
    }
    for (int64_t i = 0; i < r.rows; i++)
        had += r.row_expert[i] >= 0;
    ck_assert(pairs == had && had > 0);
    arena_free(&arena);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hygiene_moe");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, right_provider_passes, 0, RIGHTS);
    tcase_add_loop_test(tc, wrong_providers_are_seen, 0, WRONGS);
    tcase_add_loop_test(tc, mix_keeps_pairs, 0, (int)(sizeof mixes / sizeof mixes[0]));
    tcase_add_test(tc, order_unstated);
    tcase_add_test(tc, unrouted_pairs_are_missed);
    tcase_set_timeout(tc, 30);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
