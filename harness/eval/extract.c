#include "harness/eval/extract.h"

#include "harness/core/utf8.h"
#include "harness/eval/extract_parts.h"

#include <string.h>

/* clang-format off */
const struct extractor extractors[EXTRACTOR_COUNT] = {
    [EXTRACT_STRICT_MATCH] = {"strict-match",
        "lm-eval, tasks/gsm8k/gsm8k.yaml 3.0, filter strict-match", extract_strict_match},
    [EXTRACT_FLEXIBLE_EXTRACT] = {"flexible-extract",
        "lm-eval, tasks/gsm8k/gsm8k.yaml 3.0, filter flexible-extract", extract_flexible},
    [EXTRACT_LAST_INT] = {"last-int",
        "vLLM, tests/evals/gsm8k/gsm8k_eval.py, get_answer_value; SGLang, few_shot_gsm8k.py",
        extract_last_int},
    [EXTRACT_LAST_NUMBER] = {"last-number",
        "SGLang, test/simple_eval_mixed_prefix_gsm8k.py, get_answer_value", extract_last_number},
    [EXTRACT_LAST_EXPLICIT] = {"last-explicit",
        "SGLang, the same with answer_mode last_explicit", extract_last_explicit},
    [EXTRACT_OPENAI] = {"openai",
        "openai/grade-school-math, dataset.py, is_correct", extract_openai},
    [EXTRACT_ROBUST] = {"robust",
        "ours: the last ####, \\boxed{}, \"answer is\" or number, as an exact decimal", extract_robust},
};
/* clang-format on */

const struct extractor *extractor_find(const char *name)
{
    for (int i = 0; i < EXTRACTOR_COUNT; i++)
        if (!strcmp(extractors[i].name, name))
            return &extractors[i];
    return NULL;
}

bool extract_all(struct span text, struct span gold, struct arena *arena,
                 struct answer out[EXTRACTOR_COUNT])
{
    for (int i = 0; i < EXTRACTOR_COUNT; i++)
        if (!extractors[i].run(text, gold, arena, &out[i]))
            return false;
    return true;
}

struct span span_of(const char *s)
{
    return (struct span){s, strlen(s)};
}

bool span_has(struct span s, size_t i, const char *word)
{
    size_t n = strlen(word);

    return i <= s.size && n <= s.size - i && !memcmp(s.at + i, word, n);
}

size_t span_char(struct span s, size_t i, uint32_t *c)
{
    size_t len = utf8_next(s.at + i, s.size - i, c);

    if (!len)
        *c = 0xfffd;
    return len ? len : 1;
}

char *span_copy(struct span s, const char *drop, struct arena *a, size_t *size)
{
    char *copy = s.size < SIZE_MAX ? arena_alloc(a, s.size + 1, 1) : NULL;
    size_t n = 0;

    if (!copy)
        return NULL;
    for (size_t i = 0; i < s.size; i++)
        if (!s.at[i] || !strchr(drop, s.at[i]))
            copy[n++] = s.at[i];
    copy[n] = '\0';
    *size = n;
    return copy;
}
