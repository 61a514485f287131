/* suite.h - a YAML suite becomes complete, checked, const entries; the only module that knows YAML
 * (with yaml_doc).
 *
 *     suite: smoke                      # required: [a-z0-9_-]+, at most 64 characters
 *     description: one line             # optional, at most 200 characters
 *     seed: 0x1                         # optional, default 1; --seed overrides
 *     include: [shapes/small.yaml]      # optional: files of named lists, relative to this file
 *     defaults: {a_dtype: f16, ...}     # optional: axes for all entries
 *     entries:                          # required, at least one
 *       - name: f16-uint4               # required, unique, [a-z0-9_.-]+, at most 64 characters
 *         combine: pairwise             # full (default) | pairwise | {random: 40}
 *         where: ["k % 64 == 0", "m <= 64 or n < 1024"]   # optional: expression (expr.h) or list
 *         b_dtype: [uint4, uint8]       # an axis: one value, a list of values,
 *         m: {from: 1, to: 65, step: 16}   # a range with both its ends (step: 1 if absent), or
 *         n: $small_n                   # a named list of an included file
 *
 * An include file is a map from name ([a-z0-9_]+) to list: `small_n: [64, 128]`. Values of every
 * axis are kept as int64_t (axes.h).
 *
 * Numbers are decimal without leading zeros, or 0x hexadecimal, and stand without quotes; true and
 * false too. Other values are the same with and without. A range that steps over its end is
 * refused. Lines end with LF or CR LF.
 */
#ifndef HARNESS_CONFIG_SUITE_H
#define HARNESS_CONFIG_SUITE_H

#include "harness/config/axes.h"
#include "harness/core/arena.h"
#include "harness/core/err.h"

enum combine { COMBINE_FULL, COMBINE_PAIRWISE, COMBINE_RANDOM };

struct axis_values {
    int64_t *values; /* in the order written, no duplicates; count is at least 1 */
    size_t count;
    bool stated; /* by the entry or `defaults`; false: the axis' default */
    struct place at;
};

struct expr; /* expr.h */

struct entry {
    const char *name;
    struct place at;
    enum combine combine;
    size_t random_count; /* of COMBINE_RANDOM */
    struct axis_values axes[AX_COUNT];
    const struct expr **where; /* all must hold */
    size_t where_count;
};

struct suite {
    const char *path, *name, *description;
    uint64_t seed;
    struct entry *entries;
    size_t count;
};

/* Everything lives in `arena` (256 MiB are enough for any file), places borrow `path`. On
 * failure every mistake of the file is in `errs`, in the order of the file, then those of its
 * includes, and the suite must not be used. Limits, so that no file can eat the machine: 1 MiB
 * a file, depth 8, 1000 entries, 4096 values an axis; aliases and anchors are refused ("anchors
 * and aliases are not allowed"), tags and multiple documents too. */
MUST_USE enum err_code suite_load(const char *path, struct arena *arena, struct suite *out,
                                  struct errs *errs);

/* The same from memory: `size` bytes of a suite that is called `name` in messages; includes are
 * read from the folder of `name`. */
MUST_USE enum err_code suite_load_text(const char *name, const char *text, size_t size,
                                       struct arena *arena, struct suite *out, struct errs *errs);

#endif
