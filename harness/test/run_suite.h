/* run_suite.h - for tests: what main does with a suite of Check. */
#ifndef HARNESS_TEST_RUN_SUITE_H
#define HARNESS_TEST_RUN_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Returns the exit code. */
static inline int run_suite(const char *name, TCase *tc)
{
    Suite *s = suite_create(name);
    SRunner *sr;
    int failed;

    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
