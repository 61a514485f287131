/* config.h - one evaluation: a model, its server, its floor; vLLM's files load unchanged.
 *
 * A file is one map. Its keys are those of vLLM's tests/evals/gsm8k configurations, with vLLM's
 * meanings and defaults; what only humcheck knows stands under `x-humcheck:`, which vLLM ignores.
 * A value may stand in one of the two places, never in both. Unknown keys are errors, keys that
 * vLLM no longer reads are warnings. `humcheck config keys` lists all keys.
 *
 * Every value has the place where it was stated (`at`); at.line 0: it is a default. Texts, places
 * and lists live in the arena of the load.
 *
 * Source: vllm-project/vllm tests/evals/gsm8k (gsm8k_eval.py 03e09605, test_gsm8k_correctness.py
 * 05d96d79, conftest.py 10efe946) and tests/utils.py 00749580.
 */
#ifndef HARNESS_EVAL_CONFIG_H
#define HARNESS_EVAL_CONFIG_H

#include "harness/core/arena.h"
#include "harness/core/err.h"
#include "harness/eval/protocol.h"

#include <stdbool.h>
#include <stdint.h>

/* Shares and thresholds are kept as written, in billionths: the pass rule is exact. */
enum { EVAL_BILLION = 1000000000 };

struct eval_text {
    struct place at;
    const char *text; /* NULL: none */
};

struct eval_int {
    struct place at;
    bool set; /* false: none; with a place: null was written */
    int64_t value;
};

struct eval_real {
    struct place at;
    bool set;
    double value;
    int64_t billionths; /* the same, exact */
};

struct eval_word {
    const char *text;
    struct place at; /* in the file; the start of the value if an escape hides it */
};

/* A command line, split as a POSIX shell splits it (blanks, quotes, backslashes), without a shell:
 * nothing is expanded. */
struct eval_words {
    struct place at;
    const char *text; /* as stated, folded; "" if none */
    const struct eval_word *words;
    const char *const *argv; /* the same texts, ended by NULL */
    size_t count;
};

struct eval_env {
    const char *name, *value;
    struct place at; /* of the name */
};

/* What a GPU must reach: `floors: {h100: 0.88}`. No tolerance unless stated. */
struct eval_floor {
    const char *gpu; /* a row of eval_gpus[] */
    struct place at; /* of the GPU's name */
    struct eval_real accuracy, tolerance;
    struct eval_text evidence; /* where the number comes from */
};

enum eval_data { EVAL_GSM8K, EVAL_ARITH };

struct eval_config {
    const char *path; /* as opened: the file of all places */
    const char *name; /* of the file, without folders and ".yaml" */

    /* vLLM's keys */
    struct eval_text model_name;
    struct eval_real accuracy_threshold; /* 0 to 1 */
    struct eval_real tolerance;          /* 0.08; absolute, as in vLLM */
    struct eval_int num_questions, num_fewshot;
    struct eval_words server_args;
    const struct eval_env *env; /* no name twice */
    size_t env_count;
    struct eval_int startup_max_wait_seconds; /* 1200 */
    struct eval_real min_acceptance_length;   /* of speculative decoding; not set: no gate */

    /* in either place */
    struct eval_int endpoint; /* enum endpoint; use_chat_completions or endpoint */
    struct eval_text gen_prefix;
    struct eval_int max_tokens;
    struct eval_int seed;         /* not set: none is sent */
    struct eval_real temperature; /* not set: none is sent */
    struct eval_int concurrency;  /* 100; max_concurrency or concurrency */
    struct eval_real timeout;     /* seconds of one attempt, 600; request_timeout_seconds */

    /* under x-humcheck */
    const struct protocol *protocol; /* vllm */
    struct place protocol_at;
    struct eval_real top_p; /* not set: none is sent */
    struct eval_int top_k;
    struct eval_text reasoning_effort;
    struct eval_text chat_template_kwargs; /* an object of JSON */
    struct eval_int max_attempts;          /* of one request, 6 */
    struct eval_real max_error_rate;       /* 0.005: more errors than this share, no verdict */
    struct eval_words server_command;      /* count 0: "vllm serve"; model and arguments follow */
    struct eval_int data;                  /* enum eval_data */
    struct eval_text dims;                 /* file of the model's layer shapes, beside this file */
    const struct eval_floor *floors;       /* no GPU twice */
    size_t floor_count;
};

/* The file at `path`. All mistakes are added to `errs` in the order of the file, with their places;
 * what works but does not mean what it seems to is added to `warnings`. out is filled as far as it
 * goes. ERR_CONFIG, ERR_IO, ERR_NOMEM. */
MUST_USE enum err_code eval_config_load(const char *path, struct arena *arena,
                                        struct eval_config *out, struct errs *warnings,
                                        struct errs *errs);

/* The same for `size` bytes of text; `path` (copied) stands in messages only. */
MUST_USE enum err_code eval_config_load_text(const char *path, const char *text, size_t size,
                                             struct arena *arena, struct eval_config *out,
                                             struct errs *warnings, struct errs *errs);

/* The tables of the loader, for help: row i, or false behind the last. `group` is "vLLM" or
 * "x-humcheck". */
struct eval_key {
    const char *key, *group, *help;
    bool required;
};
bool eval_config_key(size_t i, struct eval_key *out);

/* How the protocol is to ask. Texts are borrowed from `c`. */
void eval_config_options(const struct eval_config *c, struct protocol_options *out);

/* The pass rule: correct >= needed of `questions`, in whole numbers.
 *
 *     needed = ceil((threshold - tolerance) * questions), exact on the decimals as written
 */
struct eval_pass {
    int64_t threshold, tolerance; /* billionths */
    int64_t questions, needed;    /* needed >= 1: some run can fail */
    struct place at;              /* the threshold that decides */
    const char *gpu;              /* whose floor it is; NULL: accuracy_threshold */
    const char *evidence;         /* of that floor; NULL: none was given */
};

/* For a GPU by the name its driver gives ("NVIDIA H100 80GB HBM3") or a key of `floors`; NULL:
 * unknown. A GPU without a floor is held to accuracy_threshold - tolerance. `questions`: how many
 * are asked; 0: num_questions. */
void eval_config_pass(const struct eval_config *c, const char *gpu, int64_t questions,
                      struct eval_pass *out);

/* The GPUs that `floors` may name, ended by NULL: words of the product's name, lower case. */
extern const char *const eval_gpus[];

/* The row of eval_gpus[] whose word stands in a product's name; NULL: none. */
const char *eval_gpu_of(const char *product);

/* ERR_USAGE, with what was probably meant, if there is none. */
enum err_code eval_gpu_check(const char *product, struct errs *errs);

/* The value of a flag of the server's command line ("--moe-backend"): what follows it or its '=',
 * where it is given last; "" for a flag without a value; NULL: not given. '_' and '-' are the same,
 * as in vLLM. */
const char *eval_config_flag(const struct eval_config *c, const char *flag);

/* What vLLM's test adds to the server without saying so, in this order. */
struct eval_added {
    const char
        *words[2]; /* an argument and its value or NULL; or "NAME=value" of the environment */
    bool is_env;
    bool stated; /* the file says it already: not added again */
    const char *why;
};
enum { EVAL_ADDED = 4 };

/* All rows, for `c`; out[i].words live in `arena`. false: no memory. (The port is not among them:
 * who starts the server picks it.) */
bool eval_config_added(const struct eval_config *c, struct arena *arena,
                       struct eval_added out[EVAL_ADDED]);

#endif
