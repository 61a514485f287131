/* The support matrix, compared with combinations tried one by one and with rules written here a
 * second time from upstream's table.
 */
#include "harness/kernel/legal.h"
#include "harness/kernel/matrix.h"
#include "harness/kernel/plan_resolve.h"
#include "harness/kernel/words.h"
#include "harness/test/case_text.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_A, PLACE_B, PLACE_C, PLACE_BS, PLACE_SCALE, PLACE_ZERO, PLACE_GEMM, PLACE_MMA };

static struct arena arena;

static void open_arena(void)
{
    ck_assert(arena_init(&arena, (size_t)64 << 20));
}

static void close_arena(void)
{
    arena_free(&arena);
}

static void read_case(const char *text, int64_t v[AX_COUNT])
{
    case_defaults(v);
    case_set(v, text);
}

static struct matrix matrix_of(int sm)
{
    struct matrix m;

    ck_assert(matrix_make(sm, &arena, &m));
    return m;
}

/* ---- instructions of a compute capability ---------------------------------------------------- */

static const struct {
    int sm;
    const char *a;
    const char *mma; /* "": the format does not run */
} capabilities[] = {
    {75, "f16", "mma"},
    {75, "int8", "mma"},
    {75, "bf16", ""},
    {75, "e4m3", ""},
    {75, "int4", ""},
    {80, "bf16", "mma"},
    {80, "int4", "mma"},
    {80, "e4m3", ""},
    {89, "e4m3", "mma"},
    {89, "e5m2", "mma"},
    {90, "f16", "mma wgmma"},
    {90, "bf16", "mma wgmma"},
    {90, "e4m3", "mma wgmma"},
    {90, "e5m2", "mma wgmma"},
    {90, "int8", "mma wgmma"},
    {90, "int4", "mma"},
    {90, "e2m1", ""},
    {90, "e3m4", ""},
    {90, "e0m3", ""},
    {100, "bf16", "mma umma"},
    {100, "e2m1", "umma"},
    {103, "e3m4", "umma"},
    {120, "e2m1", "mxmma"},
    {121, "e0m3", "mxmma"},
    {120, "e4m3", "mma mxmma"},
    {120, "f16", "mma"},
    {120, "int8", "mma"},
    {70, "f16", ""},
    {90, "f32", ""},
    {90, "uint4", ""},
};

/* The instructions that the matrix has for a format: "mma wgmma". */
static void instructions_of(const struct matrix *m, int64_t a, char text[64])
{
    bool has[4] = {false};

    for (size_t i = 0; i < m->count; i++)
        if (matrix_value(m->rows[i].key, PLACE_A) == a)
            has[matrix_value(m->rows[i].key, PLACE_MMA)] = true;
    text[0] = '\0';
    for (int mma = 0; mma < 4; mma++)
        if (has[mma])
            (void)snprintf(text + strlen(text), 64 - strlen(text), "%s%s", *text ? " " : "",
                           axes[AX_MMA].words[mma]);
}

START_TEST(test_capabilities)
{
    struct matrix m = matrix_of(capabilities[_i].sm);
    char text[64];

    instructions_of(&m, case_value(AX_A, capabilities[_i].a), text);
    ck_assert_str_eq(text, capabilities[_i].mma);
}
END_TEST

/* ---- pairs of activations and weights -------------------------------------------------------- */

/* Upstream's rules for compute capability 9.0. */
static bool is_pair(const char *a, const struct dtype *b)
{
    static const struct {
        const char *name;
        int exponent, mantissa;
    } floats[] = {{"f16", 5, 10}, {"bf16", 8, 7}, {"e4m3", 4, 3}, {"e5m2", 5, 2}};
    bool unsigned_int = !b->is_float && !b->is_signed;

    if (!strcmp(a, "int8"))
        return (unsigned_int && b->bits < 8) || !strcmp(b->name, "int8") ||
               !strcmp(b->name, "e2m1");
    if (!strcmp(a, "int4"))
        return (unsigned_int && b->bits < 4) || !strcmp(b->name, "int4");
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++)
        if (!strcmp(a, floats[i].name)) {
            if (unsigned_int)
                return b->bits <= floats[i].mantissa + 2;
            return b->is_float && b->is_signed && b->bits <= 8 && b->top == DTYPE_TOP_FINITE &&
                   b->exp_bits >= 1 && b->exp_bits <= floats[i].exponent &&
                   b->man_bits <= floats[i].mantissa;
        }
    return false;
}

START_TEST(test_pairs)
{
    struct matrix m = matrix_of(90);
    bool there[128][128] = {{false}};
    size_t count = 0;
    struct matrix_share share;

    for (size_t i = 0; i < m.count; i++)
        there[matrix_value(m.rows[i].key, PLACE_A)][matrix_value(m.rows[i].key, PLACE_B)] = true;
    for (int a = 0; a < dtype_count; a++)
        for (int b = 0; b < dtype_count; b++) {
            count += there[a][b];
            if (there[a][b] != is_pair(dtypes[a].name, &dtypes[b]))
                ck_abort_msg("%s x %s", dtypes[a].name, dtypes[b].name);
        }
    ck_assert(matrix_count(&m, 1u << PLACE_A | 1u << PLACE_B, &share, NULL, NULL));
    ck_assert_uint_eq(share.all, count);
    ck_assert_uint_eq(share.covered, 0);
}
END_TEST

/* ---- whole combinations, one by one ---------------------------------------------------------- */

static const struct {
    const char *a, *b, *mma;
    bool any; /* legal combinations */
} tried[] = {{"f16", "uint4", "wgmma", true}, {"bf16", "uint8", "mma", true},
             {"e4m3", "e2m1", "wgmma", true}, {"e5m2", "uint3", "wgmma", true},
             {"int8", "int8", "wgmma", true}, {"int8", "e2m1", "mma", true},
             {"int4", "uint2", "mma", true},  {"bf16", "float8e4m3", "mma", true},
             {"int8", "uint8", "mma", false}, {"int4", "uint2", "wgmma", false}};

static bool legal_alone(int64_t v[AX_COUNT])
{
    uint64_t decided_by[AX_COUNT];

    v[AX_EXPERTS] = v[AX_GEMM_TYPE] == GEMM_DENSE ? 0 : 4;
    (void)plan_resolve(v, ~UINT64_C(0), 1, decided_by);
    return !legal_broken(v);
}

/* The same for every combination of one `tried`. */
static void set_tried(int64_t v[AX_COUNT], int i)
{
    read_case("m=32 n=256 k=512 check=exact tuning=provider", v);
    v[AX_A] = case_value(AX_A, tried[i].a);
    v[AX_B] = case_value(AX_B, tried[i].b);
    v[AX_MMA] = case_value(AX_MMA, tried[i].mma);
}

/* Of the combinations of one `tried` with these c and bs: covers those that are legal, and counts
 * them and those of which the matrix says otherwise. */
static void try_others(struct matrix *m, const int64_t plain[AX_COUNT], size_t *legal, size_t *odd)
{
    int64_t v[AX_COUNT];

    for (int other = 0; other < 4 * 3 * 4; other++) {
        bool is;

        memcpy(v, plain, sizeof v);
        v[AX_SCALE] = other % 4;
        v[AX_ZERO] = other / 4 % 3;
        v[AX_GEMM_TYPE] = other / 12;
        is = legal_alone(v);
        *legal += is;
        *odd += is != matrix_cover(m, v);
    }
}

static size_t rows_of(const struct matrix *m, const int64_t v[AX_COUNT])
{
    size_t rows = 0;

    for (size_t i = 0; i < m->count; i++)
        rows += matrix_value(m->rows[i].key, PLACE_A) == v[AX_A] &&
                matrix_value(m->rows[i].key, PLACE_B) == v[AX_B] &&
                matrix_value(m->rows[i].key, PLACE_MMA) == v[AX_MMA];
    return rows;
}

START_TEST(test_one_by_one)
{
    struct matrix m = matrix_of(90);
    struct matrix_share share;
    int64_t plain[AX_COUNT];
    size_t legal = 0, odd = 0;

    set_tried(plain, _i);
    for (plain[AX_C] = 0; plain[AX_C] < dtype_count; plain[AX_C]++)
        for (plain[AX_BS] = 0; plain[AX_BS] < dtype_count; plain[AX_BS]++)
            try_others(&m, plain, &legal, &odd);
    ck_assert_uint_eq(odd, 0);
    ck_assert_uint_eq(rows_of(&m, plain), legal);
    ck_assert(matrix_count(&m, 255, &share, NULL, NULL));
    ck_assert_uint_eq(share.covered, legal);
    ck_assert_uint_eq(share.all, m.count);
    ck_assert_int_eq(legal > 0, tried[_i].any);
}
END_TEST

/* ---- counting -------------------------------------------------------------------------------- */

static void count_lost(uint64_t key, void *context)
{
    size_t *count = context;

    (void)key;
    (*count)++;
}

static void cover_few(struct matrix *m)
{
    static const char *const cases[] = {
        "a_dtype=f16 b_dtype=uint4", "a_dtype=bf16 b_dtype=uint4 mma_type=mma",
        "a_dtype=f16 b_dtype=uint8 weight_scale_type=group", "a_dtype=f16 b_dtype=uint4"};
    uint64_t decided_by[AX_COUNT];
    int64_t v[AX_COUNT];
    char text[256];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(text, sizeof text, "m=32 n=256 k=512 check=exact %s", cases[i]);
        read_case(text, v);
        (void)plan_resolve(v, ~UINT64_C(0), 1, decided_by);
        ck_assert(matrix_cover(m, v));
    }
}

/* Of what cover_few covers. */
static const struct {
    unsigned places;
    size_t covered, all;
} counts[] = {{1u << PLACE_A, 2, 6},
              {1u << PLACE_MMA, 2, 2},
              {1u << PLACE_SCALE, 2, 4},
              {1u << PLACE_GEMM, 1, 4},
              {1u << PLACE_ZERO, 1, 3},
              {1u << PLACE_C, 2, 2},
              {1u << PLACE_A | 1u << PLACE_MMA, 2, 11},
              {1u << PLACE_A | 1u << PLACE_GEMM, 2, 24}};

START_TEST(test_counts)
{
    struct matrix m = matrix_of(90);
    struct matrix_share share;
    size_t lost = 0;

    cover_few(&m);
    ck_assert(matrix_count(&m, counts[_i].places, &share, count_lost, &lost));
    ck_assert_uint_eq(share.covered, counts[_i].covered);
    ck_assert_uint_eq(share.all, counts[_i].all);
    ck_assert_uint_eq(lost, share.all - share.covered);
    ck_assert(matrix_count(&m, 255, &share, NULL, NULL));
    ck_assert_uint_eq(share.covered, 3);
}
END_TEST

/* An mma_type that is left to the provider is upstream's default. */
static const struct {
    int sm;
    const char *a, *b;
    enum word_mma mma;
} instructions[] = {
    {90, "f16", "uint4", MMA_WGMMA}, {90, "int4", "uint2", MMA_MMA}, {80, "f16", "uint4", MMA_MMA}};

START_TEST(test_default_instruction)
{
    struct matrix m = matrix_of(instructions[_i].sm);
    uint64_t decided_by[AX_COUNT];
    int64_t v[AX_COUNT];

    read_case("m=32 n=256 k=512 check=exact", v);
    v[AX_A] = case_value(AX_A, instructions[_i].a);
    v[AX_B] = case_value(AX_B, instructions[_i].b);
    (void)plan_resolve(v, ~UINT64_C(0), 1, decided_by);
    ck_assert_int_eq(v[AX_MMA], AXIS_AUTO);
    ck_assert(matrix_cover(&m, v));
    for (size_t i = 0; i < m.count; i++)
        if (m.rows[i].covered)
            ck_assert_int_eq(matrix_value(m.rows[i].key, PLACE_MMA), (int)instructions[_i].mma);
}
END_TEST

START_TEST(test_foreign)
{
    struct matrix m = matrix_of(90), none = matrix_of(70);
    int64_t v[AX_COUNT];

    read_case("family=pack m=32 k=512 check=exact", v);
    ck_assert(!matrix_cover(&m, v));
    read_case("a_dtype=e2m1 b_dtype=e2m1 c_dtype=bf16 bs_dtype=bf16 m=32 n=256 k=512 check=exact",
              v);
    ck_assert(!matrix_cover(&m, v));
    ck_assert_uint_eq(none.count, 0);
    ck_assert(!matrix_cover(&none, v));
}
END_TEST

START_TEST(test_no_memory)
{
    struct arena small;
    struct matrix m;

    ck_assert(arena_init(&small, 4096));
    ck_assert(!matrix_make(90, &small, &m));
    arena_free(&small);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("matrix");
    TCase *c = tcase_create("matrix");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, open_arena, close_arena);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, test_capabilities, 0, sizeof capabilities / sizeof capabilities[0]);
    tcase_add_test(c, test_pairs);
    tcase_add_loop_test(c, test_one_by_one, 0, sizeof tried / sizeof tried[0]);
    tcase_add_loop_test(c, test_counts, 0, sizeof counts / sizeof counts[0]);
    tcase_add_loop_test(c, test_default_instruction, 0,
                        sizeof instructions / sizeof instructions[0]);
    tcase_add_test(c, test_foreign);
    tcase_add_test(c, test_no_memory);
    suite_add_tcase(suite, c);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
