/* checks.h - the table of checks: each a function from a launch's output to a finding.
 *
 * A check neither prints nor remembers. One criterion decides a case. Comparisons are written so
 * that NaN cannot pass.
 */
#ifndef HARNESS_KERNEL_CHECKS_H
#define HARNESS_KERNEL_CHECKS_H

#include "harness/core/verdict.h"
#include "harness/kernel/order.h"
#include "harness/kernel/problem.h"

struct finding {
    enum verdict verdict;
    char reason[400]; /* why not a pass */
    uint64_t compared, wrong;
    int64_t at_row, at_col; /* of the worst or first wrong element; -1: none */
    uint32_t got_code, want_code;
    double got, want, error, limit;
    uint64_t vacuous; /* elements about which the check could require nothing */
    char note[64];    /* "", or what was seen and is not judged */
};

struct trial;

struct check_in {
    const struct problem *q;
    const struct launch *launch;
    const uint16_t *got; /* m x n codes of format c: of the case as it is, launched once */
    struct arena *scratch;
    struct trial *trial; /* for more launches (trial.h); NULL: only `got` is looked at */
};

/* What a pass rests on, and trust.h looks at. */
enum check_basis {
    BASIS_EXPECTED, /* the problem's expected codes, or bounds */
    BASIS_SPECIAL,  /* the same, of a check that makes special values of its own */
    BASIS_ITSELF,   /* the kernel's own outputs, compared with one another */
    BASIS_REFUSALS  /* no outputs */
};

struct check {
    const char *name; /* the word of the axis */
    const char *unit; /* of error and limit */
    enum check_basis basis;
    void (*run)(const struct check_in *in, struct finding *f);
};

/* By value of the axis `check`. */
const struct check *check_of(int64_t value);

/* The check `exact`: in->got against the problem's expected codes. */
void check_right_codes(const struct check_in *in, struct finding *f);

/* Pass, or fail with "WRONG of COMPARED outputs WHAT". A verdict other than pass stays. */
void finding_judge(struct finding *f, const char *what);

/* Of a legal call of the provider's function `what`: done; or `f` says what happened (skip:
 * unsupported). */
bool finding_well(enum hum_code code, const char *what, const char *reason, struct finding *f);

/* One element compared: the same code? Zeros of either sign are alike, as are all NaN. */
bool finding_same(const struct dtype *c, uint16_t got, uint16_t want);

/* One wrong element; the first one stays. */
void finding_code(struct finding *f, const struct dtype *c, int64_t row, int64_t col, uint16_t got,
                  uint16_t want);

/* What is wrong with the refusal of a bad call (`code` is not HUM_OK); NULL: nothing.
 * HUM_UNSUPPORTED is a refusal where `unsupported` says so. */
const char *refusal_fault(enum hum_code code, const char reason[HUM_REASON_BYTES],
                          bool unsupported);

/* Give up on a case that cannot be judged: skip, infra or untrusted with a sentence. */
void finding_give(struct finding *f, enum verdict v, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
