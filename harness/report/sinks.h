/* sinks.h - the rows of the table of outputs, one file each (report.h: struct sink). */
#ifndef HARNESS_REPORT_SINKS_H
#define HARNESS_REPORT_SINKS_H

#include "harness/report/report.h"

extern const struct sink sink_jsonl;
extern const struct sink sink_junit;
extern const struct sink sink_left;

#endif
