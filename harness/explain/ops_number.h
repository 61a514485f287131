/* ops_number.h - one number to a code, in every way that a kernel might round it.
 *
 * The oracle rounds as the documents say and no other way; explanations need the other ways, too.
 */
#ifndef HARNESS_EXPLAIN_OPS_NUMBER_H
#define HARNESS_EXPLAIN_OPS_NUMBER_H

#include "reference/dtype.h"

enum ops_rounding {
    OPS_AS_DOCUMENTED, /* what the operation's document says */
    OPS_TIES_TO_EVEN,
    OPS_TIES_TO_ZERO,
    OPS_TIES_AWAY,
    OPS_TIES_UP,   /* floor(x + 1/2) */
    OPS_TRUNCATED, /* toward zero */
    OPS_DOWN,
    OPS_UP
};

/* x, a number of steps, to a whole number; infinity and NaN stay. */
double ops_round(double x, enum ops_rounding how);

/* Of a float format: the number of the magnitude nearest to x, numbered in ascending order as if
 * the exponent had no upper end, with the sign of x (-0 included). Not for infinity and NaN. */
double ops_magnitude(const struct dtype *t, double x, enum ops_rounding how);

enum ops_overflow { OPS_SATURATES, OPS_WRAPS, OPS_TO_SPECIAL, OPS_SATURATES_NARROW };

/* A code of t, any activation format: integers in two's complement. Beyond the largest: saturated;
 * modulo 2^bits; infinity where there is one, else NaN where there is one, else saturated;
 * saturated to the same magnitude on both sides (integers). NaN: the canonical one, or REF_CODE_ANY
 * where t has none. */
uint32_t ops_encode(const struct dtype *t, double x, enum ops_rounding how, enum ops_overflow over);

#endif
