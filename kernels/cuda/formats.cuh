/* formats.cuh - operands of tensor cores as codes, for the programs of this folder. */
#ifndef KERNELS_CUDA_FORMATS_CUH
#define KERNELS_CUDA_FORMATS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum format { FORMAT_F16, FORMAT_BF16, FORMAT_E4M3, FORMAT_E5M2 };

/* Ends the program with exit code 3 if a call fails. */
#define GPU_TRY(call)                                                                        \
    do {                                                                                     \
        cudaError_t rc_ = (call);                                                            \
        if (rc_ != cudaSuccess) {                                                            \
            (void)fprintf(stderr, "%s: %s: %s\n", __FILE__, #call, cudaGetErrorString(rc_)); \
            exit(3);                                                                         \
        }                                                                                    \
    } while (0)

/* x rounded to the format: its code in `out`, its value returned. */
static float encode(enum format format, float x, uint8_t *out)
{
    if (format == FORMAT_F16) {
        __half h = __float2half_rn(x);

        memcpy(out, &h, 2);
        return __half2float(h);
    }
    if (format == FORMAT_BF16) {
        __nv_bfloat16 h = __float2bfloat16_rn(x);

        memcpy(out, &h, 2);
        return __bfloat162float(h);
    }
    __nv_fp8_interpretation_t kind = format == FORMAT_E4M3 ? __NV_E4M3 : __NV_E5M2;
    __nv_fp8_storage_t code = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kind);

    *out = code;
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, kind)));
}

#endif
