/* hygiene.h - checks of what a launch leaves behind: `deterministic`, `alias`, `guard`, `locks`.
 *
 * Every launch is already looked at for damage (trial.h); these checks launch in ways that make
 * damage show.
 */
#ifndef HARNESS_KERNEL_HYGIENE_H
#define HARNESS_KERNEL_HYGIENE_H

#include "harness/kernel/checks.h"

/* The same launch again and again, launches of other data between them: the same bytes. A
 * provider that states an unknown order of slices is judged all the same. */
void check_deterministic(const struct check_in *in, struct finding *f);

/* Outputs directly before and behind each of the other tensors: the same bytes as apart. Outputs
 * that overlap one of them: refused (humming.h, forward). */
void check_alias(const struct check_in *in, struct finding *f);

/* Two launches over different poison, everything fenced and afterwards compared: all outputs are
 * written, nothing else is. */
void check_guard(const struct check_in *in, struct finding *f);

/* With Stream-K: locks are zero after each of several launches; too few, and on the host dirty
 * ones, are refused. A dirty lock on a device is undefined (humming.h) and not tried. Without:
 * none are needed. */
void check_locks(const struct check_in *in, struct finding *f);

#endif
