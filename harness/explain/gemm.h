/* gemm.h - probes of products, and the tables of what can be wrong with one. */
#ifndef HARNESS_EXPLAIN_GEMM_H
#define HARNESS_EXPLAIN_GEMM_H

#include "harness/explain/explain.h"
#include "harness/explain/gemm_twin.h"

/* gemm_layout.c, gemm_zero.c, gemm_codes.c, gemm_scale.c, gemm_sums.c, gemm_output.c,
 * gemm_rows.c */
extern const struct hypotheses gemm_layout_hypotheses, gemm_zero_hypotheses, gemm_codes_hypotheses,
    gemm_scale_hypotheses, gemm_sums_hypotheses, gemm_output_hypotheses, gemm_rows_hypotheses;

/* gemm_locate.c: explain_family.locate. */
void gemm_locate(struct explain *x, const struct probes *all);

/* ---- pieces for tables (gemm_variants.c) ----------------------------------------------------- */

#define GEMM_TWIST(make)                                  \
    .predict = twin_predict, .own = &(const struct twist) \
    {                                                     \
        make                                              \
    }

/* clang-format off */
#define GEMM_TABLE(name, rows) \
    const struct hypotheses name = {rows, sizeof(rows) / sizeof(rows)[0]}
/* clang-format on */

#endif
