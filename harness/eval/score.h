/* score.h - what the answers of a run add up to, and whether that is enough.
 *
 * Every question has exactly one outcome. An error (no usable reply) is never a wrong answer: a
 * verdict is given only if it holds whatever the missing answers would have been. (How many correct
 * answers are needed: eval_config_pass.)
 *
 *   inconclusive    if errors > max_error_rate * questions, or some question was not asked
 *   pass            if correct >= needed
 *   fail            if correct + errors < needed
 *   inconclusive    otherwise
 */
#ifndef HARNESS_EVAL_SCORE_H
#define HARNESS_EVAL_SCORE_H

#include "harness/eval/extract.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum outcome {
    OUTCOME_CORRECT,
    OUTCOME_WRONG,
    OUTCOME_UNPARSABLE, /* a reply in which the gating extractor finds no answer */
    OUTCOME_ERROR,      /* no usable reply */
    OUTCOME_COUNT
};

const char *outcome_name(enum outcome o); /* "correct", "wrong", "unparsable", "error" */

/* OUTCOME_COUNT: no such name, or NULL. */
enum outcome outcome_find(const char *name);

/* Of one answer under the gating extractor. */
enum outcome outcome_of(const struct answer *gating);

/* Sums over the questions that have an outcome. */
struct tally {
    size_t questions; /* of the run, asked or not */
    size_t count[OUTCOME_COUNT];
    size_t truncated;                /* replies that ended for lack of tokens */
    size_t correct[EXTRACTOR_COUNT]; /* by each extractor */
    size_t valid[EXTRACTOR_COUNT];
    uint64_t prompt_tokens, completion_tokens; /* as far as servers told */
    uint64_t attempts;
    double latency_s; /* sum over replies */
};

size_t tally_answered(const struct tally *t); /* correct, wrong and unparsable */
size_t tally_missing(const struct tally *t);  /* questions without any outcome */

/* Correct of answered; NaN if nothing was answered. */
double tally_accuracy(const struct tally *t);

struct interval {
    double low, high;
};

/* The Wilson score interval of k of n at 95 %; [0, 1] for n = 0.
 * Source: Wilson, JASA 22 (1927), 209-212. */
struct interval score_wilson(size_t k, size_t n);

enum score_verdict { SCORE_PASS, SCORE_FAIL, SCORE_INCONCLUSIVE };

const char *score_verdict_name(enum score_verdict v);

/* `why` (at least SCORE_WHY bytes) gets one clause, "1134 of 1319 correct, 1029 needed". */
enum { SCORE_WHY = 160 };
enum score_verdict score_judge(const struct tally *t, size_t needed, double max_error_rate,
                               char why[SCORE_WHY]);

#endif
