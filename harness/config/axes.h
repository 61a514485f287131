/* axes.h - the one table of everything a kernel case may state: key, kind, default, help.
 *
 * A case is an array of int64_t, one value an axis; what the number means is the axis' kind. YAML
 * loading, `where:` expressions, combination, case names, --list, records and the documentation all
 * walk this table, so that a new axis is one row.
 */
#ifndef HARNESS_CONFIG_AXES_H
#define HARNESS_CONFIG_AXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum axis_kind {
    AXIS_INT,    /* a whole number in [min, max] */
    AXIS_BOOL,   /* true or false */
    AXIS_WORD,   /* an index into `words` */
    AXIS_FORMAT, /* an index into dtypes[] of reference/dtype.h */
    AXIS_WEIGHT, /* the same, found by dtype_find_weight */
    AXIS_TILE,   /* MxNxK, "64x128x64": axis_tile packs it */
    AXIS_SEED    /* 64 bits, 0x hexadecimal or decimal, as the bits of the int64_t */
};

/* The value of an axis that is left to a rule ("auto"). */
#define AXIS_AUTO INT64_MIN

enum axis_id {
    AX_FAMILY,
    AX_GEMM_TYPE,
    AX_EXPERTS,
    AX_TOP_K,
    AX_ROUTING,
    AX_MAX_TOKENS,
    AX_LAYOUT_DTYPE,
    AX_A,
    AX_B,
    AX_C,
    AX_BS,
    AX_M,
    AX_N,
    AX_K,
    AX_PAD_N,
    AX_PAD_K,
    AX_SCALE,
    AX_GROUP,
    AX_GROUP_N,
    AX_SCALE_2,
    AX_ZERO,
    AX_BIAS,
    AX_INPUT_GROUP,
    AX_INT_SCALE,
    AX_FUSED,
    AX_F16_ACCUM,
    AX_BATCH_INVARIANT,
    AX_MMA,
    AX_BLOCK,
    AX_WARP,
    AX_STREAM_K,
    AX_NUM_SMS,
    AX_CTAS,
    AX_STAGES,
    AX_WARP_SPEC,
    AX_TMA,
    AX_WRITE_SPLITS,
    AX_RASTER,
    AX_TUNING,
    AX_INPUT,
    AX_BITS,
    AX_RULE,
    AX_HAS_SCALE,
    AX_E8M0,
    AX_NEGATIVE,
    AX_PER_ROW,
    AX_RANGE,
    AX_QUANT_MODE,
    AX_QUANT,
    AX_QUANT_GROUP,
    AX_GROUP_SCALE,
    AX_SCALE_LAYOUT,
    AX_LAYOUT,
    AX_ACTIVATION,
    AX_FORM,
    AX_SWIGLU,
    AX_HADAMARD,
    AX_ZERO_INVALID,
    AX_OUTPUT_PLACE,
    AX_CHECK,
    AX_FILL,
    AX_DATA,
    AX_SCALES,
    AX_SEED,
    AX_COUNT
};

/* Families are bits, by value of the axis `family`. */
#define AXIS_FAMILY_BIT(family) (1u << (family))
#define AXIS_ALL_FAMILIES       (~0u)

struct axis {
    const char *key; /* as in YAML; upstream's name of the field where there is one */
    enum axis_kind kind;
    bool may_be_auto;
    bool of_problem;          /* decides operands or reference: axis_is_of_problem */
    unsigned families;        /* which families have this axis */
    const char *fallback;     /* used when absent; NULL: required */
    int64_t min, max;         /* AXIS_INT */
    const char *const *words; /* AXIS_WORD: ended by NULL */
    const char *help;
};

extern const struct axis axes[AX_COUNT];

int axis_find(const char *key); /* -1: none */

/* Do all these families have the axis? */
static inline bool axis_is_of_families(const struct axis *x, unsigned families)
{
    return !(families & ~x->families);
}

/* Does the axis decide operands or reference of a case? Cases that differ only elsewhere share a
 * problem. Rows of a dense product do not depend on m, so that a smaller m is a prefix of the same
 * problem; with experts, m decides the routing. */
bool axis_is_of_problem(enum axis_id x, const int64_t v[AX_COUNT]);

/* Text to value. NULL, or what was expected ("a whole number from 1 to 1048576"), in a static or
 * `buf` text. */
const char *axis_parse(const struct axis *x, const char *text, int64_t *out, char *buf,
                       size_t size);
/* Value to text, the inverse. */
const char *axis_format(const struct axis *x, int64_t value, char *buf, size_t size);

/* Tiles: three sizes of 1 to 65535 in one number. */
static inline int64_t axis_tile(int64_t m, int64_t n, int64_t k)
{
    return m << 32 | n << 16 | k;
}
static inline int64_t axis_tile_m(int64_t t)
{
    return t >> 32 & 0xffff;
}
static inline int64_t axis_tile_n(int64_t t)
{
    return t >> 16 & 0xffff;
}
static inline int64_t axis_tile_k(int64_t t)
{
    return t & 0xffff;
}

#endif
