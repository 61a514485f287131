/* The table of tensor cores against recordings of hardware: folder GPU/format/ with 5,000 lines
 * in each of a_*, b_* (hexadecimal f32 patterns), c_* and d_* (one f32 pattern of 32 binary
 * digits), as published with MATLAB-tensor-core. ci/dumps unpacks them;
 * HUMCHECK_TENSOR_CORE_DUMPS names the folder. */
#include "reference/tensor_core.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 5000, MAX_K = 64, PATH_BYTES = 1024, LINE_BYTES = 2048, SKIPPED = 77 };

static const struct dtype tf32 = {
    "tf32", NULL, 19, 8, 10, true, true, 127, DTYPE_TOP_INF_NAN, "PTX ISA, alternate formats"};

static const struct {
    const char *name;
    int sm;
} gpus[] = {{"V100", 70}, {"A100", 80}, {"A2", 86},   {"Ada", 89},
            {"L40S", 89}, {"H100", 90}, {"H200", 90}, {"B200", 100}};

/* FP8 with f32 results was recorded with wgmma and c = 0 on sm_90, everything else with
 * mma.sync. */
static const struct {
    const char *folder, *format, *out;
    enum tc_instruction on_sm_90;
    bool zero_c_on_sm_90;
} outputs[] = {
    {"fp16", "f16", "fp32", TC_MMA, false},   {"fp16", "f16", "fp16", TC_MMA, false},
    {"bf16", "bf16", "fp32", TC_MMA, false},  {"tf32", "tf32", "fp32", TC_MMA, false},
    {"E4M3", "e4m3", "fp32", TC_WGMMA, true}, {"E4M3", "e4m3", "fp16", TC_MMA, false},
    {"E5M2", "e5m2", "fp32", TC_WGMMA, true}, {"E5M2", "e5m2", "fp16", TC_MMA, false},
};

enum {
    GPUS = sizeof gpus / sizeof gpus[0],
    OUTPUTS = sizeof outputs / sizeof outputs[0],
};

/* The four files of one output. */
struct recording {
    FILE *a, *b, *c, *d;
};

static const char *root_folder(void)
{
    return getenv("HUMCHECK_TENSOR_CORE_DUMPS");
}

static FILE *open_file(int gpu, int output, char kind, const char *suffix)
{
    char path[PATH_BYTES];
    const char *name = gpus[gpu].name;
    int n = snprintf(path, sizeof path, "%s/%s/%s/%c_%s_%s.txt", root_folder(), name,
                     outputs[output].folder, kind, name, suffix);

    return n > 0 && n < PATH_BYTES ? fopen(path, "r") : NULL;
}

static float f32_of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Every number of the next line, at most MAX_K; returns how many. */
static int read_line(FILE *f, int base, float *x)
{
    char line[LINE_BYTES], *at = line, *end;
    int n = 0;

    if (!fgets(line, sizeof line, f))
        return 0;
    for (; n < MAX_K; n++, at = end) {
        unsigned long bits = strtoul(at, &end, base);

        if (end == at)
            break;
        x[n] = f32_of_bits((uint32_t)bits);
    }
    return n;
}

static double round_f16(double x)
{
    const struct dtype *f16 = dtype_find("f16");

    return dtype_decode(f16, dtype_encode(f16, x, DTYPE_TO_TOP));
}

static const struct dtype *format_of(int output)
{
    const char *name = outputs[output].format;

    return !strcmp(name, tf32.name) ? &tf32 : dtype_find(name);
}

/* What the model makes of one line. Results in f16 were recorded with c rounded to f16. */
static double predict(int gpu, int output, const float *a, const float *b, int k, double c)
{
    const struct dtype *t = format_of(output);
    bool f16 = !strcmp(outputs[output].out, "fp16"), sm_90 = gpus[gpu].sm == 90;
    enum tc_instruction instruction = sm_90 ? outputs[output].on_sm_90 : TC_MMA;
    const struct tc_row *row = tc_find(gpus[gpu].sm, instruction, t, f16);

    ck_assert_ptr_nonnull(row);
    if (sm_90 && outputs[output].zero_c_on_sm_90)
        c = 0.0;
    return tc_run(row, t, a, t, b, k, f16 ? round_f16(c) : c);
}

/* Compares all lines; the result counts them and the mismatches. */
static int count_lines(const struct recording *r, int gpu, int output, int *mismatches)
{
    float a[MAX_K], b[MAX_K], c[MAX_K], d[MAX_K];
    int lines, k;

    *mismatches = 0;
    for (lines = 0; (k = read_line(r->a, 16, a)) > 0; lines++) {
        double got;

        ck_assert(read_line(r->b, 16, b) == k && read_line(r->c, 2, c) == 1);
        ck_assert(read_line(r->d, 2, d) == 1);
        got = predict(gpu, output, a, b, k, (double)c[0]);
        *mismatches += !(got == (double)d[0] || (isnan(got) && isnan(d[0])));
    }
    return lines;
}

/* One output file: absent, or 5,000 lines without a mismatch. */
START_TEST(equals_hardware)
{
    int gpu = _i / OUTPUTS, output = _i % OUTPUTS, lines, mismatches;
    struct recording r = {.d = open_file(gpu, output, 'd', outputs[output].out)};

    if (!r.d)
        return;
    r.a = open_file(gpu, output, 'a', outputs[output].folder);
    r.b = open_file(gpu, output, 'b', outputs[output].folder);
    r.c = open_file(gpu, output, 'c', "fp32");
    ck_assert_msg(r.a && r.b && r.c, "%s/%s: an input file is missing", gpus[gpu].name,
                  outputs[output].folder);
    lines = count_lines(&r, gpu, output, &mismatches);
    printf("%-4s %-4s -> %s  %d mismatches of %d\n", gpus[gpu].name, outputs[output].folder,
           outputs[output].out, mismatches, lines);
    (void)fclose(r.a);
    (void)fclose(r.b);
    (void)fclose(r.c);
    (void)fclose(r.d);
    ck_assert_int_eq(lines, LINES);
    ck_assert_int_eq(mismatches, 0);
}
END_TEST

/* How many output files of the table exist. */
static int count_outputs(int gpu)
{
    int count = 0;

    for (int i = 0; i < OUTPUTS; i++) {
        FILE *f = open_file(gpu, i, 'd', outputs[i].out);

        if (f) {
            count++;
            (void)fclose(f);
        }
    }
    return count;
}

/* A folder that the table does not name would be passed over in silence: every one must be a GPU
 * of the table and hold an output. */
START_TEST(every_folder_is_read)
{
    DIR *dir = opendir(root_folder());
    struct dirent *entry;
    int folders = 0;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir))) {
        int gpu = 0;

        if (entry->d_name[0] == '.')
            continue;
        while (gpu < GPUS && strcmp(entry->d_name, gpus[gpu].name) != 0)
            gpu++;
        ck_assert_msg(gpu < GPUS && count_outputs(gpu) > 0, "no model for folder %s",
                      entry->d_name);
        folders++;
    }
    (void)closedir(dir);
    ck_assert_int_gt(folders, 0);
}
END_TEST

int main(void)
{
    DIR *dir = root_folder() ? opendir(root_folder()) : NULL;
    Suite *s = suite_create("dumps");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    suite_add_tcase(s, tc);
    r = srunner_create(s);
    if (!dir) {
        puts("HUMCHECK_TENSOR_CORE_DUMPS names no folder of recordings; nothing was compared.");
        srunner_free(r);
        return SKIPPED;
    }
    (void)closedir(dir);
    tcase_add_loop_test(tc, equals_hardware, 0, GPUS * OUTPUTS);
    tcase_add_test(tc, every_folder_is_read);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
