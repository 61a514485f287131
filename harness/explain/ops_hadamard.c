#include "harness/explain/ops_hadamard.h"

#include "harness/explain/ops_families.h"
#include "harness/explain/ops_table.h"
#include "reference/hadamard.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static float rounded(float x, int n)
{
    const struct dtype *t = dtype_find(n == 1 ? "bf16" : "f16");

    return (float)dtype_decode(t, dtype_encode(t, (double)x, DTYPE_TO_TOP));
}

static void stage(float *x, int64_t block, int64_t stride, int kind, int n)
{
    const bool turned = kind == HADAMARD_SIGN && (!n || stride * 2 == block);

    for (int64_t i = 0; i < block; i++) {
        const float a = x[i], b = i & stride ? 0.0f : x[i + stride];

        if (i & stride)
            continue;
        x[i] = a + b;
        x[i + stride] = turned ? b - a : a - b;
    }
    for (int64_t i = 0; i < block; i++) {
        if (kind == HADAMARD_ROUNDED)
            x[i] = rounded(x[i], n);
        if (kind == HADAMARD_ORTHOGONAL)
            x[i] *= ref_hadamard_factor(2);
    }
}

static void scale(float *x, int64_t block, int kind, int n)
{
    const int times = kind == HADAMARD_UNNORMALIZED || kind == HADAMARD_ORTHOGONAL ? 0
                      : kind == HADAMARD_TWICE                                     ? 1 + n
                                                                                   : 1;

    for (int64_t i = 0; i < block; i++)
        for (int j = 0; j < times; j++)
            x[i] = kind == HADAMARD_DIVIDED ? x[i] / (float)sqrt((double)block)
                                            : x[i] * ref_hadamard_factor(block);
}

static void reverse_bits(float *x, int64_t block)
{
    for (int64_t i = 0; i < block; i++) {
        const float kept = x[i];
        int64_t to = 0;

        for (int64_t bit = 1; bit < block; bit *= 2)
            to = 2 * to + (i & bit ? 1 : 0);
        if (to <= i)
            continue;
        x[i] = x[to];
        x[to] = kept;
    }
}

static void transform(float *x, int64_t block, int kind, int n)
{
    if (kind == HADAMARD_FACTOR_FIRST)
        scale(x, block, kind, n);
    for (int64_t i = 1; i < block; i *= 2) {
        const int64_t stride = kind == HADAMARD_REVERSED ? block / 2 / i : i;

        if (kind != HADAMARD_LIMIT || stride < n)
            stage(x, block, stride, kind, n);
    }
    if (kind != HADAMARD_FACTOR_FIRST)
        scale(x, block, kind, n);
    if (kind == HADAMARD_BITS_REVERSED)
        reverse_bits(x, block);
}

void ops_hadamard_rows(float *x, int64_t rows, int64_t width, int64_t block, int kind, int n)
{
    const int64_t size = kind == HADAMARD_BLOCK && block >= n ? block / n : block;

    for (int64_t at = 0; at < rows * width; at += size)
        if (kind != HADAMARD_LAST_LEFT || at % width + size < width)
            transform(x + at, size, kind, n);
}

/* ---- the operation alone --------------------------------------------------------------------- */

enum { TRUNCATE = HADAMARD_KINDS, ROW_BEFORE };

static bool answer(const struct ops_seen *s, const struct ops_twist *twist, struct ops_answer *out)
{
    const struct hum_hadamard_args *a = s->args;
    const struct dtype *t = dtype_find_id(a->outputs.dtype, false);
    const enum ops_rounding how = twist->kind == TRUNCATE ? OPS_TRUNCATED : OPS_TIES_TO_EVEN;
    const int64_t rows = a->inputs.shape[0], width = a->inputs.shape[1];
    const int64_t before = twist->kind == ROW_BEFORE ? width : 0;
    float *x = ops_values(&a->inputs, out->arena);

    if (!x || (twist->kind == HADAMARD_SIGN && !twist->n && a->block_size < 4))
        return false;
    ops_hadamard_rows(x, rows, width, a->block_size, twist->kind, twist->n);
    for (int64_t i = 0; i < rows * width; i++)
        out->codes[0][i] =
            ops_encode(t, (double)x[i >= before ? i - before : i], how, OPS_TO_SPECIAL);
    return true;
}

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->hadamard(handle, args, reason);
}

static const struct ops_tensor tensors[] = {
    {"inputs", offsetof(struct hum_hadamard_args, inputs), OPS_READ},
    {"outputs", offsetof(struct hum_hadamard_args, outputs), OPS_WRITE},
};

const struct ops_operation ops_hadamard = {.name = "hadamard",
                                           .args_size = sizeof(struct hum_hadamard_args),
                                           .tensors = tensors,
                                           .tensor_count = 2,
                                           .run = run,
                                           .answer = answer};

/* ---- hypotheses ------------------------------------------------------------------------------ */

#define ROW(name, kind, n, sentence) OPS_ROW(name, ops_hadamard, kind, 0, n, sentence)

/* clang-format off */
static const struct hypothesis rows[] = {
    ROW("unnormalized", HADAMARD_UNNORMALIZED, 0,
        "the transform is not divided by the root of its size"),
    ROW("normalized-twice", HADAMARD_TWICE, 1,
        "the transform is divided by the root of its size twice"),
    ROW("hadamard-sign", HADAMARD_SIGN, 1,
        "the last butterfly has its difference the other way round"),
    ROW("hadamard-sign-everywhere", HADAMARD_SIGN, 0,
        "all butterflies have their difference the other way round"),
    ROW("half-block", HADAMARD_BLOCK, 2, "blocks are half as large"),
    ROW("hadamard-block-of-16", HADAMARD_LIMIT, 16, "stages of more than 16 columns are left out"),
    ROW("hadamard-block-of-32", HADAMARD_LIMIT, 32, "stages of more than 32 columns are left out"),
    ROW("hadamard-block-of-64", HADAMARD_LIMIT, 64, "stages of more than 64 columns are left out"),
    ROW("hadamard-block-of-128", HADAMARD_LIMIT, 128,
        "stages of more than 128 columns are left out"),
    ROW("reversed-stages", HADAMARD_REVERSED, 0, "stages go from the largest stride to the smallest"),
    ROW("factor-first", HADAMARD_FACTOR_FIRST, 0, "the factor is applied before the stages"),
    ROW("division-for-reciprocal", HADAMARD_DIVIDED, 0,
        "results are divided by the root of the size instead of multiplied by its reciprocal"),
    ROW("factor-each-stage", HADAMARD_ORTHOGONAL, 0,
        "every stage is multiplied by the root of 1/2"),
    ROW("rounded-stages", HADAMARD_ROUNDED, 1, "every stage is rounded to bfloat16"),
    ROW("rounded-stages-f16", HADAMARD_ROUNDED, 2, "every stage is rounded to float16"),
    ROW("last-block-left", HADAMARD_LAST_LEFT, 0, "the last block of a row is not transformed"),
    ROW("bit-reversed", HADAMARD_BITS_REVERSED, 0, "results stand in the order of reversed bits"),
    ROW("truncation", TRUNCATE, 0, "results are cut off to the output format"),
    ROW("row-minus-1", ROW_BEFORE, 0, "rows after the first hold the results of the row before"),
};
/* clang-format on */

static const struct hypotheses all = {rows, sizeof rows / sizeof rows[0]};
static const struct hypotheses *const tables[] = {&all, NULL};

const struct explain_family explain_hadamard = {
    .run = ops_run, .vary = ops_vary, .locate = ops_locate, .hypotheses = tables};
