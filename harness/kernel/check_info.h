/* check_info.h - the checks that a case may name, for people; the words are those of the axis
 * `check` (axes.h). */
#ifndef HARNESS_KERNEL_CHECK_INFO_H
#define HARNESS_KERNEL_CHECK_INFO_H

struct check_info {
    const char *name;  /* as in YAML */
    const char *unit;  /* of a record's error and limit */
    const char *fills; /* of a gemm; the first is usual. Other families have no fills */
    const char *help;  /* what it requires, one sentence */
};

extern const struct check_info check_infos[];
extern const int check_info_count;

#endif
