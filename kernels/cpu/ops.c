#include "kernels/cpu/ops.h"

const struct hum_ops hum_cpu_ops = {
    .quant_weight = op_quant_weight,
    .dequant_weight = op_dequant_weight,
    .pack = op_pack,
    .unpack = op_unpack,
    .process_mxfp4 = op_process_mxfp4,
    .process_input = op_process_input,
    .hadamard = op_hadamard,
    .moe_fused_mul_sum = op_moe_fused_mul_sum,
    .buffer_metas = op_buffer_metas,
};
