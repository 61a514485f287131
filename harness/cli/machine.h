/* machine.h - what the machine is: processors, memory, GPUs.
 *
 * Read from /proc (Linux) and the CUDA driver, which is loaded when asked for, so that one
 * program serves machines with and without a GPU. Whatever cannot be found out is "unknown" or
 * 0, never an error. / */
#ifndef HARNESS_CLI_MACHINE_H
#define HARNESS_CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int machine_cores(void);             /* online, at least 1 */
uint64_t machine_memory_bytes(void); /* physical; 0: unknown */

struct machine_cpu {
    char model[96];
    char features[256]; /* those of machine_features that it has, separated by spaces */
};
void machine_cpu(struct machine_cpu *out);

/* Does this thread round to nearest and keep subnormals? NULL: yes; else a sentence. */
const char *machine_arithmetic(void);

enum { MACHINE_GPUS = 16 };

struct machine_gpu {
    char name[96];
    int sm; /* compute capability x 10 */
    uint64_t memory_bytes;
};

struct machine_gpus {
    int count;
    int cuda;         /* newest CUDA that the driver serves: 13000 is 13.0; 0: none */
    char reason[160]; /* one sentence when count is 0 */
    struct machine_gpu gpus[MACHINE_GPUS];
};
void machine_gpus(struct machine_gpus *out);

#endif
