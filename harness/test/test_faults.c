#include "harness/faults/catalogue.h"
#include "kernels/cpu/fault.h"
#include "reference/fault.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { NUMERICS_ROWS = 90 };

static const char *const classes[] = {
    "layout",     "dequantization", "scale",   "zero-point", "accumulation",
    "rounding",   "epilogue",       "tail",    "invariance", "race",
    "memory",     "host",           "routing", "special",    "quantizer",
    "comparator", "exactness",      "fill",    "trust",
};

static int identifiers(void)
{
    return HUM_FAULT_COUNT - 1 + REF_FAULT_COUNT - 1;
}

static const char *identifier(int index)
{
    const int kernel = HUM_FAULT_COUNT - 1;

    return index < kernel ? hum_fault_name(index + 1) : ref_fault_name(index - kernel + 1);
}

/* As many rows as identifiers and a row for each name: exactly one. */
START_TEST(rows_are_identifiers)
{
    ck_assert_int_eq(fault_count(), identifiers());
    for (int i = 0; i < identifiers(); i++) {
        const struct fault *f = fault_find(identifier(i));

        ck_assert_msg(f, "%s has no row", identifier(i));
        ck_assert_int_eq(f->place, i < HUM_FAULT_COUNT - 1 ? FAULT_KERNEL : FAULT_ORACLE);
    }
    for (int i = 0; i < fault_count(); i++)
        for (int j = 0; j < i; j++)
            ck_assert_msg(strcmp(fault_at(i)->name, fault_at(j)->name) != 0, "%s stands twice",
                          fault_at(i)->name);
}
END_TEST

START_TEST(names_end)
{
    ck_assert_ptr_null(hum_fault_name(0));
    ck_assert_ptr_null(hum_fault_name(HUM_FAULT_COUNT));
    ck_assert_ptr_null(ref_fault_name(0));
    ck_assert_ptr_null(ref_fault_name(REF_FAULT_COUNT));
    ck_assert_ptr_null(fault_find("no-such-fault"));
}
END_TEST

/* Small letters and digits, in words of at least one, with single '-' between. */
static bool is_dashed(const char *name)
{
    const size_t length = strlen(name);

    if (length == 0 || name[0] == '-' || name[length - 1] == '-' || strstr(name, "--"))
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static bool is_class(const char *class)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (!strcmp(class, classes[i]))
            return true;
    return false;
}

/* "ours", a row of the list of faults, or a project and the number of its report. */
static bool is_origin(const char *origin)
{
    const char *number = strchr(origin, '#');
    char *end;
    long row;

    if (!strcmp(origin, "ours"))
        return true;
    if (number)
        return number > origin && number[1] &&
               strspn(number + 1, "0123456789") == strlen(number + 1);
    if (strncmp(origin, "numerics ", 9) != 0)
        return false;
    row = strtol(origin + 9, &end, 10);
    return !*end && row >= 1 && row <= NUMERICS_ROWS;
}

START_TEST(rows_are_in_form)
{
    for (int i = 0; i < fault_count(); i++) {
        const struct fault *f = fault_at(i);
        const size_t length = strlen(f->sentence);

        ck_assert_msg(is_dashed(f->name), "%s: its name", f->name);
        ck_assert_msg(is_class(f->class), "%s: class %s", f->name, f->class);
        ck_assert_msg(is_origin(f->origin), "%s: origin %s", f->name, f->origin);
        ck_assert_msg(!f->cause || is_dashed(f->cause), "%s: its cause", f->name);
        ck_assert_msg(!f->simulated || !f->cause, "%s: a simulated fault with a cause", f->name);
        ck_assert_msg(strcmp(f->class, "race") != 0 || f->simulated, "%s: a real race", f->name);
        ck_assert_msg(length > 10 && f->sentence[length - 1] != '.' && !strchr(f->sentence, '\n'),
                      "%s: its sentence", f->name);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("faults");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, rows_are_identifiers);
    tcase_add_test(tc, names_end);
    tcase_add_test(tc, rows_are_in_form);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
