/* Products with experts: routing tensors, expected codes and standard tensors against loops that
 * know nothing of gathering. */
#include "harness/config/suite.h"
#include "harness/kernel/legal.h"
#include "harness/kernel/plan_resolve.h"
#include "harness/kernel/problem.h"
#include "harness/test/case_text.h"
#include "reference/pack.h"

#include <math.h>
#include <stdlib.h>

static struct arena arena;

static void open_arena(void)
{
    ck_assert(arena_init(&arena, (size_t)1 << 30));
}

static void close_arena(void)
{
    arena_free(&arena);
}

static void case_of(const char *text, int64_t v[AX_COUNT])
{
    uint64_t decided_by[AX_COUNT];
    const struct legal_rule *broken;

    case_defaults(v);
    case_set(v, "m=24 n=96 k=128 a_dtype=f16 b_dtype=uint4");
    case_set(v, text);
    ck_assert(plan_resolve(v, AXIS_ALL, 7, decided_by) == AXIS_ALL);
    broken = legal_broken(v);
    ck_assert_msg(!broken, "%s: %s", text, broken ? broken->sentence : "");
}

/* ---- what the tensors say -------------------------------------------------------------------- */

static const char *const types[] = {"gemm_type=indexed num_experts=5 top_k=2 m=24",
                                    "gemm_type=indexed num_experts=1 top_k=1 m=3",
                                    "gemm_type=indexed num_experts=8 top_k=4 m=17",
                                    "gemm_type=grouped_contiguous num_experts=5 m=61",
                                    "gemm_type=grouped_contiguous num_experts=1 m=9",
                                    "gemm_type=grouped_masked num_experts=4 m=64",
                                    "gemm_type=grouped_masked num_experts=1 m=16"};
static const char *const kinds[] = {"uniform",   "skewed",  "empty", "single",
                                    "duplicate", "missing", "spare"};
static const int64_t blocks[] = {8, 16, 64};
enum {
    TYPES = sizeof types / sizeof types[0],
    KINDS = sizeof kinds / sizeof kinds[0],
    BLOCKS = sizeof blocks / sizeof blocks[0]
};

/* The routing of semantics.md section 10, read from the tensors alone: A row, expert and tile
 * number (of one column of tiles), by output row; -1: none. */
struct reading {
    int64_t row[512], expert[512], tile[512];
    int64_t tiles;
};

static int64_t layout_at(const struct hum_tensor *t, int64_t i)
{
    return t->dtype == HUM_INT64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

static void note(struct reading *x, int64_t out, int64_t row, int64_t expert, int64_t tile)
{
    ck_assert_int_eq(x->row[out], -1); /* nobody writes a row twice */
    x->row[out] = row;
    x->expert[out] = expert;
    x->tile[out] = tile;
}

static void read_indexed(const struct routing_tensors *t, int64_t m, int64_t top_k, int64_t block,
                         struct reading *x)
{
    const int32_t *ids = t->sorted_ids.data, *experts = t->expert_ids.data;
    int64_t end = ((const int32_t *)t->num_tokens_padded.data)[0];

    ck_assert_int_eq(end % block, 0);
    ck_assert_int_le(end, t->sorted_ids.shape[0]);
    ck_assert_int_eq(t->sorted_ids.shape[0], t->expert_ids.shape[0] * block);
    ck_assert_uint_eq(t->sorted_ids.bytes, 4 * (size_t)t->sorted_ids.shape[0]);
    for (int64_t b = 0; b < end / block; b++) {
        for (int64_t i = b * block; i < (b + 1) * block; i++)
            if (experts[b] >= 0 && ids[i] < m * top_k)
                note(x, ids[i], ids[i] / top_k, experts[b], x->tiles);
        x->tiles += experts[b] >= 0;
    }
}

static void read_group(struct reading *x, int64_t begin, int64_t count, int64_t e, int64_t block)
{
    for (int64_t i = 0; i < count; i++)
        note(x, begin + i, begin + i, e, x->tiles + i / block);
    x->tiles += (count + block - 1) / block;
}

static void read_tensors(const int64_t *v, const struct routing_tensors *t, int64_t block,
                         struct reading *x)
{
    x->tiles = 0;
    for (int i = 0; i < 512; i++)
        x->row[i] = x->expert[i] = x->tile[i] = -1;
    if (v[AX_GEMM_TYPE] == 1) {
        read_indexed(t, v[AX_M], v[AX_TOP_K], block, x);
        return;
    }
    for (int64_t e = 0; e < v[AX_EXPERTS]; e++) {
        int64_t at = layout_at(&t->expert_layout, e);

        if (v[AX_GEMM_TYPE] == 2)
            read_group(x, at, layout_at(&t->expert_layout, e + 1) - at, e, block);
        else
            read_group(x, e * v[AX_MAX_TOKENS], at, e, block);
    }
}

/* Loop index: block fastest, then routing, then type. false: not legal. */
static bool routing_case(int i, int64_t v[AX_COUNT], char *text, size_t size)
{
    const char *kind = kinds[i / BLOCKS % KINDS], *type = types[i / BLOCKS / KINDS];

    if (!strcmp(kind, "duplicate") && (!strstr(type, "top_k=2") && !strstr(type, "top_k=4")))
        return false;
    (void)snprintf(text, size, "%s routing=%s", type, kind);
    case_of(text, v);
    return true;
}

START_TEST(tensors_say_the_rows)
{
    int64_t v[AX_COUNT], block = blocks[_i % BLOCKS];
    struct routing_tensors t, wide;
    struct reading x, y;
    struct routing r;
    char text[200];

    if (!routing_case(_i, v, text, sizeof text))
        return;
    ck_assert(routing_make(v, v[AX_M], &arena, &r));
    ck_assert(routing_tensors_make(&r, block, HUM_INT32, &arena, &t));
    ck_assert(routing_tensors_make(&r, block, HUM_INT64, &arena, &wide));
    read_tensors(v, &t, block, &x);
    read_tensors(v, &wide, block, &y);
    ck_assert_int_eq(r.rows, v[AX_M] * v[AX_TOP_K]);
    ck_assert_int_eq(t.row_tiles, x.tiles);
    for (int64_t i = 0; i < r.rows; i++) {
        ck_assert_msg(r.row_a[i] == x.row[i] && r.row_expert[i] == x.expert[i], "%s row %d", text,
                      (int)i);
        ck_assert(y.row[i] == x.row[i] && y.expert[i] == x.expert[i]);
        if (x.tile[i] >= 0)
            ck_assert_int_eq(t.tiles[i].before + t.tiles[i].index, x.tile[i]);
    }
    for (int64_t i = r.rows; i < 512; i++)
        ck_assert_int_eq(x.row[i], -1);
}
END_TEST

/* Tiles of a segment are neighbours: m fastest inside it. Counted one by one over columns, then
 * row tiles of each segment. */
START_TEST(places_count_tiles)
{
    struct hum_layer_config layer = {.shape_n = 384};
    struct hum_tuning_config tuning = {.block_n = 64};
    int64_t v[AX_COUNT], seen = 0, columns = 6;
    struct routing_tensors t;
    struct reading x;
    struct routing r;
    char text[200];
    bool *taken;

    tuning.block_m = (int32_t)blocks[_i % BLOCKS];
    if (!routing_case(_i, v, text, sizeof text))
        return;
    ck_assert(routing_make(v, v[AX_M], &arena, &r));
    ck_assert(routing_tensors_make(&r, tuning.block_m, HUM_INT32, &arena, &t));
    read_tensors(v, &t, tuning.block_m, &x);
    taken = arena_zalloc(&arena, (size_t)(x.tiles * columns) + 1, sizeof *taken);
    for (int64_t i = 0; i < r.rows; i++)
        for (int64_t col = 0; x.row[i] >= 0 && col < 384; col += 32) {
            struct routing_place p = routing_place_of(&t, &layer, &tuning, i, col);
            int64_t number = p.col / 64 * x.tiles + p.row / tuning.block_m, first = x.tile[i];
            int64_t last = x.tile[i];

            ck_assert_int_eq(p.m, x.tiles * tuning.block_m);
            ck_assert(p.row >= 0 && p.row < p.m && p.col >= 0 && p.col < 384);
            for (int64_t j = 0; j < r.rows; j++) { /* the segment: tiles of one expert */
                first = x.expert[j] == x.expert[i] && x.tile[j] < first ? x.tile[j] : first;
                last = x.expert[j] == x.expert[i] && x.tile[j] > last ? x.tile[j] : last;
            }
            ck_assert_int_eq(number,
                             first * columns + col / 64 * (last - first + 1) + x.tile[i] - first);
            seen += !taken[number];
            taken[number] = true;
        }
    ck_assert_int_eq(seen, x.tiles * columns);
}
END_TEST

/* ---- expected codes -------------------------------------------------------------------------- */

static const char *const products[] = {
    "gemm_type=indexed num_experts=4 top_k=2",
    "gemm_type=indexed num_experts=3 top_k=2 routing=missing a_dtype=bf16 has_bias=true",
    "gemm_type=indexed num_experts=3 top_k=2 routing=duplicate weight_scale_type=group "
    "weight_scale_group_size=32 zero_point=int",
    "gemm_type=indexed num_experts=4 top_k=2 check=readout m=128 weight_scale_type=group "
    "zero_point=float",
    "gemm_type=indexed num_experts=4 top_k=3 fill=X",
    "gemm_type=indexed num_experts=4 top_k=2 a_dtype=e4m3 weight_scale_type=tensor has_bias=true",
    "gemm_type=grouped_contiguous num_experts=4 a_dtype=int8 weight_scale_type=group "
    "routing=skewed",
    "gemm_type=grouped_contiguous num_experts=4 a_dtype=int8 weight_scale_type=group "
    "weight_scale_2_type=tensor",
    "gemm_type=grouped_contiguous num_experts=6 a_dtype=e4m3 weight_scale_type=group "
    "input_scale_group_size=64 routing=empty",
    "gemm_type=grouped_contiguous num_experts=3 a_dtype=e4m3 b_dtype=e4m3 weight_scale_type=block "
    "weight_scale_group_size_n=64 weight_scale_group_size=64 routing=spare has_bias=true",
    "gemm_type=grouped_masked num_experts=4 m=32 weight_scale_type=group "
    "weight_scale_2_type=tensor",
    "gemm_type=grouped_masked num_experts=2 m=32 weight_scale_type=group "
    "weight_scale_2_type=channel routing=single has_bias=true",
    "gemm_type=grouped_masked num_experts=2 m=32 a_dtype=e4m3 b_dtype=e2m1 bs_dtype=e8m0 "
    "weight_scale_type=group weight_scale_group_size=32 scales=all check=readout n=32",
    "gemm_type=grouped_contiguous num_experts=3 use_f16_accum=true has_bias=true",
    "gemm_type=grouped_contiguous num_experts=3 weight_scale_type=tensor use_stream_k=true",
    "gemm_type=indexed num_experts=3 fill=W",
    "gemm_type=indexed num_experts=3 fill=S",
    "gemm_type=indexed num_experts=3 fill=O check=exact",
    "gemm_type=indexed num_experts=1",
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

/* The dense product of expert e alone: every array of its own, only the factor of integer scales
 * is the whole tensor's. */
static struct ref_gemm expert_alone(const struct ref_gemm *p, int64_t e)
{
    struct ref_gemm d = *p;
    int64_t groups = ref_groups(p), blocks_n = (p->n + p->group_n - 1) / p->group_n;
    int64_t scales = p->scale == REF_SCALE_TENSOR  ? 1
                     : p->scale == REF_SCALE_BLOCK ? blocks_n * groups
                                                   : p->n * groups;

    d.experts = 0;
    d.b_codes += e * p->n * p->k;
    d.bs_codes += e * scales;
    d.zero_codes = p->zero_codes ? p->zero_codes + e * p->n * groups : NULL;
    d.bias_codes = p->bias_codes ? p->bias_codes + e * p->n : NULL;
    if (p->scale_2_codes)
        d.scale_2_codes += p->scale_2 == REF_SCALE_2_TENSOR ? e : e * p->n;
    return d;
}

/* One exact sum of f32 products in long double (operands of these cases are short), scales on
 * accumulators included. */
static double sum_of(const struct ref_gemm *d, const float *a, const float *w, const int32_t *s_int,
                     int64_t row, int64_t col)
{
    struct ref_gemm alone = *d;
    long double sum = 0.0L;

    alone.f16_accum = false;
    for (int64_t l = 0; l < d->k; l++) {
        const int64_t group = d->int_scale ? l / d->group : 0;
        long double f = d->int_scale ? (long double)s_int[col * ref_groups(d) + group]
                                     : (long double)ref_flush_factor(&alone, row, col, l);

        sum += (long double)a[row * d->k + l] * (long double)w[col * d->k + l] * f;
    }
    return (double)sum;
}

static void check_expert(const struct problem *q, const struct reading *x, int64_t e, int64_t *done)
{
    struct ref_gemm d = expert_alone(&q->ref, e);
    int64_t groups = ref_groups(&d), n = d.n;
    float *a = arena_alloc(&arena, (size_t)(d.m * d.k), sizeof *a);
    float *w = arena_alloc(&arena, (size_t)(n * d.k), sizeof *w);
    int32_t *s_int = arena_alloc(&arena, (size_t)(q->ref.experts * n * groups), sizeof *s_int);
    struct ref_epilogue epilogue;
    float factor = 1.0f;
    int wrong = 0;

    ref_operand_a(&d, a);
    ref_operand_w(&d, 0, n, w);
    if (d.int_scale)
        ref_int_scales(&q->ref, s_int, &factor);
    ref_epilogue_init(&d, factor, &epilogue);
    for (int64_t i = 0; i < q->routing.rows; i++)
        for (int64_t j = 0; x->expert[i] == e && j < n; j++) {
            double sum = sum_of(&d, a, w, s_int + e * n * groups, x->row[i], j);
            double y = ref_epilogue_one(&epilogue, x->row[i], j, sum, true);
            double got = dtype_decode(d.c, q->want[i * n + j]);

            wrong += !(y == got || (isnan(y) && isnan(got)));
            *done += 1;
        }
    ck_assert_int_eq(wrong, 0);
}

START_TEST(want_is_each_experts_product)
{
    int64_t v[AX_COUNT], done = 0, written = 0;
    struct routing_tensors t;
    struct reading x;
    struct problem q;
    const char *why;

    case_of(products[_i], v);
    why = problem_make(v, 0, v[AX_M], 1, &arena, &q);
    ck_assert_msg(!why, "%s: %s", products[_i], why ? why : "");
    ck_assert_msg(!q.inexact || q.fill.kind == REF_FILL_X, "%s: %s", products[_i], q.inexact);
    ck_assert(routing_tensors_make(&q.routing, 16, HUM_INT32, &arena, &t));
    read_tensors(v, &t, 16, &x);
    for (int64_t e = 0; e < v[AX_EXPERTS]; e++)
        check_expert(&q, &x, e, &done);
    for (int64_t i = 0; i < q.routing.rows; i++)
        written += x.row[i] >= 0;
    ck_assert_int_eq(done, written * q.ref.n);
    ck_assert_int_gt(written, 0);
}
END_TEST

/* A row of one expert does not read like the same row of another: no two experts share a
 * signature. */
START_TEST(experts_differ)
{
    int64_t v[AX_COUNT];
    struct problem q;
    struct ref_gemm *p = &q.ref;
    int64_t n, k;

    case_of(products[_i], v);
    ck_assert_ptr_null(problem_make(v, 0, v[AX_M], 1, &arena, &q));
    n = p->n, k = p->k;
    for (int64_t e = 1; e < p->experts; e++) {
        if (q.fill.kind != REF_FILL_O && q.fill.kind != REF_FILL_P && !q.fill.all_scales)
            ck_assert_mem_ne(q.in.b, q.in.b + e * n * k, (size_t)(n * k));
        if (q.in.bias)
            ck_assert_mem_ne(q.in.bias, q.in.bias + e * n, (size_t)n * sizeof *q.in.bias);
        if (p->scale == REF_SCALE_CHANNEL || p->scale == REF_SCALE_GROUP)
            ck_assert_mem_ne(q.in.bs, q.in.bs + e * n * ref_groups(p),
                             (size_t)(n * ref_groups(p)) * sizeof *q.in.bs);
    }
    if (p->scale == REF_SCALE_TENSOR)
        ck_assert_uint_ne(q.in.bs[0], q.in.bs[1]);
}
END_TEST

/* ---- standard tensors ------------------------------------------------------------------------ */

static void check_tensor(const struct hum_tensor *t, int32_t dtype, int rank, const int64_t *shape,
                         size_t bytes)
{
    ck_assert_int_eq(t->dtype, dtype);
    ck_assert_int_eq(t->rank, rank);
    for (int i = 0; i < rank; i++)
        ck_assert_int_eq(t->shape[i], shape[i]);
    ck_assert_uint_eq(t->bytes, bytes);
}

START_TEST(tensors_have_experts_in_front)
{
    int64_t v[AX_COUNT];
    struct problem_tensors t;
    struct problem q;
    uint32_t word;

    case_of("gemm_type=grouped_contiguous num_experts=3 m=32 b_dtype=uint4 weight_scale_type=group "
            "weight_scale_group_size=32 zero_point=int weight_scale_2_type=channel has_bias=true",
            v);
    ck_assert_ptr_null(problem_make(v, 0, v[AX_M], 1, &arena, &q));
    ck_assert_ptr_null(problem_tensors_make(&q, &arena, &t));
    ck_assert_int_eq(t.layer.num_experts, 3);
    check_tensor(&t.standard.weight, HUM_INT32, 3, (const int64_t[]){3, 96, 16}, 3 * 96 * 16 * 4);
    check_tensor(&t.standard.weight_scale, HUM_F16, 3, (const int64_t[]){3, 96, 4}, 3 * 96 * 4 * 2);
    check_tensor(&t.standard.zero_point, HUM_INT32, 3, (const int64_t[]){3, 12, 4}, 3 * 12 * 4 * 4);
    check_tensor(&t.standard.weight_scale_2, HUM_F16, 2, (const int64_t[]){3, 96}, 3 * 96 * 2);
    check_tensor(&t.standard.bias, HUM_F16, 2, (const int64_t[]){3, 96}, 3 * 96 * 2);
    /* expert 2, columns 8 to 15, group 3: one word of zero points */
    word = ((const uint32_t *)t.standard.zero_point.data)[(2 * 12 + 1) * 4 + 3];
    for (int64_t j = 0; j < 8; j++)
        ck_assert_uint_eq(word >> (4 * j) & 15, q.in.zero[(2 * 96 + 8 + j) * 4 + 3]);
    /* expert 1, column 5, k 8 to 15 */
    word = ((const uint32_t *)t.standard.weight.data)[(96 + 5) * 16 + 1];
    for (int64_t l = 0; l < 8; l++)
        ck_assert_uint_eq(word >> (4 * l) & 15, q.in.b[(96 + 5) * 128 + 8 + l]);
    case_of("gemm_type=indexed num_experts=1 weight_scale_type=tensor a_dtype=e4m3", v);
    ck_assert_ptr_null(problem_make(v, 0, v[AX_M], 1, &arena, &q));
    ck_assert_ptr_null(problem_tensors_make(&q, &arena, &t));
    check_tensor(&t.standard.weight, HUM_INT32, 3, (const int64_t[]){1, 96, 16}, 96 * 16 * 4);
    check_tensor(&t.standard.weight_scale, HUM_F32, 1, (const int64_t[]){1}, 4);
    case_of("weight_scale_type=tensor a_dtype=e4m3", v);
    ck_assert_ptr_null(problem_make(v, 0, v[AX_M], 1, &arena, &q));
    ck_assert_ptr_null(problem_tensors_make(&q, &arena, &t));
    ck_assert_int_eq(t.layer.num_experts, 0);
    check_tensor(&t.standard.weight, HUM_INT32, 2, (const int64_t[]){96, 16}, 96 * 16 * 4);
    check_tensor(&t.standard.weight_scale, HUM_F32, 1, (const int64_t[]){1}, 4);
}
END_TEST

/* ---- axes ------------------------------------------------------------------------------------ */

/* With experts m belongs to the problem: another m is another routing. */
START_TEST(m_is_of_the_problem)
{
    int64_t v[AX_COUNT];

    case_of("", v);
    ck_assert(!axis_is_of_problem(AX_M, v));
    case_of("gemm_type=indexed num_experts=2", v);
    ck_assert(axis_is_of_problem(AX_M, v));
    ck_assert(axis_is_of_problem(AX_EXPERTS, v) && axis_is_of_problem(AX_ROUTING, v));
    ck_assert(!axis_is_of_problem(AX_LAYOUT_DTYPE, v));
}
END_TEST

/* One entry of family gemm, under defaults that state an axis of another family. */
static void load(const char *entry, size_t errors, const char *text)
{
    char yaml[500];
    struct errs errs = {0};
    struct suite suite;
    int size = snprintf(yaml, sizeof yaml,
                        "suite: x\ndefaults: {m: 8, n: 64, k: 64, a_dtype: f16, b_dtype: uint4, "
                        "check: exact, bits: 4}\nentries:\n  - name: a\n    %s\n",
                        entry);

    ck_assert_int_eq((int)suite_load_text("x.yaml", yaml, (size_t)size, &arena, &suite, &errs),
                     (int)(errors ? ERR_CONFIG : ERR_NONE));
    ck_assert_uint_eq(errs.count, errors);
    if (errors)
        ck_assert_str_eq(errs.items[0].text, text);
    errs_free(&errs);
}

START_TEST(foreign_axes_are_refused)
{
    load("seed: 1", 0, ""); /* a default of another family does no harm */
    load("gemm_type: dense", 0, "");
    load("bits: 4", 1, "bits: family gemm has no such axis");
}
END_TEST

START_TEST(families_have_axes)
{
    const struct axis of_second = {.key = "other", .families = AXIS_FAMILY_BIT(1)};

    ck_assert(axis_is_of_families(&axes[AX_FAMILY], AXIS_ALL_FAMILIES));
    ck_assert(axis_is_of_families(&axes[AX_GEMM_TYPE], AXIS_FAMILY_BIT(0)));
    ck_assert(axis_is_of_families(&axes[AX_ROUTING], AXIS_FAMILY_BIT(0)));
    ck_assert(!axis_is_of_families(&axes[AX_ROUTING], AXIS_ALL_FAMILIES));
    ck_assert(!axis_is_of_families(&of_second, AXIS_FAMILY_BIT(0)));
    ck_assert(!axis_is_of_families(&of_second, AXIS_FAMILY_BIT(0) | AXIS_FAMILY_BIT(1)));
    ck_assert(axis_is_of_families(&of_second, AXIS_FAMILY_BIT(1)));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("moe");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_add_loop_test(tc, tensors_say_the_rows, 0, TYPES * KINDS * BLOCKS);
    tcase_add_loop_test(tc, places_count_tiles, 0, TYPES * KINDS * BLOCKS);
    tcase_add_loop_test(tc, want_is_each_experts_product, 0, PRODUCTS);
    tcase_add_loop_test(tc, experts_differ, 0, PRODUCTS);
    tcase_add_test(tc, tensors_have_experts_in_front);
    tcase_add_test(tc, m_is_of_the_problem);
    tcase_add_test(tc, foreign_axes_are_refused);
    tcase_add_test(tc, families_have_axes);
    tcase_set_timeout(tc, 30);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
