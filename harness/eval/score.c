#include "harness/eval/score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const outcome_names[OUTCOME_COUNT] = {
    [OUTCOME_CORRECT] = "correct",
    [OUTCOME_WRONG] = "wrong",
    [OUTCOME_UNPARSABLE] = "unparsable",
    [OUTCOME_ERROR] = "error",
};

static const char *const verdict_names[] = {
    [SCORE_PASS] = "pass",
    [SCORE_FAIL] = "fail",
    [SCORE_INCONCLUSIVE] = "inconclusive",
};

const char *outcome_name(enum outcome o)
{
    return outcome_names[o];
}

enum outcome outcome_find(const char *name)
{
    int i = 0;

    while (name && i < OUTCOME_COUNT && strcmp(outcome_names[i], name) != 0)
        i++;
    return name ? (enum outcome)i : OUTCOME_COUNT;
}

enum outcome outcome_of(const struct answer *gating)
{
    if (!gating->valid)
        return OUTCOME_UNPARSABLE;
    return gating->correct ? OUTCOME_CORRECT : OUTCOME_WRONG;
}

size_t tally_answered(const struct tally *t)
{
    return t->count[OUTCOME_CORRECT] + t->count[OUTCOME_WRONG] + t->count[OUTCOME_UNPARSABLE];
}

size_t tally_missing(const struct tally *t)
{
    return t->questions - tally_answered(t) - t->count[OUTCOME_ERROR];
}

double tally_accuracy(const struct tally *t)
{
    size_t n = tally_answered(t);

    return n ? (double)t->count[OUTCOME_CORRECT] / (double)n : (double)NAN;
}

struct interval score_wilson(size_t k, size_t n)
{
    const double z = 1.959963984540054; /* 97.5 % of the normal distribution */
    double size = (double)n, p, middle, half, scale;

    if (!n)
        return (struct interval){0.0, 1.0};
    p = (double)k / size;
    scale = 1.0 / (1.0 + z * z / size);
    middle = scale * (p + z * z / (2.0 * size));
    half = scale * z * sqrt(p * (1.0 - p) / size + z * z / (4.0 * size * size));
    return (struct interval){k ? middle - half : 0.0, k < n ? middle + half : 1.0};
}

const char *score_verdict_name(enum score_verdict v)
{
    return verdict_names[v];
}

enum score_verdict score_judge(const struct tally *t, size_t needed, double max_error_rate,
                               char why[SCORE_WHY])
{
    size_t correct = t->count[OUTCOME_CORRECT], errors = t->count[OUTCOME_ERROR];
    int n =
        snprintf(why, SCORE_WHY, "%zu of %zu correct, %zu needed", correct, t->questions, needed);

    if (errors)
        n += snprintf(why + n, SCORE_WHY - (size_t)n, ", %zu without a usable reply", errors);
    if (tally_missing(t))
        (void)snprintf(why + n, SCORE_WHY - (size_t)n, ", %zu not asked", tally_missing(t));
    if (tally_missing(t) || !tally_answered(t) ||
        !((double)errors <= max_error_rate * (double)t->questions))
        return SCORE_INCONCLUSIVE;
    if (correct >= needed)
        return SCORE_PASS;
    return correct + errors < needed ? SCORE_FAIL : SCORE_INCONCLUSIVE;
}
