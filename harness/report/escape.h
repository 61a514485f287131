/* escape.h - texts from outside, made harmless for the place where they are written.
 *
 * Ids, reasons and paths may hold any bytes: a suite's author, a provider or a damaged worker
 * chose them. Each function copies `s` to `buf`, replaces what the target cannot hold, cuts at a
 * whole character when `size` is reached (at least 1), ends `buf` and returns it. ESCAPE_GROWTH
 * * strlen(s) + 1 bytes are always enough. / */
#ifndef HARNESS_REPORT_ESCAPE_H
#define HARNESS_REPORT_ESCAPE_H

#include <stddef.h>

enum { ESCAPE_GROWTH = 4 };

/* Terminals and logs: control characters, invalid bytes, and what reorders or hides text (U+202A
 * to U+202E, U+2066 to U+2069, U+200B to U+200F, U+2028, U+2029, U+FEFF) become \x1b or \u202e. */
const char *escape_terminal(const char *s, char *buf, size_t size);

/* JSON: invalid bytes become U+FFFD; everything else is the JSON writer's to escape. */
const char *escape_json(const char *s, char *buf, size_t size);

/* XML 1.0: characters outside production [2] Char, and invalid bytes, become U+FFFD; markup is
 * the XML writer's to escape. */
const char *escape_xml(const char *s, char *buf, size_t size);

#endif
