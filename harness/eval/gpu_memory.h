/* gpu_memory.h - whether the memory of the GPUs came back after a server was stopped.
 *
 * A server that was killed may leave memory with the driver, and the next one then finds less.
 * What the GPUs hold is asked of nvidia-smi, in MiB, all programs together; where that is not
 * installed or does not answer, nothing is known and nothing is said.
 */
#ifndef HARNESS_EVAL_GPU_MEMORY_H
#define HARNESS_EVAL_GPU_MEMORY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the driver itself takes and gives back as programs come and go. */
enum { GPU_MEMORY_GPUS = 64, GPU_MEMORY_MARGIN_MIB = 256, GPU_MEMORY_TEXT = 240 };

struct gpu_memory {
    size_t count; /* 0: nothing is known */
    struct {
        int64_t index, used_mib;
    } gpu[GPU_MEMORY_GPUS];
};

/* Lines "INDEX, MIB"; others ("[N/A]" of a GPU that is cut into parts) are left out. */
void gpu_memory_parse(const char *text, struct gpu_memory *out);

/* Takes at most 5 s. */
void gpu_memory_read(struct gpu_memory *out);

/* How many MiB more than the margin allows the worst GPU holds, in all; *index is that GPU. 0: all
 * is back. A GPU that one of the two lacks does not count. */
int64_t gpu_memory_over(const struct gpu_memory *before, const struct gpu_memory *now,
                        int64_t *index);

/* Looks again and again until all is back, for `seconds`; once if *interrupted. Returns buf: a
 * sentence, "" if all is back or `before` knows nothing. */
const char *gpu_memory_wait(const struct gpu_memory *before, double seconds,
                            const volatile sig_atomic_t *interrupted, char buf[GPU_MEMORY_TEXT]);

#endif
