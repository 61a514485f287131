#include "harness/eval/protocol_lm_eval.h"

#include "harness/eval/mt19937.h"

/* One random.Random(1234) for the run; for document 0, 1, 2, ... in order it draws
 * sample(train, shots). So every question has its own examples, and a limit only truncates. */
enum { FEWSHOT_SEED = 1234 };

_Static_assert((int)PROTOCOL_SHOTS_MAX <= (int)MT_SAMPLE_MAX, "a draw never fails");

static void draw_rows(size_t pool, size_t docs, size_t shots, uint32_t *rows)
{
    struct mt19937 mt;

    mt_seed(&mt, FEWSHOT_SEED);
    for (size_t doc = 0; doc < docs; doc++)
        (void)mt_sample(&mt, (uint32_t)pool, shots, rows + doc * shots);
}

/* clang-format off */
const struct protocol protocol_lm_eval = {
    .name = "lm-eval",
    .source = "EleutherAI/lm-evaluation-harness 4e7e0d47, tasks/gsm8k/gsm8k.yaml 3.0",
    .defaults = {
        .endpoint = ENDPOINT_COMPLETIONS,
        .shots = 5,
        .max_tokens = 256,
        .temperature = {true, 0.0},
        .seed = {true, 1234},
        .gen_prefix = "",
    },
    .fields = {
        [ENDPOINT_COMPLETIONS] = {FIELD_PROMPT, FIELD_MODEL, FIELD_MAX_TOKENS, FIELD_TEMPERATURE,
                                  FIELD_STOP, FIELD_SEED, FIELD_END},
        [ENDPOINT_CHAT] = {FIELD_MESSAGES, FIELD_MODEL, FIELD_MAX_TOKENS, FIELD_TEMPERATURE,
                           FIELD_STOP, FIELD_SEED, FIELD_END},
    },
    .stops = {"Question:", "</s>", "<|im_end|>", NULL},
    .needs_model = true,
    .typed_messages = true,
    .choose = draw_rows,
    .extractors = {EXTRACT_STRICT_MATCH, EXTRACT_FLEXIBLE_EXTRACT},
    .extractor_count = 2,
    .metric = "exact_match",
};
/* clang-format on */
