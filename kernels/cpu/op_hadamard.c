#include "kernels/cpu/op_hadamard.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/op_check.h"
#include "kernels/cpu/op_number.h"
#include "kernels/cpu/ops.h"

#include <math.h>
#include <stdlib.h>

bool hadamard_is_size(int64_t block)
{
    return block > 0 && block <= HADAMARD_MAX && (block & (block - 1)) == 0;
}

static void butterflies(float *v, int64_t block, int64_t stride)
{
    const bool turned = FAULT(HADAMARD_SIGN) && 2 * stride == block;

    for (int64_t at = 0; at < block; at += 2 * stride)
        for (int64_t i = at; i < at + stride; i++) {
            const float x = v[i], y = v[i + stride];

            v[i] = x + y;
            v[i + stride] = turned ? y - x : x - y;
        }
    for (int64_t i = 0; FAULT(HADAMARD_ROUNDS_STAGES) && i < block; i++)
        v[i] = round_bf16(v[i]);
}

/* 1 / sqrt(2^h) is a power of two, or one times sqrt(1/2): its double is far from a tie of f32. */
void hadamard_row(float *v, int64_t width, int64_t block)
{
    const float factor = FAULT(HADAMARD_UNNORMALIZED) ? 1.0f : (float)(1.0 / sqrt((double)block));
    const int64_t end = FAULT(HADAMARD_BLOCK_OF_32) && block > 32 ? 32 : block;

    for (int64_t at = 0; at < width; at += block) {
        for (int64_t stride = 1; stride < end; stride *= 2)
            butterflies(v + at, block, stride);
        for (int64_t i = at; i < at + block; i++)
            v[i] *= factor;
    }
}

static enum hum_code check(const struct hum_hadamard_args *a, char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *in = &a->inputs;
    const bool sane = op_shape_is_sane(in, 2), size = hadamard_is_size(a->block_size);
    const struct op_rule rules[] = {
        {!op_is_real(in->dtype), "inputs must be float16, bfloat16 or float32"},
        {!sane, "inputs must have rank 2, sizes up to 2^31 and at most 2^40 elements"},
        {!size, "block_size must be a power of two up to 512"},
        {sane && size && in->shape[1] % a->block_size != 0,
         "the columns of inputs must be a multiple of block_size"},
    };

    if (op_check_rules(rules, sizeof rules / sizeof rules[0], reason))
        return HUM_INVALID;
    {
        const struct hum_tensor want = op_want(in->dtype, 2, in->shape[0], in->shape[1], 0);
        const struct op_tensor all[] = {
            {"inputs", in, want, false},
            {"outputs", &a->outputs, want, true},
        };

        return op_check_tensors(all, sizeof all / sizeof all[0], reason);
    }
}

enum hum_code op_hadamard(void *handle, const struct hum_hadamard_args *args,
                          char reason[HUM_REASON_BYTES])
{
    float v[HADAMARD_MAX];
    const char *inputs;
    char *outputs;
    int64_t blocks;
    size_t bytes;

    (void)handle;
    if (!args)
        return refuse(reason, HUM_INVALID, "the arguments are missing");
    if (check(args, reason))
        return HUM_INVALID;
    inputs = args->inputs.data;
    outputs = args->outputs.data;
    blocks = args->inputs.shape[0] * args->inputs.shape[1] / args->block_size;
    bytes = format_bytes(args->inputs.dtype, args->block_size);
    for (int64_t b = 0; b < blocks; b++) { /* whole blocks make up a row: they follow one another */
        op_load(args->inputs.dtype, inputs + (size_t)b * bytes, args->block_size, v);
        hadamard_row(v, args->block_size, args->block_size);
        op_store(args->inputs.dtype, v, args->block_size, outputs + (size_t)b * bytes);
    }
    return HUM_OK;
}
