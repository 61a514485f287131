#include "harness/faults/catalogue.h"

#include <stddef.h>
#include <string.h>

int fault_count(void)
{
    return faults_gemm_count + faults_ops_count + faults_oracle_count;
}

const struct fault *fault_at(int index)
{
    if (index < faults_gemm_count)
        return &faults_gemm[index];
    index -= faults_gemm_count;
    if (index < faults_ops_count)
        return &faults_ops[index];
    return &faults_oracle[index - faults_ops_count];
}

const struct fault *fault_find(const char *name)
{
    for (int i = 0; i < fault_count(); i++)
        if (!strcmp(fault_at(i)->name, name))
            return fault_at(i);
    return NULL;
}
