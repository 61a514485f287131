#include "harness/kernel/problem.h"

#include "harness/core/clock.h"
#include "harness/kernel/semantics.h"
#include "reference/sample.h"

#include <string.h>

/* Multiply-adds above which only sampled columns are computed. */
#define WHOLE_LIMIT ((int64_t)1 << 31)
enum { SAMPLED_COLUMNS = 256 };

static const char memory_out[] = "the problem needs more memory than the limit of a worker";

static bool alloc_inputs(struct problem *q, struct arena *arena)
{
    struct ref_input_sizes z = ref_input_sizes(&q->ref);

    q->in.a = arena_alloc(arena, z.a, sizeof *q->in.a);
    q->in.b = arena_alloc(arena, z.b, sizeof *q->in.b);
    q->in.bs = arena_alloc(arena, z.bs, sizeof *q->in.bs);
    q->in.input_scale = z.input_scale ? arena_alloc(arena, z.input_scale, sizeof(float)) : NULL;
    q->in.zero = z.zero ? arena_alloc(arena, z.zero, sizeof(uint16_t)) : NULL;
    q->in.scale_2 = z.scale_2 ? arena_alloc(arena, z.scale_2, sizeof(uint32_t)) : NULL;
    q->in.bias = z.bias ? arena_alloc(arena, z.bias, sizeof(uint16_t)) : NULL;
    q->ref.a_codes = q->in.a;
    q->ref.b_codes = q->in.b;
    q->ref.bs_codes = q->in.bs;
    q->ref.input_scale = q->in.input_scale;
    q->ref.zero_codes = q->in.zero;
    q->ref.scale_2_codes = q->in.scale_2;
    q->ref.bias_codes = q->in.bias;
    return q->in.a && q->in.b && q->in.bs && (q->in.input_scale || !z.input_scale) &&
           (q->in.zero || !z.zero) && (q->in.scale_2 || !z.scale_2) && (q->in.bias || !z.bias);
}

static bool choose_columns(struct problem *q, struct arena *arena)
{
    int64_t n = q->ref.n;
    bool whole = q->routing.rows * q->ref.k <= WHOLE_LIMIT / n || n <= SAMPLED_COLUMNS;

    q->cols = arena_alloc(arena, (size_t)n, sizeof *q->cols);
    if (!q->cols)
        return false;
    q->cols_count = n;
    for (int64_t j = 0; j < n; j++)
        q->cols[j] = j;
    if (!whole) {
        struct ref_sample sample = {.axis = REF_SAMPLE_COLUMNS,
                                    .size = n,
                                    .group = q->ref.group_n > 1 ? q->ref.group_n : 0,
                                    .seed = q->fill.seed};

        q->cols_count = ref_sample_make(&sample, SAMPLED_COLUMNS, q->cols);
    }
    return true;
}

/* The operand values of the columns looked at, expert after expert. */
static void make_w(struct problem *q)
{
    const struct ref_gemm *p = &q->ref;

    if (q->cols_count == p->n) {
        ref_operand_w(p, 0, ref_columns(p), q->w);
        return;
    }
    for (int64_t e = 0; e < p->experts; e++)
        for (int64_t j = 0; j < q->cols_count; j++) {
            int64_t col = e * p->n + q->cols[j];

            ref_operand_w(p, col, col + 1, q->w + (e * q->cols_count + j) * p->k);
        }
}

static bool make_operands(struct problem *q, struct arena *arena)
{
    const struct ref_gemm *p = &q->ref;
    float factor = 1.0f;

    q->a = arena_alloc(arena, (size_t)(p->m * p->k), sizeof *q->a);
    q->w = arena_alloc(arena, (size_t)(p->experts * q->cols_count * p->k), sizeof *q->w);
    if (!q->a || !q->w)
        return false;
    ref_operand_a(p, q->a);
    make_w(q);
    if (p->int_scale) {
        q->s_int = arena_alloc(arena, (size_t)(ref_columns(p) * ref_groups(p)), sizeof *q->s_int);
        if (!q->s_int)
            return false;
        ref_int_scales(p, q->s_int, &factor);
    }
    q->int_factor = factor;
    ref_epilogue_init(p, factor, &q->epilogue);
    return true;
}

const char *problem_make(const int64_t v[AX_COUNT], uint32_t rules, int64_t m, int threads,
                         struct arena *arena, struct problem *out)
{
    double start = clock_us(), filled;
    const char *why;

    memset(out, 0, sizeof *out);
    out->v = v;
    layer_reference(v, m, &out->ref);
    out->ref.block_on_operand = semantics_has(rules, SEMANTICS_BLOCK_ON_OPERAND);
    layer_fill(v, &out->fill);
    if (!routing_make(v, m, arena, &out->routing) || !alloc_inputs(out, arena) ||
        !choose_columns(out, arena))
        return memory_out;
    why = ref_fill(&out->fill, &out->ref, &out->in);
    if (why)
        return why;
    filled = clock_us();
    if (!make_operands(out, arena))
        return memory_out;
    why = out->fill.kind == REF_FILL_R ? NULL : problem_want(out, threads, arena);
    out->fill_us = filled - start;
    out->reference_us = clock_us() - filled;
    return why;
}

const char *problem_of_codes(const int64_t v[AX_COUNT], const struct ref_gemm *ref,
                             const struct routing *routing, int threads, struct arena *arena,
                             struct problem *out)
{
    memset(out, 0, sizeof *out);
    out->v = v;
    out->ref = *ref;
    out->routing = *routing;
    out->fill = (struct ref_fill_spec){.kind = REF_FILL_E1, .seed = (uint64_t)v[AX_SEED]};
    if (!choose_columns(out, arena) || !make_operands(out, arena))
        return memory_out;
    return problem_want(out, threads, arena);
}
