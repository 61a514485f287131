/* fault_samples.h - for each fault of the GEMM a small product that it changes. */
#ifndef KERNELS_TEST_FAULT_SAMPLES_H
#define KERNELS_TEST_FAULT_SAMPLES_H

#include "kernels/cpu/fault.h" /* with HUMCHECK_FAULTS */
#include "kernels/test/sample.h"

struct fault_sample {
    enum hum_fault fault;
    void (*configure)(struct sample *s); /* changes fault_sample_start */
    void (*fill)(struct sample *s);      /* changes random operands; NULL: nothing */
    void (*finish)(struct sample *s);    /* after the transform; NULL: nothing */
};

extern const struct sample fault_sample_start; /* without operands */
extern const struct fault_sample fault_samples[];
extern const int fault_samples_count;

#endif
