#include "kernels/cpu/config.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/format.h"

#include <stdio.h>

/* A rule of the contract, already evaluated. */
struct rule {
    bool broken;
    const char *sentence;
};

#define CHECK_RULES(rules, reason) check_rules((rules), sizeof(rules) / sizeof *(rules), (reason))

enum hum_code refuse(char reason[HUM_REASON_BYTES], enum hum_code code, const char *sentence)
{
    (void)snprintf(reason, HUM_REASON_BYTES, "%s", sentence);
    return code;
}

static enum hum_code check_rules(const struct rule *rules, size_t count,
                                 char reason[HUM_REASON_BYTES])
{
    for (size_t i = 0; i < count; i++)
        if (rules[i].broken)
            return refuse(reason, HUM_INVALID, rules[i].sentence);
    return HUM_OK;
}

static bool is_power_of_two(int64_t x)
{
    return x > 0 && (x & (x - 1)) == 0;
}

static bool is_activation(int32_t dtype)
{
    static const int32_t known[] = {HUM_F16,  HUM_BF16, HUM_E4M3, HUM_E5M2, HUM_E3M4,
                                    HUM_E2M1, HUM_E0M3, HUM_INT8, HUM_INT4};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i] == dtype)
            return true;
    return false;
}

static bool is_code_scale(int32_t dtype)
{
    static const int32_t known[] = {HUM_F16, HUM_BF16, HUM_E4M3, HUM_E5M2, HUM_E8M0, HUM_E5M3};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i] == dtype)
            return true;
    return false;
}

static bool has_groups(const struct hum_layer_config *l)
{
    return l->weight_scale_type == HUM_SCALE_GROUP || l->weight_scale_type == HUM_SCALE_BLOCK;
}

static enum hum_code check_shapes(const struct hum_layer_config *l, char reason[HUM_REASON_BYTES])
{
    const int bits = hum_dtype_bits(l->a_dtype);
    const int64_t limit = INT64_C(1) << 24;
    const struct rule rules[] = {
        {l->shape_n <= 0 || l->shape_k <= 0, "shape_n and shape_k must be positive"},
        {l->shape_n > limit || l->shape_k > limit, "shape_n and shape_k must be at most 2^24"},
        {l->pad_shape_n < 0 || l->pad_shape_k < 0, "padding must not be negative"},
        {l->pad_shape_n >= l->shape_n, "pad_shape_n must be less than shape_n"},
        {l->pad_shape_k >= l->shape_k, "pad_shape_k must be less than shape_k"},
        {l->shape_n % 64 != 0, "shape_n must be a multiple of 64"},
        {l->shape_k % (512 / bits) != 0, "shape_k must be a multiple of 512 / bits(a)"},
        {l->pad_shape_n % 8 != 0, "pad_shape_n must be a multiple of 8"},
        {l->pad_shape_k % (128 / bits) != 0, "pad_shape_k must be a multiple of 128 / bits(a)"},
        {l->num_experts < 0 || l->num_experts > 1 << 14, "num_experts must be from 0 to 2^14"},
        {(l->shape_k - l->pad_shape_k) * hum_dtype_bits(l->b_dtype) % 32 != 0,
         "a row of weight codes must be whole 32-bit words"},
    };

    return CHECK_RULES(rules, reason);
}

/* Weights whose every value the activation's format holds (upstream Humming: an integer of B bits
 * needs B - 2 mantissa bits, with zero points one more; a float no more exponent and mantissa
 * bits). */
static enum hum_code check_weight_format(const struct hum_layer_config *l,
                                         char reason[HUM_REASON_BYTES])
{
    const int32_t a = l->a_dtype, b = l->b_dtype;
    const bool a_float = hum_dtype_is_float(a), b_float = hum_dtype_is_float(b);
    const int bits_a = hum_dtype_bits(a), bits_b = hum_dtype_bits(b);
    const int ea = hum_dtype_exponent_bits(a), eb = hum_dtype_exponent_bits(b);
    const int ma = hum_dtype_mantissa_bits(a), mb = hum_dtype_mantissa_bits(b);
    const bool int_zero = l->has_zero_point && !l->is_fp_zero_point;
    const struct rule rules[] = {
        {bits_b > 8 || bits_b > bits_a,
         "b_dtype must have at most 8 bits and no more than a_dtype"},
        {b_float && !hum_dtype_is_signed(b), "a floating b_dtype must be signed"},
        {a_float && !b_float && (hum_dtype_is_signed(b) || a == HUM_E0M3),
         "this a_dtype does not take a signed integer b_dtype, nor float4e0m3 any integer"},
        {a_float && !b_float && bits_b > ma + 2 - int_zero,
         "a_dtype has too few mantissa bits for the integers of b_dtype"},
        {a_float && b_float && (eb > ea || mb > ma || (eb == 0) != (ea == 0)),
         "a_dtype cannot hold the numbers of b_dtype"},
        {!a_float && b_float && !(a == HUM_INT8 && b == HUM_E2M1 && l->use_fused_e8m0_scale),
         "an integer a_dtype takes a floating b_dtype only as float4e2m1 fused with int8"},
        {!a_float && !b_float && bits_a == bits_b && a != b,
         "an integer b_dtype as wide as a_dtype must be the same"},
        {!a_float && !b_float && bits_b < bits_a && hum_dtype_is_signed(b),
         "an integer b_dtype narrower than a_dtype must be unsigned"},
    };

    return CHECK_RULES(rules, reason);
}

static enum hum_code check_formats(const struct hum_layer_config *l, char reason[HUM_REASON_BYTES])
{
    const bool a16 = hum_dtype_bits(l->a_dtype) == 16;
    const bool f32_scale =
        l->weight_scale_type == HUM_SCALE_BLOCK || l->weight_scale_type == HUM_SCALE_TENSOR;
    const struct rule rules[] = {
        {l->c_dtype != HUM_F16 && l->c_dtype != HUM_BF16, "c_dtype must be float16 or bfloat16"},
        {a16 && l->c_dtype != l->a_dtype, "c_dtype must be a_dtype when that has 16 bits"},
        {a16 && l->as_dtype != HUM_NONE, "16-bit activations have no input scale: as_dtype"},
        {!a16 && l->as_dtype != HUM_F32, "as_dtype must be float32 with 8- and 4-bit activations"},
        {f32_scale && l->bs_dtype != HUM_F32,
         "bs_dtype must be float32 for block and tensor scales"},
        {!f32_scale && !is_code_scale(l->bs_dtype),
         "bs_dtype must be a 16-bit or 8-bit float for channel and group scales"},
        {!f32_scale && hum_dtype_bits(l->bs_dtype) == 16 && l->bs_dtype != l->c_dtype,
         "a 16-bit bs_dtype must be c_dtype"},
    };

    return CHECK_RULES(rules, reason);
}

/* A group is not smaller than an instruction; 4-bit floats exist only where the instruction itself
 * takes scales of 16 values. */
static int64_t smallest_group(const struct hum_layer_config *l)
{
    const int bits = hum_dtype_bits(l->a_dtype);

    return bits == 4 && hum_dtype_is_float(l->a_dtype) ? 16 : 256 / bits;
}

static enum hum_code check_scales(const struct hum_layer_config *l, char reason[HUM_REASON_BYTES])
{
    const bool groups = has_groups(l), block = l->weight_scale_type == HUM_SCALE_BLOCK;
    const bool a16 = hum_dtype_bits(l->a_dtype) == 16;
    const int64_t g = l->weight_scale_group_size, gi = l->input_scale_group_size;
    const int64_t least = smallest_group(l);
    const struct rule rules[] = {
        {l->weight_scale_type < HUM_SCALE_CHANNEL || l->weight_scale_type > HUM_SCALE_TENSOR,
         "weight_scale_type is out of range"},
        {l->weight_scale_2_type < HUM_SCALE_2_NONE || l->weight_scale_2_type > HUM_SCALE_2_CHANNEL,
         "weight_scale_2_type is out of range"},
        {!groups && g != 0, "channel and tensor scales have weight_scale_group_size 0"},
        {groups && (g < least || (g % least != 0 && !FAULT(GROUP_SIZE_ACCEPTED))),
         "weight_scale_group_size must be a positive multiple of 256 / bits(a)"},
        {g > l->shape_k, "weight_scale_group_size must be at most shape_k"},
        {block && l->weight_scale_group_size_n < 2,
         "block scales need weight_scale_group_size_n above 1"},
        {!block && (l->weight_scale_group_size_n < 0 || l->weight_scale_group_size_n > 1),
         "weight_scale_group_size_n belongs to block scales"},
        {gi < 0 || gi > l->shape_k || (gi > 0 && gi % least != 0),
         "input_scale_group_size must be 0 or a multiple of 256 / bits(a) up to shape_k"},
        {a16 && gi != 0, "16-bit activations have no input groups"},
        {block && gi > 0 && gi != g, "with block scales input and weight groups must be equal"},
        {l->weight_scale_2_type != HUM_SCALE_2_NONE && l->weight_scale_type != HUM_SCALE_GROUP,
         "weight_scale_2 needs group scales"},
    };

    return CHECK_RULES(rules, reason);
}

static enum hum_code check_options(const struct hum_layer_config *l, char reason[HUM_REASON_BYTES])
{
    const bool a16 = hum_dtype_bits(l->a_dtype) == 16,
               group = l->weight_scale_type == HUM_SCALE_GROUP;
    const bool is_int = !hum_dtype_is_float(l->a_dtype), fused = l->use_fused_e8m0_scale;
    const bool unsigned_b = !hum_dtype_is_float(l->b_dtype) && !hum_dtype_is_signed(l->b_dtype);
    const enum hum_input_quant_mode mode = l->input_quant_mode;
    const struct rule rules[] = {
        {l->is_fp_zero_point && !l->has_zero_point, "is_fp_zero_point needs has_zero_point"},
        {l->is_fp_zero_point && !a16, "floating zero points need 16-bit activations"},
        {l->has_zero_point && !unsigned_b, "zero points need an unsigned integer b_dtype"},
        {l->has_zero_point && l->weight_scale_type == HUM_SCALE_BLOCK,
         "block scales have no zero points"},
        {l->use_int_weight_scale && fused,
         "use_int_weight_scale and use_fused_e8m0_scale exclude each other"},
        {l->use_int_weight_scale && (!is_int || !group || l->input_scale_group_size != 0),
         "use_int_weight_scale needs integer activations, group scales and no input groups"},
        {fused && !((l->a_dtype == HUM_E4M3 || l->a_dtype == HUM_INT8) && group &&
                    l->b_dtype == HUM_E2M1 && l->bs_dtype == HUM_E8M0),
         "use_fused_e8m0_scale needs float8e4m3 or int8 with float4e2m1 and e8m0 group scales"},
        {mode < HUM_QUANT_DISABLED || mode > HUM_QUANT_DYNAMIC_GROUP_TOKEN,
         "input_quant_mode is out of range"},
        {a16 && mode != HUM_QUANT_DISABLED, "16-bit activations are not quantized"},
        {mode == HUM_QUANT_DYNAMIC_GROUP && l->input_scale_group_size == 0,
         "input_quant_mode dynamic_group needs input_scale_group_size"},
        {(mode == HUM_QUANT_DYNAMIC_TOKEN || mode == HUM_QUANT_STATIC_TENSOR) &&
             l->input_scale_group_size != 0,
         "this input_quant_mode has no input_scale_group_size"},
        {l->mma_type < HUM_MMA_AUTO || l->mma_type > HUM_MMA_MXMMA, "mma_type is out of range"},
    };

    return CHECK_RULES(rules, reason);
}

enum hum_code config_check_layer(const struct hum_layer_config *layer,
                                 char reason[HUM_REASON_BYTES])
{
    enum hum_code rc;

    if (!layer)
        return refuse(reason, HUM_INVALID, "the layer configuration is missing");
    if (!is_activation(layer->a_dtype))
        return refuse(reason, HUM_INVALID, "a_dtype is not a format of activations");
    if (!format_is_known(layer->b_dtype))
        return refuse(reason, HUM_INVALID, "b_dtype is not a format of weights");
    rc = check_shapes(layer, reason);
    if (!rc)
        rc = check_formats(layer, reason);
    if (!rc)
        rc = check_scales(layer, reason);
    if (!rc)
        rc = check_options(layer, reason);
    if (!rc)
        rc = check_weight_format(layer, reason);
    if (rc)
        return rc;
    if (layer->input_quant_mode > HUM_QUANT_DYNAMIC_GROUP)
        return refuse(reason, HUM_UNSUPPORTED, "the cpu provider has no secondary input scales");
    return HUM_OK;
}

enum hum_code config_check_compute(const struct hum_layer_config *layer,
                                   const struct hum_compute_config *compute,
                                   char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = config_check_layer(layer, reason);

    if (rc)
        return rc;
    if (!compute)
        return refuse(reason, HUM_INVALID, "the compute configuration is missing");
    if (compute->gemm_type < HUM_GEMM_DENSE || compute->gemm_type > HUM_GEMM_GROUPED_MASKED)
        return refuse(reason, HUM_INVALID, "gemm_type is out of range");
    if ((compute->gemm_type == HUM_GEMM_DENSE) != (layer->num_experts == 0))
        return refuse(reason, HUM_INVALID,
                      "num_experts must be 0 with gemm_type dense, and positive with the others");
    if (compute->use_f16_accum &&
        !(layer->a_dtype == HUM_F16 || (layer->a_dtype == HUM_E4M3 && layer->c_dtype == HUM_F16)))
        return refuse(reason, HUM_INVALID,
                      "use_f16_accum needs float16 activations, or float8e4m3 with float16 output");
    if (compute->use_m_major_input_scale && layer->as_dtype == HUM_NONE)
        return refuse(reason, HUM_INVALID, "use_m_major_input_scale needs input scales");
    if (compute->use_m_major_input_scale && compute->gemm_type == HUM_GEMM_INDEXED)
        return refuse(reason, HUM_INVALID, "gemm_type indexed excludes use_m_major_input_scale");
    return HUM_OK;
}

static enum hum_code check_tile_sizes(const struct hum_tuning_config *t,
                                      char reason[HUM_REASON_BYTES])
{
    const struct rule rules[] = {
        {t->block_m <= 0 || t->block_n <= 0 || t->block_k <= 0, "block sizes must be positive"},
        {t->warp_m <= 0 || t->warp_n <= 0 || t->warp_k <= 0, "warp sizes must be positive"},
    };

    return CHECK_RULES(rules, reason);
}

/* The sizes are positive. */
static enum hum_code check_tiles(const struct hum_layer_config *l,
                                 const struct hum_tuning_config *t, char reason[HUM_REASON_BYTES])
{
    const struct rule rules[] = {
        {!is_power_of_two(t->block_n) || !is_power_of_two(t->block_k) ||
             !is_power_of_two(t->warp_n) || !is_power_of_two(t->warp_k),
         "block and warp sizes along n and k must be powers of two"},
        {t->block_m % t->warp_m != 0 || !is_power_of_two(t->block_m / t->warp_m),
         "block_m must be warp_m times a power of two"},
        {t->warp_n > t->block_n, "warp_n must not be larger than block_n"},
        {t->warp_k > t->block_k, "warp_k must not be larger than block_k"},
        {t->warp_n % 16 != 0, "warp_n must be a multiple of 16"},
        {t->warp_k % (256 / hum_dtype_bits(l->a_dtype)) != 0,
         "warp_k must be a multiple of 256 / bits(a)"},
        {l->shape_n % t->block_n != 0, "shape_n must be a multiple of block_n"},
        {l->shape_k % t->block_k != 0, "shape_k must be a multiple of block_k"},
    };

    return CHECK_RULES(rules, reason);
}

static enum hum_code check_flush(const struct hum_layer_config *l,
                                 const struct hum_tuning_config *t, char reason[HUM_REASON_BYTES])
{
    const struct facts f = config_facts(l);
    const int64_t q = config_flush_k(l, t->warp_k), gi = l->input_scale_group_size;

    if (q && (t->warp_k % q != 0 || (f.scale_on_c && f.group_k % q != 0) || gi % q != 0))
        return refuse(reason, HUM_INVALID,
                      "warp_k, weight and input groups must be multiples of the smallest of them");
    return HUM_OK;
}

static enum hum_code check_schedule(const struct hum_layer_config *l,
                                    const struct hum_compute_config *c,
                                    const struct hum_tuning_config *t,
                                    char reason[HUM_REASON_BYTES])
{
    const struct rule rules[] = {
        {c->use_batch_invariant && t->use_stream_k, "use_batch_invariant excludes use_stream_k"},
        {c->use_batch_invariant && t->warp_k != t->block_k,
         "use_batch_invariant needs warp_k equal to block_k"},
        {t->num_sms < 0 || t->num_ctas_per_sm < 0, "the number of workers must not be negative"},
        {t->use_stream_k && t->num_ctas_per_sm == 0, "use_stream_k needs num_ctas_per_sm"},
        {c->gemm_type == HUM_GEMM_INDEXED &&
             (t->use_tma_a || t->use_tma_c || t->use_tma_as || t->use_tma_as2),
         "gemm_type indexed excludes use_tma_a, use_tma_c, use_tma_as and use_tma_as2"},
        {t->num_stages < 0 || t->num_write_splits < 0 || t->multi_cast_size_a < 0 ||
             t->multi_cast_size_b < 0 || t->raster_group_m < 0,
         "counts of stages, splits, multicast and raster groups must not be negative"},
    };
    const enum hum_code rc = CHECK_RULES(rules, reason);
    const int64_t workers = (int64_t)(t->num_sms ? t->num_sms : CPU_SMS) * t->num_ctas_per_sm;

    if (rc)
        return rc;
    if (t->use_stream_k && workers > HUM_MAX_SLICES && l->shape_k / t->block_k > HUM_MAX_SLICES)
        return refuse(
            reason, HUM_UNSUPPORTED,
            "with so many Stream-K workers and K blocks a tile could have over 64 slices");
    return HUM_OK;
}

enum hum_code config_check(const struct hum_layer_config *layer,
                           const struct hum_compute_config *compute,
                           const struct hum_tuning_config *tuning, char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = config_check_compute(layer, compute, reason);

    if (rc)
        return rc;
    if (!tuning)
        return refuse(reason, HUM_INVALID, "the tuning configuration is missing");
    rc = check_tile_sizes(tuning, reason);
    if (!rc)
        rc = check_tiles(layer, tuning, reason);
    if (!rc)
        rc = check_flush(layer, tuning, reason);
    if (!rc)
        rc = check_schedule(layer, compute, tuning, reason);
    return rc;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

struct facts config_facts(const struct hum_layer_config *layer)
{
    const bool group = layer->weight_scale_type == HUM_SCALE_GROUP;
    const bool a16 = hum_dtype_bits(layer->a_dtype) == 16, groups = has_groups(layer);
    const int64_t gi = layer->input_scale_group_size;
    struct facts f = {
        .n = layer->shape_n - layer->pad_shape_n,
        .k = layer->shape_k - layer->pad_shape_k,
        .bits_a = hum_dtype_bits(layer->a_dtype),
        .bits_b = hum_dtype_bits(layer->b_dtype),
        .group_k = groups ? layer->weight_scale_group_size : layer->shape_k,
        .fused = layer->use_fused_e8m0_scale,
        .int_scale = layer->use_int_weight_scale,
        .scale_on_operand = group && a16,
        .input_scale_on_c = gi > 0,
        .input_scale_epilogue = !a16 && gi == 0,
        .is_int = !hum_dtype_is_float(layer->a_dtype),
    };

    f.instruction_k = 256 / f.bits_a;
    f.groups = divide_up(f.k, f.group_k);
    f.padded_groups = divide_up(layer->shape_k, f.group_k);
    f.input_groups = a16 ? 0 : gi > 0 ? divide_up(f.k, gi) : 1;
    f.scale_on_c = groups && !f.scale_on_operand && !f.fused;
    f.has_tensor_factor = layer->weight_scale_type == HUM_SCALE_TENSOR ||
                          layer->weight_scale_2_type == HUM_SCALE_2_TENSOR || f.int_scale;
    f.has_channel_factor = layer->weight_scale_type == HUM_SCALE_CHANNEL ||
                           layer->weight_scale_2_type == HUM_SCALE_2_CHANNEL;
    return f;
}

int64_t config_flush_k(const struct hum_layer_config *layer, int64_t warp_k)
{
    const struct facts f = config_facts(layer);
    int64_t q = warp_k;

    if (!f.scale_on_c && !f.input_scale_on_c)
        return 0;
    if (f.scale_on_c && f.group_k < q)
        q = f.group_k;
    if (f.input_scale_on_c && layer->input_scale_group_size < q)
        q = layer->input_scale_group_size;
    return q;
}

struct hum_tuning_config config_heuristics(const struct hum_layer_config *layer, int64_t m)
{
    const int bits = hum_dtype_bits(layer->a_dtype);
    const int64_t rows = layer->num_experts ? divide_up(m, layer->num_experts) : m;
    char unused[HUM_REASON_BYTES];
    struct hum_tuning_config t = {.block_m = rows <= 16   ? 16
                                             : rows <= 32 ? 32
                                                          : 64,
                                  .block_n = 64,
                                  .block_k = 2048 / bits,
                                  .warp_n = 32,
                                  .num_stages = 2,
                                  .num_ctas_per_sm = 1,
                                  .num_write_splits = 1,
                                  .multi_cast_size_a = 1,
                                  .multi_cast_size_b = 1,
                                  .raster_group_m = 1};

    t.warp_m = t.block_m;
    t.warp_k = t.block_k;
    while (t.block_k > 256 / bits &&
           (check_tiles(layer, &t, unused) || check_flush(layer, &t, unused)))
        t.warp_k = t.block_k /= 2;
    return t;
}
