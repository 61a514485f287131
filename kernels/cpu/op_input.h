/* op_input.h - process_input: a checked call, one row's computation, and where rows go. */
#ifndef KERNELS_CPU_OP_INPUT_H
#define KERNELS_CPU_OP_INPUT_H

#include "kernels/cpu/op_activation.h"
#include "kernels/cpu/op_number.h"

/* What a checked call means. */
struct input_job {
    const struct hum_process_input_args *args;
    struct op_activation activation;
    int64_t rows, in_width; /* of inputs */
    int64_t width;          /* after the activation */
    int64_t out_rows;
    size_t row_bytes;            /* of outputs */
    int64_t group, groups;       /* values of a group, groups of a row; 0: no groups */
    bool has_static, has_tokens; /* scales */
    int32_t out_dtype;           /* of the data; that of inputs if disabled */
    int bits;                    /* of it */
    float target_max;            /* section 7 */
    struct op_format format;     /* of floats of 8 and 4 bits */
};

/* HUM_OK and the job, or HUM_INVALID. */
enum hum_code input_check(const struct hum_process_input_args *args, struct input_job *job,
                          char reason[HUM_REASON_BYTES]);

/* Scratch for one row, and what becomes of it. */
struct input_row {
    float *in;       /* in_width */
    float *v;        /* width */
    uint8_t *bytes;  /* width: 8-bit codes before packing */
    uint8_t *out;    /* row_bytes, as stored */
    float *scale;    /* groups: decoded; what the data are multiplied by is its reciprocal */
    uint32_t *coded; /* groups: as stored, f32 bits or 8-bit code */
    float token;
};

/* Row `row` of inputs: activation, Hadamard, quantization. */
void input_compute_row(const struct input_job *job, int64_t row, struct input_row *r);

#endif
