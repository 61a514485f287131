/* output_hash.h - one number for the bits that a case's first launch has left: the column
 * output_hash.
 *
 * Over 64-bit words w, from h = OUTPUT_HASH_NONE, modulo 2^64:
 *
 *     h = (h ^ w) * 0x9e3779b97f4a7c15,  then  h = h ^ (h >> 32)
 *
 * Either step is one to one in h and in w: outputs that differ in one word never have the same
 * number, others do so by chance, once in 2^64. The words of a piece of memory are its bytes eight
 * at a time, the first one lowest, the last word filled up with zeros.
 *
 * What is hashed, bit for bit (a zero's sign and a NaN's payload count, which checks forgive):
 *
 *   gemm        the rows of the output that an expert has (dense: all), a piece each
 *   operations  of each call of the problem, each output in the order of the arguments, a piece
 *               each; elements that are left open or are not to be written count as zero
 *   experts     of each step, in order, each row that means something: its codes, then its token
 *               scale, 32 bits an element, a piece a row
 *
 * It is the number of the first launch of the case as it stands (of a call, of a run of the
 * pipeline), whatever the check launches later; only launches that ended well count. No padding, no
 * poison: a function of what was computed alone, whichever worker it was and whatever lay there.
 */
#ifndef HARNESS_KERNEL_OUTPUT_HASH_H
#define HARNESS_KERNEL_OUTPUT_HASH_H

#include <stddef.h>
#include <stdint.h>

#define OUTPUT_HASH_NONE UINT64_C(0xcbf29ce484222325) /* of no words */

uint64_t output_hash_word(uint64_t h, uint64_t word);
uint64_t output_hash_bytes(uint64_t h, const void *bytes, size_t count);

/* 16 hexadecimal digits; "" of no words. */
enum { OUTPUT_HASH_TEXT = 17 };
void output_hash_text(uint64_t h, char text[OUTPUT_HASH_TEXT]);

#endif
