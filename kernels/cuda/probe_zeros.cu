/* probe_zeros.cu - which sign a zero has that this GPU's tensor cores return.
 *
 *     probe_zeros
 *
 * prints a line for each instruction (mma.sync, wgmma), format and accumulator: the result of each
 * experiment below, + for +0, - for -0, else the number. One instruction each: row 0 of A times
 * column 0 of B, which is all 1 or all the smallest number.
 * Sources of the layouts: PTX ISA, fragments of mma.m16n8k16 and m16n8k32, register fragments of
 * wgmma, and its matrix descriptor without swizzling.
 */
#include "kernels/cuda/formats.cuh"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static const char *const names[] = {"f16", "bf16", "e4m3", "e5m2"};
enum { ROW = 32 }; /* bytes of k that one instruction takes */

struct experiment {
    const char *what;
    float filled, one, other; /* A: everywhere else, at k = 0, at k = 5 */
    float c;
    bool tiny_b; /* B is the smallest number of the format instead of 1 */
};

static const struct experiment experiments[] = {
    {"0+0", 0.0f, 0.0f, 0.0f, 0.0f, false},     {"0-0", 0.0f, 0.0f, 0.0f, -0.0f, false},
    {"-0+0", -0.0f, -0.0f, -0.0f, 0.0f, false}, {"-0-0", -0.0f, -0.0f, -0.0f, -0.0f, false},
    {"1-1+0", 0.0f, 1.0f, -1.0f, 0.0f, false},  {"1-1-0", -0.0f, 1.0f, -1.0f, -0.0f, false},
    {"1+c", 0.0f, 1.0f, 0.0f, -1.0f, false},    {"-1+c", 0.0f, -1.0f, 0.0f, 1.0f, false},
    {"-e*e", 0.0f, -1.0f, 0.0f, 0.0f, true},
};

#define MMA_F32(types)                                                                           \
    asm volatile("mma.sync.aligned." types " {%0,%1,%2,%3},{%4,%8,%5,%8},{%6,%7},{%0,%1,%2,%3};" \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                \
                 : "r"(a0), "r"(a2), "r"(b0), "r"(b1), "r"(0))
#define MMA_F16(types)                                                               \
    asm volatile("mma.sync.aligned." types " {%0,%1},{%2,%6,%3,%6},{%4,%5},{%0,%1};" \
                 : "+r"(d[0]), "+r"(d[1])                                            \
                 : "r"(a0), "r"(a2), "r"(b0), "r"(b1), "r"(0))
#define WGMMA_F32(types, more)                                    \
    asm volatile("wgmma.mma_async.sync.aligned.m64n8" types       \
                 " {%0,%1,%2,%3},{%4,%7,%5,%7},%6,1,1,1" more ";" \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) \
                 : "r"(a0), "r"(a2), "l"(column), "r"(0))
#define WGMMA_F16(types, more)                                                                     \
    asm volatile("wgmma.mma_async.sync.aligned.m64n8" types " {%0,%1},{%2,%5,%3,%5},%4,1,1,1" more \
                 ";"                                                                               \
                 : "+r"(d[0]), "+r"(d[1])                                                          \
                 : "r"(a0), "r"(a2), "l"(column), "r"(0))

/* Row 0 of A lies in lanes 0 to 3 of the first warp, so does column 0 of B of mma.sync. */
template <int F, bool F16_ACCUM>
__device__ static void by_mma(uint32_t *d, uint32_t a0, uint32_t a2, uint32_t b0, uint32_t b1)
{
    if constexpr (F == FORMAT_F16 && !F16_ACCUM)
        MMA_F32("m16n8k16.row.col.f32.f16.f16.f32");
    else if constexpr (F == FORMAT_BF16)
        MMA_F32("m16n8k16.row.col.f32.bf16.bf16.f32");
    else if constexpr (F == FORMAT_E4M3 && !F16_ACCUM)
        MMA_F32("m16n8k32.row.col.f32.e4m3.e4m3.f32");
    else if constexpr (F == FORMAT_E5M2 && !F16_ACCUM)
        MMA_F32("m16n8k32.row.col.f32.e5m2.e5m2.f32");
    else if constexpr (F == FORMAT_F16)
        MMA_F16("m16n8k16.row.col.f16.f16.f16.f16");
    else if constexpr (F == FORMAT_E4M3)
        MMA_F16("m16n8k32.row.col.f16.e4m3.e4m3.f16");
    else
        MMA_F16("m16n8k32.row.col.f16.e5m2.e5m2.f16");
}

template <int F, bool F16_ACCUM>
__device__ static void by_wgmma(uint32_t *d, uint32_t a0, uint32_t a2, uint64_t column)
{
    asm volatile("wgmma.fence.sync.aligned;");
    if constexpr (F == FORMAT_F16 && !F16_ACCUM)
        WGMMA_F32("k16.f32.f16.f16", ",0");
    else if constexpr (F == FORMAT_BF16)
        WGMMA_F32("k16.f32.bf16.bf16", ",0");
    else if constexpr (F == FORMAT_E4M3 && !F16_ACCUM)
        WGMMA_F32("k32.f32.e4m3.e4m3", "");
    else if constexpr (F == FORMAT_E5M2 && !F16_ACCUM)
        WGMMA_F32("k32.f32.e5m2.e5m2", "");
    else if constexpr (F == FORMAT_F16)
        WGMMA_F16("k16.f16.f16.f16", ",0");
    else if constexpr (F == FORMAT_E4M3)
        WGMMA_F16("k32.f16.e4m3.e4m3", "");
    else
        WGMMA_F16("k32.f16.e5m2.e5m2", "");
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
}

/* a, b: one row of ROW bytes; c, *out: a pattern of the accumulator. One warp group. */
template <int F, bool F16_ACCUM, bool WGMMA>
__global__ static void run(const uint8_t *a, const uint8_t *b, uint32_t c, uint32_t *out)
{
    __shared__ __align__(1024) uint8_t tile[256]; /* two core matrices of 8 columns x 16 bytes */
    const int lane = (int)threadIdx.x;
    uint32_t a0 = 0, a2 = 0, b0 = 0, b1 = 0, d[4] = {0, 0, 0, 0};

    if (lane < 4) {
        memcpy(&a0, a + 4 * lane, 4);
        memcpy(&a2, a + 16 + 4 * lane, 4);
        memcpy(&b0, b + 4 * lane, 4);
        memcpy(&b1, b + 16 + 4 * lane, 4);
    }
    if (lane == 0)
        d[0] = c;
    if constexpr (WGMMA) {
        for (int i = lane; i < 256; i += 128)
            tile[i] = i % 128 < 16 ? b[i / 128 * 16 + i % 128] : 0;
        asm volatile("fence.proxy.async.shared::cta;");
        __syncthreads();
        uint64_t at = (uint64_t)__cvta_generic_to_shared(tile);
        by_wgmma<F, F16_ACCUM>(d, a0, a2,
                               (at & 0x3ffff) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32);
    } else if (lane < 32) {
        by_mma<F, F16_ACCUM>(d, a0, a2, b0, b1);
    }
    if (lane == 0)
        *out = F16_ACCUM ? d[0] & 0xffff : d[0];
}

/* The smallest number that is not 0; of bf16 one whose square f32 still holds as a subnormal. */
static float tiny(int format)
{
    static const int exponents[] = {-24, -70, -9, -16};

    return ldexpf(1.0f, exponents[format]);
}

static float number(uint32_t pattern, bool f16_accum)
{
    float x;

    if (f16_accum)
        return __half2float(__ushort_as_half((unsigned short)pattern));
    memcpy(&x, &pattern, 4);
    return x;
}

template <int F, bool F16_ACCUM, bool WGMMA> static void row(uint8_t *a, uint8_t *b, uint32_t *out)
{
    const int size = F == FORMAT_F16 || F == FORMAT_BF16 ? 2 : 1;

    printf("%-5s %-4s %s ", WGMMA ? "wgmma" : "mma", names[F], F16_ACCUM ? "f16" : "f32");
    for (const experiment &e : experiments) {
        uint32_t c = 0;

        for (int i = 0; i < ROW / size; i++) {
            float x = i == 0 ? e.one : i == 5 ? e.other : e.filled;

            encode((enum format)F, e.tiny_b ? x * tiny(F) : x, a + i * size);
            encode((enum format)F, e.tiny_b ? tiny(F) : 1.0f, b + i * size);
        }
        if (F16_ACCUM)
            c = __half_as_ushort(__float2half_rn(e.c));
        else
            memcpy(&c, &e.c, 4);
        run<F, F16_ACCUM, WGMMA><<<1, 128>>>(a, b, c, out);
        GPU_TRY(cudaGetLastError());
        GPU_TRY(cudaDeviceSynchronize());
        float x = number(*out, F16_ACCUM);
        if (x == 0.0f)
            printf(" %9s", signbit(x) ? "-" : "+");
        else
            printf(" %9.3g", x);
    }
    printf("\n");
}

template <int F> static void rows(uint8_t *a, uint8_t *b, uint32_t *out)
{
    row<F, false, false>(a, b, out);
    row<F, false, true>(a, b, out);
    if constexpr (F != FORMAT_BF16) {
        row<F, true, false>(a, b, out);
        row<F, true, true>(a, b, out);
    }
}

int main()
{
    uint8_t *memory;

    GPU_TRY(cudaHostAlloc((void **)&memory, 3 * 64, cudaHostAllocMapped));
    printf("%-15s", "");
    for (const experiment &e : experiments)
        printf(" %9s", e.what);
    printf("\n");
    rows<FORMAT_F16>(memory, memory + 64, (uint32_t *)(memory + 128));
    rows<FORMAT_BF16>(memory, memory + 64, (uint32_t *)(memory + 128));
    rows<FORMAT_E4M3>(memory, memory + 64, (uint32_t *)(memory + 128));
    rows<FORMAT_E5M2>(memory, memory + 64, (uint32_t *)(memory + 128));
    return 0;
}
