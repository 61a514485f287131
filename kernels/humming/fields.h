/* fields.h - the structs of the contract as JSON, from one table each. */
#ifndef KERNELS_HUMMING_FIELDS_H
#define KERNELS_HUMMING_FIELDS_H

#include "kernels/abi/humming.h"

struct cJSON;

enum field_type { FIELD_INT32, FIELD_INT64, FIELD_BOOL, FIELD_ENUM, FIELD_FLOAT };

/* A member: its name in JSON is its name in C. */
struct field {
    const char *name;
    enum field_type type;
    size_t offset;
};

struct fields {
    const struct field *field;
    int count;
};

extern const struct fields layer_fields, compute_fields, tuning_fields, accumulation_fields;
extern const struct fields shift_fields; /* the rest of an accumulation, all or none of it */
extern const struct fields quant_weight_fields, mxfp4_fields, input_fields;

/* Adds every member of `data` to `object`. False: no memory. */
bool fields_add(struct cJSON *object, const struct fields *f, const void *data);

/* A new object named `name` in `parent`. */
bool fields_add_object(struct cJSON *parent, const char *name, const struct fields *f,
                       const void *data);

/* Sets the members that `object` has; false: one is missing or no whole number in range. */
bool fields_read(const struct cJSON *object, const struct fields *f, void *data);

/* [data, dtype, bytes, shape...]; an absent tensor is null. Of the address the low 48 bits count
 * (remote.h). */
#define TENSOR_ADDRESS_MASK ((UINT64_C(1) << 48) - 1)
bool tensor_add(struct cJSON *object, const char *name, const struct hum_tensor *t);

#endif
