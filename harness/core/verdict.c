#include "harness/core/verdict.h"

/* clang-format off */
static const struct {
    const char *name;
    int exit_code; /* of a run with this verdict */
} verdicts[] = {
    [VERDICT_PASS]      = {"pass",      0},
    [VERDICT_SKIP]      = {"skip",      3}, /* no run has it: only skips is infra */
    [VERDICT_UNTRUSTED] = {"untrusted", 1},
    [VERDICT_INFRA]     = {"infra",     3},
    [VERDICT_FAIL]      = {"fail",      1},
};
/* clang-format on */
_Static_assert(sizeof verdicts / sizeof verdicts[0] == VERDICT_COUNT, "one row a verdict");

const char *verdict_name(enum verdict v)
{
    return verdicts[v].name;
}

enum verdict verdict_of_run(const unsigned long counts[VERDICT_COUNT])
{
    enum verdict worst = VERDICT_PASS;

    if (!counts[VERDICT_PASS] && !counts[VERDICT_FAIL])
        return VERDICT_INFRA;
    if (counts[VERDICT_UNTRUSTED])
        worst = VERDICT_UNTRUSTED;
    if (counts[VERDICT_INFRA])
        worst = VERDICT_INFRA;
    if (counts[VERDICT_FAIL])
        worst = VERDICT_FAIL;
    return worst;
}

int verdict_exit_code(enum verdict run)
{
    return verdicts[run].exit_code;
}
