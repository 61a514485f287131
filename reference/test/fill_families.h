/* fill_families.h - every legal family of a GEMM problem (formats, scales, zero points), small, and
 * one filled problem, for tests.
 *
 * The rules are upstream Humming's valid combinations and configuration constraints, as far as
 * fills depend on them.
 */
#ifndef REFERENCE_TEST_FILL_FAMILIES_H
#define REFERENCE_TEST_FILL_FAMILIES_H

#include "reference/fill.h"

#include <stdlib.h>
#include <string.h>

static const char *const family_activations[] = {"f16",  "bf16", "e4m3", "e5m2", "e3m4",
                                                 "e2m1", "e0m3", "int8", "int4"};
static const char *const family_scales[] = {"f16", "bf16", "e4m3", "e5m2", "e8m0", "e5m3", "f32"};
static const int64_t family_ks[] = {64, 128, 512, 1024, 4096};
enum { FAMILY_ACTIVATIONS = 9, FAMILY_SCALES = 7, FAMILY_KS = 5, FAMILY_VARIANTS = 8 };

/* Groups of 32 and sizes that are no multiples of much. */
static inline void family_base(struct ref_gemm *p, const char *a, const char *b, const char *bs)
{
    *p = (struct ref_gemm){.a = dtype_find(a),
                           .b = dtype_find(b),
                           .bs = dtype_find(bs),
                           .m = 9,
                           .n = 70,
                           .k = 136,
                           .scale = REF_SCALE_GROUP,
                           .group = 32,
                           .group_n = 1};
    p->c = p->a->bits == 16 ? p->a : dtype_find("bf16");
}

static inline bool family_weight(const struct ref_gemm *p)
{
    const struct dtype *a = p->a, *b = p->b;
    bool zero = p->zero != REF_ZERO_NONE;

    if (b->bits > 8 || b->bits > a->bits || (b->is_float && (!b->is_signed || b->top)))
        return false;
    if (p->zero == REF_ZERO_FLOAT && a->bits != 16)
        return false;
    if (b->is_float && !a->is_float)
        return p->fused_e8m0;
    if (b->is_float)
        return !zero && b->exp_bits <= a->exp_bits && b->man_bits <= a->man_bits &&
               (b->exp_bits || !a->exp_bits);
    if (b->is_signed)
        return a == b && !zero;
    return a->is_float ? a->exp_bits && b->bits <= a->man_bits + (zero ? 1 : 2) : b->bits < a->bits;
}

static inline bool family_legal(const struct ref_gemm *p)
{
    bool wide = p->scale == REF_SCALE_BLOCK || p->scale == REF_SCALE_TENSOR;
    bool grouped = p->scale == REF_SCALE_GROUP || p->scale == REF_SCALE_BLOCK;
    bool e4m3 = p->a == dtype_find("e4m3");

    if (!family_weight(p) || (p->a->bits == 16 && (p->c != p->a || p->input_group)))
        return false;
    if ((p->bs->bits == 16 && p->bs != p->c) || wide != (p->bs->bits == 32))
        return false;
    if (grouped ? p->group < 256 / p->a->bits || p->group > p->k : p->scale_2 != REF_SCALE_2_NONE)
        return false;
    if (p->input_group > p->k || (p->scale == REF_SCALE_BLOCK && (p->zero || p->scale_2)))
        return false;
    if (p->int_scale && (p->a->is_float || p->scale != REF_SCALE_GROUP))
        return false;
    if (p->fused_e8m0 && ((!e4m3 && p->a != dtype_find("int8")) || p->b != dtype_find("e2m1") ||
                          p->bs != dtype_find("e8m0") || p->scale != REF_SCALE_GROUP))
        return false;
    return !p->f16_accum ||
           (p->c->exp_bits == 5 && (p->a == p->c || (e4m3 && p->c == dtype_find("f16"))));
}

static inline void family_vary(struct ref_gemm *p, int variant, int64_t turn)
{
    int64_t least = 256 / p->a->bits, steps = 1;

    while (least << steps <= p->k)
        steps++;
    if (p->scale == REF_SCALE_GROUP || p->scale == REF_SCALE_BLOCK)
        p->group = least << turn % steps;
    p->group_n = p->scale == REF_SCALE_BLOCK ? 64 : 1;
    p->has_bias = (turn + variant) % 2;
    if (variant == 1)
        p->input_group = p->group ? p->group : 2 * least;
    if (variant == 2)
        p->scale_2 = REF_SCALE_2_TENSOR;
    if (variant == 3 || variant == 7)
        p->scale_2 = REF_SCALE_2_CHANNEL;
    p->f16_accum = variant == 4;
    p->int_scale = variant == 5;
    p->fused_e8m0 = variant >= 6;
    p->fused_range = p->a->is_float ? 11 : 3;
}

/* Calls `each` for every `step`th legal family of one activation format; returns how many. */
static inline int family_walk(int activation, int64_t step, void (*each)(const struct ref_gemm *))
{
    int64_t legal = 0, turn = activation;
    int called = 0;

    for (int x = 0; x < dtype_count * 2 * FAMILY_SCALES * 4 * 3 * FAMILY_VARIANTS * FAMILY_KS;
         x++) {
        struct ref_gemm p = {.a = dtype_find(family_activations[activation])};
        int rest = x, variant;

        p.k = family_ks[rest % FAMILY_KS];
        rest /= FAMILY_KS;
        variant = rest % FAMILY_VARIANTS;
        rest /= FAMILY_VARIANTS;
        p.zero = (enum ref_zero)(rest % 3);
        rest /= 3;
        p.scale = (enum ref_scale)(rest % 4);
        rest /= 4;
        p.bs = dtype_find(family_scales[rest % FAMILY_SCALES]);
        rest /= FAMILY_SCALES;
        p.c = dtype_find(rest % 2 ? "bf16" : "f16");
        p.b = &dtypes[rest / 2];
        p.m = 4;
        p.n = p.b->exp_bits >= 3 ? 64 : 16; /* all windows of codes */
        family_vary(&p, variant, turn + x);
        if (!family_legal(&p) || legal++ % step)
            continue;
        each(&p);
        turn++;
        called++;
    }
    return called;
}

/* One filled problem; its arrays live until filled_free. */
struct filled {
    struct ref_gemm p;
    struct ref_inputs in;
    const char *why; /* of ref_fill */
};

static inline void *family_array(size_t count, size_t size)
{
    return count ? calloc(count, size) : NULL;
}

static inline void filled_make(struct filled *f, const struct ref_gemm *p,
                               const struct ref_fill_spec *spec)
{
    struct ref_input_sizes z = ref_input_sizes(p);

    f->in = (struct ref_inputs){.a = family_array(z.a, sizeof(uint16_t)),
                                .b = family_array(z.b, 1),
                                .input_scale = family_array(z.input_scale, sizeof(float)),
                                .bs = family_array(z.bs, sizeof(uint32_t)),
                                .zero = family_array(z.zero, sizeof(uint16_t)),
                                .scale_2 = family_array(z.scale_2, sizeof(uint32_t)),
                                .bias = family_array(z.bias, sizeof(uint16_t))};
    f->why = ref_fill(spec, p, &f->in);
    f->p = *p;
    f->p.a_codes = f->in.a;
    f->p.b_codes = f->in.b;
    f->p.input_scale = f->in.input_scale;
    f->p.bs_codes = f->in.bs;
    f->p.zero_codes = f->in.zero;
    f->p.scale_2_codes = f->in.scale_2;
    f->p.bias_codes = f->in.bias;
}

static inline void filled_free(struct filled *f)
{
    free(f->in.a);
    free(f->in.b);
    free(f->in.input_scale);
    free(f->in.bs);
    free(f->in.zero);
    free(f->in.scale_2);
    free(f->in.bias);
}

#endif
