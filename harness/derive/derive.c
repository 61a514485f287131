/* What a suite has: for each matrix an entry of exact products from one row to many and an entry
 * of few rows with the other checks, for the experts the steps between their matrices and the whole
 * pipeline, for what the server quantizes itself the quantizers.
 *
 * Sizes are cut unless they are asked for in full, so that a configuration takes seconds on two
 * processors: n to at most two multiples of 256 and k to about 2048 (of experts 1024), both keeping
 * their remainders by 256 (and so their padding, their last tile and their last scale group);
 * experts to 8. What a cut cannot show are indices beyond 32 bits and grids of many tiles. */
#include "harness/derive/derive.h"

#include "harness/derive/layers.h"
#include "harness/derive/text.h"
#include "harness/kernel/plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUITE_NAME = 64, /* characters, harness/config/suite.h */
    PAD_N = 256,     /* vLLM pads the matrices of Humming to these multiples */
    PAD_K = 128,
    CUT = 256, /* sizes keep their remainder by it */
    CUT_N = 256,
    CUT_K = 2048,
    CUT_K_EXPERTS = 1024,
    CUT_PIPELINE = 256,
    CUT_EXPERTS = 8,
    ROWS = 4096, /* of one product, when cut */
    HADAMARD_MAX = 512
};

struct builder {
    const struct model *m;
    const struct settings *s;
    const struct shapes *shapes;
    bool full;
    struct text *out;
};

/* ---- sizes ----------------------------------------------------------------------------------- */

/* At most `limit` and a rest below CUT, with the remainder of `size` by CUT. */
static int64_t cut(const struct builder *b, int64_t size, int64_t limit)
{
    int64_t rest = size % CUT;

    return b->full || size <= limit + rest ? size : limit + rest;
}

static int64_t cut_experts(const struct builder *b)
{
    int64_t least =
        b->m->num_experts_per_tok > CUT_EXPERTS ? b->m->num_experts_per_tok : CUT_EXPERTS;

    return b->full || b->shapes->experts <= least ? b->shapes->experts : least;
}

static int64_t up_to(int64_t size, int64_t multiple)
{
    return (multiple - size % multiple) % multiple;
}

/* ---- formats --------------------------------------------------------------------------------- */

/* The 16 bits of the model: the server's --dtype, else the checkpoint's, else both. */
static const char *dtype_of(const struct builder *b)
{
    if (b->s->dtype)
        return b->s->dtype;
    return b->m->dtype ? b->m->dtype : "[f16, bf16]";
}

static bool may_be_f16(const struct builder *b)
{
    return strstr(dtype_of(b), "[f16") || !strcmp(dtype_of(b), "f16");
}

static bool is_mx(const struct model_weights *w)
{
    return w && w->bs && !strcmp(w->bs, "e8m0");
}

/* Where activations are integers of the same width, the axis names the product of two signed ones
 * (docs/semantics.md section 2). */
static const char *weights_of(const struct builder *b, const struct model_weights *w)
{
    return b->s->a && w->b[0] == 'u' && !strcmp(w->b + 1, b->s->a) ? b->s->a : w->b;
}

static void put_formats(const struct builder *b, const struct model_weights *w)
{
    text_line(b->out, "    a_dtype: %s", b->s->a ? b->s->a : dtype_of(b));
    text_line(b->out, "    b_dtype: %s", weights_of(b, w));
    if (b->s->a)
        text_line(b->out, "    c_dtype: %s", dtype_of(b));
    if (w->bs)
        text_line(b->out, "    bs_dtype: %s", w->bs);
    text_line(b->out, "    weight_scale_type: %s", w->scale);
    if (w->group)
        text_line(b->out, "    weight_scale_group_size: %" PRId64, w->group);
    if (w->scale_2)
        text_line(b->out, "    weight_scale_2_type: tensor");
    if (w->zero_point)
        text_line(b->out, "    zero_point: int");
}

/* What the family of products has and the pipeline has not. */
static void put_gemm(const struct builder *b, const struct layer_shape *l)
{
    if (l->weights->group_n)
        text_line(b->out, "    weight_scale_group_size_n: %" PRId64, l->weights->group_n);
    if (b->s->a && b->s->input_group)
        text_line(b->out, "    input_scale_group_size: %" PRId64, b->s->input_group);
}

static void put_compute(const struct builder *b)
{
    if (b->s->f16_accum)
        text_line(b->out, "    use_f16_accum: true");
    if (b->s->batch_invariant)
        text_line(b->out, "    use_batch_invariant: true");
}

/* ---- products -------------------------------------------------------------------------------- */

/* Of experts: rows of the output for each token. The second matrix has a row an expert already. */
static int64_t spread(const struct builder *b, const struct layer_shape *l)
{
    return l->part == PART_EXPERTS ? b->m->num_experts_per_tok : 1;
}

static bool is_down(const struct layer_shape *l)
{
    return strstr(l->name, ".down") != NULL;
}

/* The rows that `tokens` tokens are to this matrix, as the axis m counts them. */
static void put_rows(const struct builder *b, const struct layer_shape *l, const int64_t *tokens)
{
    bool expanded = l->part == PART_EXPERTS && (b->s->grouped || is_down(l));
    const char *comma = "";

    text_part(b->out, "    m: [");
    for (int i = 0; tokens[i]; i++)
        if (b->full || tokens[i] * spread(b, l) <= ROWS) {
            text_part(b->out, "%s%" PRId64, comma, tokens[i] * (expanded ? spread(b, l) : 1));
            comma = ", ";
        }
    text_line(b->out, "]");
}

static void put_experts(const struct builder *b, const struct layer_shape *l)
{
    if (l->part != PART_EXPERTS)
        return;
    text_line(b->out, "    gemm_type: %s", b->s->grouped ? "grouped_contiguous" : "indexed");
    text_line(b->out, "    num_experts: %" PRId64, cut_experts(b));
    if (!b->s->grouped && !is_down(l))
        text_line(b->out, "    top_k: %" PRId64, b->m->num_experts_per_tok);
}

static void put_size(const struct builder *b, const char *axis, int64_t size, int64_t whole)
{
    text_part(b->out, "    %s: %" PRId64, axis, size);
    if (size != whole)
        text_part(b->out, "  # of %" PRId64, whole);
    text_line(b->out, "%s", "");
}

static void put_sizes(const struct builder *b, const struct layer_shape *l)
{
    int64_t n = cut(b, l->n, CUT_N);
    int64_t k = cut(b, l->k, l->part == PART_EXPERTS ? CUT_K_EXPERTS : CUT_K);

    put_size(b, "n", n, l->n);
    put_size(b, "k", k, l->k);
    text_line(b->out, "    pad_shape_n: %" PRId64, up_to(n, PAD_N));
    text_line(b->out, "    pad_shape_k: %" PRId64, up_to(k, PAD_K));
}

static void put_matrix(const struct builder *b, const struct layer_shape *l)
{
    put_experts(b, l);
    put_formats(b, l->weights);
    put_gemm(b, l);
    if (l->bias)
        text_line(b->out, "    has_bias: true");
    put_compute(b);
    put_sizes(b, l);
}

/* From one token (decode) to many (prefill). With f16 outputs one row of E1 leaves a tenth of all
 * one-step errors unseen; E2 none. */
static void put_exact(const struct builder *b, const struct layer_shape *l)
{
    static const int64_t tokens[] = {1, 8, 64, 512, 2048, 0};

    text_line(b->out, "  - name: %s", l->name);
    put_matrix(b, l);
    put_rows(b, l, tokens);
    if (may_be_f16(b))
        text_line(b->out, "    fill: E2");
    text_line(b->out, "    check: exact");
    text_line(b->out, "%s", "");
}

/* f16 cannot hold all values of e8m0 scales: reading them out would show that, not a fault. */
static void put_decode(const struct builder *b, const struct layer_shape *l)
{
    static const int64_t tokens[] = {1, 8, 64, 0};
    bool readout = !may_be_f16(b) || !is_mx(l->weights);

    text_line(b->out, "  - name: %s.decode", l->name);
    put_matrix(b, l);
    put_rows(b, l, tokens);
    text_line(b->out, "    check: [bound, %sguard, invariant]", readout ? "readout, " : "");
    text_line(b->out, "%s", "");
}

/* ---- activations ----------------------------------------------------------------------------- */

static const char *swiglu_of(const struct builder *b)
{
    return strcmp(b->m->activation, "swiglu") ? "plain" : "gpt_oss";
}

static void put_activation(const struct builder *b)
{
    text_line(b->out, "    activation: %s", b->m->activation);
    text_line(b->out, "    activation_form: %s", b->m->activation_form);
    if (strcmp(swiglu_of(b), "plain") != 0)
        text_line(b->out, "    swiglu: %s", swiglu_of(b));
}

/* hadamard_block_size -1: the largest power of two up to 512 that divides k. */
static int64_t hadamard_of(const struct builder *b, int64_t k)
{
    int64_t block = 1;

    if (b->s->hadamard >= 0)
        return b->s->hadamard;
    while (block < HADAMARD_MAX && k % (2 * block) == 0)
        block *= 2;
    return block;
}

static void put_quantization(const struct builder *b)
{
    text_line(b->out, "    input_quant_mode: %s",
              !b->s->a            ? "disabled"
              : b->s->input_group ? "dynamic_group"
                                  : "dynamic_token");
    if (b->s->a)
        text_line(b->out, "    quant_dtype: %s", b->s->a);
    if (b->s->a && b->s->input_group)
        text_line(b->out, "    quant_group_size: %" PRId64, b->s->input_group);
}

/* What becomes of `k` columns in front of a matrix; `act`: after the activation. Where nothing but
 * an elementary function is computed, its distance from the right value counts. */
static void put_input(const struct builder *b, const char *name, int64_t k, bool act)
{
    int64_t block = b->s->hadamard ? hadamard_of(b, k) : 0;
    bool alone = act && !b->s->a && block <= 1 && strcmp(b->m->activation, "relu2") != 0;

    if (!act && !b->s->a && block <= 1)
        return;
    text_line(b->out, "  - name: %s", name);
    text_line(b->out, "    family: process_input");
    text_line(b->out, "    input_dtype: %s", dtype_of(b));
    if (act)
        put_activation(b);
    put_quantization(b);
    if (block > 1)
        text_line(b->out, "    hadamard_block_size: %" PRId64, block);
    text_line(b->out, "    m: [1, 8, 64]");
    text_line(b->out, "    k: %" PRId64, k);
    text_line(b->out, "    check: [%s, guard]", alone ? "ulp" : "exact");
    text_line(b->out, "%s", "");
}

/* ---- the experts between and around their matrices ------------------------------------------- */

static void put_pipeline(const struct builder *b, const struct layer_shape *l)
{
    int64_t inter = cut(b, b->shapes->inter, CUT_PIPELINE);
    int64_t k = cut(b, b->m->hidden_size, CUT_PIPELINE);

    text_line(b->out, "  - name: experts.pipeline");
    text_line(b->out, "    family: experts");
    text_line(b->out, "    gemm_type: %s", b->s->grouped ? "grouped_contiguous" : "indexed");
    text_line(b->out, "    num_experts: %" PRId64, cut_experts(b));
    text_line(b->out, "    top_k: %" PRId64, b->m->num_experts_per_tok);
    put_formats(b, l->weights);
    if (l->bias)
        text_line(b->out, "    has_bias: true");
    put_compute(b);
    put_activation(b);
    text_line(b->out, "    output_place: [separate, workspace1]");
    text_line(b->out, "    m: [1, 8]");
    text_line(b->out, "    n: %" PRId64, inter * (model_is_gated(b->m) ? 2 : 1));
    text_line(b->out, "    k: %" PRId64, k);
    text_line(b->out, "    check: [exact, invariant, guard, alias]");
    text_line(b->out, "%s", "");
}

static void put_sum(const struct builder *b)
{
    text_line(b->out, "  - name: experts.sum");
    text_line(b->out, "    family: moe_sum");
    text_line(b->out, "    input_dtype: %s", dtype_of(b));
    text_line(b->out, "    num_experts: %" PRId64, b->m->num_experts);
    text_line(b->out, "    top_k: %" PRId64, b->m->num_experts_per_tok);
    if (b->s->expert_parallel)
        text_line(b->out, "    routing: missing");
    text_line(b->out, "    m: [1, 8, 64]");
    text_line(b->out, "    k: %" PRId64, b->m->hidden_size);
    text_line(b->out, "    check: [exact, guard]");
    text_line(b->out, "%s", "");
}

/* ---- weights at load ------------------------------------------------------------------------- */

static void put_weights(const struct builder *b)
{
    const struct model_weights *w = &b->s->weights;

    if (b->s->online != ONLINE_ALL)
        return;
    text_line(b->out, "  - name: weights.quantize");
    text_line(b->out, "    family: quant_weight");
    text_line(b->out, "    input_dtype: %s", dtype_of(b));
    text_line(b->out, "    b_dtype: %s", w->b);
    text_line(b->out, "    weight_scale_group_size: %" PRId64, w->group);
    if (w->zero_point)
        text_line(b->out, "    zero_point: int");
    text_line(b->out, "    m: 64");
    text_line(b->out, "    k: %" PRId64, b->m->hidden_size);
    text_line(b->out, "    check: [exact, guard]");
    text_line(b->out, "%s", "");
}

/* MXFP4 weights under 8-bit activations: scales are folded into the codes when loaded. */
static void put_fused(const struct builder *b, const struct model_weights *w)
{
    if (!b->s->a || !is_mx(w) || !strstr(w->b, "e2m1"))
        return;
    text_line(b->out, "  - name: weights.fuse");
    text_line(b->out, "    family: process_mxfp4");
    text_line(b->out, "    a_dtype: %s", b->s->a);
    text_line(b->out, "    weight_scale_group_size: %" PRId64, w->group);
    text_line(b->out, "    m: 64");
    text_line(b->out, "    k: %" PRId64, b->m->hidden_size);
    text_line(b->out, "    check: [exact, guard]");
    text_line(b->out, "%s", "");
}

/* ---- the suite ------------------------------------------------------------------------------- */

static const struct layer_shape *find_part(const struct shapes *s, enum model_part part)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].part == part && s->items[i].weights)
            return &s->items[i];
    return NULL;
}

static void put_around(const struct builder *b)
{
    const struct layer_shape *experts = find_part(b->shapes, PART_EXPERTS);
    const struct layer_shape *mlp = find_part(b->shapes, PART_MLP);
    const struct layer_shape *shared = find_part(b->shapes, PART_SHARED);

    put_input(b, "input", b->m->hidden_size, false);
    if (mlp)
        put_input(b, "mlp.activation", mlp[1].k, true);
    if (shared)
        put_input(b, "shared.activation", shared[1].k, true);
    if (!experts)
        return;
    put_input(b, "experts.activation", experts[1].k, true);
    put_sum(b);
    put_pipeline(b, experts);
}

static void put_head(const struct builder *b, const struct derived *d,
                     const struct eval_config *config)
{
    text_line(b->out, "# The kernels of %s under %s.", b->m->name, config->name);
    if (!b->full)
        text_line(b->out, "# Sizes are cut; a comment gives the true one. Many rows end at %d.",
                  ROWS);
    if (!b->s->dtype && !b->m->dtype)
        text_line(b->out, "# Whether the model is f16 or bf16 is not known: both are here.");
    for (size_t i = 0; i < b->shapes->count; i++)
        if (b->shapes->items[i].without)
            text_line(b->out, "# left out: %s: %s", b->shapes->items[i].name,
                      b->shapes->items[i].without);
    text_line(b->out, "suite: %s", d->name);
    text_line(b->out, "seed: 0x6d0de1");
    text_line(b->out, "entries:");
}

static void put_all(const struct builder *b, const struct derived *d,
                    const struct eval_config *config)
{
    const struct model_weights *fused = NULL;

    put_head(b, d, config);
    for (size_t i = 0; i < b->shapes->count; i++) {
        const struct layer_shape *l = &b->shapes->items[i];

        if (!l->weights)
            continue;
        put_exact(b, l);
        put_decode(b, l);
        fused = l->weights;
    }
    put_around(b);
    put_weights(b);
    put_fused(b, fused);
}

static char suite_letter(char c)
{
    const int letter = (unsigned char)c;

    return isalnum(letter) ? (char)tolower(letter) : '-';
}

/* A configuration's name in the letters of a suite's. */
static const char *suite_name(const char *name, struct arena *arena)
{
    char *out = arena_strdup(arena, name);

    for (size_t i = 0; out && out[i]; i++)
        out[i] = suite_letter(out[i]);
    if (out && strlen(out) > SUITE_NAME)
        out[SUITE_NAME] = '\0';
    return out;
}

/* Loaded and planned: what the legality table refuses is said before anything runs. */
static enum err_code check_suite(const struct eval_config *config, const struct derived *d,
                                 struct arena *arena, struct errs *errs)
{
    const struct plan_options how = {.shard = 1, .shards = 1};
    const char *name = arena_printf(arena, "the suite of %s", config->path);
    struct suite suite;
    struct plan plan;

    if (!name)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the suite");
    TRY(suite_load_text(name, d->text, d->size, arena, &suite, errs));
    TRY(plan_make(&suite, 1, &how, arena, &plan, errs));
    if (plan.illegal)
        return errs_add(errs, ERR_CONFIG, config->model_name.at,
                        "%zu cases of the derived suite are illegal", plan.illegal);
    return ERR_NONE;
}

enum err_code derive_suite(const struct model *model, const struct eval_config *config,
                           const struct derive_options *options, struct arena *arena,
                           struct derived *out, struct errs *errs)
{
    struct settings settings;
    struct shapes shapes;
    struct text text = {.arena = arena};
    const struct builder b = {
        .m = model, .s = &settings, .shapes = &shapes, .full = options->full, .out = &text};
    enum err_code rc, divided;

    rc = settings_read(config, options->gpu, arena, &settings, errs);
    divided = layers_of(model, &settings, &shapes, errs);
    if (rc || divided)
        return rc ? rc : divided;
    out->name = suite_name(config->name, arena);
    if (!out->name)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the suite");
    put_all(&b, out, config);
    out->text = text_end(&text, &out->size);
    if (!out->text)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the suite");
    return check_suite(config, out, arena, errs);
}
