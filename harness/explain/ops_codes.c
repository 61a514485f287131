/* dequant_weight, pack and unpack (docs/semantics-ops.md sections 1 and 2), right and with one
 * mistake. */
#include "harness/explain/ops_families.h"
#include "harness/explain/ops_table.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- dequant_weight -------------------------------------------------------------------------- */

enum {
    OCP = 1,      /* as the format of activations has it, with NaN and infinity */
    FLUSH,        /* subnormal codes become 0, n 1: of their sign */
    PLUS_ZERO,    /* -0 becomes +0 */
    SHIFT,        /* the exponent is n too large */
    NO_SUBNORMAL, /* exponent field 0 is read as a normal number */
    UNSIGNED      /* the sign bit is ignored */
};

/* Exponent field 0 as if it had the implicit bit, too: 2^(1 - bias) 2^-1 (1 + m). */
static double as_normal(const struct dtype *t, uint32_t code)
{
    const double m = (double)(code & ((1u << t->man_bits) - 1u)) * ldexp(1.0, -t->man_bits);
    const double x = ldexp(1.0 + m, -(int)t->bias);

    return code >> (t->bits - 1) & 1u ? -x : x;
}

static float decode(const struct dtype *t, const struct dtype *other, const struct ops_twist *twist,
                    uint32_t code)
{
    const bool small = !(code >> t->man_bits & ((1u << t->exp_bits) - 1u));
    const uint32_t magnitude = code & ((1u << (t->bits - 1)) - 1u);
    double x = dtype_decode(t, code);

    switch (twist->kind) {
    case OCP:
        return (float)dtype_decode(other, code);
    case FLUSH:
        return (float)(small && magnitude ? copysign(0.0, twist->n ? x : 1.0) : x);
    case PLUS_ZERO:
        return (float)(magnitude ? x : 0.0);
    case SHIFT:
        return (float)ldexp(x, twist->n);
    case NO_SUBNORMAL:
        return (float)(small && magnitude ? as_normal(t, code) : x);
    case UNSIGNED:
        return (float)fabs(x);
    default:
        return (float)x;
    }
}

static bool answer_dequant(const struct ops_seen *s, const struct ops_twist *twist,
                           struct ops_answer *out)
{
    const struct hum_dequant_weight_args *a = s->args;
    const struct dtype *t = dtype_find_id(a->source_dtype, true);
    const struct dtype *other = dtype_find_id(a->source_dtype, false);

    if (!t || (twist->kind == OCP && !other))
        return false;
    for (int64_t i = 0; s->outs && i < s->out[0].count; i++) {
        const uint32_t code =
            ops_element(a->codes.data, 32, i) & (uint32_t)((UINT64_C(1) << t->bits) - 1u);
        const float x = decode(t, other, twist, code);

        memcpy(&out->codes[0][i], &x, sizeof x);
    }
    return true;
}

static enum hum_code run_dequant(const struct hum_ops *ops, void *handle, const void *args,
                                 char reason[HUM_REASON_BYTES])
{
    return ops->dequant_weight(handle, args, reason);
}

static const struct ops_tensor dequant_tensors[] = {
    {"codes", offsetof(struct hum_dequant_weight_args, codes), OPS_READ},
    {"outputs", offsetof(struct hum_dequant_weight_args, outputs), OPS_WRITE},
};

const struct ops_operation ops_dequant_weight = {.name = "dequant_weight",
                                                 .args_size =
                                                     sizeof(struct hum_dequant_weight_args),
                                                 .tensors = dequant_tensors,
                                                 .tensor_count = 2,
                                                 .run = run_dequant,
                                                 .answer = answer_dequant};

/* ---- pack and unpack ------------------------------------------------------------------------- */

enum {
    NIBBLES = 1,   /* the two codes of each pair are exchanged */
    REVERSED_WORD, /* codes of a word from its highest bits down */
    SIGN_BITS,     /* all bits of an element, not only the low ones, are ORed in: into the rest of
                      * the row (n 0), of the 32 codes (1), of the word (2) */
    SIGN_SPREADS,  /* a code with its top bit set fills the code behind it with ones; n 1: also the
                      * first of the next row */
    TAIL_LOST,     /* the last word (or the codes that end in it) of a row is not written */
    STRADDLING_LOST, /* bits that belong to the next word are lost */
    BYTES_SWAPPED,   /* words are stored with their high byte first */
    EXTENDED,        /* unpack: the top bit is extended as a sign */
    NOT_MASKED       /* unpack: the bits above are those of the word */
};

struct codes {
    int64_t rows, cols, words;
    int bits;
    uint32_t mask;
};

static struct codes codes_of(const struct hum_pack_args *a)
{
    return (struct codes){.rows = a->codes.shape[0],
                          .cols = a->codes.shape[1],
                          .words = a->packed.shape[1],
                          .bits = a->bits,
                          .mask = (1u << a->bits) - 1u};
}

static uint32_t swapped(uint32_t x)
{
    return x << 24 | (x & 0xff00u) << 8 | (x >> 8 & 0xff00u) | x >> 24;
}

/* May bits of word `word` of a row go on into the next? Those of 32 codes fill whole words. */
static bool goes_on(const struct codes *c, const struct ops_twist *twist, int64_t word)
{
    if (word + 1 == c->words || twist->kind == STRADDLING_LOST)
        return false;
    if (twist->kind == SIGN_BITS)
        return twist->n == 0 || (twist->n == 1 && (word + 1) % c->bits != 0);
    return true;
}

/* What is put at the place of code i of a row. */
static uint64_t packed_code(const struct codes *c, const struct ops_twist *twist,
                            const uint32_t *row, bool first, int64_t i)
{
    const uint32_t before = i || (twist->n && !first) ? row[i - 1] : 0u;

    switch (twist->kind) {
    case NIBBLES:
        return row[i ^ 1] & c->mask;
    case SIGN_BITS:
        return row[i];
    case SIGN_SPREADS:
        return before >> (c->bits - 1) & 1u ? c->mask : row[i] & c->mask;
    default:
        return row[i] & c->mask;
    }
}

/* A row; the last word holds what was there before. */
static void pack_one(const struct codes *c, const struct ops_twist *twist, const uint32_t *row,
                     bool first, uint32_t *words)
{
    const uint32_t last = words[c->words - 1];

    memset(words, 0, (size_t)c->words * sizeof *words);
    for (int64_t i = 0; i < c->cols; i++) {
        const int64_t at = i * c->bits;
        const int64_t place =
            twist->kind == REVERSED_WORD ? at / 32 * 32 + 32 - c->bits - at % 32 : at;

        const uint64_t wide = packed_code(c, twist, row, first, i) << place % 32;

        words[place / 32] |= (uint32_t)wide;
        if (goes_on(c, twist, place / 32))
            words[place / 32 + 1] |= (uint32_t)(wide >> 32);
    }
    if (twist->kind == TAIL_LOST)
        words[c->words - 1] = last;
    for (int64_t i = 0; twist->kind == BYTES_SWAPPED && i < c->words; i++)
        words[i] = swapped(words[i]);
}

/* To turn a word round, its codes must lie in it whole; a word that is 32 codes is no other end. */
static bool has_meaning(const struct codes *c, const struct ops_twist *twist)
{
    if (twist->kind == SIGN_BITS && twist->n == 2)
        return c->bits > 1;
    if (twist->kind == SIGN_SPREADS && twist->n)
        return c->rows > 1;
    return twist->kind != REVERSED_WORD || 32 % c->bits == 0;
}

static bool answer_pack(const struct ops_seen *s, const struct ops_twist *twist,
                        struct ops_answer *out)
{
    const struct hum_pack_args *a = s->args;
    const struct codes c = codes_of(a);
    uint32_t *words = arena_alloc(out->arena, (size_t)c.words + 1, sizeof *words);

    if (!words || !has_meaning(&c, twist))
        return false;
    for (int64_t row = 0; s->outs && row < c.rows; row++) {
        uint64_t *to = out->codes[0] + row * c.words;

        if (!ops_asked(out, row))
            continue;
        words[c.words - 1] = (uint32_t)to[c.words - 1];
        pack_one(&c, twist, (const uint32_t *)a->codes.data + row * c.cols, row == 0, words);
        for (int64_t i = 0; i < c.words; i++)
            to[i] = words[i];
    }
    return true;
}

static uint32_t unpacked(const struct codes *c, const struct ops_twist *twist,
                         const uint32_t *words, int64_t i)
{
    const int64_t from = twist->kind == NIBBLES ? i ^ 1 : i, at = from * c->bits;
    const int64_t word = at / 32;
    const int shift = twist->kind == REVERSED_WORD ? 32 - c->bits - (int)(at % 32) : (int)(at % 32);
    uint64_t wide = words[word];
    uint32_t code;

    if (twist->kind == BYTES_SWAPPED)
        wide = swapped((uint32_t)wide);
    if (twist->kind != STRADDLING_LOST && word + 1 < c->words)
        wide |=
            (uint64_t)(twist->kind == BYTES_SWAPPED ? swapped(words[word + 1]) : words[word + 1])
            << 32;
    code = (uint32_t)(wide >> shift);
    if (twist->kind == NOT_MASKED)
        return (uint32_t)(wide & 0xffffffffu) >> shift;
    code &= c->mask;
    if (twist->kind == EXTENDED && code >> (c->bits - 1))
        code |= ~c->mask;
    return code;
}

static bool answer_unpack(const struct ops_seen *s, const struct ops_twist *twist,
                          struct ops_answer *out)
{
    const struct hum_pack_args *a = s->args;
    const struct codes c = codes_of(a);

    if (!has_meaning(&c, twist))
        return false;
    for (int64_t i = 0; s->outs && i < c.rows * c.cols; i++) {
        const int64_t row = i / c.cols, col = i % c.cols;

        if (twist->kind == TAIL_LOST && (col + 1) * c.bits > (c.words - 1) * 32)
            continue;
        out->codes[0][i] =
            unpacked(&c, twist, (const uint32_t *)a->packed.data + row * c.words, col);
    }
    return true;
}

static enum hum_code run_pack(const struct hum_ops *ops, void *handle, const void *args,
                              char reason[HUM_REASON_BYTES])
{
    return ops->pack(handle, args, reason);
}

static enum hum_code run_unpack(const struct hum_ops *ops, void *handle, const void *args,
                                char reason[HUM_REASON_BYTES])
{
    return ops->unpack(handle, args, reason);
}

static const struct ops_tensor pack_tensors[] = {
    {"codes", offsetof(struct hum_pack_args, codes), OPS_READ},
    {"packed", offsetof(struct hum_pack_args, packed), OPS_WRITE},
};
static const struct ops_tensor unpack_tensors[] = {
    {"packed", offsetof(struct hum_pack_args, packed), OPS_READ},
    {"codes", offsetof(struct hum_pack_args, codes), OPS_WRITE},
};

const struct ops_operation ops_pack = {.name = "pack",
                                       .args_size = sizeof(struct hum_pack_args),
                                       .tensors = pack_tensors,
                                       .tensor_count = 2,
                                       .run = run_pack,
                                       .by_rows = true,
                                       .answer = answer_pack};
const struct ops_operation ops_unpack = {.name = "unpack",
                                         .args_size = sizeof(struct hum_pack_args),
                                         .tensors = unpack_tensors,
                                         .tensor_count = 2,
                                         .run = run_unpack,
                                         .answer = answer_unpack};

/* ---- hypotheses ------------------------------------------------------------------------------ */

#define DEQUANT(name, kind, n, sentence) OPS_ROW(name, ops_dequant_weight, kind, 0, n, sentence)
#define PACK(name, kind, n, sentence)    OPS_ROW(name, ops_pack, kind, 0, n, sentence)
#define UNPACK(name, kind, sentence)     OPS_ROW(name, ops_unpack, kind, 0, 0, sentence)

/* clang-format off */
static const struct hypothesis dequant_rows[] = {
    DEQUANT("ocp-decode", OCP, 0,
            "codes are decoded as those of activations, with NaN and infinity at the top"),
    DEQUANT("subnormals-flushed", FLUSH, 0, "subnormal codes become 0"),
    DEQUANT("subnormals-flushed-to-signed-zero", FLUSH, 1,
            "subnormal codes become 0 of their sign"),
    DEQUANT("minus-zero-lost", PLUS_ZERO, 0, "-0 becomes +0"),
    DEQUANT("exponent-bias-plus-1", SHIFT, -1, "the exponent's bias is one too large"),
    DEQUANT("exponent-bias-minus-1", SHIFT, 1, "the exponent's bias is one too small"),
    DEQUANT("subnormals-as-normals", NO_SUBNORMAL, 0,
            "an exponent field of 0 is read as that of a normal number"),
    DEQUANT("sign-lost", UNSIGNED, 0, "the sign of codes is lost"),
};

static const struct hypothesis pack_rows[] = {
    PACK("nibble-order", NIBBLES, 0, "packing exchanges the two codes of each pair"),
    PACK("reversed-word", REVERSED_WORD, 0, "the first code of a word is put into its highest bits"),
    PACK("sign-bits-kept", SIGN_BITS, 1,
         "packing keeps the bits of an element above its code, to the end of 32 codes"),
    PACK("sign-bits-kept-in-row", SIGN_BITS, 0,
         "packing keeps the bits of an element above its code, to the end of the row"),
    PACK("sign-bits-kept-in-word", SIGN_BITS, 2,
         "packing keeps the bits of an element above its code, to the end of the word"),
    PACK("sign-extension", SIGN_SPREADS, 0,
         "a code with its top bit set makes all bits of the code behind it 1"),
    PACK("sign-extension-across-rows", SIGN_SPREADS, 1,
         "a code with its top bit set makes all bits of the code behind it 1, in the next row, too"),
    PACK("tail-word-lost", TAIL_LOST, 0, "the last word of a row is not written"),
    PACK("straddling-bits-lost", STRADDLING_LOST, 0,
         "the bits of a code that belong to the next word are lost"),
    PACK("bytes-swapped", BYTES_SWAPPED, 0, "words are stored with their high byte first"),
    UNPACK("nibble-order", NIBBLES, "unpacking exchanges the two codes of each pair"),
    UNPACK("reversed-word", REVERSED_WORD,
           "the first code of a word is looked for in its highest bits"),
    UNPACK("sign-extended", EXTENDED, "unpacking extends the top bit of a code as a sign"),
    UNPACK("upper-bits-kept", NOT_MASKED, "unpacking keeps the bits above a code"),
    UNPACK("tail-word-lost", TAIL_LOST, "the codes of the last word of a row are not written"),
    UNPACK("straddling-bits-lost", STRADDLING_LOST,
           "the bits of a code that lie in the next word are lost"),
    UNPACK("bytes-swapped", BYTES_SWAPPED, "words are read with their high byte first"),
};
/* clang-format on */

static const struct hypotheses of_dequant = {dequant_rows,
                                             sizeof dequant_rows / sizeof dequant_rows[0]};
static const struct hypotheses of_pack = {pack_rows, sizeof pack_rows / sizeof pack_rows[0]};

static const struct hypotheses *const for_dequant[] = {&of_dequant, NULL};
static const struct hypotheses *const for_pack[] = {&of_pack, NULL};

const struct explain_family explain_dequant_weight = {
    .run = ops_run, .vary = ops_vary, .locate = ops_locate, .hypotheses = for_dequant};
const struct explain_family explain_pack = {
    .run = ops_run, .vary = ops_vary, .locate = ops_locate, .hypotheses = for_pack};
