/* sink_text.h - what a person sees: failures at once, progress meanwhile, a summary at the end.
 *
 * Unlike the sinks of report.h it is always open, and it is told when time passes and which
 * files were kept. / */
#ifndef HARNESS_REPORT_SINK_TEXT_H
#define HARNESS_REPORT_SINK_TEXT_H

#include "harness/core/arena.h"
#include "harness/report/report.h"

struct text;

struct text_options {
    FILE *stream;  /* borrowed */
    bool terminal; /* one progress line, redrawn; else a line every few seconds */
    bool colour;   /* of verdicts */
};

/* Lives in `arena`; `o` and `run` are borrowed. NULL: no memory. */
struct text *text_open(const struct text_options *how, const struct report_options *o,
                       const struct run_info *run, struct arena *arena);
void text_row(struct text *t, const struct record *r);
void text_tick(struct text *t);

/* One line, after the progress line was cleared. */
void text_note(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The table, the skips by reason and the closing line. A failed write, now or before, is an
 * error. */
MUST_USE enum err_code text_close(struct text *t, enum verdict run, bool complete,
                                  struct errs *errs);

/* "[######----------] 120/320  37%  2 fail  1234 cases/min  0:13 left", cut to `size`; `buf` is
 * returned. failed counts what is neither pass nor skip; the rate and the time left appear once
 * seconds is at least 1. */
struct text_progress {
    size_t done, total, failed;
    double seconds; /* since the start */
};
const char *text_progress(const struct text_progress *p, char *buf, size_t size);

#endif
