/* expr.h - the expressions of `where:`, over the values of one case.
 *
 *     or | and | not | == != < <= > >= in [..] | + - | * / % | - (unary) | ( ) number axis word
 *
 * lowest binding first. A word (a format, a check, `true`) stands for the value that the axis on
 * the other side of the comparison gives it: `a_dtype in [f16, bf16]`, `check == exact`,
 * `has_bias == false`, `scales == fill` (though fill is an axis too); a bare bool axis is a
 * condition. Tiles offer block_m, block_n, block_k, warp_m, warp_n, warp_k; formats offer a_bits,
 * b_bits, c_bits, bs_bits. Comparisons do not chain; the items of `in` are single words or numbers.
 *
 * `and` and `or` evaluate their right side only if the left one does not decide. Division is C's,
 * toward zero; a division by zero, or an overflow of 64 bits, that is evaluated makes the whole
 * expression false. `auto` (also a part of an auto tile) compares equal to `auto` only: it is
 * neither less nor more than anything, and calculating with it makes the whole expression false.
 */
#ifndef HARNESS_CONFIG_EXPR_H
#define HARNESS_CONFIG_EXPR_H

#include "harness/config/axes.h"
#include "harness/core/arena.h"
#include "harness/core/err.h"

struct expr;

/* Parse and check `text`, whose first character stands at `at`. NULL: one error was added, at the
 * column of the mistake. At most 4096 bytes, 64 levels deep. */
const struct expr *expr_parse(const char *text, struct place at, struct arena *arena,
                              struct errs *errs);

bool expr_eval(const struct expr *e, const int64_t v[AX_COUNT]);

/* Is `axis` mentioned? (pairwise coverage needs to know which axes a constraint ties together.) */
bool expr_mentions(const struct expr *e, enum axis_id axis);

#endif
