/* Shared libraries for test_provider, one for each value of VARIANT. */
#include "kernels/abi/humming.h"

enum variant { GOOD, OTHER_VERSION, NO_TABLE, NO_FORWARD, NO_NAME, HALF_MEMORY, NO_SYMBOL };

#if VARIANT != 6 /* NO_SYMBOL */

hum_provider_fn humcheck_provider;

static enum hum_code open_it(int threads, void **handle, char reason[HUM_REASON_BYTES])
{
    (void)threads;
    reason[0] = '\0';
    *handle = NULL;
    return HUM_OK;
}

static void close_it(void *handle)
{
    (void)handle;
}

static enum hum_code supports(void *handle, const struct hum_layer_config *layer,
                              const struct hum_compute_config *compute,
                              const struct hum_tuning_config *tuning, char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)layer;
    (void)compute;
    (void)tuning;
    reason[0] = '\0';
    return HUM_OK;
}

static enum hum_code shapes(void *handle, const struct hum_layer_config *layer,
                            struct hum_weights *out, char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)layer;
    (void)out;
    reason[0] = '\0';
    return HUM_OK;
}

static enum hum_code transform(void *handle, const struct hum_layer_config *layer,
                               const struct hum_weights *standard, struct hum_weights *out,
                               char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)layer;
    (void)standard;
    (void)out;
    reason[0] = '\0';
    return HUM_OK;
}

static enum hum_code forward(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    reason[0] = '\0';
    return HUM_OK;
}

static void release(void *handle, void *data)
{
    (void)handle;
    (void)data;
}

static const struct hum_provider table = {
    .abi_version = HUM_ABI_VERSION + (VARIANT == OTHER_VERSION),
    .name = VARIANT == NO_NAME ? NULL : "mine",
    .version = "1.2",
    .device = "test",
    .open = open_it,
    .close = close_it,
    .supports = supports,
    .transform_shapes = shapes,
    .transform = transform,
    .forward = VARIANT == NO_FORWARD ? NULL : forward,
    .release = VARIANT == HALF_MEMORY ? release : NULL,
};

const struct hum_provider *humcheck_provider(void)
{
    return VARIANT == NO_TABLE ? NULL : &table;
}

#endif

extern const int provider_lib_is_not_empty;
const int provider_lib_is_not_empty = VARIANT;
