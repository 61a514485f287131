#include "kernels/cpu/cpu.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/forward.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/order.h"
#include "kernels/cpu/tensors.h"

#include <stdlib.h>

static enum hum_code cpu_open(int threads, void **handle, char reason[HUM_REASON_BYTES])
{
    struct cpu *cpu;

    if (threads < 1)
        return refuse(reason, HUM_INVALID, "threads must be at least 1");
    cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return refuse(reason, HUM_NO_MEMORY, "there is no memory for a handle");
    cpu->threads = threads;
    for (int i = 0; vector_ops_get(i); i++)
        cpu->ops = vector_ops_get(i);
    *handle = cpu;
    return HUM_OK;
}

static void cpu_close(void *handle)
{
    struct cpu *cpu = handle;

    if (cpu) {
        free(cpu->routing.data);
        free(cpu->work.data);
    }
    free(cpu);
}

static enum hum_code cpu_supports(void *handle, const struct hum_layer_config *layer,
                                  const struct hum_compute_config *compute,
                                  const struct hum_tuning_config *tuning,
                                  char reason[HUM_REASON_BYTES])
{
    (void)handle;
    return config_check(layer, compute, tuning, reason);
}

static enum hum_code cpu_heuristics(void *handle, const struct hum_layer_config *layer,
                                    const struct hum_compute_config *compute, int64_t m,
                                    struct hum_tuning_config *out, char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = config_check_compute(layer, compute, reason);
    struct hum_tuning_config tuning;

    (void)handle;
    if (rc)
        return rc;
    if (m < 0)
        return refuse(reason, HUM_INVALID, "m must not be negative");
    tuning = config_heuristics(layer, m);
    rc = config_check(layer, compute, &tuning, reason);
    if (FAULT(HEURISTICS_IGNORE_N))
        tuning.block_n = 128;
    if (!rc)
        *out = tuning;
    return rc;
}

static enum hum_code cpu_transform_shapes(void *handle, const struct hum_layer_config *layer,
                                          struct hum_weights *out, char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = config_check_layer(layer, reason);

    (void)handle;
    if (!rc)
        *out = layout_kernel(layer);
    return rc;
}

static enum hum_code cpu_transform(void *handle, const struct hum_layer_config *layer,
                                   const struct hum_weights *standard, struct hum_weights *out,
                                   char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = config_check_layer(layer, reason);
    struct hum_weights want;

    (void)handle;
    if (rc)
        return rc;
    if (!standard || !out)
        return refuse(reason, HUM_INVALID, "the weights are missing");
    want = layout_standard(layer);
    rc = tensors_check_weights(standard, &want, reason);
    if (rc)
        return rc;
    want = layout_kernel(layer);
    rc = tensors_check_weights(out, &want, reason);
    if (!rc)
        layout_transform(layer, standard, out);
    return rc;
}

static enum hum_code cpu_forward(void *handle, const struct hum_gemm_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    enum hum_code rc;

    if (!handle || !args)
        return refuse(reason, HUM_INVALID, "the handle or the arguments are missing");
    rc = config_check(args->layer, args->compute, args->tuning, reason);
    if (!rc)
        rc = tensors_check_args(args, reason);
    if (!rc)
        rc = forward_run(handle, args, reason);
    return FAULT(LAUNCH_ERROR_LOST) ? HUM_OK : rc;
}

/* Fills the slices of one tile; each ends where the next block belongs to another slice. */
static void fill_slices(const struct order *o, int64_t tile, int64_t block_k,
                        struct hum_accumulation *out)
{
    out->slices = (int32_t)order_slices(o, tile);
    for (int64_t block = 0; block < o->blocks; block++) {
        const int64_t slice = order_slice(o, tile, block);

        if (block == 0 || order_slice(o, tile, block - 1) != slice)
            out->slice[slice].k_begin = block * block_k;
        out->slice[slice].k_end = (block + 1) * block_k;
    }
}

/* Rows and columns of the tile; with experts tiles depend on the routing, so that a row alone is
 * stated. */
static void fill_tile(const struct hum_layer_config *layer, const struct hum_tuning_config *tuning,
                      int64_t m, int64_t row, int64_t col, struct hum_accumulation *out)
{
    const int64_t block_m = layer->num_experts ? 1 : tuning->block_m;
    const int64_t n = layer->shape_n - layer->pad_shape_n;

    out->row_begin = row / block_m * block_m;
    out->row_end = out->row_begin + block_m < m ? out->row_begin + block_m : m;
    out->col_begin = col / tuning->block_n * tuning->block_n;
    out->col_end = out->col_begin + tuning->block_n < n ? out->col_begin + tuning->block_n : n;
}

/* NOLINTNEXTLINE(readability-function-size): the contract has nine parameters */
static enum hum_code cpu_accumulation(void *handle, const struct hum_layer_config *layer,
                                      const struct hum_compute_config *compute,
                                      const struct hum_tuning_config *tuning, int64_t m,
                                      int64_t row, int64_t col, struct hum_accumulation *out,
                                      char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = config_check(layer, compute, tuning, reason);
    struct facts f;
    struct order o;
    int64_t row_tiles, tile;

    (void)handle;
    if (rc)
        return rc;
    if (layer->num_experts && tuning->use_stream_k)
        return refuse(reason, HUM_UNSUPPORTED,
                      "with experts and Stream-K the order depends on the routing; it is that of a "
                      "dense product of the same tiles");
    f = config_facts(layer);
    if (row < 0 || row >= m || col < 0 || col >= f.n)
        return refuse(reason, HUM_INVALID, "row and col must lie in the output");
    row_tiles = m / tuning->block_m + (m % tuning->block_m != 0);
    o = order_make(layer, tuning, row_tiles);
    *out = (struct hum_accumulation){.arithmetic = HUM_ARITHMETIC_IEEE,
                                     .mma_type = HUM_MMA_AUTO,
                                     .instruction_k = (int32_t)f.instruction_k,
                                     .block_k = tuning->block_k,
                                     .warp_k = tuning->warp_k,
                                     .flush_k = config_flush_k(layer, tuning->warp_k),
                                     .ordered = true};
    fill_tile(layer, tuning, m, row, col, out);
    tile = col / tuning->block_n * row_tiles + row / tuning->block_m;
    fill_slices(&o, FAULT(ACCUMULATION_OF_TILE_0) ? 0 : tile, tuning->block_k, out);
    return HUM_OK;
}

static const char *const inert_tuning[] = {"warp_m",
                                           "warp_n",
                                           "num_stages",
                                           "use_warp_spec",
                                           "use_mbarrier",
                                           "use_cp_async",
                                           "use_tma_a",
                                           "use_tma_b",
                                           "use_tma_c",
                                           "use_tma_bs",
                                           "use_tma_bs2",
                                           "use_tma_bzp",
                                           "use_tma_bias",
                                           "use_tma_as",
                                           "use_tma_as2",
                                           "num_write_splits",
                                           "multi_cast_size_a",
                                           "multi_cast_size_b",
                                           "raster_group_m",
                                           "use_pdl",
                                           NULL};

const struct hum_provider hum_cpu_provider = {
    .abi_version = HUM_ABI_VERSION,
    .name = "cpu",
    .version = "1",
    .device = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .supports = cpu_supports,
    .heuristics = cpu_heuristics,
    .transform_shapes = cpu_transform_shapes,
    .transform = cpu_transform,
    .forward = cpu_forward,
    .accumulation = cpu_accumulation,
    .ops = &hum_cpu_ops,
    .inert_tuning = inert_tuning,
};
