/* expect.h - a check for loops of millions of comparisons: Check's own macros write a message for
 * each.
 */
#ifndef REFERENCE_TEST_EXPECT_H
#define REFERENCE_TEST_EXPECT_H

#include <check.h>

#define EXPECT(holds, ...)             \
    do                                 \
        if (!(holds))                  \
            ck_abort_msg(__VA_ARGS__); \
    while (0)

#endif
