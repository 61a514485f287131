/* support.h - which legal configurations a provider is known not to run.
 *
 * A skip that this table does not list is a `fail`: a provider that quietly loses support must not
 * go green. The table is data: the file that
 * `--support FILE` names, or none (then every skip fails):
 *
 *     support:
 *       - provider: "humming 0.1.1*"      # glob over "name version"
 *         where: "mma_type == umma"       # an expression over the axes (expr.h)
 *         reason: sm_90 has no tcgen05
 */
#ifndef HARNESS_KERNEL_SUPPORT_H
#define HARNESS_KERNEL_SUPPORT_H

#include "harness/config/expr.h"
#include "harness/report/record.h"

struct support_row {
    const char *provider, *reason;
    const struct expr *where;
};

struct support {
    const struct support_row *rows;
    size_t count;
};

/* path NULL: the empty table. Everything lives in `arena`; all mistakes of the file are added to
 * errs. */
MUST_USE enum err_code support_load(const char *path, struct arena *arena, struct support *out,
                                    struct errs *errs);

/* A skip whose case no row lists becomes a fail that says so; every other record stays as it is. */
void support_apply(const struct support *s, const int64_t v[AX_COUNT], struct record *r);

#endif
