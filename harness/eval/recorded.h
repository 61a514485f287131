/* recorded.h - outputs of models that somebody else has graded, read by every rule.
 *
 * The file is openai/grade-school-math's example_model_solutions.jsonl: a line a question of test,
 * in its order, with the members "question", "ground_truth" and one object a model, {"solution":
 * text, "is_correct": true or false}. A solution ends "A: N", where GSM8K's own end "#### N"; its
 * last line that begins so is read as that.
 */
#ifndef HARNESS_EVAL_RECORDED_H
#define HARNESS_EVAL_RECORDED_H

#include "harness/eval/dataset.h"
#include "harness/eval/extract.h"

enum { RECORDED_MODELS = 16 };

struct recorded_model {
    const char *name; /* in the arena */
    size_t answers, graded_correct;
    size_t correct[EXTRACTOR_COUNT];
    size_t differs[EXTRACTOR_COUNT]; /* questions that the rule judges otherwise than the grading */
};

struct recorded {
    struct recorded_model model[RECORDED_MODELS];
    size_t models, questions;
};

/* ERR_IO, ERR_CONFIG (with the line), ERR_NOMEM. */
MUST_USE enum err_code recorded_score(const char *path, const struct dataset_rows *test,
                                      struct arena *arena, struct recorded *out, struct errs *errs);

#endif
