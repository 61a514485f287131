/* ops_table.h - rows of hypotheses about operations.
 *
 * Private to ops_*.c. A row says which operation is twisted and how; predictions are one function
 * for all of them. */
#ifndef HARNESS_EXPLAIN_OPS_TABLE_H
#define HARNESS_EXPLAIN_OPS_TABLE_H

#include "harness/explain/hypothesis.h"
#include "harness/explain/ops_seen.h"

struct ops_row {
    const struct ops_operation *op;
    struct ops_twist twist;
};

#define OPS_ROW(name, op, kind, rounding, n, sentence) \
    OPS_ROW_IF(NULL, name, op, kind, rounding, n, sentence)

#define OPS_ROW_IF(applies_, name_, op_, kind_, rounding_, n_, sentence_) \
    {                                                                     \
        .name = (name_), .sentence = (sentence_), .applies = (applies_),  \
        .predict = ops_row_predict, .own = &(const struct ops_row)        \
        {                                                                 \
            &(op_),                                                       \
            {                                                             \
                (kind_), (rounding_), (n_)                                \
            }                                                             \
        }                                                                 \
    }

/* struct hypothesis.predict of every row. */
bool ops_row_predict(const struct hypothesis *h, const struct probe *p, int64_t variant,
                     const struct places *at, uint32_t *codes, struct arena *scratch);

#endif
