/* progress.h - how far a run is, in one line.
 */
#ifndef HARNESS_EVAL_PROGRESS_H
#define HARNESS_EVAL_PROGRESS_H

#include "harness/eval/eval.h"

/* "[####------------] 412/1319  31%  86.4 % [82.7, 89.4]  1 error  37.2/s  9512 tok/s  0:24 left",
 * cut to `size`; `buf` is returned. The share of correct answers with its 95 % interval is of the
 * answered questions; rates and the time left are of this session, and appear once it is a second
 * old. */
const char *progress_text(const struct eval_progress *p, char *buf, size_t size);

#endif
