/* protocol_vllm.h - the protocols of vLLM's and of SGLang's GSM8K scripts, which share an ancestor.
 */
#ifndef HARNESS_EVAL_PROTOCOL_VLLM_H
#define HARNESS_EVAL_PROTOCOL_VLLM_H

#include "harness/eval/protocol.h"

/* vLLM, tests/evals/gsm8k/gsm8k_eval.py: the first rows of train before every question. */
extern const struct protocol protocol_vllm;

/* SGLang, test/run_eval.py --api completion with simple_eval_mixed_prefix_gsm8k.py: the first
 * rows of test before every later row of test. (Its chat mode is another program, sgl-eval.) */
extern const struct protocol protocol_sglang;

#endif
