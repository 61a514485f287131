/* humming_ops.h - the rest of the family's contract: quantizers, packing, inputs, weighted sum,
 * buffers of the experts pipeline.
 *
 * Included by humming.h, whose rules hold here: borrowed tensors, dense and row-major; HUM_OK or a
 * sentence with nothing written. A tensor that is written must not overlap any other tensor of the
 * call (HUM_INVALID); it may lie directly beside one. An
 * operation that a provider lacks is a NULL function. E is a number of experts, G of groups. Rules
 * that differ between upstream generations are
 * named parameters, never a silent choice. Sources: upstream's kernel headers and operations of the
 * same names.
 */
#ifndef KERNELS_ABI_HUMMING_OPS_H
#define KERNELS_ABI_HUMMING_OPS_H

#ifndef KERNELS_ABI_HUMMING_H
#error "include kernels/abi/humming.h"
#endif

/* ---- weights ---- */

/* How a group's scale follows from its extremes, and how values are rounded to codes. */
enum hum_quant_rule {
    /* integers: max(max/(M+1.499), -min/(M+0.499)), M = 2^(b-1)-1; e8m0 exponent truncated;
     * floats: ties to zero */
    HUM_QUANT_RULE_2026_05,
    /* integers: max(max/(M+1), -min/M), clamped; e8m0 rounded up to a power of two; floats: ties
     * to zero */
    HUM_QUANT_RULE_2026_08
};

/* inputs -> codes, scale, zero point. */
struct hum_quant_weight_args {
    struct hum_tensor inputs; /* (rows, cols) HUM_F16, HUM_BF16 or HUM_F32 */
    int32_t target_dtype;     /* uintN, intN or floatNeXmY */
    int64_t group_size;       /* along cols; a multiple of 8 that divides cols; 0: cols */
    bool has_scale;           /* false: scale 1, codes of the values themselves */
    bool use_e8m0_scale;      /* scale is a power of two, stored as e8m0 */
    bool has_zero_point, is_fp_zero_point;
    bool
        /* integers without zero point: sign chosen so that the wider side fits */
        allow_negative_scale;
    enum hum_quant_rule rule;
    struct hum_tensor codes; /* out: (rows, cols) HUM_INT32, one code an element */
    struct hum_tensor scale; /* out: (rows, G) HUM_F32, or HUM_E8M0; absent without scale */
    struct hum_tensor
        zero_point; /* out: (rows, G) HUM_F32 (whole numbers if integer); absent without */
};

/* Codes of any floatNeXmY (N <= 8) to f32, every code finite: a power-of-two scaling, subnormals
 * exact. */
struct hum_dequant_weight_args {
    struct hum_tensor codes; /* (n) HUM_INT32 */
    int32_t source_dtype;
    struct hum_tensor outputs; /* out: (n) HUM_F32 */
};

/* One code an int32 <-> bit stream along the last dimension, least significant bit first. */
struct hum_pack_args {
    int32_t bits; /* 1 to 8 */
    struct hum_tensor
        codes; /* (rows, cols) HUM_INT32; pack reads the low `bits` bits; cols % 32 == 0 */
    struct hum_tensor packed; /* (rows, cols * bits / 32) HUM_INT32 */
};

/* Requantizes the e2m1 groups whose e8m0 scale is below hi - range (semantics.md section 8), in
 * place. */
struct hum_process_mxfp4_args {
    int32_t a_dtype;          /* HUM_E4M3 or HUM_INT8: the range */
    int32_t range;            /* R; 0: the contract's (11, 3) */
    bool per_row;             /* extremes of each row instead of the whole tensor */
    struct hum_tensor weight; /* in and out: (N, K * 4 / 32) HUM_INT32, standard form */
    struct hum_tensor scale;  /* in and out: (N, K / group) HUM_E8M0; out: offsets from base */
    struct hum_tensor factor; /* out: (1) or (N) HUM_F32: 2^(base - 127) */
};

/* ---- activations ---- */

enum hum_activation {
    HUM_ACT_NONE,
    HUM_ACT_SILU,
    HUM_ACT_GELU,
    HUM_ACT_GELU_TANH,
    HUM_ACT_RELU2,
    HUM_ACT_SWIGLU /* min(gate, limit) sigmoid(alpha gate) (clamp(up, -limit, limit) + beta) */
};
enum hum_activation_form {
    HUM_ACT_UNARY,             /* width in = width out */
    HUM_ACT_BINARY_SPLIT,      /* first half of a row is the gate, second half multiplies it */
    HUM_ACT_BINARY_INTERLEAVED /* even columns gate, odd columns multiply */
};
enum hum_input_layout {
    HUM_LAYOUT_NORMAL,
    HUM_LAYOUT_GROUPED,        /* expert_layout: (E+1) offsets */
    HUM_LAYOUT_PERMUTE,        /* output row indices[i] <- input row i */
    HUM_LAYOUT_GROUPED_PADDED, /* expert_layout: (E) counts, max_tokens rows an expert */
    HUM_LAYOUT_SCATTER         /* indices (rows, width) HUM_INT64; negative or too large: skipped */
};
enum hum_scale_layout {
    HUM_SCALES_ROW_MAJOR, /* (rows, G), 8-bit types padded to a multiple of 4 */
    HUM_SCALES_M_MAJOR,   /* (G, round_up(rows, 4)) */
    HUM_SCALES_MX_PACKED  /* (ceil(G / 4), round_up(rows, 4), 4) bytes */
};

/* inputs -> activation -> Hadamard -> quantization -> layout. */
struct hum_process_input_args {
    struct hum_tensor inputs; /* (rows, width) HUM_F16, HUM_BF16 or HUM_F32 */
    enum hum_activation activation;
    enum hum_activation_form form;
    float alpha, beta, limit; /* of SWIGLU; limit 0: none */
    int64_t
        /* 0: none; a power of two up to 512; natural order, times 1/sqrt(size) */
        hadamard_block_size;
    enum hum_input_quant_mode quant_mode;
    int32_t quant_dtype; /* of outputs; HUM_NONE with HUM_QUANT_DISABLED */
    int64_t quant_group_size;
    int32_t group_scale_dtype; /* HUM_F32, HUM_E8M0 or HUM_E4M3 */
    enum hum_scale_layout scale_layout;
    enum hum_input_layout layout;
    bool zero_invalid;               /* GROUPED_PADDED: rows beyond a count become 0 */
    bool precise;                    /* IEEE division; false: the provider may approximate */
    struct hum_tensor static_scales; /* (1) HUM_F32 for the STATIC modes, else absent */
    struct hum_tensor expert_layout; /* HUM_INT32 or HUM_INT64 */
    struct hum_tensor indices;
    int64_t max_tokens;
    struct hum_tensor outputs;      /* (out rows, out width) quant_dtype, 4-bit types packed */
    struct hum_tensor group_scales; /* as scale_layout says; absent without groups */
    struct hum_tensor token_scales; /* (rows) HUM_F32 for the TOKEN modes, else absent */
};

/* Walsh-Hadamard transform of blocks of a row, natural order, times 1/sqrt(block). */
struct hum_hadamard_args {
    struct hum_tensor inputs, outputs; /* (rows, width), same format */
    int64_t block_size;
};

/* outputs[t] = cast(sum over j, in order, in f32, of inputs[t, j] weights[t, j]); entries whose
 * expert maps to a
 * negative local index, or whose id is negative, are left out. */
struct hum_moe_fused_mul_sum_args {
    struct hum_tensor inputs;     /* (T, top_k, H) HUM_F16, HUM_BF16 or HUM_F32 */
    struct hum_tensor weights;    /* (T, top_k) HUM_F32 */
    struct hum_tensor topk_ids;   /* (T, top_k) HUM_INT32, or absent */
    struct hum_tensor expert_map; /* (E) HUM_INT32, or absent */
    struct hum_tensor outputs;    /* (T, H), format of inputs */
};

/* ---- the experts pipeline ---- */

/* quantize -> GEMM -> activation -> quantize -> GEMM -> weighted sum. Buffers in that order; those
 * a pipeline does not need have bytes 0. Walking
 * the needed ones backwards from the last: even places lie in workspace1, odd ones in workspace2,
 * so that neighbours never share and
 * the last is in workspace1. Source: facts of a serving project's experts classes. */
enum hum_buffer {
    HUM_BUFFER_QUANTED_GATE_UP_INPUT,
    HUM_BUFFER_GATE_UP_OUTPUT,
    HUM_BUFFER_ACTIVATION_OUTPUT,
    HUM_BUFFER_QUANTED_DOWN_INPUT,
    HUM_BUFFER_DOWN_OUTPUT,
    HUM_BUFFER_OUTPUT, /* not in the batched form */
    HUM_BUFFER_COUNT
};

struct hum_experts_config {
    const struct hum_layer_config *gate_up, *down;
    enum hum_gemm_type gemm_type; /* indexed, grouped_contiguous or grouped_masked (batched) */
    enum hum_activation activation;
    enum hum_activation_form form;
    int64_t m, top_k, max_tokens, dispatchers;
};

struct hum_buffer_meta {
    int64_t rows, cols;
    size_t bytes; /* 0: not needed */
    int32_t dtype;
    int32_t workspace; /* 1 or 2 */
};

/* The functions, in the same table as the GEMM's (struct hum_provider.ops points to it). */
struct hum_ops {
    enum hum_code (*quant_weight)(void *handle, const struct hum_quant_weight_args *args,
                                  char reason[HUM_REASON_BYTES]);
    enum hum_code (*dequant_weight)(void *handle, const struct hum_dequant_weight_args *args,
                                    char reason[HUM_REASON_BYTES]);
    enum hum_code (*pack)(void *handle, const struct hum_pack_args *args,
                          char reason[HUM_REASON_BYTES]);
    enum hum_code (*unpack)(void *handle, const struct hum_pack_args *args,
                            char reason[HUM_REASON_BYTES]);
    enum hum_code (*process_mxfp4)(void *handle, const struct hum_process_mxfp4_args *args,
                                   char reason[HUM_REASON_BYTES]);
    enum hum_code (*process_input)(void *handle, const struct hum_process_input_args *args,
                                   char reason[HUM_REASON_BYTES]);
    enum hum_code (*hadamard)(void *handle, const struct hum_hadamard_args *args,
                              char reason[HUM_REASON_BYTES]);
    enum hum_code (*moe_fused_mul_sum)(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                       char reason[HUM_REASON_BYTES]);

    /* Sizes and places of the pipeline's buffers; HUM_INVALID with a sentence when the layers do
     * not fit each other. */
    enum hum_code (*buffer_metas)(void *handle, const struct hum_experts_config *config,
                                  struct hum_buffer_meta out[HUM_BUFFER_COUNT],
                                  char reason[HUM_REASON_BYTES]);
};

#endif
