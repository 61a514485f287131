/* Arbitrary bytes as a safetensors file with a quantization config (libFuzzer). Input: one byte
 * picks a config or, if it is 0, says that a text of JSON up to the first NUL is one; the rest
 * is the file. Whatever comes, safetensors_parse and schema_convert return; what was accepted
 * obeys the format's rules, every element can be read, and every layer that converts can be
 * measured. Build: clang -fsanitize=fuzzer,address,undefined. */
#include "harness/weights/layers.h"
#include "harness/weights/safetensors.h"
#include "harness/weights/schema.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); /* NOLINT: libFuzzer's name */

enum { ARENA_BYTES = 256 << 20 };

/* clang-format off */
static const char *const configs[] = {
    "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8,\"sym\":false}",
    "{\"quant_method\":\"gptq\",\"bits\":3,\"group_size\":-1,\"sym\":true}",
    "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":8,\"zero_point\":true}",
    "{\"quant_method\":\"auto-round\",\"packing_format\":\"auto_round:auto_gptq\",\"bits\":2,"
        "\"group_size\":4,\"sym\":false}",
    "{\"quant_method\":\"fp8\"}",
    "{\"quant_method\":\"fp8\",\"weight_block_size\":[2,3]}",
    "{\"quant_method\":\"mxfp4\"}",
    "{\"quant_algo\":\"NVFP4\"}",
    "{\"quant_algo\":\"MXFP8\"}",
    "{\"quant_method\":\"bitnet\"}",
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\",\"config_groups\":{\"g\":{"
        "\"weights\":{\"type\":\"int\",\"num_bits\":5,\"symmetric\":false,\"strategy\":\"group\","
        "\"group_size\":8}}}}",
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"int-quantized\",\"config_groups\":{\"g\":{"
        "\"weights\":{\"type\":\"int\",\"num_bits\":8,\"symmetric\":true,\"strategy\":\"channel\"}}}}",
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"nvfp4-pack-quantized\",\"config_groups\":{\"g\":"
        "{\"weights\":{\"type\":\"float\",\"num_bits\":4,\"group_size\":16}}}}",
};
/* clang-format on */
enum { CONFIG_COUNT = sizeof configs / sizeof configs[0] };

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void check_errors(const struct errs *errs, enum err_code rc)
{
    need(!rc == !errs->count);
    for (size_t i = 0; i < errs->count; i++)
        need(errs->items[i].text[0] != '\0');
}

/* Names ascend strictly; tensors lie inside the bytes and cover all that follows the header. */
static void check_tensors(const struct safetensors *s, const uint8_t *bytes, size_t size)
{
    uint64_t total = 0, length = 0;
    volatile double sum = 0.0;

    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    for (size_t i = 0; i < s->count; i++) {
        const struct tensor *t = &s->tensors[i];

        need(!i || strcmp(t[-1].name, t->name) < 0);
        need(t->data == bytes + t->at && t->at + t->bytes <= size);
        need(safetensors_find(s, t->name) == t);
        total += t->bytes;
        if (t->format->dtype)
            for (int64_t j = 0; j < t->elements; j++)
                sum = sum + tensor_value(t, j);
    }
    need(8 + length + total == size);
}

static void convert_layers(const struct checkpoint *c, struct arena *arena)
{
    struct errs errs = {0};
    struct layers layers;
    enum err_code rc = layers_find(c, arena, &layers, &errs);

    for (size_t i = 0; !rc && i < layers.count; i++) {
        struct standard s;
        struct standard_stats m;
        enum err_code got = layers_convert(&layers, &layers.items[i], arena, &s, &errs);

        need(!got || errs.count);
        if (got)
            continue;
        standard_measure(&s, &m);
        need(m.scales == standard_scale_count(&s) && m.constant <= m.groups);
        (void)standard_value(&s, s.n * standard_matrices(&s) - 1, s.k - 1);
    }
    errs_free(&errs);
}

static const struct json *config_of(const uint8_t **data, size_t *size, struct arena *arena)
{
    struct json_source src = {.file = "config.json"};
    struct errs errs = {0};
    const struct json *out = NULL;
    const uint8_t *end;
    enum err_code rc;

    if (**data) {
        src.text = configs[**data % CONFIG_COUNT];
        src.size = strlen(src.text);
        ++*data;
        --*size;
    } else {
        end = memchr(*data + 1, 0, *size - 1);
        src.text = (const char *)*data + 1;
        src.size = end ? (size_t)(end - *data - 1) : *size - 1;
        *size -= end ? src.size + 2 : *size;
        *data += src.size + (end ? 2 : 1);
    }
    rc = json_parse(&src, arena, &out, &errs);
    check_errors(&errs, rc);
    need(rc != ERR_NOMEM);
    errs_free(&errs);
    return rc ? NULL : out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) /* NOLINT: libFuzzer's name */
{
    static struct arena arena; /* kept, so that a run costs no mapping */
    struct errs errs = {0};
    struct checkpoint c = {.param = "bfloat16"};
    enum err_code rc;

    if (!size)
        return 0;
    need(arena.base || arena_init(&arena, ARENA_BYTES));
    arena_reset(&arena);
    c.config = config_of(&data, &size, &arena);
    rc = safetensors_parse("fuzz.safetensors", data, size, &arena, &c.tensors, &errs);
    check_errors(&errs, rc);
    need(rc != ERR_NOMEM);
    if (!rc) {
        check_tensors(&c.tensors, data, size);
        convert_layers(&c, &arena);
    }
    errs_free(&errs);
    return 0;
}
