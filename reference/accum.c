#include "reference/accum.h"

#include "reference/tensor_core.h"

#include <stddef.h>

static bool divides(int64_t d, int64_t n)
{
    return n % d == 0;
}

static bool in_shift(int32_t shift)
{
    return 0 <= shift && shift <= REF_MAX_SHIFT;
}

static const char *steps_valid(const struct ref_accum *s)
{
    int64_t warps;

    if (s->block_k < 1 || s->warp_k < 1 || s->instruction_k < 1 || s->flush_k < 0)
        return "block_k, warp_k and instruction_k must be at least 1, flush_k at least 0";
    if (!divides(s->warp_k, s->block_k))
        return "warp_k does not divide block_k";
    warps = s->block_k / s->warp_k;
    if (warps & (warps - 1))
        return "block_k / warp_k is not a power of two";
    if (!divides(s->instruction_k, s->warp_k))
        return "instruction_k does not divide warp_k";
    if (!(in_shift(s->operand_shift) && in_shift(s->flush_shift) && in_shift(s->output_shift) &&
          s->flush_shift + s->output_shift <= s->operand_shift))
        return "the powers of two that are put back are not between 0 and that of the operand";
    if (!s->flush_k)
        return NULL;
    if (!divides(s->flush_k, s->warp_k) && !divides(s->warp_k, s->flush_k))
        return "flush_k neither divides warp_k nor is divided by it";
    return divides(s->instruction_k, s->flush_k) ? NULL : "instruction_k does not divide flush_k";
}

const char *ref_accum_valid(const struct ref_accum *s, int64_t k_padded)
{
    const char *problem = steps_valid(s);
    int64_t border = k_padded; /* everything from here on is taken */

    if (problem)
        return problem;
    if (s->tensor_core && !divides(s->tensor_core->block, s->instruction_k))
        return "the block of the tensor core does not divide instruction_k";
    if (s->slices < 1 || s->slices > REF_MAX_SLICES)
        return "there must be 1 to 64 slices";
    for (int i = 0; i < s->slices; i++) {
        if (s->slice[i].k_end != border || s->slice[i].k_begin >= border)
            return "slices do not tile k in descending order";
        border = s->slice[i].k_begin;
        if (!divides(s->block_k, border))
            return "a slice does not begin on a multiple of block_k";
    }
    if (border != 0)
        return "slices do not tile k in descending order";
    return divides(s->block_k, k_padded) ? NULL : "block_k does not divide the padded k";
}
