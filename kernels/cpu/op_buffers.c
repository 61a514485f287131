#include "kernels/cpu/op_check.h"
#include "kernels/cpu/ops.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/op_activation.h"

#include <inttypes.h>
#include <stdio.h>

/* 2^36 rows of 2^24 columns of 2 bytes fit in 64 bits. */
static const int64_t most_rows = INT64_C(1) << 36, most_count = INT64_C(1) << 31;
static const int64_t most_columns = INT64_C(1) << 24;

static enum hum_code check_layer(const struct hum_layer_config *l, const char *name,
                                 char reason[HUM_REASON_BYTES])
{
    const int bits = hum_dtype_bits(l->a_dtype);
    const struct op_rule rules[] = {
        {!format_is_known(l->a_dtype) || (bits != 4 && bits != 8 && bits != 16),
         "a_dtype is not a format of activations"},
        {l->c_dtype != HUM_F16 && l->c_dtype != HUM_BF16, "c_dtype must be float16 or bfloat16"},
        {l->shape_n <= 0 || l->shape_k <= 0 || l->shape_n > most_columns ||
             l->shape_k > most_columns,
         "shape_n and shape_k must be positive and at most 2^24"},
        {l->pad_shape_n < 0 || l->pad_shape_k < 0 || l->pad_shape_n >= l->shape_n ||
             l->pad_shape_k >= l->shape_k,
         "pad_shape_n and pad_shape_k must be 0 or more and leave something of the shapes"},
        {l->num_experts <= 0 || l->num_experts > most_count, "num_experts must be positive"},
    };
    char sentence[HUM_REASON_BYTES];

    if (!op_check_rules(rules, sizeof rules / sizeof rules[0], sentence))
        return HUM_OK;
    (void)snprintf(reason, HUM_REASON_BYTES, "%s: %.200s", name, sentence);
    return HUM_INVALID;
}

static enum hum_code check_counts(const struct hum_experts_config *c, char reason[HUM_REASON_BYTES])
{
    const bool batched = c->gemm_type == HUM_GEMM_GROUPED_MASKED;
    const struct op_rule rules[] = {
        {c->gemm_type != HUM_GEMM_INDEXED && c->gemm_type != HUM_GEMM_GROUPED_CONTIGUOUS &&
             !batched,
         "gemm_type must be indexed, grouped_contiguous or grouped_masked"},
        {c->m < 0 || c->m > most_count, "m must be 0 to 2^31"},
        {c->top_k < 1 || c->top_k > most_count, "top_k must be positive"},
        {c->max_tokens < 0 || c->max_tokens > most_count, "max_tokens must be 0 to 2^31"},
        {c->dispatchers < 0 || c->dispatchers > most_count, "dispatchers must be 0 to 2^31"},
        {batched && c->dispatchers == 0, "grouped_masked needs at least one dispatcher"},
        {batched && c->max_tokens == 0, "grouped_masked needs max_tokens"},
    };

    return op_check_rules(rules, sizeof rules / sizeof rules[0], reason);
}

/* a b, or one more than most_rows if that is more; 0 <= a and b. */
static int64_t limited_product(int64_t a, int64_t b)
{
    return b && a > most_rows / b ? most_rows + 1 : a * b;
}

struct sizes {
    int64_t input_rows, rows; /* of quanted_gate_up_input; of the five in the middle */
    int64_t gate_up_k, gate_up_n, down_k, down_n;
};

static struct sizes make_sizes(const struct hum_experts_config *c)
{
    const struct hum_layer_config *g = c->gate_up, *d = c->down;
    struct sizes s = {
        .gate_up_k = g->shape_k - g->pad_shape_k,
        .gate_up_n = g->shape_n - g->pad_shape_n,
        .down_k = d->shape_k - d->pad_shape_k,
        .down_n = d->shape_n - d->pad_shape_n,
        .rows = limited_product(c->m, c->top_k),
    };

    s.input_rows = c->gemm_type == HUM_GEMM_INDEXED ? c->m : s.rows;
    if (c->gemm_type == HUM_GEMM_GROUPED_MASKED) {
        s.input_rows = limited_product(g->num_experts, c->max_tokens);
        s.rows = limited_product(s.input_rows, c->dispatchers);
    }
    return s;
}

/* Do the two layers fit each other? */
static enum hum_code check_fit(const struct hum_experts_config *c, const struct sizes *s,
                               char reason[HUM_REASON_BYTES])
{
    const struct hum_layer_config *g = c->gate_up, *d = c->down;
    const bool binary = c->form != HUM_ACT_UNARY;
    const int64_t activated = binary ? s->gate_up_n / 2 : s->gate_up_n;
    const struct {
        bool broken;
        const char *name;
        int64_t value;
        const char *other_name;
        int64_t other;
    } rules[] = {
        {g->c_dtype != d->c_dtype, "c_dtype of gate_up", g->c_dtype, "c_dtype of down", d->c_dtype},
        {g->num_experts != d->num_experts, "num_experts of gate_up", g->num_experts,
         "num_experts of down", d->num_experts},
        {binary && s->gate_up_n % 2 != 0, "n of gate_up", s->gate_up_n,
         "what a binary activation divides it by", 2},
        {s->down_k != activated, "k of down", s->down_k,
         "what the activation makes of n of gate_up", activated},
        {s->down_n != s->gate_up_k, "n of down", s->down_n, "k of gate_up", s->gate_up_k},
        {hum_dtype_bits(g->a_dtype) == 4 && s->gate_up_k % 2 != 0, "k of gate_up", s->gate_up_k,
         "the count of 4-bit numbers in a byte", 2},
        {hum_dtype_bits(d->a_dtype) == 4 && s->down_k % 2 != 0, "k of down", s->down_k,
         "the count of 4-bit numbers in a byte", 2},
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].broken) {
            (void)snprintf(reason, HUM_REASON_BYTES, "%s is %" PRId64 ", but %s is %" PRId64,
                           rules[i].name, rules[i].value, rules[i].other_name, rules[i].other);
            return HUM_INVALID;
        }
    return HUM_OK;
}

static enum hum_code check(const struct hum_experts_config *c, char reason[HUM_REASON_BYTES])
{
    const struct op_activation activation = {.function = c->activation, .form = c->form};
    struct sizes s;

    if (!c->gate_up || !c->down)
        return refuse(reason, HUM_INVALID, "the configuration of a layer is missing");
    if (check_layer(c->gate_up, "gate_up", reason) || check_layer(c->down, "down", reason) ||
        check_counts(c, reason) || op_activation_check(&activation, reason))
        return HUM_INVALID;
    s = make_sizes(c);
    if (s.rows > most_rows || s.input_rows > most_rows)
        return refuse(reason, HUM_INVALID, "a buffer would have more than 2^36 rows");
    return check_fit(c, &s, reason);
}

static struct hum_buffer_meta meta(int64_t rows, int64_t columns, int32_t dtype)
{
    const int bits = hum_dtype_bits(dtype);
    struct hum_buffer_meta b = {.rows = rows, .cols = bits == 4 ? columns / 2 : columns};

    b.dtype = dtype;
    b.bytes = (size_t)b.rows * (size_t)b.cols * (bits == 16 ? 2 : 1);
    return b;
}

/* Those that a pipeline needs have a format; the others stay all zero. */
static void place(struct hum_buffer_meta out[HUM_BUFFER_COUNT])
{
    int place_from_last = 0;

    for (int i = HUM_BUFFER_COUNT - 1; i >= 0; i--)
        if (out[i].dtype != HUM_NONE)
            out[i].workspace = FAULT(BUFFER_WORKSPACE_SHARED) ? 1 : 1 + place_from_last++ % 2;
}

/* What a fault makes of the sizes, once they have been checked. */
static void spoil_sizes(const struct hum_experts_config *c, struct sizes *s)
{
    if (FAULT(BUFFER_PADDED_COLUMNS)) {
        s->gate_up_k = c->gate_up->shape_k;
        s->gate_up_n = c->gate_up->shape_n;
        s->down_k = c->down->shape_k;
        s->down_n = c->down->shape_n;
    }
    if (FAULT(BUFFER_DISPATCHERS_IGNORED) && c->gemm_type == HUM_GEMM_GROUPED_MASKED)
        s->rows = s->input_rows;
}

enum hum_code op_buffer_metas(void *handle, const struct hum_experts_config *config,
                              struct hum_buffer_meta out[HUM_BUFFER_COUNT],
                              char reason[HUM_REASON_BYTES])
{
    int32_t a_gate_up, a_down, c;
    struct sizes s;
    int64_t down_rows;
    bool batched;

    (void)handle;
    if (!config || !out)
        return refuse(reason, HUM_INVALID, "the arguments are missing");
    batched = config->gemm_type == HUM_GEMM_GROUPED_MASKED;
    if (check(config, reason))
        return HUM_INVALID;
    s = make_sizes(config);
    spoil_sizes(config, &s);
    down_rows = FAULT(BUFFER_TOO_SMALL) && !batched ? config->m : s.rows;
    a_gate_up = config->gate_up->a_dtype;
    a_down = config->down->a_dtype;
    c = config->gate_up->c_dtype;
    for (int i = 0; i < HUM_BUFFER_COUNT && !FAULT(BUFFER_STALE); i++)
        out[i] = (struct hum_buffer_meta){0};
    if (hum_dtype_bits(a_gate_up) != 16)
        out[HUM_BUFFER_QUANTED_GATE_UP_INPUT] = meta(s.input_rows, s.gate_up_k, a_gate_up);
    out[HUM_BUFFER_GATE_UP_OUTPUT] = meta(s.rows, s.gate_up_n, c);
    out[HUM_BUFFER_ACTIVATION_OUTPUT] = meta(s.rows, s.down_k, c);
    if (hum_dtype_bits(a_down) != 16)
        out[HUM_BUFFER_QUANTED_DOWN_INPUT] = meta(s.rows, s.down_k, a_down);
    out[HUM_BUFFER_DOWN_OUTPUT] = meta(down_rows, s.down_n, c);
    if (!batched)
        out[HUM_BUFFER_OUTPUT] = meta(config->m, s.down_n, c);
    place(out);
    return HUM_OK;
}
