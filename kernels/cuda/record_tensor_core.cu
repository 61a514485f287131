/* record_tensor_core.cu - records what this GPU's tensor cores return, in the format of the
 * published recordings.
 *
 *     record_tensor_core FOLDER GPU      # e.g. record_tensor_core recordings H200
 *
 * writes FOLDER/GPU/FORMAT/{a,b,c,d}_GPU_*.txt, LINES lines each: a and b K hexadecimal f32
 * patterns, c and d one f32 pattern of
 * 32 binary digits; d_*_fp16 was computed with c rounded to f16. test_dumps compares the folder
 * with the model of
 * reference/tensor_core.h (HUMCHECK_TENSOR_CORE_DUMPS=FOLDER). Instructions: mma.sync m16n8k16
 * (f16, bf16) and m16n8k32 (e4m3, e5m2
 * with f16 accumulators), one dot product each: row 0 of A, column 0 of B.
 * Source of the register layouts: PTX ISA, warp-level matrix instructions, fragments of
 * mma.m16n8k16 and mma.m16n8k32.
 */
#include "kernels/cuda/formats.cuh"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>

enum { LINES = 5000, MAX_K = 32, PATH_BYTES = 512 };

struct recording {
    const char *folder; /* as published */
    const char *out;    /* suffix of d: fp32 or fp16 */
    enum format format;
    int k;
    bool f16_accum;
};

/* FP8 with f32 results is left out: the published one is of wgmma. */
static const struct recording recordings[] = {
    {"fp16", "fp32", FORMAT_F16, 16, false},  {"fp16", "fp16", FORMAT_F16, 16, true},
    {"bf16", "fp32", FORMAT_BF16, 16, false}, {"E4M3", "fp16", FORMAT_E4M3, 32, true},
    {"E5M2", "fp16", FORMAT_E5M2, 32, true},
};

/* Two registers of A (row 0: the others are zero) and of B, 32 bits each, for lane t < 4 of the
 * first quad. */
__device__ static void load(const uint8_t *row, int t, uint32_t *low, uint32_t *high)
{
    memcpy(low, row + 4 * t, 4);       /* k = 2t, 2t+1 (16 bits) or 4t .. 4t+3 (8 bits) */
    memcpy(high, row + 16 + 4 * t, 4); /* half the instruction's k further on */
}

/* One warp a line. a, b: bytes of the codes, k of them in a row of 32 bytes; c: f32; d: f32. */
__global__ static void run(int format, bool f16_accum, const uint8_t *a, const uint8_t *b,
                           const float *c, float *d)
{
    const int line = (int)blockIdx.x, lane = (int)threadIdx.x;
    uint32_t a0 = 0, a2 = 0, b0 = 0, b1 = 0, h0 = 0, h1 = 0;
    float d0 = 0.0f, d1 = 0.0f, d2 = 0.0f, d3 = 0.0f;

    if (lane < 4) {
        load(a + line * 32, lane, &a0, &a2);
        load(b + line * 32, lane, &b0, &b1);
    }
    if (lane == 0) {
        d0 = c[line];
        h0 = __half_as_ushort(__float2half_rn(c[line]));
    }
    if (format == FORMAT_F16 && !f16_accum)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3},{%4,%8,%5,%8},{%6,%7},{%0,%1,%2,%3};"
                     : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                     : "r"(a0), "r"(a2), "r"(b0), "r"(b1), "r"(0));
    else if (format == FORMAT_BF16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0,%1,%2,%3},{%4,%8,%5,%8},{%6,%7},{%0,%1,%2,%3};"
                     : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                     : "r"(a0), "r"(a2), "r"(b0), "r"(b1), "r"(0));
    else if (format == FORMAT_F16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
                     "{%0,%1},{%2,%6,%3,%6},{%4,%5},{%0,%1};"
                     : "+r"(h0), "+r"(h1)
                     : "r"(a0), "r"(a2), "r"(b0), "r"(b1), "r"(0));
    else if (format == FORMAT_E4M3)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 "
                     "{%0,%1},{%2,%6,%3,%6},{%4,%5},{%0,%1};"
                     : "+r"(h0), "+r"(h1)
                     : "r"(a0), "r"(a2), "r"(b0), "r"(b1), "r"(0));
    else
        asm volatile("mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16 "
                     "{%0,%1},{%2,%6,%3,%6},{%4,%5},{%0,%1};"
                     : "+r"(h0), "+r"(h1)
                     : "r"(a0), "r"(a2), "r"(b0), "r"(b1), "r"(0));
    if (lane == 0)
        d[line] = f16_accum ? __half2float(__ushort_as_half((unsigned short)h0)) : d0;
}

/* ---- data ---- */

static uint64_t word(uint64_t seed, uint64_t index) /* SplitMix64 */
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Normal-like: a sum of eight bytes, scaled by a power of two between 2^-6 and 2^6. */
static float value(uint64_t seed, uint64_t index)
{
    uint64_t r = word(seed, index);
    int sum = 0;

    for (int i = 0; i < 8; i++)
        sum += (int)(r >> (8 * i) & 255);
    return ldexpf((float)(sum - 1020) / 209.0f, (int)(word(seed + 1, index) % 13) - 6);
}

/* ---- files ---- */

static FILE *create(const char *folder, const char *gpu, const char *format, char kind,
                    const char *suffix)
{
    char path[PATH_BYTES];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", folder, gpu);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/%s", folder, gpu, format);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/%s/%c_%s_%s.txt", folder, gpu, format, kind, gpu,
                   suffix);
    f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(3);
    }
    return f;
}

static void put_hex(FILE *f, const float *x, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &x[i], 4);
        (void)fprintf(f, "%08x%c", bits, i + 1 < n ? ' ' : '\n');
    }
}

static void put_binary(FILE *f, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, 4);
    for (int i = 31; i >= 0; i--)
        (void)fputc('0' + (int)(bits >> i & 1), f);
    (void)fputc('\n', f);
}

static void close_file(FILE *f)
{
    if (fclose(f)) {
        perror("record_tensor_core");
        exit(3);
    }
}

static void record(const struct recording *r, const char *folder, const char *gpu)
{
    static float a[LINES][MAX_K], b[LINES][MAX_K], c[LINES], d[LINES];
    static uint8_t a_codes[LINES * 32], b_codes[LINES * 32];
    const int size = r->k == 16 ? 2 : 1;
    FILE *files[4] = {create(folder, gpu, r->folder, 'a', r->folder),
                      create(folder, gpu, r->folder, 'b', r->folder),
                      create(folder, gpu, r->folder, 'c', "fp32"),
                      create(folder, gpu, r->folder, 'd', r->out)};
    uint8_t *device_a, *device_b;
    float *device_c, *device_d;

    for (int i = 0; i < LINES; i++) {
        for (int l = 0; l < r->k; l++) {
            uint64_t at = (uint64_t)i * MAX_K + (uint64_t)l;

            a[i][l] = encode(r->format, value(10 + r->format, at), &a_codes[i * 32 + l * size]);
            b[i][l] = encode(r->format, value(20 + r->format, at), &b_codes[i * 32 + l * size]);
        }
        c[i] = value(30 + r->format, (uint64_t)i);
    }
    GPU_TRY(cudaMalloc(&device_a, sizeof a_codes));
    GPU_TRY(cudaMalloc(&device_b, sizeof b_codes));
    GPU_TRY(cudaMalloc(&device_c, sizeof c));
    GPU_TRY(cudaMalloc(&device_d, sizeof d));
    GPU_TRY(cudaMemcpy(device_a, a_codes, sizeof a_codes, cudaMemcpyHostToDevice));
    GPU_TRY(cudaMemcpy(device_b, b_codes, sizeof b_codes, cudaMemcpyHostToDevice));
    GPU_TRY(cudaMemcpy(device_c, c, sizeof c, cudaMemcpyHostToDevice));
    run<<<LINES, 32>>>(r->format, r->f16_accum, device_a, device_b, device_c, device_d);
    GPU_TRY(cudaGetLastError());
    GPU_TRY(cudaDeviceSynchronize());
    GPU_TRY(cudaMemcpy(d, device_d, sizeof d, cudaMemcpyDeviceToHost));
    for (int i = 0; i < LINES; i++) {
        put_hex(files[0], a[i], r->k);
        put_hex(files[1], b[i], r->k);
        put_binary(files[2], c[i]);
        put_binary(files[3], d[i]);
    }
    for (int i = 0; i < 4; i++)
        close_file(files[i]);
    GPU_TRY(cudaFree(device_a));
    GPU_TRY(cudaFree(device_b));
    GPU_TRY(cudaFree(device_c));
    GPU_TRY(cudaFree(device_d));
    (void)printf("%s -> %s: %d lines\n", r->folder, r->out, LINES);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        (void)fputs("usage: record_tensor_core FOLDER GPU\n", stderr);
        return 2;
    }
    (void)mkdir(argv[1], 0777);
    for (size_t i = 0; i < sizeof recordings / sizeof recordings[0]; i++)
        record(&recordings[i], argv[1], argv[2]);
    return 0;
}
