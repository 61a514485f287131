/* eval_show.h - what `humcheck eval` prints, and the files it writes.
 */
#ifndef HARNESS_CLI_EVAL_SHOW_H
#define HARNESS_CLI_EVAL_SHOW_H

#include "harness/cli/options.h"
#include "harness/eval/eval.h"

/* One configuration's end: a result, or the sentence of why there is none. */
struct eval_row {
    struct eval_result result; /* result.config is always set */
    const char *failed;        /* NULL: there is a result */
    double start_s, ask_s;     /* until the server was ready; while it was asked */
    bool interrupted;
};

/* Who is asked what, before anything starts. */
void eval_show_head(const struct eval *e);

/* The server's command, with what vLLM's test adds. */
void eval_show_command(const struct eval_config *c, char *const *argv);

/* The progress: one redrawn line on a terminal, else a line now and then. Starts as {0}. */
struct eval_line {
    double drawn_s;
    bool shown;
};
void eval_show_progress(struct eval_line *l, const struct eval_progress *p);
void eval_show_waiting(struct eval_line *l, double waited_s);
void eval_show_clear(struct eval_line *l);

/* All extractors on the same texts, outcomes and the verdict. */
void eval_show_result(const struct eval_row *row, struct arena *arena);

/* One line a configuration. */
void eval_show_table(const struct eval_row *rows, size_t count, struct arena *arena);

struct recorded;
void eval_show_recorded(const struct recorded *r, struct arena *arena);

/* What is wrong with the --out options, before anything starts: ERR_USAGE. */
MUST_USE enum err_code eval_outs_check(const struct options *o, struct errs *errs);

/* Writes json:FILE, junit:FILE and markdown:FILE. */
MUST_USE enum err_code eval_outs_write(const struct options *o, const struct eval_row *rows,
                                       size_t count, struct errs *errs);

/* "0.8597 [0.8400, 0.8774]", or "none" when nothing was answered; `buf` is returned. */
const char *eval_share(size_t correct, size_t answered, char *buf, size_t size);

/* "pass", "fail", "inconclusive", "infra", "interrupted". */
const char *eval_row_verdict(const struct eval_row *r);

#endif
