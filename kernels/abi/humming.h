/* humming.h - the contract between humcheck and a source of Humming kernels (a "provider").
 *
 * Explicit configuration and tensors, no layer objects, no hidden state: everything a kernel needs
 * is
 * in its arguments. Names are upstream Humming's own (LayerConfig, ComputeConfig, TuningConfig);
 * what
 * the numbers must be is in docs/semantics.md. This is the only header that both the harness and
 * the
 * kernels include; it depends on nothing but the C library and may be used alone to write a
 * provider
 * (a shared library that exports HUM_PROVIDER_SYMBOL).
 *
 * Shapes are written outermost first; every tensor is dense and row-major (the last index is
 * contiguous). Sizes count elements unless a name ends in _bytes.
 */
#ifndef KERNELS_ABI_HUMMING_H
#define KERNELS_ABI_HUMMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a struct below changes. A provider with another number is refused. */
#define HUM_ABI_VERSION 2

/* ---- formats ----
 *
 * A format is upstream's kId: base*10^7 + signed*10^6 + bits*10^4 + exponent*100 + mantissa, base 1
 * an
 * integer, base 2 a float (source: upstream's C++ data type classes). Any format of the grammar
 * u?intN and floatNeXmY has an id, so there is no list to keep in step.
 */
#define HUM_INT(bits)         (10000000 + 1000000 + (bits)*10000)
#define HUM_UINT(bits)        (10000000 + (bits)*10000)
#define HUM_FLOAT(bits, e, m) (20000000 + 1000000 + (bits)*10000 + (e)*100 + (m))

enum {
    HUM_NONE = 0,
    HUM_F32 = HUM_FLOAT(32, 8, 23),
    HUM_F16 = HUM_FLOAT(16, 5, 10),
    HUM_BF16 = HUM_FLOAT(16, 8, 7),
    HUM_E4M3 =
        HUM_FLOAT(8, 4, 3), /* activation or scale: OCP FN (0x7F, 0xFF NaN). weight: all finite */
    HUM_E5M2 = HUM_FLOAT(8, 5, 2), /* activation or scale: IEEE. weight: all finite */
    HUM_E3M4 = HUM_FLOAT(8, 3, 4),
    HUM_E2M1 = HUM_FLOAT(4, 2, 1),
    HUM_E0M3 = HUM_FLOAT(4, 0, 3),
    HUM_E8M0 = 20000000 + 8 * 10000 + 8 * 100,     /* unsigned, scale only */
    HUM_E5M3 = 20000000 + 8 * 10000 + 5 * 100 + 3, /* unsigned, scale only */
    HUM_INT4 = HUM_INT(4),
    HUM_INT8 = HUM_INT(8),
    HUM_INT32 = HUM_INT(32),
    HUM_INT64 = HUM_INT(64)
};

static inline int hum_dtype_bits(int32_t dtype)
{
    return dtype / 10000 % 100;
}
static inline int hum_dtype_exponent_bits(int32_t dtype)
{
    return dtype / 100 % 100;
}
static inline int hum_dtype_mantissa_bits(int32_t dtype)
{
    return dtype % 100;
}
static inline bool hum_dtype_is_float(int32_t dtype)
{
    return dtype / 10000000 == 2;
}
static inline bool hum_dtype_is_signed(int32_t dtype)
{
    return dtype / 1000000 % 10 == 1;
}

/* ---- tensors ---- */

enum { HUM_MAX_RANK = 4 };

/* A borrowed view. `data` belongs to whoever made the tensor and outlives the call it is passed to;
 * data == NULL with bytes == 0 is "absent". Sub-byte elements are packed as each field states;
 * then `shape` counts the 32-bit words (dtype HUM_INT32) or bytes that hold them. */
struct hum_tensor {
    void *data; /* aligned to 64 bytes; in the memory of the provider's device */
    int32_t dtype;
    int32_t rank;
    int64_t shape[HUM_MAX_RANK];
    size_t bytes;
};

/* ---- configuration ---- */

enum hum_gemm_type {
    HUM_GEMM_DENSE,
    HUM_GEMM_INDEXED,
    HUM_GEMM_GROUPED_CONTIGUOUS,
    HUM_GEMM_GROUPED_MASKED
};
enum hum_scale_type { HUM_SCALE_CHANNEL, HUM_SCALE_GROUP, HUM_SCALE_BLOCK, HUM_SCALE_TENSOR };
enum hum_scale_2_type { HUM_SCALE_2_NONE, HUM_SCALE_2_TENSOR, HUM_SCALE_2_CHANNEL };
enum hum_mma_type { HUM_MMA_AUTO, HUM_MMA_MMA, HUM_MMA_WGMMA, HUM_MMA_UMMA, HUM_MMA_MXMMA };
enum hum_input_quant_mode {
    HUM_QUANT_DISABLED,
    HUM_QUANT_STATIC_TENSOR,
    HUM_QUANT_DYNAMIC_TOKEN,
    HUM_QUANT_DYNAMIC_GROUP,
    HUM_QUANT_STATIC_TENSOR_DYNAMIC_GROUP,
    HUM_QUANT_DYNAMIC_GROUP_TOKEN
};

/* What is multiplied: shapes, formats, scales. Upstream's LayerConfig. */
struct hum_layer_config {
    int64_t shape_n, shape_k; /* padded sizes: multiples of 64 and of 512 / bits(a) */
    int64_t pad_shape_n,
        pad_shape_k;     /* how much of them is padding: multiples of 8 and 128 / bits(a) */
    int64_t num_experts; /* 0: no expert dimension; else every weight tensor has a leading one */
    int32_t a_dtype;     /* activations */
    int32_t b_dtype;     /* weights; standard codes of integers are offset binary */
    int32_t c_dtype;     /* output, bias, channel scales: HUM_F16 or HUM_BF16 */
    int32_t bs_dtype;    /* weight scale; HUM_F32 for block and tensor scales */
    int32_t as_dtype;    /* input scale: HUM_F32, or HUM_NONE with 16-bit activations */
    enum hum_input_quant_mode input_quant_mode;
    int64_t
        input_scale_group_size; /* 0: one scale a row (token), or none with 16-bit activations */
    int64_t weight_scale_group_size;   /* along k; 0 with channel and tensor scales */
    int64_t weight_scale_group_size_n; /* along n; above 1 with block scales only, else 0 */
    enum hum_scale_type weight_scale_type;
    enum hum_scale_2_type weight_scale_2_type; /* needs group scales */
    bool use_int_weight_scale;                 /* semantics.md section 7 */
    bool use_fused_e8m0_scale;                 /* semantics.md section 8 */
    bool has_zero_point;
    bool is_fp_zero_point;
    bool has_bias;
    enum hum_mma_type mma_type;
};

/* How it is computed, as far as the caller sees it. Upstream's ComputeConfig. */
struct hum_compute_config {
    enum hum_gemm_type gemm_type;
    bool use_f16_accum;       /* a = f16, or a = e4m3 with c = f16 */
    bool use_batch_invariant; /* then no Stream-K, and warp_k == block_k */
    bool
        /* input_scale is (groups, round_up(m, 4)) instead of (m, groups) */
        use_m_major_input_scale;
};

/* How it is computed, as far as only the kernel sees it. Upstream's TuningConfig. */
struct hum_tuning_config {
    int32_t block_m, block_n, block_k; /* tile of a thread block */
    int32_t warp_m, warp_n, warp_k;    /* tile of a warp; block_k / warp_k K-warps share a tile */
    bool use_stream_k;
    int32_t num_stages;
    int32_t num_ctas_per_sm;
    int32_t num_sms; /* 0: all of the device; with num_ctas_per_sm the number of Stream-K workers */
    bool use_warp_spec, use_mbarrier, use_cp_async;
    bool use_tma_a, use_tma_b, use_tma_c, use_tma_bs, use_tma_bs2, use_tma_bzp, use_tma_bias;
    bool use_tma_as, use_tma_as2;
    int32_t num_write_splits; /* 1 or 2 */
    int32_t multi_cast_size_a, multi_cast_size_b;
    int32_t raster_group_m;
    bool use_pdl;
};

/* ---- weights ----
 *
 * Standard form (what checkpoints become; source: upstream's "standard format"), N = n, K = k valid
 * sizes, B = bits(b), E = [num_experts] in front of every shape when num_experts > 0:
 *
 *   weight          (N, K*B/32) HUM_INT32: row n is a bit stream, least significant bit first;
 *                   element k
 *                   lies at bits [k*B, (k+1)*B) of it and may straddle words. K*B % 32 == 0.
 *   weight_scale    group (N, K/g) bs_dtype; channel (N, 1) bs_dtype; block (N/gn, K/g) HUM_F32,
 *                   both
 *                   rounded up; tensor (1) HUM_F32
 *   zero_point      integer: (N*B/32, K/g) HUM_INT32, column g is a bit stream along N as above;
 *                   floating: (N, K/g) a_dtype. K/g is 1 for channel and tensor scales.
 *   weight_scale_2  tensor: (1), or (num_experts), HUM_F32; channel: (N) c_dtype
 *   bias            (N) c_dtype
 *
 * Kernel form: whatever the provider likes; sizes from `transform_shapes`.
 */
struct hum_weights {
    struct hum_tensor weight;
    struct hum_tensor weight_scale;
    struct hum_tensor zero_point;
    struct hum_tensor weight_scale_2;
    struct hum_tensor bias;
};

/* ---- one product ---- */

struct hum_gemm_args {
    const struct hum_layer_config *layer;
    const struct hum_compute_config *compute;
    const struct hum_tuning_config *tuning;
    struct hum_tensor inputs; /* (m, k) a_dtype; 4-bit: (m, k/2) bytes, low nibble = even k */
    struct hum_tensor
        input_scale; /* (m, k / input group) or (m, 1) HUM_F32; absent with 16-bit a */
    const struct hum_weights *weights; /* kernel form */
    struct hum_tensor outputs;         /* (m, n) c_dtype; indexed: (m * top_k, n) */
    struct hum_tensor
        sorted_ids; /* indexed: HUM_INT32, token * top_k + slot, padded with m * top_k */
    struct hum_tensor expert_ids;        /* indexed: HUM_INT32, one a block of block_m sorted ids */
    struct hum_tensor num_tokens_padded; /* indexed: (1) HUM_INT32 */
    struct hum_tensor
        /* grouped_contiguous: (E+1) offsets; grouped_masked: (E) counts; INT32 or INT64 */
        expert_layout;
    struct hum_tensor locks; /* HUM_INT32, zero at the first launch; zero again after each. With
                              * Stream-K: at least one element a tile of the outputs, else
                              * HUM_INVALID; what is not zero at entry is HUM_INVALID to a provider
                              * on the host and undefined on a device. Without: may be absent */
    int32_t top_k;           /* 1 for dense */
    int64_t valid_shape_m;   /* 0, or an estimate of routed rows that chooses the kernel */
};

/* ---- how a kernel sums ---- */

enum hum_arithmetic {
    HUM_ARITHMETIC_IEEE,       /* semantics.md section 4, `kernels/cpu` */
    HUM_ARITHMETIC_TENSOR_CORE /* the instruction named by sm and mma_type */
};

enum { HUM_MAX_SLICES = 64 };

/* The order and arithmetic in which the tile that holds one output element is summed. k is the
 * padded
 * index. Slice 0 holds the last k; slices are added in this order. */
struct hum_accumulation {
    enum hum_arithmetic arithmetic;
    enum hum_mma_type mma_type; /* tensor core: HUM_MMA_MMA or HUM_MMA_WGMMA */
    int32_t sm;                 /* tensor core: compute capability x 10 */
    int32_t instruction_k;      /* k of one instruction: f16 accumulators are rounded after each */
    int64_t block_k, warp_k;    /* K-warps; equal: one chain */
    int64_t flush_k;            /* Q of semantics.md section 4; 0: no flush */
    int64_t row_begin, row_end; /* the tile: everything here holds for these outputs */
    int64_t col_begin, col_end;
    int32_t slices;
    bool ordered; /* false: the slices are added in an unknown order */
    struct {
        int64_t k_begin, k_end;
    } slice[HUM_MAX_SLICES];

    /* Below, 0 says what section 4 says. K-warps are added one after the other, ((w0 + w1) + w2)
     * + w3, not by halves: */
    bool warps_in_order;
    /* Powers of two that the kernel takes out of the operand and puts back later (section 11): */
    int32_t operand_shift; /* the instruction is fed w 2^-operand_shift */
    int32_t flush_shift;   /* put back by each flush */
    int32_t output_shift;  /* put back by the epilogue, behind its first rounding to c_dtype */
};

/* ---- outcomes ---- */

enum hum_code {
    HUM_OK,
    HUM_UNSUPPORTED, /* this provider, version or device cannot do it: `reason` says why */
    HUM_INVALID,     /* the arguments break this contract: `reason` says which and how */
    HUM_DEVICE_LOST, /* the device is unusable from here on */
    HUM_NO_MEMORY
};

enum { HUM_REASON_BYTES = 240 };

#include "kernels/abi/humming_ops.h" /* the other operations of the family */

/* ---- the provider ---- */

/* All functions that return enum hum_code write one sentence (no newline) to `reason` unless they
 * return HUM_OK; nothing is written to any tensor then. No function keeps a pointer that it was
 * given
 * beyond the call. A NULL function is an operation that the provider lacks. Calls on one handle
 * come
 * from one thread at a time. */
struct hum_provider {
    int32_t abi_version; /* HUM_ABI_VERSION */
    const char *name;    /* "cpu", "humming", ... */
    const char *version;
    const char *device; /* what it runs on, for reports: "cpu", "NVIDIA H200" */

    /* A handle. `threads` is how many CPU threads it may use, at least 1. */
    enum hum_code (*open)(int threads, void **handle, char reason[HUM_REASON_BYTES]);
    void (*close)(void *handle);

    /* HUM_OK when `forward` can run this, HUM_UNSUPPORTED with the reason if not. */
    enum hum_code (*supports)(void *handle, const struct hum_layer_config *layer,
                              const struct hum_compute_config *compute,
                              const struct hum_tuning_config *tuning,
                              char reason[HUM_REASON_BYTES]);

    /* The provider's own choice for m rows. */
    enum hum_code (*heuristics)(void *handle, const struct hum_layer_config *layer,
                                const struct hum_compute_config *compute, int64_t m,
                                struct hum_tuning_config *out, char reason[HUM_REASON_BYTES]);

    /* Sizes of the kernel form: every field of `out` filled but `data` (NULL). */
    enum hum_code (*transform_shapes)(void *handle, const struct hum_layer_config *layer,
                                      struct hum_weights *out, char reason[HUM_REASON_BYTES]);

    /* Standard form to kernel form; `out` as transform_shapes gave it, with `data` allocated by the
     * caller. Does not depend on tuning. */
    enum hum_code (*transform)(void *handle, const struct hum_layer_config *layer,
                               const struct hum_weights *standard, struct hum_weights *out,
                               char reason[HUM_REASON_BYTES]);

    /* One product. Returns when the output may be read. HUM_INVALID: outputs overlap any other
     * tensor of the call; a tensor (but locks) is there that the configuration has no use for. With
     * m = 0 inputs, input_scale and outputs have no bytes and may have no data: HUM_OK, nothing is
     * written. */
    enum hum_code (*forward)(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES]);

    /* How output (row, col) of a product with m rows is summed. */
    enum hum_code (*accumulation)(void *handle, const struct hum_layer_config *layer,
                                  const struct hum_compute_config *compute,
                                  const struct hum_tuning_config *tuning, int64_t m, int64_t row,
                                  int64_t col, struct hum_accumulation *out,
                                  char reason[HUM_REASON_BYTES]);

    /* How its tiles are numbered, and so how `accumulation` is asked about products with experts.
     * False: with m fastest (section 10: about a dense product). True: with n fastest, row tiles of
     * all experts one after the other: layer and compute are those of the launch, m is the number
     * of row tiles times block_m, row the number of the row tile times block_m, col that of the
     * output. */
    bool tiles_n_fastest;

    /* Launches that are recorded once and repeated (CUDA graphs); all three or none. A handle has
     * one recording at a time.
     *
     * After `capture` the next call of `forward`, or of an operation, is recorded. It returns as
     * usual; whether it also runs is the provider's to choose, so its outputs mean nothing. A call
     * that does not return HUM_OK records nothing. HUM_UNSUPPORTED: it cannot be recorded.
     *
     * `replay` runs what was recorded: the same kernels on the same addresses, with what lies there
     * now; only values of tensors may have changed, and of routing tensors only so that the call
     * stays right. Locks are zero before and after each. Returns when the outputs may be read.
     * HUM_INVALID: nothing is recorded.
     *
     * `drop` forgets the recording, and a `capture` that no call has followed. The memory that was
     * recorded is not released before. */
    enum hum_code (*capture)(void *handle, char reason[HUM_REASON_BYTES]);
    enum hum_code (*replay)(void *handle, char reason[HUM_REASON_BYTES]);
    void (*drop)(void *handle);

    /* The other operations of the family; NULL: none. */
    const struct hum_ops *ops;

    /* Names of the tuning fields that change neither bits nor order ("num_stages", ...), ended by
     * NULL. */
    const char *const *inert_tuning;

    /* Memory of the device. A provider on the host may leave these NULL: malloc and memcpy are
     * used. */
    enum hum_code (*alloc)(void *handle, size_t bytes, void **out, char reason[HUM_REASON_BYTES]);
    void (*release)(void *handle, void *data);
    enum hum_code (*upload)(void *handle, void *device, const void *host, size_t bytes,
                            char reason[HUM_REASON_BYTES]);
    enum hum_code (*download)(void *handle, void *host, const void *device, size_t bytes,
                              char reason[HUM_REASON_BYTES]);
};

/* A shared library is a provider when it exports a function of this name and type that returns a
 * table living as long as the library is loaded. */
#define HUM_PROVIDER_SYMBOL "humcheck_provider"
typedef const struct hum_provider *hum_provider_fn(void);

#ifdef __cplusplus
}
#endif

#endif
