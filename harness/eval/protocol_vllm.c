#include "harness/eval/protocol_vllm.h"

static void first_rows(size_t pool, size_t docs, size_t shots, uint32_t *rows)
{
    (void)pool;
    for (size_t i = 0; i < docs * shots; i++)
        rows[i] = (uint32_t)(i % shots);
}

/* clang-format off */
const struct protocol protocol_vllm = {
    .name = "vllm",
    .source = "vllm-project/vllm tests/evals/gsm8k/gsm8k_eval.py 03e09605",
    .defaults = {
        .endpoint = ENDPOINT_COMPLETIONS,
        .shots = 5,
        .max_tokens = 256,
        .temperature = {true, 0.0},
        .seed = {true, 42},
        .gen_prefix = "",
    },
    .fields = {
        [ENDPOINT_COMPLETIONS] = {FIELD_PROMPT, FIELD_MAX_TOKENS, FIELD_STOP, FIELD_TEMPERATURE,
                                  FIELD_SEED, FIELD_TOP_P, FIELD_TOP_K, FIELD_END},
        [ENDPOINT_CHAT] = {FIELD_MESSAGES, FIELD_MAX_TOKENS, FIELD_STOP, FIELD_MODEL,
                           FIELD_TEMPERATURE, FIELD_SEED, FIELD_TOP_P, FIELD_TOP_K,
                           FIELD_REASONING_EFFORT, FIELD_CHAT_TEMPLATE_KWARGS, FIELD_END},
    },
    .stops = {"Question", "Assistant:", "<|separator|>", NULL},
    .takes_gen_prefix = true,
    .choose = first_rows,
    .extractors = {EXTRACT_LAST_INT},
    .extractor_count = 1,
    .metric = "accuracy",
};

const struct protocol protocol_sglang = {
    .name = "sglang",
    .source = "sgl-project/sglang test/run_eval.py 01e58e4f, simple_eval_mixed_prefix_gsm8k.py 0d877b30",
    .defaults = {
        .endpoint = ENDPOINT_COMPLETIONS,
        .shots = 5,
        .max_tokens = 2048,
        .temperature = {true, 0.0},
        .top_p = {true, 1.0},
        .gen_prefix = "",
    },
    .fields = {
        [ENDPOINT_COMPLETIONS] = {FIELD_MODEL, FIELD_PROMPT, FIELD_MAX_TOKENS, FIELD_STOP,
                                  FIELD_TEMPERATURE, FIELD_TOP_P, FIELD_END},
    },
    .stops = {"Question", "Assistant:", "<|separator|>", NULL},
    .needs_model = true,
    .shots_from_test = true,
    .choose = first_rows,
    .extractors = {EXTRACT_LAST_NUMBER, EXTRACT_LAST_EXPLICIT},
    .extractor_count = 2,
    .metric = "score",
};
/* clang-format on */
