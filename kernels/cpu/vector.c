#include "kernels/cpu/vector.h"

#include "kernels/cpu/round.h"

#include <math.h>

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define CHOOSE(where, yes, no) (((where) & (yes)) | (~(where) & (no)))

/* x = fma(x, y, z) element by element, where the set has no instruction for it. */
#define FMA_EACH(x, y, z)                          \
    do {                                           \
        for (int j = 0; j < LANES; j++)            \
            (x)[j] = fmaf((x)[j], (y)[j], (z)[j]); \
    } while (0)

#define SET(name) name##_portable
#define ATTRIBUTE
#define LANES 4
#define ROWS  3
#define FMA   FMA_EACH
#include "kernels/cpu/vector_body.h"
#undef SET
#undef ATTRIBUTE
#undef LANES
#undef ROWS
#undef FMA

#ifdef __x86_64__
#define SET(name)    name##_avx2
#define ATTRIBUTE    __attribute__((target("avx2,fma")))
#define LANES        8
#define ROWS         6
#define FMA(x, y, z) ((x) = __builtin_ia32_vfmaddps256((x), (y), (z)))
#include "kernels/cpu/vector_body.h"
#undef SET
#undef ATTRIBUTE
#undef LANES
#undef ROWS
#undef FMA
#endif

#define OPS(name)                                                                     \
    {                                                                                 \
#name, dequantize_##name, multiply_##name, flush_f32_##name, flush_f16_##name \
    }

static const struct vector_ops sets[] = {
    OPS(portable),
#ifdef __x86_64__
    OPS(avx2),
#endif
};

static bool has_set(int index)
{
#ifdef __x86_64__
    if (index == 1)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return index == 0;
}

const struct vector_ops *vector_ops_get(int index)
{
    return has_set(index) ? &sets[index] : NULL;
}
