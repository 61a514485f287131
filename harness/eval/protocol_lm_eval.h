/* protocol_lm_eval.h - the protocol of lm-evaluation-harness, task gsm8k (version 3.0).
 */
#ifndef HARNESS_EVAL_PROTOCOL_LM_EVAL_H
#define HARNESS_EVAL_PROTOCOL_LM_EVAL_H

#include "harness/eval/protocol.h"

/* Other rows of train before every question. Requests are those of local-completions with
 * tokenized_requests=False, and of local-chat-completions with --apply_chat_template and the
 * examples in one message of the user (fewshot_as_multiturn false); num_concurrent above 1, so
 * that no end-of-text token joins the stops. */
extern const struct protocol protocol_lm_eval;

#endif
