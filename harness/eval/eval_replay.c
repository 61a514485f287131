/* Answers that another run recorded. */
#include "harness/eval/eval_take.h"

#include <string.h>

struct playback {
    struct eval *e;
    size_t question;
    struct errs *errs;
    enum err_code rc;
    bool found;
};

static bool take_row(void *ctx, const struct store_answer *a)
{
    struct playback *p = ctx;
    const struct eval_meta m = {a->attempts, a->http_status, a->latency_s, a->total_s};
    const struct reply r = {a->response, a->finish_reason, a->prompt_tokens, a->completion_tokens};

    if (!a->response.at)
        return true;
    arena_reset(&p->e->scratch);
    p->found = true;
    p->rc = eval_take_reply(p->e, p->question, &r, &m, p->errs);
    return false;
}

static enum err_code play(struct eval *e, struct store *from, size_t question, struct errs *errs)
{
    struct playback p = {.e = e, .question = question, .errs = errs};
    const struct eval_meta none = {0};

    TRY(store_find(from, e->questions[question].sha256, take_row, &p, errs));
    if (p.found)
        return p.rc;
    return eval_take_error(e, question, "no answer to this prompt is recorded", &none, errs);
}

enum err_code eval_replay(struct eval *e, struct store *from, struct errs *errs)
{
    static const enum store_part later[] = {STORE_MODEL, STORE_SERVER};
    struct store_drafts d;

    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        const char *part = store_part(from, later[i]);

        TRY(store_settle(e->store, later[i], part ? part : "unknown", errs));
    }
    for (size_t i = 0; i < e->pending_count && !(e->o->interrupted && *e->o->interrupted); i++)
        TRY(play(e, from, e->pending[i], errs));
    TRY(store_get_drafts(from, &d, errs));
    return e->pending_count ? store_add_drafts(e->store, d, errs) : ERR_NONE;
}
