#include "harness/kernel/plan_resolve.h"

#include "harness/kernel/legal.h"
#include "harness/test/case_text.h"

#include <stdlib.h>

static const uint64_t all_axes = AXIS_ALL;

static void resolve(int64_t v[AX_COUNT])
{
    uint64_t decided_by[AX_COUNT];

    ck_assert(plan_resolve(v, all_axes, 1, decided_by) == all_axes);
}

/* What "auto" gives. */
/* clang-format off */
static const struct {
    const char *change, *key, *value;
} autos[] = {
    {"a_dtype=f16", "c_dtype", "f16"},
    {"a_dtype=e4m3", "c_dtype", "bf16"},
    {"a_dtype=f16", "bs_dtype", "f16"},
    {"a_dtype=e4m3 c_dtype=f16", "bs_dtype", "f16"},
    {"weight_scale_type=tensor", "bs_dtype", "f32"},
    {"weight_scale_type=block", "bs_dtype", "f32"},
    {"n=1000", "pad_shape_n", "24"},
    {"n=1024", "pad_shape_n", "0"},
    {"k=1000", "pad_shape_k", "24"},
    {"a_dtype=int4 b_dtype=int4 k=1056", "pad_shape_k", "96"},
    {"weight_scale_type=group", "weight_scale_group_size", "128"},
    {"weight_scale_type=channel", "weight_scale_group_size", "0"},
    {"weight_scale_type=block", "weight_scale_group_size_n", "128"},
    {"weight_scale_type=group", "weight_scale_group_size_n", "0"},
    {"a_dtype=int8 weight_scale_type=group", "use_int_weight_scale", "true"},
    {"a_dtype=int8", "use_int_weight_scale", "false"},
    {"a_dtype=f16 weight_scale_type=group", "use_int_weight_scale", "false"},
    {"a_dtype=int8 weight_scale_type=group input_scale_group_size=64",
     "use_int_weight_scale", "false"},
    {"a_dtype=int8 weight_scale_type=group weight_scale_2_type=tensor",
     "use_int_weight_scale", "true"},
    {"a_dtype=int8 weight_scale_type=group weight_scale_2_type=channel",
     "use_int_weight_scale", "false"},
    {"a_dtype=int8 weight_scale_type=group b_dtype=e2m1 bs_dtype=e8m0",
     "use_int_weight_scale", "false"},
    {"a_dtype=int8 weight_scale_type=group b_dtype=e2m1 bs_dtype=e8m0",
     "use_fused_e8m0_scale", "true"},
    {"a_dtype=e4m3 weight_scale_type=group b_dtype=e2m1 bs_dtype=e8m0",
     "use_fused_e8m0_scale", "true"},
    {"a_dtype=e5m2 weight_scale_type=group b_dtype=e2m1 bs_dtype=e8m0",
     "use_fused_e8m0_scale", "false"},
    {"a_dtype=bf16 weight_scale_type=group b_dtype=e2m1 bs_dtype=e8m0",
     "use_fused_e8m0_scale", "false"},
    {"a_dtype=e4m3 weight_scale_type=group b_dtype=float4e1m2 bs_dtype=e8m0",
     "use_fused_e8m0_scale", "false"},
    {"a_dtype=e4m3 weight_scale_type=group b_dtype=e2m1 bs_dtype=e4m3",
     "use_fused_e8m0_scale", "false"},
    {"check=exact", "fill", "E1"},
    {"check=exact use_f16_accum=true", "fill", "E2"},
    {"check=exact use_stream_k=true", "fill", "E2"},
    {"check=exact a_dtype=bf16 m=15", "fill", "E2"},
    {"check=exact a_dtype=f16 b_dtype=uint8 m=15", "fill", "E2"},
    {"check=exact a_dtype=f16 b_dtype=uint8 m=16", "fill", "E1"},
    {"check=exact a_dtype=bf16 m=16", "fill", "E1"},
    {"check=exact a_dtype=f16 m=15", "fill", "E1"},
    {"check=exact a_dtype=bf16 m=64 gemm_type=indexed num_experts=2", "fill", "E2"},
    {"check=exact a_dtype=f16 m=64 gemm_type=indexed num_experts=2", "fill", "E1"},
    {"", "routing", "none"},
    {"gemm_type=indexed num_experts=2", "routing", "uniform"},
    {"", "max_tokens", "0"},
    {"gemm_type=grouped_contiguous num_experts=4", "max_tokens", "0"},
    {"gemm_type=grouped_masked num_experts=4 m=64", "max_tokens", "16"},
    {"check=readout", "fill", "P"},
    {"check=bound", "fill", "R"},
    {"check=model", "fill", "R"},
    {"check=invariant", "fill", "R"},
    {"check=deterministic", "fill", "R"},
    {"check=alias", "fill", "R"},
    {"check=guard", "fill", "E2"},
    {"check=locks", "fill", "E2"},
    {"check=special", "fill", "X"},
    {"check=contract", "fill", "E1"},
    {"check=exhaustive", "fill", "P"},
    {"", "seed", "1"},
    {"seed=7", "seed", "7"},
};
/* clang-format on */

START_TEST(auto_values)
{
    int64_t v[AX_COUNT];
    enum axis_id x = (enum axis_id)axis_find(autos[_i].key);

    case_defaults(v);
    case_set(v, autos[_i].change);
    resolve(v);
    ck_assert_msg(v[x] == case_value(x, autos[_i].value), "'%s': %s", autos[_i].change,
                  autos[_i].key);
}
END_TEST

/* Resolving with some axes known gives what resolving with all gives, and only what decided_by
 * names matters. */
static void resolve_partly(uint64_t state)
{
    uint64_t decided_by[AX_COUNT], ignored[AX_COUNT];
    int64_t v[AX_COUNT], whole[AX_COUNT], part[AX_COUNT];
    uint64_t known = case_random(&state) << 31 ^ case_random(&state), got;

    known |= case_random(&state) << 16;
    known &= all_axes;
    for (int x = 0; x < AX_COUNT; x++) {
        bool is_auto = axes[x].may_be_auto && case_random(&state) % 2;

        v[x] = is_auto ? AXIS_AUTO : case_random_value((enum axis_id)x, &state);
    }
    memcpy(whole, v, sizeof v);
    memcpy(part, v, sizeof v);
    resolve(whole);
    got = plan_resolve(part, known, 1, decided_by);
    ck_assert(!(got & ~known));
    for (int x = 0; x < AX_COUNT; x++) {
        if (!(got & AXIS_BIT(x)))
            continue;
        ck_assert_msg(part[x] == whole[x], "%s", axes[x].key);
        ck_assert(!(decided_by[x] & ~known));
        ck_assert(!axes[x].of_problem || part[x] != AXIS_AUTO);
        for (int y = 0; y < AX_COUNT; y++)
            part[y] =
                decided_by[x] & AXIS_BIT(y) ? v[y] : case_random_value((enum axis_id)y, &state);
        (void)plan_resolve(part, all_axes, 1, ignored);
        ck_assert_msg(part[x] == whole[x], "%s", axes[x].key);
        memcpy(part, v, sizeof v);
        (void)plan_resolve(part, known, 1, ignored);
    }
}

START_TEST(partial_resolution)
{
    for (uint64_t i = 0; i < 300; i++)
        resolve_partly(i);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

int main(void)
{
    Suite *s = suite_create("plan_resolve");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, auto_values, 0, COUNT(autos));
    tcase_add_test(tc, partial_resolution);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
