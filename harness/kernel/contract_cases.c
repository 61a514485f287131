#include "harness/kernel/contract_cases.h"

#include "harness/kernel/op_contract.h"
#include "harness/kernel/trial.h"

#include <stdio.h>
#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

enum width { BOOL, ENUM, INT32, INT64, POINTER };
enum how { SET, ADD };

struct change {
    size_t offset; /* in struct trial_call */
    enum width width;
    enum how how;
    int64_t value;
};

/* Configurations that a row cannot be tried with, because it would be legal there. */
enum unless {
    NEVER,
    HAS_ZERO_POINT, /* of either kind: the kernel form may be the same */
    MAY_BE_F16,     /* f16 accumulation is legal */
    HAS_INPUT_SCALE,
    IS_DENSE,
    IS_INDEXED,
    IS_CONTIGUOUS,
    IS_MASKED
};

struct row {
    const char *what;
    enum unless unless;
    bool alone; /* wrong in itself: `supports` must refuse it too */
    struct change changes[2];
    int count;
};

#define AT(field)                  offsetof(struct trial_call, field)
#define R1(width, how, field, x)   {{AT(field), width, how, x}}, 1
#define R2(w1, f1, x1, w2, f2, x2) {{AT(f1), w1, SET, x1}, {AT(f2), w2, SET, x2}}, 2

enum { FAR_OUT = 1 << 20, NO_VALUE = 99 };

/* clang-format off */
static const struct row rows[] = {
    /* shapes */
    {"shape_n of other weights",      NEVER, false, R1(INT64, ADD, layer.shape_n, 64)},
    {"shape_n of 0",                  NEVER, true,  R1(INT64, SET, layer.shape_n, 0)},
    {"a negative shape_n",            NEVER, true,  R1(INT64, SET, layer.shape_n, -64)},
    {"an odd shape_n",                NEVER, true,  R1(INT64, ADD, layer.shape_n, 1)},
    {"shape_k of other weights",      NEVER, false, R1(INT64, ADD, layer.shape_k, 1024)},
    {"shape_k of 0",                  NEVER, true,  R1(INT64, SET, layer.shape_k, 0)},
    {"a negative shape_k",            NEVER, true,  R1(INT64, SET, layer.shape_k, -1024)},
    {"an odd shape_k",                NEVER, true,  R1(INT64, ADD, layer.shape_k, 1)},
    {"more padding than columns",     NEVER, true,  R1(INT64, ADD, layer.pad_shape_n, FAR_OUT)},
    {"a negative pad_shape_n",        NEVER, true,  R1(INT64, SET, layer.pad_shape_n, -8)},
    {"more padding than k",           NEVER, true,  R1(INT64, ADD, layer.pad_shape_k, FAR_OUT)},
    {"a negative pad_shape_k",        NEVER, true,  R1(INT64, SET, layer.pad_shape_k, -64)},
    {"a negative num_experts",        NEVER, true,  R1(INT64, SET, layer.num_experts, -1)},
    {"more experts than weights",     NEVER, false, R1(INT64, ADD, layer.num_experts, 3)},
    {"num_experts of 0",              IS_DENSE, false, R1(INT64, SET, layer.num_experts, 0)},
    /* formats */
    {"no a_dtype",                    NEVER, true,  R1(INT32, SET, layer.a_dtype, HUM_NONE)},
    {"activations of scale format",   NEVER, true,  R1(INT32, SET, layer.a_dtype, HUM_E8M0)},
    {"no b_dtype",                    NEVER, true,  R1(INT32, SET, layer.b_dtype, HUM_NONE)},
    {"weights of 32 bits",            NEVER, true,  R1(INT32, SET, layer.b_dtype, HUM_F32)},
    {"outputs of 32 bits",            NEVER, true,  R1(INT32, SET, layer.c_dtype, HUM_F32)},
    {"no c_dtype",                    NEVER, true,  R1(INT32, SET, layer.c_dtype, HUM_NONE)},
    {"integer weight scales",         NEVER, true,  R1(INT32, SET, layer.bs_dtype, HUM_INT8)},
    {"16-bit input scales",           NEVER, true,  R1(INT32, SET, layer.as_dtype, HUM_F16)},
    /* scales and options */
    {"an input_quant_mode that is none",    NEVER, true, R1(ENUM, SET, layer.input_quant_mode, NO_VALUE)},
    {"a negative input_scale_group_size",   NEVER, true, R1(INT64, SET, layer.input_scale_group_size, -32)},
    {"an odd input_scale_group_size",       NEVER, true, R1(INT64, SET, layer.input_scale_group_size, 7)},
    {"a negative weight_scale_group_size",  NEVER, true, R1(INT64, SET, layer.weight_scale_group_size, -32)},
    {"an odd weight_scale_group_size",      NEVER, true, R1(INT64, ADD, layer.weight_scale_group_size, 3)},
    {"a negative weight_scale_group_size_n", NEVER, true, R1(INT64, SET, layer.weight_scale_group_size_n, -64)},
    {"a weight_scale_type that is none",    NEVER, true, R1(ENUM, SET, layer.weight_scale_type, NO_VALUE)},
    {"a weight_scale_2_type that is none",  NEVER, true, R1(ENUM, SET, layer.weight_scale_2_type, NO_VALUE)},
    {"an mma_type that is none",            NEVER, true, R1(ENUM, SET, layer.mma_type, NO_VALUE)},
    {"floating zero points without zero points", HAS_ZERO_POINT, true, R1(BOOL, SET, layer.is_fp_zero_point, 1)},
    {"has_zero_point against the tensors",  NEVER, false, R1(BOOL, ADD, layer.has_zero_point, 1)},
    {"has_bias against the tensors",        NEVER, false, R1(BOOL, ADD, layer.has_bias, 1)},
    {"integer and fused scales together",   NEVER, true, R2(BOOL, layer.use_int_weight_scale, 1, BOOL, layer.use_fused_e8m0_scale, 1)},
    /* computation */
    {"a gemm_type that is none",            NEVER, true,  R1(ENUM, SET, compute.gemm_type, NO_VALUE)},
    {"gemm_type dense with experts",        IS_DENSE, false, R1(ENUM, SET, compute.gemm_type, HUM_GEMM_DENSE)},
    {"gemm_type indexed without its tensors", IS_INDEXED, false, R1(ENUM, SET, compute.gemm_type, HUM_GEMM_INDEXED)},
    {"gemm_type grouped_contiguous without its tensors", IS_CONTIGUOUS, false, R1(ENUM, SET, compute.gemm_type, HUM_GEMM_GROUPED_CONTIGUOUS)},
    {"gemm_type grouped_masked without its tensors", IS_MASKED, false, R1(ENUM, SET, compute.gemm_type, HUM_GEMM_GROUPED_MASKED)},
    {"use_f16_accum with these formats",    MAY_BE_F16, true, R1(BOOL, SET, compute.use_f16_accum, 1)},
    {"use_m_major_input_scale without input scales", HAS_INPUT_SCALE, true, R1(BOOL, SET, compute.use_m_major_input_scale, 1)},
    {"batch invariance with Stream-K",      NEVER, true,  R2(BOOL, compute.use_batch_invariant, 1, BOOL, tuning.use_stream_k, 1)},
    /* tuning */
    {"block_m of 0",               NEVER, true, R1(INT32, SET, tuning.block_m, 0)},
    {"a negative block_m",         NEVER, true, R1(INT32, SET, tuning.block_m, -16)},
    {"block_n of 0",               NEVER, true, R1(INT32, SET, tuning.block_n, 0)},
    {"block_n of 48",              NEVER, true, R1(INT32, SET, tuning.block_n, 48)},
    {"block_n beyond shape_n",     NEVER, true, R1(INT32, SET, tuning.block_n, FAR_OUT)},
    {"block_k of 0",               NEVER, true, R1(INT32, SET, tuning.block_k, 0)},
    {"block_k of 96",              NEVER, true, R1(INT32, SET, tuning.block_k, 96)},
    {"block_k beyond shape_k",     NEVER, true, R1(INT32, SET, tuning.block_k, FAR_OUT)},
    {"warp_m of 0",                NEVER, true, R1(INT32, SET, tuning.warp_m, 0)},
    {"block_m of three warps",     NEVER, true, R2(INT32, tuning.block_m, 48, INT32, tuning.warp_m, 16)},
    {"warp_n of 0",                NEVER, true, R1(INT32, SET, tuning.warp_n, 0)},
    {"warp_n beyond block_n",      NEVER, true, R1(INT32, SET, tuning.warp_n, FAR_OUT)},
    {"warp_k of 0",                NEVER, true, R1(INT32, SET, tuning.warp_k, 0)},
    {"warp_k beyond block_k",      NEVER, true, R1(INT32, SET, tuning.warp_k, FAR_OUT)},
    {"a negative num_sms",         NEVER, true, R1(INT32, SET, tuning.num_sms, -1)},
    {"a negative num_ctas_per_sm", NEVER, true, R1(INT32, SET, tuning.num_ctas_per_sm, -1)},
    {"a negative num_stages",      NEVER, true, R1(INT32, SET, tuning.num_stages, -1)},
    /* arguments */
    {"top_k of 0",                 NEVER, false, R1(INT32, SET, args.top_k, 0)},
    {"another top_k",              NEVER, false, R1(INT32, ADD, args.top_k, 1)},
    {"a negative valid_shape_m",   NEVER, false, R1(INT64, SET, args.valid_shape_m, -1)},
    {"no layer configuration",     NEVER, false, R1(POINTER, SET, args.layer, 0)},
    {"no compute configuration",   NEVER, false, R1(POINTER, SET, args.compute, 0)},
    {"no tuning configuration",    NEVER, false, R1(POINTER, SET, args.tuning, 0)},
    {"no weights",                 NEVER, false, R1(POINTER, SET, args.weights, 0)},
    {"no arguments",               NEVER, false, R1(BOOL, SET, without_args, 1)},
};
/* clang-format on */

static bool is_legal(const struct check_in *in, enum unless unless)
{
    const struct hum_layer_config *l = in->launch->layer;
    enum hum_gemm_type type = in->launch->compute->gemm_type;

    switch (unless) {
    case NEVER:
        return false;
    case HAS_ZERO_POINT:
        return l->has_zero_point;
    case MAY_BE_F16:
        return l->a_dtype == HUM_F16 || (l->a_dtype == HUM_E4M3 && l->c_dtype == HUM_F16);
    case HAS_INPUT_SCALE:
        return l->as_dtype != HUM_NONE;
    case IS_DENSE:
        return type == HUM_GEMM_DENSE;
    case IS_INDEXED:
        return type == HUM_GEMM_INDEXED;
    case IS_CONTIGUOUS:
        return type == HUM_GEMM_GROUPED_CONTIGUOUS;
    case IS_MASKED:
        return type == HUM_GEMM_GROUPED_MASKED;
    }
    return false;
}

_Static_assert(sizeof(enum hum_gemm_type) == sizeof(int32_t), "enums of the contract are ints");

static void apply(const struct change *c, struct trial_call *call)
{
    void *const nothing = NULL;
    char *at = (char *)call + c->offset;
    int32_t narrow;
    int64_t wide;
    bool truth;

    switch (c->width) {
    case BOOL: /* ADD turns it over */
        memcpy(&truth, at, sizeof truth);
        truth = c->how == SET ? c->value != 0 : !truth;
        memcpy(at, &truth, sizeof truth);
        return;
    case ENUM:
    case INT32:
        memcpy(&narrow, at, sizeof narrow);
        narrow = (int32_t)(c->value + (c->how == ADD ? narrow : 0));
        memcpy(at, &narrow, sizeof narrow);
        return;
    case INT64:
        memcpy(&wide, at, sizeof wide);
        wide = c->value + (c->how == ADD ? wide : 0);
        memcpy(at, &wide, sizeof wide);
        return;
    case POINTER:
        memcpy(at, &nothing, sizeof nothing);
        return;
    }
}

static void apply_row(struct trial_call *call, const void *context)
{
    const struct row *r = context;

    for (int i = 0; i < r->count; i++)
        apply(&r->changes[i], call);
}

static bool unsupported(const struct check_in *in, const struct row *r, struct finding *f)
{
    struct trial_call call = {.layer = *in->launch->layer,
                              .compute = *in->launch->compute,
                              .tuning = *in->launch->tuning};
    char reason[HUM_REASON_BYTES] = "";
    enum hum_code code;

    if (!r->alone)
        return true;
    apply_row(&call, r);
    f->compared++;
    code = trial_supports(in->trial, &call.layer, &call.compute, &call.tuning, reason);
    if ((code == HUM_INVALID || code == HUM_UNSUPPORTED) && reason[0])
        return true;
    f->wrong++;
    finding_give(f, VERDICT_FAIL, "supports must refuse %s with a sentence", r->what);
    return false;
}

static bool configurations(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(in->launch->m);

    o.own_weights = true;
    o.change = apply_row;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (is_legal(in, rows[i].unless))
            continue;
        o.context = &rows[i];
        if (!trial_refuses(in->trial, &o, true, rows[i].what, f) || !unsupported(in, &rows[i], f))
            return false;
    }
    return true;
}

/* ---- tensors --------------------------------------------------------------------------------- */

struct tensor_fault {
    enum trial_part part;
    enum fault fault;
};

static void spoil_tensor(struct trial_call *call, const void *context)
{
    const struct tensor_fault *x = context;

    fault_make(trial_tensor(call, x->part), x->fault, &call->args.inputs);
}

/* Is this change of a tensor, present or not, against the contract? */
static bool is_fault(const struct hum_tensor *t, enum trial_part part, enum fault fault)
{
    bool by_rows = part == PART_INPUTS || part == PART_INPUT_SCALE || part == PART_OUTPUTS ||
                   (part >= PART_SORTED_IDS && part <= PART_EXPERT_LAYOUT);

    if (t->bytes == 0)
        return fault == FAULT_EXTRA && part != PART_LOCKS;
    if (fault == FAULT_EXTRA || (fault == FAULT_ROWS && !by_rows))
        return false;
    return fault != FAULT_SIZE_1 || t->rank > 1;
}

struct memory {
    struct trial_call *call;
};

/* What the legal call looks like, as far as presence, rank and sizes go. */
static void remember(struct trial_call *call, const void *context)
{
    const struct memory *memory = context;

    *memory->call = *call;
}

static bool tensors(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(in->launch->m);
    struct trial_call legal;
    const struct memory memory = {&legal};
    struct trial_out out;
    char what[80];

    o.own_weights = true;
    o.change = remember;
    o.context = &memory;
    if (!trial_run(in->trial, &o, &out, f))
        return false;
    o.change = spoil_tensor;
    for (int part = 0; part < PART_COUNT; part++)
        for (int fault = 0; fault < FAULTS; fault++) {
            struct tensor_fault x = {(enum trial_part)part, (enum fault)fault};

            if (!is_fault(trial_tensor(&legal, x.part), x.part, x.fault))
                continue;
            o.context = &x;
            (void)snprintf(what, sizeof what, "%s with %s", trial_part_name(x.part),
                           fault_name(x.fault));
            if (!trial_refuses(in->trial, &o, true, what, f))
                return false;
        }
    return true;
}

/* ---- values of routing tensors --------------------------------------------------------------- */

enum spot { FIRST, LAST, FIRST_ID, SECOND_ID, LAST_ID };
enum base { ZERO, PADDED, CAPACITY, EXPERTS, ROWS_OF_A, MAX_TOKENS, THE_FIRST_ID };

/* A value that the contract does not allow. */
struct value_fault {
    enum hum_gemm_type type;
    const char *what;
    size_t tensor; /* in struct routing_tensors */
    enum spot place;
    enum base base;
    int64_t add;
};

#define IN(tensor) offsetof(struct routing_tensors, tensor)
enum { BLOCKS = 1024 }; /* a multiple of every block_m */

/* clang-format off */
static const struct value_fault value_faults[] = {
    {HUM_GEMM_INDEXED, "a negative num_tokens_padded",     IN(num_tokens_padded), FIRST, ZERO, -BLOCKS},
    {HUM_GEMM_INDEXED, "a num_tokens_padded that is no multiple of block_m", IN(num_tokens_padded), FIRST, PADDED, -1},
    {HUM_GEMM_INDEXED, "a num_tokens_padded above the length of sorted_ids", IN(num_tokens_padded), FIRST, CAPACITY, BLOCKS},
    {HUM_GEMM_INDEXED, "an expert id of num_experts",      IN(expert_ids), FIRST, EXPERTS, 0},
    {HUM_GEMM_INDEXED, "an expert id of -2",               IN(expert_ids), FIRST, ZERO, -2},
    {HUM_GEMM_INDEXED, "a negative id",                    IN(sorted_ids), FIRST_ID, ZERO, -1},
    {HUM_GEMM_INDEXED, "an id twice, side by side",        IN(sorted_ids), SECOND_ID, THE_FIRST_ID, 0},
    {HUM_GEMM_INDEXED, "an id twice, first and last",      IN(sorted_ids), LAST_ID, THE_FIRST_ID, 0},
    {HUM_GEMM_GROUPED_CONTIGUOUS, "a first offset of 1",   IN(expert_layout), FIRST, ZERO, 1},
    {HUM_GEMM_GROUPED_CONTIGUOUS, "a first offset of -1",  IN(expert_layout), FIRST, ZERO, -1},
    {HUM_GEMM_GROUPED_CONTIGUOUS, "a decreasing offset",   IN(expert_layout), LAST, ZERO, -1},
    {HUM_GEMM_GROUPED_CONTIGUOUS, "a last offset above m", IN(expert_layout), LAST, ROWS_OF_A, 1},
    {HUM_GEMM_GROUPED_CONTIGUOUS, "an offset of 2^32",     IN(expert_layout), LAST, ZERO, INT64_C(1) << 32},
    {HUM_GEMM_GROUPED_MASKED, "a negative count",          IN(expert_layout), FIRST, ZERO, -1},
    {HUM_GEMM_GROUPED_MASKED, "a count above max_tokens",  IN(expert_layout), LAST, MAX_TOKENS, 1},
    {HUM_GEMM_GROUPED_MASKED, "a count of 2^32",           IN(expert_layout), LAST, ZERO, INT64_C(1) << 32},
};
/* clang-format on */

/* A fault of the tensors of one launch. */
struct spoiling {
    const struct routing *r;
    int64_t block_m;
    const struct value_fault *fault;
};

static const int32_t *values(const struct hum_tensor *t)
{
    return t->data;
}

/* The first id at `from` or behind it that is no padding; -1: none is. */
static int64_t find_id(const struct spoiling *x, const struct routing_tensors *t, int64_t from)
{
    for (int64_t i = from; i < values(&t->num_tokens_padded)[0]; i++)
        if (values(&t->expert_ids)[i / x->block_m] >= 0 && values(&t->sorted_ids)[i] < x->r->rows)
            return i;
    return -1;
}

/* Where the value goes; -1: there is no such place, or none that is read. */
static int64_t place_of(const struct spoiling *x, const struct routing_tensors *t)
{
    int64_t at, next;

    switch (x->fault->place) {
    case FIRST:
        return x->fault->tensor == IN(expert_ids) && values(&t->num_tokens_padded)[0] == 0 ? -1 : 0;
    case LAST:
        return t->expert_layout.shape[0] - 1;
    case FIRST_ID:
        return find_id(x, t, 0);
    case SECOND_ID:
    case LAST_ID:
        at = find_id(x, t, 0);
        at = at < 0 ? -1 : find_id(x, t, at + 1);
        for (next = at; next >= 0 && x->fault->place == LAST_ID; next = find_id(x, t, next + 1))
            at = next;
        return at;
    }
    return -1;
}

static int64_t base_of(const struct spoiling *x, const struct routing_tensors *t)
{
    switch (x->fault->base) {
    case ZERO:
        return 0;
    case PADDED:
        return values(&t->num_tokens_padded)[0];
    case CAPACITY:
        return t->sorted_ids.shape[0];
    case EXPERTS:
        return x->r->experts;
    case ROWS_OF_A:
        return x->r->m;
    case MAX_TOKENS:
        return x->r->max_tokens;
    case THE_FIRST_ID:
        return values(&t->sorted_ids)[find_id(x, t, 0)];
    }
    return 0;
}

/* False: these tensors have nothing to spoil so. */
static bool spoil(const struct spoiling *x, struct routing_tensors *tensors)
{
    struct hum_tensor *t = (struct hum_tensor *)(void *)((char *)tensors + x->fault->tensor);
    int64_t at = place_of(x, tensors), value;

    if (at < 0)
        return false;
    value = base_of(x, tensors) + x->fault->add;
    if (t->dtype == HUM_INT64)
        ((int64_t *)t->data)[at] = value;
    else
        ((int32_t *)t->data)[at] = (int32_t)value;
    return t->dtype == HUM_INT64 || value == (int32_t)value;
}

static void spoil_values(struct routing_tensors *tensors, const void *context)
{
    (void)spoil(context, tensors);
}

/* Has the case anything to spoil so? -1: memory is out. */
static int can_spoil(const struct check_in *in, const struct spoiling *x)
{
    size_t mark = in->scratch->used;
    struct routing_tensors tensors;
    int can = -1;

    if (routing_tensors_make(x->r, x->block_m, layer_layout_dtype(in->trial->v), in->scratch,
                             &tensors))
        can = spoil(x, &tensors);
    in->scratch->used = mark;
    return can;
}

/* What wrong values do on a device is the caller's business (semantics.md section 10): not
 * tried. */
static bool routing_values(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(in->launch->m);

    o.spoil = spoil_values;
    for (size_t i = 0; i < sizeof value_faults / sizeof value_faults[0]; i++) {
        struct spoiling x = {&in->q->routing, in->launch->tuning->block_m, &value_faults[i]};
        int can;

        if (in->launch->provider->alloc || x.fault->type != x.r->type)
            continue;
        can = can_spoil(in, &x);
        o.context = &x;
        if (can < 0)
            finding_give(f, VERDICT_INFRA,
                         "the check needs more memory than the limit of a worker");
        if (can < 0 || (can && !trial_refuses(in->trial, &o, true, x.fault->what, f)))
            return false;
    }
    return true;
}

void check_contract(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(in->launch->m);
    size_t bytes = (size_t)(problem_rows(in->q, in->launch->m) * in->q->ref.n) * sizeof *in->got;
    struct trial_out out;

    if (!tensors(in, f) || !routing_values(in, f) || !configurations(in, f) ||
        !trial_run(in->trial, &o, &out, f))
        return;
    f->compared++;
    f->wrong += memcmp(out.codes, in->got, bytes) != 0;
    finding_judge(f, "of the legal call differ after refused ones");
}
