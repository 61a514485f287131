#include "harness/eval/progress.h"

#include <stdio.h>
#include <string.h>

enum { BAR = 16, PART = 64 };

static const unsigned long left_most_s = 359999; /* 99:59:59 */

static void write_share(const struct eval_progress *p, char part[PART])
{
    size_t answered = p->done > p->errors ? p->done - p->errors : 0;
    struct interval i = score_wilson(p->correct, answered);

    part[0] = '\0';
    if (answered)
        (void)snprintf(part, PART, "  %.1f %% [%.1f, %.1f]",
                       100 * (double)p->correct / (double)answered, 100 * i.low, 100 * i.high);
}

static void write_rates(const struct eval_progress *p, char part[PART])
{
    double rate = p->seconds > 0 ? (double)p->session / p->seconds : 0, left;
    unsigned long s;

    part[0] = '\0';
    if (!(p->seconds >= 1) || !p->session)
        return;
    left = (double)(p->questions - p->done) / rate;
    s = left < (double)left_most_s ? (unsigned long)(left + 0.5) : left_most_s;
    (void)snprintf(part, PART, "  %.1f/s  %.0f tok/s  %lu:%02lu left", rate,
                   (double)p->session_tokens / p->seconds, s / 60, s % 60);
}

const char *progress_text(const struct eval_progress *p, char *buf, size_t size)
{
    size_t total = p->questions ? p->questions : 1, filled = p->done * BAR / total;
    char bar[BAR + 1] = "----------------", share[PART], rates[PART], errors[PART] = "";

    _Static_assert(sizeof "----------------" == BAR + 1, "as long as the bar");
    memset(bar, '#', filled < BAR ? filled : BAR);
    write_share(p, share);
    write_rates(p, rates);
    if (p->errors)
        (void)snprintf(errors, PART, "  %zu error%s", p->errors, p->errors == 1 ? "" : "s");
    (void)snprintf(buf, size, "[%s] %zu/%zu %3zu%%%s%s%s", bar, p->done, p->questions,
                   100 * p->done / total, share, errors, rates);
    return buf;
}
