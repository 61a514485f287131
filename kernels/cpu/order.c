#include "kernels/cpu/order.h"

#include "kernels/cpu/cpu.h"

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

struct order order_make(const struct hum_layer_config *layer,
                        const struct hum_tuning_config *tuning, int64_t row_tiles)
{
    const int64_t workers =
        (int64_t)(tuning->num_sms ? tuning->num_sms : CPU_SMS) * tuning->num_ctas_per_sm;
    const int64_t step = divide_up(layer->weight_scale_group_size, tuning->block_k);
    struct order o = {.tiles = row_tiles * (layer->shape_n / tuning->block_n),
                      .blocks = layer->shape_k / tuning->block_k};
    int64_t shared;

    o.whole = o.tiles;
    if (!tuning->use_stream_k || o.tiles == 0)
        return o;
    shared = o.tiles % workers;
    if (o.tiles >= workers && shared > 0 && shared <= workers / 10)
        shared += workers;
    if (shared == 0)
        return o;
    o.whole = o.tiles - shared;
    o.run = divide_up(shared * o.blocks, workers);
    if (step > 1)
        o.run = divide_up(o.run, step) * step;
    return o;
}

/* The worker that owns K block `block` of a shared tile. */
static int64_t worker(const struct order *o, int64_t tile, int64_t block)
{
    return ((tile - o->whole) * o->blocks + block) / o->run;
}

int64_t order_slice(const struct order *o, int64_t tile, int64_t block)
{
    if (tile < o->whole)
        return 0;
    return worker(o, tile, o->blocks - 1) - worker(o, tile, block);
}

int64_t order_slices(const struct order *o, int64_t tile)
{
    return order_slice(o, tile, 0) + 1;
}

int64_t order_most_slices(const struct order *o)
{
    int64_t most = 1;

    for (int64_t tile = o->whole; tile < o->tiles; tile++) {
        const int64_t slices = order_slices(o, tile);

        most = slices > most ? slices : most;
    }
    return most;
}
