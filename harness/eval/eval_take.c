#include "harness/eval/eval_take.h"

/* Totals that the progress shows. */
static void count(struct eval *e, size_t question, const struct store_answer *a)
{
    struct eval_progress *p = &e->progress;

    e->questions[question].outcome = a->outcome;
    p->done++;
    p->session++;
    p->correct += a->outcome == OUTCOME_CORRECT;
    p->errors += a->outcome == OUTCOME_ERROR;
    if (a->completion_tokens > 0)
        p->session_tokens += (uint64_t)a->completion_tokens;
}

static struct store_answer start(const struct eval *e, size_t question, const struct eval_meta *m)
{
    return (struct store_answer){.question = question,
                                 .prompt_sha256 = e->questions[question].sha256,
                                 .finish_reason = "",
                                 .error = "",
                                 .prompt_tokens = -1,
                                 .completion_tokens = -1,
                                 .latency_s = m->latency_s,
                                 .total_s = m->total_s,
                                 .attempts = m->attempts,
                                 .http_status = m->status};
}

enum err_code eval_take_reply(struct eval *e, size_t question, const struct reply *r,
                              const struct eval_meta *m, struct errs *errs)
{
    struct span gold = span_of(prompts_row(&e->prompts, question)->answer);
    struct store_answer a = start(e, question, m);
    struct answer extracted[EXTRACTOR_COUNT];

    if (!extract_all(r->text, gold, &e->scratch, extracted))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to read the answer to question %zu",
                        question);
    a.outcome = outcome_of(&extracted[e->gating]);
    a.truncated = reply_truncated(r->finish_reason);
    a.response = r->text;
    a.finish_reason = r->finish_reason;
    a.prompt_tokens = r->prompt_tokens;
    a.completion_tokens = r->completion_tokens;
    a.extracted = extracted;
    TRY(store_put(e->store, &a, errs));
    count(e, question, &a);
    return ERR_NONE;
}

enum err_code eval_take_error(struct eval *e, size_t question, const char *error,
                              const struct eval_meta *m, struct errs *errs)
{
    struct store_answer a = start(e, question, m);

    a.outcome = OUTCOME_ERROR;
    a.error = error;
    TRY(store_put(e->store, &a, errs));
    count(e, question, &a);
    return ERR_NONE;
}
