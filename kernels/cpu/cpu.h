/* cpu.h - the provider "cpu": the whole family on the host, in IEEE arithmetic.
 *
 * Every bit is fixed by docs/semantics.md and by what `accumulation` states; it depends neither on
 * the number of threads, nor on the processor's instruction set, nor (without Stream-K) on m. The
 * floating point environment must be the default one: rounding to nearest, subnormals kept.
 *
 * Choices of this provider, where the contract leaves one:
 *   - `num_sms` 0 means CPU_SMS workers, so that Stream-K does not depend on the machine
 *   - slices are always added in order
 *   - the flush period counts the weight group only where a weight scale is applied on C
 *   - an e3m4 activation of 0x7F or 0xFF is NaN (as e4m3); the e5m3 scale of 0xFF is NaN
 *   - a padded k takes no part in any sum
 *   - with experts and Stream-K the order depends on the routing: `accumulation` refuses
 *     (HUM_UNSUPPORTED), and has to be asked about a dense product of the same tiles
 *     (docs/semantics.md section 10); without Stream-K it states the order of a row
 *
 * With use_fused_e8m0_scale, scale codes above 250 are outside what the contract defines: from 253
 * on, the weight 6 x 2^(code - 127) is no f32. (255 is NaN.)
 */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include "kernels/abi/humming.h"

enum { CPU_SMS = 8 };

extern const struct hum_provider hum_cpu_provider;

#endif
