/* verdict.h - what can be said about one case, and about a run.
 *
 * DESIGN section 3. Order matters: a run's verdict is the largest of its cases', with SKIP counting
 * as nothing: a run in which
 * nothing passed or failed is INFRA.
 */
#ifndef HARNESS_CORE_VERDICT_H
#define HARNESS_CORE_VERDICT_H

enum verdict {
    VERDICT_PASS,
    /* this device, build or provider version cannot run it, and the support table says so */
    VERDICT_SKIP,
    VERDICT_UNTRUSTED, /* it ran, but the data could not have caught a fault */
    /* it never got to run: worker or device lost before the launch, memory, provider missing */
    VERDICT_INFRA,
    VERDICT_FAIL, /* wrong bits, or the launch crashed, hung or wrote where it must not */
    VERDICT_COUNT
};

/* "pass", "skip", "untrusted", "infra", "fail". */
const char *verdict_name(enum verdict v);

/* counts[v] cases of each verdict to the run's verdict. */
enum verdict verdict_of_run(const unsigned long counts[VERDICT_COUNT]);

/* 0 pass, 1 fail or untrusted, 3 infra. */
int verdict_exit_code(enum verdict run);

#endif
