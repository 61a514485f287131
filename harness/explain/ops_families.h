/* ops_families.h - how the families of operations are run and looked at for explanations.
 *
 * Private to ops_*.c. A probe of theirs holds the tensors that the calls of a case write, call
 * after call. */
#ifndef HARNESS_EXPLAIN_OPS_FAMILIES_H
#define HARNESS_EXPLAIN_OPS_FAMILIES_H

#include "harness/explain/explain.h"
#include "harness/explain/ops_record.h"

/* What probe.own points at. */
struct ops_probe {
    struct ops_call *calls;
    int count;
    struct ops_buffers buffers;
    int64_t buffers_at; /* element of the probe where those begin; -1: they are not there */
};

/* Has the probe a call of this operation? */
bool ops_probe_has(const struct probe *p, const struct ops_operation *op);

/* The functions of struct explain_family. */
bool ops_run(struct explain *x, const int64_t v[AX_COUNT], struct probe *out,
             char why[EXPLAIN_TEXT]);
bool ops_vary(const int64_t v[AX_COUNT], int turn, int64_t out[AX_COUNT], char what[PROBE_WHAT]);
void ops_locate(struct explain *x, const struct probes *all);

#endif
