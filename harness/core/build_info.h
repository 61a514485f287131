/* build_info.h - what this program was built from, and the only reader of the environment.
 *
 * Version and commit come from the build (HUMCHECK_VERSION, HUMCHECK_COMMIT); everything here is
 * constant while the program runs. / */
#ifndef HARNESS_CORE_BUILD_INFO_H
#define HARNESS_CORE_BUILD_INFO_H

#include <stdbool.h>
#include <stddef.h>

struct build_info {
    const char *version;  /* "0.1.0" */
    const char *commit;   /* "" when it was not known at configure time */
    const char *compiler; /* "gcc 12.2.0" */
};

extern const struct build_info build_info;

/* "humcheck 0.1.0 (1a2b3c4)", or without the commit when it is not known. */
extern const char build_program[];

/* Third-party libraries that can say what they are. */
struct build_library {
    const char *name;
    const char *use;
    /* The version loaded now, in `buf`, which is returned. */
    const char *(*loaded)(char *buf, size_t size);
};

extern const struct build_library build_libraries[];
extern const int build_library_count;

/* The fault that this program runs with: the value of HUMCHECK_FAULT in a build with
 * HUMCHECK_FAULTS (harness/faults/catalogue.h). NULL: none, as always in other builds. */
const char *build_fault(void);

/* Does the user want colour on a terminal? False when NO_COLOR is set and not empty
 * (no-color.org) or TERM is "dumb". */
bool build_wants_colour(void);

#endif
