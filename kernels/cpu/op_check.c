#include "kernels/cpu/op_check.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/tensors.h"

#include <stdio.h>

enum hum_code op_check_rules(const struct op_rule *rules, size_t count,
                             char reason[HUM_REASON_BYTES])
{
    for (size_t i = 0; i < count; i++)
        if (rules[i].broken)
            return refuse(reason, HUM_INVALID, rules[i].sentence);
    return HUM_OK;
}

bool op_shape_is_sane(const struct hum_tensor *t, int32_t rank)
{
    const int64_t most = INT64_C(1) << 31, most_elements = INT64_C(1) << 40;
    int64_t elements = 1;

    if (t->rank != rank)
        return false;
    for (int32_t i = 0; i < rank; i++) {
        if (t->shape[i] < 0 || t->shape[i] > most)
            return false;
        if (t->shape[i] > 0 && elements > most_elements / t->shape[i])
            return false;
        elements *= t->shape[i];
    }
    return true;
}

struct hum_tensor op_want(int32_t dtype, int32_t rank, int64_t size0, int64_t size1, int64_t size2)
{
    struct hum_tensor t = {.dtype = dtype, .rank = rank, .shape = {size0, size1, size2}};
    int64_t elements = 1;

    for (int32_t i = 0; i < rank; i++)
        elements *= t.shape[i];
    t.bytes = format_bytes(dtype, elements);
    return t;
}

static bool overlap(const struct hum_tensor *x, const struct hum_tensor *y)
{
    const uintptr_t x0 = (uintptr_t)x->data, y0 = (uintptr_t)y->data;

    return x->bytes && y->bytes && x0 < y0 + y->bytes && y0 < x0 + x->bytes;
}

enum hum_code op_check_tensors(const struct op_tensor *all, size_t count,
                               char reason[HUM_REASON_BYTES])
{
    for (size_t i = 0; i < count; i++)
        if (tensor_check(all[i].name, all[i].got, &all[i].want, reason))
            return HUM_INVALID;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; all[i].is_output && j < count; j++)
            if (i != j && overlap(all[i].got, all[j].got)) {
                (void)snprintf(reason, HUM_REASON_BYTES, "%s must not overlap %s", all[i].name,
                               all[j].name);
                return HUM_INVALID;
            }
    return HUM_OK;
}

bool op_is_real(int32_t dtype)
{
    return dtype == HUM_F16 || dtype == HUM_BF16 || dtype == HUM_F32;
}
