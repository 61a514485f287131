/* dtype.h - one table of number formats, and decode and encode for all of them.
 *
 * A format is data: a row says how many bits of which kind and what the topmost codes mean;
 * decode and encode are one function each. Rows are passed as `const struct dtype *`, never as
 * numbers, so that nothing can switch over formats. A name stands for one role: "e4m3" is the
 * activation and scale format (0x7F is NaN), "float8e4m3" the weight format of the same fields
 * in which every code is finite (0x7F is 480). dtype_find_weight maps the first to the second. A
 * format that is finite in every role has one row: "float4e2m1" is the alias of "e2m1".
 *
 * e3m4 is the tensor core's: its topmost code is NaN and its largest number 30, where the weight
 * format float8e3m4 has 31. e0mM is a sign and an M-bit magnitude, -0 included; intN is two's
 * complement. Unsigned float rows are scales: e5m3 has zero and subnormals, e8m0 (no mantissa)
 * has neither.
 */
#ifndef REFERENCE_DTYPE_H
#define REFERENCE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* What the codes with the largest exponent field mean. */
enum dtype_top {
    DTYPE_TOP_FINITE,  /* numbers like all others */
    DTYPE_TOP_INF_NAN, /* IEEE: infinity with mantissa 0, else NaN */
    DTYPE_TOP_ONE_NAN  /* NaN where exponent and mantissa are all ones, else finite */
};

/* What encode does beyond the largest finite number, infinities included. */
enum dtype_overflow {
    DTYPE_SATURATE, /* the largest finite number of that sign */
    DTYPE_TO_TOP /* infinity where the format has one, else NaN where it has one, else saturate */
};

struct dtype {
    const char *name;  /* spelling in YAML, on the command line and in reports */
    const char *alias; /* upstream's spelling, accepted too; NULL: none */
    uint8_t bits;      /* of an element, 1 to 32 */
    uint8_t exp_bits;  /* 0: an integer, or (is_float) sign and integer magnitude */
    uint8_t man_bits;  /* stored mantissa bits; for integers, value bits */
    bool is_float;
    bool is_signed;
    int16_t bias; /* of the exponent */
    enum dtype_top top;
    const char *source; /* the document that defines it */
};

extern const struct dtype dtypes[];
extern const int dtype_count;

/* The row of that name or alias; NULL: none. */
const struct dtype *dtype_find(const char *name);

/* As dtype_find, for a weight: the row of the same fields in which every code is finite ("e4m3"
 * gives "float8e4m3"). NULL: unknown, or there is none ("f16", "e8m0"). */
const struct dtype *dtype_find_weight(const char *name);

/* Upstream's kId: base*10^7 + signed*10^6 + bits*10^4 + exponent*100 + mantissa (base 1 integer,
 * 2 float; integers have exponent and mantissa 0). Activation and weight rows share ids;
 * `weight` chooses the row in which every code is finite. dtype_find_id gives NULL for an
 * unknown id, and for a weight that has no such row. */
int32_t dtype_id(const struct dtype *t);
const struct dtype *dtype_find_id(int32_t id, bool weight);

/* The exact value of a code; bits above t->bits are ignored. NaN and infinities as the row says; a
 * NaN keeps its sign and loses its payload. */
double dtype_decode(const struct dtype *t, uint32_t code);

/* The code nearest to x, ties to even, subnormals kept; NaN gives the canonical NaN with x's
 * sign (quiet bit; all ones for ONE_NAN) or, where the format has none, code 0. Unsigned formats
 * take negative x as 0 (saturating). e8m0 has no zero: x at or below 2^-127 gives code 0,
 * rounding is in value between the two neighbouring powers of two (a tie goes to the even code). */
uint32_t dtype_encode(const struct dtype *t, double x, enum dtype_overflow overflow);

/* Largest finite value; smallest normal exponent (e_min; the exponent of subnormals too), such
 * that the quantum at x is 2^(max(floor(log2 |x|), e_min) - man_bits). Integers and e0mM:
 * man_bits, quantum 1. */
double dtype_max(const struct dtype *t);
int dtype_min_exponent(const struct dtype *t);

/* Every code's value: out[code] for code < 2^bits, bits at most 16. `out` is the caller's. */
void dtype_table(const struct dtype *t, double *out);

#endif
