#include "reference/test/simulated_kernel.h"

#include "reference/rng.h"
#include "reference/round.h"

#include <check.h>
#include <stdlib.h>

/* clang-format off */
const struct setup setups[] = {
    /* name              a       b        c       bs      scale              k    grp ig   f16    int    sm  instruction ik  bk   wk   Q   S ord   look  out */
    {"cpu f32",          "f16",  "uint4", "f16",  "f16",  REF_SCALE_GROUP,   515, 128,  0, false, false,  0, TC_MMA,   16,  64,  64,  0, 1, true,  NORMAL, 0},
    {"cpu bf16 tiny",    "bf16", "uint8", "bf16", "bf16", REF_SCALE_CHANNEL, 300,   0,  0, false, false,  0, TC_MMA,   16,  64,  64,  0, 1, true,  TINY, 0},
    {"cpu f16 tiny",     "f16",  "uint8", "f16",  "f16",  REF_SCALE_CHANNEL, 300,   0,  0, false, false,  0, TC_MMA,   16,  64,  64,  0, 1, true,  TINY, 0},
    {"cpu 4 warps",      "f16",  "uint4", "f16",  "f16",  REF_SCALE_CHANNEL, 700,   0,  0, false, false,  0, TC_MMA,   16, 128,  32,  0, 1, true,  OUTLIERS, 0},
    {"cpu f16 accum",    "f16",  "uint4", "f16",  "f16",  REF_SCALE_GROUP,   512, 128,  0, true,  false,  0, TC_MMA,   16,  64,  64,  0, 1, true,  NORMAL, 0},
    {"cpu f16 4 slices", "f16",  "uint3", "f16",  "f16",  REF_SCALE_CHANNEL, 512,   0,  0, true,  false,  0, TC_MMA,   16,  64,  32,  0, 4, false, TINY, 0},
    {"hopper f16",       "f16",  "uint4", "f16",  "f16",  REF_SCALE_GROUP,  1024, 128,  0, false, false, 90, TC_MMA,   16,  64,  64,  0, 1, true,  POSITIVE, 0},
    {"hopper bf16",      "bf16", "uint4", "bf16", "bf16", REF_SCALE_GROUP,   999, 128,  0, false, false, 90, TC_WGMMA, 16, 128,  32,  0, 3, true,  OUTLIERS, 0},
    {"ampere f16",       "f16",  "uint4", "f16",  "f16",  REF_SCALE_CHANNEL, 515,   0,  0, false, false, 80, TC_MMA,   16,  32,  32,  0, 1, true,  TINY, 0},
    {"volta f16 accum",  "f16",  "uint4", "f16",  "f16",  REF_SCALE_CHANNEL, 512,   0,  0, true,  false, 70, TC_MMA,   16,  64,  64,  0, 1, true,  NORMAL, 0},
    {"hopper f16 accum", "f16",  "uint4", "f16",  "f16",  REF_SCALE_GROUP,   512, 128,  0, true,  false, 90, TC_WGMMA, 16,  64,  64,  0, 6, false, NORMAL, 0},
    {"wgmma e4m3",       "e4m3", "uint4", "bf16", "bf16", REF_SCALE_CHANNEL, 515,   0,  0, false, false, 90, TC_WGMMA, 32, 128, 128,  0, 1, true,  OUTLIERS, 0},
    {"wgmma e4m3 g128",  "e4m3", "uint4", "bf16", "bf16", REF_SCALE_GROUP,  1000, 128, 128, false, false, 90, TC_WGMMA, 32, 128, 64, 64, 1, true,  NORMAL, 0},
    {"mma e4m3",         "e4m3", "uint4", "f16",  "f16",  REF_SCALE_GROUP,   515,  64,  0, false, false, 90, TC_MMA,   32, 128, 128, 64, 2, true,  NORMAL, 0},
    {"mma e4m3 channel", "e4m3", "uint4", "bf16", "bf16", REF_SCALE_CHANNEL, 500,   0,  0, false, false, 90, TC_MMA,   32, 128, 128,  0, 1, true,  OUTLIERS, 0},
    {"mma e5m2 f16",     "e5m2", "uint4", "f16",  "f16",  REF_SCALE_GROUP,   512, 128,  0, true,  false, 90, TC_MMA,   32, 128, 128,128, 1, true,  NORMAL, 0},
    {"ada e4m3",         "e4m3", "uint4", "f16",  "f16",  REF_SCALE_CHANNEL, 256,   0,  0, false, false, 89, TC_MMA,   32,  64,  64,  0, 1, true,  NORMAL, 0},
    {"wgmma subnormal",  "e4m3", "uint4", "bf16", "bf16", REF_SCALE_CHANNEL, 515,   0,  0, false, false, 90, TC_WGMMA, 32, 128, 128,  0, 1, true,  TINY, 9},
    {"int8",             "int8", "uint4", "bf16", "bf16", REF_SCALE_GROUP,   515, 128,  0, false, false,  0, TC_MMA,   32, 128,  64, 64, 1, true,  NORMAL, 0},
    {"int8 int scale",   "int8", "uint4", "f16",  "f16",  REF_SCALE_GROUP,   515, 128,  0, false, true,   0, TC_MMA,   32, 128,  64, 64, 2, true,  NORMAL, 0},
    {"12 slices",        "bf16", "uint4", "bf16", "bf16", REF_SCALE_CHANNEL, 768,   0,  0, false, false, 90, TC_MMA,   16,  64,  64,  0,12, false, NORMAL, 0},
};
/* clang-format on */
const int setup_count = sizeof setups / sizeof setups[0];

struct setup setup_named(const char *name)
{
    for (int i = 0; i < setup_count; i++)
        if (!strcmp(setups[i].name, name))
            return setups[i];
    ck_abort_msg("no setup %s", name);
    return setups[0];
}

/* Roughly normal: the sum of four uniform numbers. */
static double gauss(uint64_t seed, uint32_t tensor, uint64_t i)
{
    const uint64_t z = rng_word(seed, tensor, i);

    return ((double)((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48)) -
            131070.0) /
           37837.0;
}

static double look_at(enum look look, uint64_t seed, uint64_t i)
{
    const double x = gauss(seed, RNG_TEST, i);

    switch (look) {
    case NORMAL:
        return x;
    case POSITIVE:
        return fabs(x) + 0.25;
    case OUTLIERS:
        return rng_below(rng_word(seed, RNG_TEST, ~i), 100) ? x : 20.0 * x;
    case TINY:
        return x * 0x1p-12;
    }
    return 0.0;
}

static void fill(struct problem *q, const struct setup *u, uint64_t seed)
{
    struct ref_gemm *p = &q->p;
    const double unit = u->look == TINY && p->a->bits == 8 ? 0x1p5 : p->a->is_float ? 1.0 : 40.0;
    int64_t scales;

    for (int64_t i = 0; i < M * p->k; i++)
        q->a_codes[i] = (uint16_t)dtype_encode(p->a, unit * look_at(u->look, seed, (uint64_t)i),
                                               DTYPE_SATURATE);
    for (int64_t i = 0; i < N * p->k; i++)
        q->b_codes[i] = (uint8_t)(rng_word(seed, RNG_B, (uint64_t)i) >> (64 - p->b->bits));
    scales = p->scale == REF_SCALE_GROUP ? N * ref_groups(p) : N;
    for (int64_t i = 0; i < scales; i++)
        q->bs_codes[i] = dtype_encode(
            p->bs, 0.01 * (2.0 + gauss(seed, RNG_BS, (uint64_t)i)) * (i % 5 == 4 ? -1.0 : 1.0),
            DTYPE_TO_TOP);
    for (int64_t i = 0; i < M * ref_input_groups(p); i++)
        q->input_scale[i] = (float)(0.1 + 0.01 * fabs(gauss(seed, RNG_INPUT_SCALE, (uint64_t)i)));
    for (int64_t i = 0; i < N; i++)
        q->bias[i] = (uint16_t)dtype_encode(p->c, gauss(seed, RNG_BIAS, (uint64_t)i), DTYPE_TO_TOP);
}

static void order(struct ref_accum *s, const struct setup *u, const struct ref_gemm *p)
{
    const int64_t blocks = (p->k + u->block_k - 1) / u->block_k;

    s->tensor_core = u->sm ? tc_find(u->sm, u->instruction, p->a, u->f16_accum) : NULL;
    ck_assert(!u->sm || s->tensor_core);
    s->instruction_k = u->instruction_k;
    s->block_k = u->block_k;
    s->warp_k = u->warp_k;
    s->flush_k = u->flush_k;
    s->slices = u->slices;
    s->ordered = u->ordered;
    for (int i = 0; i < u->slices; i++) { /* slice 0 has the last K blocks */
        s->slice[i].k_begin = blocks * (u->slices - 1 - i) / u->slices * u->block_k;
        s->slice[i].k_end = blocks * (u->slices - i) / u->slices * u->block_k;
    }
}

struct problem *problem_make(const struct setup *u, uint64_t seed)
{
    struct problem *q = calloc(1, sizeof *q);
    struct ref_gemm *p;

    ck_assert(q != NULL);
    p = &q->p;
    p->a = dtype_find(u->a);
    p->b = dtype_find_weight(u->b);
    p->c = dtype_find(u->c);
    p->bs = dtype_find(u->bs);
    ck_assert(p->a && p->b && p->c && p->bs);
    p->m = M;
    p->n = N;
    p->k = u->k;
    p->scale = u->scale;
    p->group = u->group;
    p->group_n = 1;
    p->input_group = u->input_group;
    p->has_bias = true;
    p->f16_accum = u->f16_accum;
    p->int_scale = u->int_scale;
    p->a_codes = q->a_codes;
    p->b_codes = q->b_codes;
    p->bs_codes = q->bs_codes;
    p->bias_codes = q->bias;
    p->input_scale = p->a->bits <= 8 ? q->input_scale : NULL;
    fill(q, u, seed);
    order(&q->s, u, p);
    if (u->int_scale)
        ref_int_scales(p, q->s_int, &q->int_factor);
    ref_operand_a(p, q->a);
    ref_operand_w(p, 0, N, q->w);
    q->taken_out = u->taken_out;
    return q;
}

/* ---- the kernel ---- */

static double accumulator(const struct kernel *x, double v)
{
    return x->q->p.f16_accum ? round_to(dtype_find("f16"), v) : (double)(float)v;
}

static double tensor_core_chain(const struct kernel *x, int64_t begin, int64_t end, double c)
{
    const struct ref_gemm *p = &x->q->p;
    const int out = x->q->taken_out;
    float w[K_MAX];

    for (int64_t l = begin; l < end; l++)
        w[l - begin] = ldexpf(x->w[l], -out);
    c = tc_run(x->q->s.tensor_core, p->a, x->a + begin, p->a, w, end - begin, ldexp(c, -out));
    return ldexp(c, out);
}

double kernel_chain(const struct kernel *x, int64_t begin, int64_t end, double c)
{
    const struct ref_gemm *p = &x->q->p;
    const struct ref_accum *s = &x->q->s;

    if (!p->a->is_float) {
        for (int64_t l = begin; l < end; l++)
            c += (double)x->a[l] * (double)x->w[l];
        return c;
    }
    if (s->tensor_core)
        return tensor_core_chain(x, begin, end, c);
    for (int64_t l = begin; l < end; l++) {
        c = (double)((float)c + x->a[l] * x->w[l]);
        if (p->f16_accum && (l == end - 1 || (l + 1) % s->instruction_k == 0))
            c = accumulator(x, c);
    }
    return c;
}

static double flush(const struct kernel *x, int64_t l, double c0, double c1)
{
    const struct ref_gemm *p = &x->q->p;

    if (p->int_scale) {
        const int64_t group = l / p->group;

        return c1 + x->q->s_int[x->col * ref_groups(p) + group] * c0;
    }
    if (p->f16_accum)
        return round_fma(p->c, ref_flush_factor(p, x->row, x->col, l), c0, c1);
    return (double)fmaf((float)ref_flush_factor(p, x->row, x->col, l), (float)c0, (float)c1);
}

double kernel_warp(const struct kernel *x, int64_t w, int slice)
{
    const struct ref_accum *s = &x->q->s;
    const int64_t k = x->q->p.k;
    double c0 = 0.0, c1 = 0.0;

    for (int64_t b = s->slice[slice].k_begin; b < s->slice[slice].k_end; b += s->block_k) {
        const int64_t begin = b + w * s->warp_k;
        const int64_t end = begin + s->warp_k < k ? begin + s->warp_k : k;

        if (!s->flush_k && begin < end)
            c0 = kernel_chain(x, begin, end, c0);
        for (int64_t l = begin; s->flush_k && l < end; l += s->flush_k)
            c1 = flush(x, l, kernel_chain(x, l, l + s->flush_k < end ? l + s->flush_k : end, 0.0),
                       c1);
    }
    return s->flush_k ? c1 : c0;
}

static double slice_result(const struct kernel *x, const struct ref_epilogue *e, int slice)
{
    const struct ref_accum *s = &x->q->s;
    double acc[32] = {0.0};

    for (int64_t w = 0; w < s->block_k / s->warp_k; w++)
        acc[w] = kernel_warp(x, w, slice);
    for (int64_t h = s->block_k / s->warp_k / 2; h > 0; h /= 2)
        for (int64_t w = 0; w < h; w++)
            acc[w] = x->q->p.int_scale ? acc[w] + acc[w + h] : accumulator(x, acc[w] + acc[w + h]);
    return ref_epilogue_one(e, x->row, x->col, acc[0], slice == 0);
}

double kernel_output(const struct kernel *x, uint64_t seed)
{
    const struct problem *q = x->q;
    struct ref_epilogue e;
    double h[REF_MAX_SLICES] = {0.0}, sum;

    ref_epilogue_init(&q->p, q->int_factor, &e);
    for (int i = 0; i < q->s.slices; i++)
        h[i] = slice_result(x, &e, i);
    for (int i = q->s.slices - 1; i > 0 && !q->s.ordered; i--) { /* any order */
        const uint32_t j = rng_below(rng_word(seed, RNG_TEST, (uint64_t)i), (uint32_t)i + 1);
        const double t = h[i];

        h[i] = h[j];
        h[j] = t;
    }
    sum = h[0];
    for (int i = 1; i < q->s.slices; i++)
        sum = round_fma(q->p.c, sum, 1.0, h[i]);
    return sum;
}

struct ref_bound problem_bound(const struct problem *q, bool order_known)
{
    return (struct ref_bound){.p = &q->p,
                              .s = order_known ? &q->s : NULL,
                              .a = q->a,
                              .row_count = M,
                              .s_int = q->s_int,
                              .int_factor = q->int_factor};
}

struct kernel kernel_of(const struct problem *q, int64_t row, int64_t col)
{
    return (struct kernel){q, row, col, q->a + row * q->p.k, q->w + col * q->p.k};
}
