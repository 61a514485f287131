#include "reference/tensor_core.h"

#include <math.h>
#include <string.h>

#define DUMPS  "recordings of MATLAB-tensor-core (Khattak, Mikaitis)"
#define PROBE  "probe on an H200, 3,670,016 outputs"
#define BOTH   "recordings of MATLAB-tensor-core, and probe on an H200"
#define MMASIM "MMA-Sim (arXiv 2511.10909)"
#define MATLAB "MATLAB-tensor-core models (arXiv 2512.07004)"
#define FASI   "Fasi et al. 2021, and MMA-Sim"

/* clang-format off */
#define F16     {"f16"}
#define F16BF16 {"f16", "bf16"}
#define TF32    {"tf32"}
#define F8      {"e4m3", "e5m2"}
#define F8F6F4  {"e4m3", "e5m2", "e2m1"}
#define NONE    TC_NO_LEAST_E

/* least_e: MATLAB-tensor-core models (-132 and -20 on sm_80 to sm_89, -133 and -21 later). An
 * emulated row has the parameters of the f16 unit that it runs on; for f32 that is the full 24
 * bits. */
const struct tc_row tc_rows[] = {
    /* sm  instruction  formats   b   T bits E     f16    emul.  status         source */
    { 70, TC_MMA,     F16,      4, 23, 24, NONE, false, false, TC_CERTAIN,    DUMPS},
    { 70, TC_MMA,     F16,      4, 23,  0, NONE, true,  false, TC_CERTAIN,    DUMPS},
    { 75, TC_MMA,     F16,      8, 24, 24, NONE, false, false, TC_PUBLISHED,  FASI},
    { 75, TC_MMA,     F16,      8, 24,  0, NONE, true,  false, TC_PUBLISHED,  FASI},
    { 80, TC_MMA,     F16BF16,  8, 24, 24, -132, false, false, TC_CERTAIN,    DUMPS},
    { 80, TC_MMA,     F16,      8, 24,  0,  -20, true,  false, TC_CERTAIN,    DUMPS},
    { 80, TC_MMA,     TF32,     4, 24, 24, -132, false, false, TC_CERTAIN,    DUMPS},
    { 86, TC_MMA,     F16BF16,  8, 24, 24, -132, false, false, TC_CERTAIN,    DUMPS},
    { 86, TC_MMA,     F16,      8, 24,  0,  -20, true,  false, TC_CERTAIN,    DUMPS},
    { 86, TC_MMA,     TF32,     4, 24, 24, -132, false, false, TC_CERTAIN,    DUMPS},
    { 89, TC_MMA,     F16BF16,  8, 24, 24, -132, false, false, TC_CERTAIN,    DUMPS},
    { 89, TC_MMA,     F16,      8, 24,  0,  -20, true,  false, TC_CERTAIN,    DUMPS},
    { 89, TC_MMA,     TF32,     4, 24, 24, -132, false, false, TC_CERTAIN,    DUMPS},
    { 89, TC_MMA,     F8,      16, 13, 14, -132, false, false, TC_CERTAIN,    DUMPS},
    { 89, TC_MMA,     F8,      16, 13,  0,  -20, true,  false, TC_CERTAIN,    DUMPS},
    { 90, TC_MMA,     F16BF16, 16, 25, 24, -133, false, false, TC_CERTAIN,    BOTH},
    { 90, TC_MMA,     F16,     16, 25,  0,  -21, true,  false, TC_CERTAIN,    BOTH},
    { 90, TC_MMA,     TF32,     8, 25, 24, -133, false, false, TC_UNVERIFIED, MATLAB},
    { 90, TC_MMA,     F8,      16, 25, 24, -133, false, true,  TC_CERTAIN,    PROBE},
    { 90, TC_MMA,     F8,      16, 25,  0,  -21, true,  true,  TC_CERTAIN,    BOTH},
    { 90, TC_WGMMA,   F16BF16, 16, 25, 24, -133, false, false, TC_CERTAIN,    PROBE},
    { 90, TC_WGMMA,   F16,     16, 25,  0,  -21, true,  false, TC_CERTAIN,    PROBE},
    { 90, TC_WGMMA,   F8,      32, 13, 14, -133, false, false, TC_CERTAIN,    BOTH},
    { 90, TC_WGMMA,   F8,      32, 13,  0,  -21, true,  false, TC_CERTAIN,    PROBE},
    {100, TC_MMA,     F16BF16, 16, 25, 24, -133, false, false, TC_CERTAIN,    DUMPS},
    {100, TC_MMA,     F16,     16, 25,  0,  -21, true,  false, TC_CERTAIN,    DUMPS},
    {100, TC_MMA,     TF32,     8, 25, 24, -133, false, false, TC_UNVERIFIED, MATLAB},
    {100, TC_MMA,     F8,      16, 25, 24, -133, false, true,  TC_CERTAIN,    DUMPS},
    {100, TC_MMA,     F8,      16, 25,  0,  -21, true,  true,  TC_CERTAIN,    DUMPS},
    {100, TC_TCGEN05, F16BF16, 16, 25, 24, -133, false, false, TC_PUBLISHED,  MMASIM},
    {100, TC_TCGEN05, F16,     16, 25,  0,  -21, true,  false, TC_PUBLISHED,  MMASIM},
    {100, TC_TCGEN05, F8F6F4,  32, 25, 24, -133, false, false, TC_PUBLISHED,  MMASIM},
    {100, TC_TCGEN05, F8F6F4,  32, 25,  0,  -21, true,  false, TC_UNVERIFIED, MMASIM},
    {120, TC_MMA,     F8F6F4,  32, 25, 24, -133, false, false, TC_PUBLISHED,  MMASIM},
};
/* clang-format on */
const int tc_row_count = sizeof tc_rows / sizeof tc_rows[0];

enum { F16_MIN_E = -14, F32_MIN_E = -126, EMULATED_K = 32, NO_TERM = -2000 };

/* What a block needs of a row and of the operands' formats. */
struct unit {
    const struct tc_row *row;
    int a_min, b_min, c_min; /* e_min of each format */
};

static bool has_format(const struct tc_row *row, const char *name)
{
    for (int i = 0; i < TC_MAX_FORMATS && row->formats[i]; i++)
        if (!strcmp(row->formats[i], name))
            return true;
    return false;
}

const struct tc_row *tc_find(int sm, enum tc_instruction instruction, const struct dtype *format,
                             bool f16_accum)
{
    for (int i = 0; i < tc_row_count; i++) {
        const struct tc_row *row = &tc_rows[i];

        if (row->sm == sm && row->instruction == instruction && row->f16_accum == f16_accum &&
            has_format(row, format->name))
            return row;
    }
    return NULL;
}

const char *tc_instruction_name(enum tc_instruction instruction)
{
    static const char *const names[] = {"mma.sync", "wgmma", "tcgen05"};

    return names[instruction];
}

const char *tc_status_name(enum tc_status status)
{
    static const char *const names[] = {"certain", "published", "unverified"};

    return names[status];
}

/* 0x7FFFFFFF of f32, held in a double. */
static double canonical_nan(void)
{
    const uint64_t bits = 0x7FFFFFFFE0000000u;
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The exponent field of an f32, less its bias: 128 for infinity and NaN, -127 for subnormals and
 * zero. */
static int exponent_f32(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 23 & 0xFFu) - 127;
}

static int exponent_f64(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7FFu) - 1023;
}

/* 2^e for -1022 <= e <= 1023. */
static double power(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Truncation to so many significant bits, and to the quantum of subnormals. |x| < 2^200, x has
 * 53 bits. */
static double truncate_f32(double x, int significant)
{
    double quantum;
    uint64_t bits;

    if (exponent_f64(x) > 127)
        return x > 0.0 ? HUGE_VAL : -HUGE_VAL;
    if (exponent_f64(x) < F32_MIN_E) {
        quantum = power(F32_MIN_E - significant + 1);
        return trunc(x / quantum) * quantum;
    }
    memcpy(&bits, &x, sizeof bits);
    bits &= ~(((uint64_t)1 << (53 - significant)) - 1u);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* To nearest f16, ties to even: adding and taking away 1.5 x 2^52 quanta leaves a multiple of
 * the quantum, rounded as IEEE does. Values from 65520 on become 65536 or more, hence infinity. */
static double round_f16(double x)
{
    double big, r;

    if (!(fabs(x) < 65536.0))
        return isnan(x) ? canonical_nan() : x > 0.0 ? HUGE_VAL : -HUGE_VAL;
    big = 1.5 * power(52 + larger(exponent_f64(x), F16_MIN_E) - 10);
    r = (x + big) - big;
    return fabs(r) < 65536.0 ? r : r * HUGE_VAL;
}

/* A block with a NaN or an infinity among its terms: the IEEE sum of products that are exact and
 * cannot overflow in double has exactly the wanted NaNs and infinities. */
static double special_block(const float *a, const float *b, int n, double c)
{
    double sum = c;

    for (int i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return isnan(sum) ? canonical_nan() : sum;
}

/* One block of n <= TC_MAX_BLOCK products. Every product of two operands is exact in double (22
 * bits, exponents beyond -300 only when zero); scaled by 2^(fraction - E) it lies below
 * 2^(fraction + 2) <= 2^27, so that an int32 takes its truncation and an int64 the sum. */
static double run_block(const struct unit *u, const float *a, const float *b, int n, double c)
{
    double product[TC_MAX_BLOCK];
    int e = NO_TERM, top = exponent_f64(c);
    int64_t sum;
    double scale;

    for (int i = 0; i < n; i++) {
        int ea = exponent_f32(a[i]), eb = exponent_f32(b[i]);
        int both = larger(ea, u->a_min) + larger(eb, u->b_min);

        top = larger(top, larger(ea, eb));
        product[i] = (double)a[i] * (double)b[i];
        e = larger(e, product[i] != 0.0 ? both : NO_TERM);
    }
    if (top > 127)
        return special_block(a, b, n, c);
    if (c != 0.0)
        e = larger(e, larger(exponent_f64(c), u->c_min));
    if (e == NO_TERM)
        return 0.0;
    e = larger(e, u->row->least_e);
    scale = power(u->row->fraction - e);
    sum = (int64_t)(c * scale);
    for (int i = 0; i < n; i++)
        sum += (int32_t)(product[i] * scale);
    if (sum == 0)
        return 0.0;
    if (u->row->f16_accum)
        return round_f16((double)sum * power(e - u->row->fraction));
    return truncate_f32((double)sum * power(e - u->row->fraction), u->row->significant);
}

static double run_chain(const struct unit *u, const float *a, const float *b, int64_t k, double c)
{
    for (int64_t l = 0; l < k; l += u->row->block)
        c = run_block(u, a + l, b + l, k - l < u->row->block ? (int)(k - l) : u->row->block, c);
    return c;
}

/* The values of one instruction whose k has bit 1 clear (part 0) or set (part 1); returns how
 * many. */
static int take_part(const float *x, int n, int part, float *out)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        if ((i >> 1 & 1) == part)
            out[count++] = x[i];
    return count;
}

static double run_emulated(const struct unit *u, const float *a, const float *b, int64_t k,
                           double c)
{
    float pa[EMULATED_K / 2], pb[EMULATED_K / 2];

    for (int64_t l = 0; l < k; l += EMULATED_K) {
        int n = k - l < EMULATED_K ? (int)(k - l) : EMULATED_K;
        double h = 0.0;

        for (int part = 0; part < 2; part++) {
            int count = take_part(a + l, n, part, pa);

            take_part(b + l, n, part, pb);
            h = run_chain(u, pa, pb, count, h);
        }
        c = u->row->f16_accum ? round_f16(h + c) : (double)((float)h + (float)c);
        if (isnan(c))
            c = canonical_nan();
    }
    return c;
}

double tc_run(const struct tc_row *row, const struct dtype *ta, const float *a,
              const struct dtype *tb, const float *b, int64_t k, double c)
{
    struct unit u = {row, F16_MIN_E, F16_MIN_E, row->f16_accum ? F16_MIN_E : F32_MIN_E};

    if (row->emulated)
        return run_emulated(&u, a, b, k, c);
    u.a_min = dtype_min_exponent(ta);
    u.b_min = dtype_min_exponent(tb);
    return run_chain(&u, a, b, k, c);
}
