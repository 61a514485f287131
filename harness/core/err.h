/* err.h - what went wrong, as sentences with places; never a verdict.
 *
 * A run that cannot proceed (bad YAML, no memory, a lost device) has errors; a kernel that computes
 * wrong bits has a verdict
 * (verdict.h). Errors are collected in a list, so that a user sees all mistakes of a file at once:
 * a function that can fail
 * takes `struct errs *` last, adds one sentence for each thing that is wrong, and returns the code
 * of the first it added.
 */
#ifndef HARNESS_CORE_ERR_H
#define HARNESS_CORE_ERR_H

#include <stddef.h>

#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

enum err_code {
    ERR_NONE = 0,
    ERR_USAGE,  /* the command line is wrong */
    ERR_CONFIG, /* a YAML file is wrong; `at` says where */
    ERR_IO,
    ERR_NOMEM,
    ERR_INFRA, /* a worker, device, provider or library is missing or wrong */
    ERR_COUNT
};

/* A place in a file the user wrote. line and column count from 1 (column in characters, not bytes);
 * line 0 means the whole file, file
 * NULL no file. `file` is borrowed and must outlive the list. */
struct place {
    const char *file;
    int line, column;
};

enum { ERR_TEXT = 320, ERRS_MAX = 200 };

struct err {
    enum err_code code;
    struct place at;
    /* one sentence without the place, no newline, control characters escaped */
    char text[ERR_TEXT];
};

/* At most ERRS_MAX are kept; `dropped` counts the rest. Starts as {0}; errs_free when done. */
struct errs {
    struct err *items;
    size_t count, capacity, dropped;
};

enum err_code errs_add(struct errs *e, enum err_code code, struct place at, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void errs_free(struct errs *e);

/* Forward a failure unchanged. */
#define TRY(expr)                       \
    do {                                \
        enum err_code try_rc_ = (expr); \
        if (try_rc_)                    \
            return try_rc_;             \
    } while (0)

extern const struct place NOWHERE;

static inline struct place place_at(const char *file, int line, int column)
{
    return (struct place){file, line, column};
}

/* "suites/gemm.yaml:12:9: unknown format 'fp9'", without newline; `buf` is returned. */
const char *err_format(const struct err *e, char *buf, size_t size);

/* The exit code that belongs to a code (DESIGN: 2 usage and configuration, 3 infrastructure). */
int err_exit_code(enum err_code code);

#endif
