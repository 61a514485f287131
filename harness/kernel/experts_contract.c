#include "harness/kernel/experts_contract.h"

#include <string.h>

/* A call, writable. */
struct metas_call {
    struct hum_layer_config gate_up, down;
    struct hum_experts_config config;
    bool without_config;
};

/* ---- changes --------------------------------------------------------------------------------- */

static void shorter_down_k(struct metas_call *c)
{
    c->down.pad_shape_k += 2;
}
static void shorter_down_n(struct metas_call *c)
{
    c->down.pad_shape_n += 2;
}
static void shorter_gate_up_n(struct metas_call *c)
{
    c->gate_up.pad_shape_n += 4;
}
static void shorter_gate_up_k(struct metas_call *c)
{
    c->gate_up.pad_shape_k += 2;
}
/* Halves what the other form keeps. */
static void other_form(struct metas_call *c)
{
    c->config.form = c->config.form == HUM_ACT_UNARY ? HUM_ACT_BINARY_INTERLEAVED : HUM_ACT_UNARY;
    if (c->config.activation == HUM_ACT_SWIGLU)
        c->config.activation = HUM_ACT_SILU;
}
/* Hidden size odd on both sides: half a byte a row. */
static void odd_4_bit(struct metas_call *c)
{
    c->gate_up.a_dtype = HUM_INT4;
    c->gate_up.as_dtype = HUM_F32;
    c->gate_up.pad_shape_k += 1;
    c->down.pad_shape_n += 1;
}
static void negative_m(struct metas_call *c)
{
    c->config.m = -1;
}
static void no_slots(struct metas_call *c)
{
    c->config.top_k = 0;
}
static void dense(struct metas_call *c)
{
    c->config.gemm_type = HUM_GEMM_DENSE;
}
static void no_gate_up(struct metas_call *c)
{
    c->config.gate_up = NULL;
}
static void no_down(struct metas_call *c)
{
    c->config.down = NULL;
}
static void unknown_form(struct metas_call *c)
{
    c->config.form = (enum hum_activation_form)3;
}
static void unknown_activation(struct metas_call *c)
{
    c->config.activation = (enum hum_activation)6;
}
static void no_config(struct metas_call *c)
{
    c->without_config = true;
}

/* clang-format off */
static const struct {
    void (*change)(struct metas_call *c);
    const char *what;
} changes[] = {
    {shorter_down_k,     "a k of down that the activation does not make"},
    {shorter_down_n,     "an n of down other than k of gate_up"},
    {shorter_gate_up_n,  "an n of gate_up that does not come to k of down"},
    {shorter_gate_up_k,  "a k of gate_up other than n of down"},
    {other_form,         "the other form of the activation"},
    {odd_4_bit,          "an odd number of 4-bit columns"},
    {negative_m,         "a negative m"},
    {no_slots,           "a top_k of 0"},
    {dense,              "a dense gemm_type"},
    {no_gate_up,         "no layer gate_up"},
    {no_down,            "no layer down"},
    {unknown_form,       "a form that there is not"},
    {unknown_activation, "an activation that there is not"},
    {no_config,          "no configuration"},
};
/* clang-format on */

/* ---- calls ----------------------------------------------------------------------------------- */

static void make_call(const struct experts *x, struct metas_call *c)
{
    c->gate_up = x->layer[LAYER_GATE_UP].config;
    c->down = x->layer[LAYER_DOWN].config;
    c->without_config = false;
    experts_config(x, x->capacity, &c->config);
    c->config.gate_up = &c->gate_up;
    c->config.down = &c->down;
}

static bool untouched(const void *bytes, size_t size, int poison)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < size; i++)
        if (b[i] != poison)
            return false;
    return true;
}

static void judge_refusal(const struct experts_trial *t, const struct metas_call *c,
                          const char *what, struct finding *f)
{
    enum { POISON = 0xa5 };
    struct hum_buffer_meta out[HUM_BUFFER_COUNT];
    char reason[HUM_REASON_BYTES];
    enum hum_code code;

    memset(out, POISON, sizeof out);
    memset(reason, 0, sizeof reason);
    code = t->provider->ops->buffer_metas(t->handle, c->without_config ? NULL : &c->config, out,
                                          reason);
    f->compared++;
    f->wrong++;
    if (code != HUM_INVALID)
        finding_give(f, VERDICT_FAIL, "buffer_metas does not refuse %s", what);
    else if (!reason[0] || !memchr(reason, 0, sizeof reason) || strchr(reason, '\n'))
        finding_give(f, VERDICT_FAIL, "buffer_metas refuses %s without one sentence", what);
    else if (!untouched(out, sizeof out, POISON))
        finding_give(f, VERDICT_FAIL, "buffer_metas refuses %s, but writes to its result", what);
    else
        f->wrong--;
}

/* Sizes for more than one dispatcher, whose runs need more than one process. */
static bool judge_dispatchers(const struct experts_trial *t, struct finding *f)
{
    struct hum_buffer_meta out[HUM_BUFFER_COUNT];

    for (int64_t count = 2; count <= 3; count++) {
        f->compared++;
        if (!experts_metas(t, t->x->capacity, count, out, f)) {
            f->wrong++;
            return false;
        }
    }
    return true;
}

void experts_contract(const struct experts_trial *t, struct finding *f)
{
    if (!judge_dispatchers(t, f))
        return;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct metas_call c;

        make_call(t->x, &c);
        changes[i].change(&c);
        judge_refusal(t, &c, changes[i].what, f);
        if (f->verdict != VERDICT_PASS)
            return;
    }
}
