/* target.h - compile a hot loop for several instruction sets and choose when the program starts.
 *
 * Only loops whose results do not depend on the instruction set carry the mark: no contraction
 * (-ffp-contract=off), no reassociation. Clang
 * before 15 does not know target_clones in C: there the plain loop stands.
 */
#ifndef REFERENCE_TARGET_H
#define REFERENCE_TARGET_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TARGET_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TARGET_CLONES
#endif

#endif
