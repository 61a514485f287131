/* vector_body.h - the loops of vector.h for one instruction set; vector.c includes it once for
 * each.
 *
 * Given: SET(name) appends the set's name, ATTRIBUTE allows its instructions, LANES f32 fit one
 * register, ROWS x PANEL accumulators fit the registers, FMA(x, y, z) is one rounding of a whole
 * vector. There is no include guard, since each inclusion makes other functions. Vectors go by
 * pointer: passed by value their calling convention would depend on the instruction set.
 */

typedef float SET(floats) __attribute__((vector_size(4 * LANES), may_alias));
typedef uint32_t SET(words) __attribute__((vector_size(4 * LANES), may_alias));
#define FLOATS SET(floats)
#define WORDS  SET(words)

/* round_f16 of round.h. All integers compared here are below 2^31. */
ATTRIBUTE CPU_INLINE void SET(round_f16)(FLOATS *x)
{
    const WORDS low = (WORDS){0} + (113u << 23), high = (WORDS){0} + (143u << 23);
    const WORDS inf = (WORDS){0} + 0x7f800000u, sign = (WORDS)*x & 0x80000000u;
    WORDS e = (WORDS)*x & inf;
    FLOATS magic;

    e = CHOOSE((WORDS)(e < low), low, e);
    e = CHOOSE((WORDS)(e > high), high, e);
    magic = (FLOATS)((e + (13u << 23)) | 0x400000u);
    *x = (*x + magic) - magic;
    e = (WORDS)*x & 0x7fffffffu;
    e = CHOOSE((WORDS)(e >= 0x47800000u) & (WORDS)(e < inf), inf, e);
    *x = (FLOATS)(e | sign);
}

/* round_bf16 of round.h. */
ATTRIBUTE CPU_INLINE void SET(round_bf16)(FLOATS *x)
{
    const WORDS u = (WORDS)*x, nan = (WORDS){0} + 0x7fc00000u;
    const WORDS r = (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;

    *x = (FLOATS)CHOOSE((WORDS)((u & 0x7fffffffu) > 0x7f800000u), nan, r);
}

/* fma_f16 of round.h: x = RN_f16(x y + z). A true comparison is all ones, that is -1. */
ATTRIBUTE CPU_INLINE void SET(fma_f16)(FLOATS *x, const FLOATS *y, const FLOATS *z)
{
    const FLOATS p = *x * *y, s = p + *z, t = s - p, e = (p - (s - t)) + (*z - t);
    const FLOATS none = {0};
    const WORDS off = ((WORDS)(e > none) | (WORDS)(e < none)) & ~(WORDS)s & 1u;
    const WORDS same = ~((WORDS)(e > none) ^ (WORDS)(s > none));

    *x = (FLOATS)((WORDS)s + CHOOSE(same, off, -off));
    SET(round_f16)(x);
}

/* The accumulators of `rows` rows, from and to memory. */
ATTRIBUTE CPU_INLINE void SET(load)(const int64_t rows, const float *c, int64_t stride,
                                    FLOATS acc[ROWS][PANEL / LANES])
{
    UNROLL for (int64_t r = 0; r < rows; r++) UNROLL for (int64_t v = 0; v < PANEL / LANES; v++)
        acc[r][v] = *(const FLOATS *)(c + r * stride + v * LANES);
}

ATTRIBUTE CPU_INLINE void SET(store)(const int64_t rows, float *c, int64_t stride,
                                     FLOATS acc[ROWS][PANEL / LANES])
{
    UNROLL for (int64_t r = 0; r < rows; r++) UNROLL for (int64_t v = 0; v < PANEL / LANES; v++) *
        (FLOATS *)(c + r * stride + v * LANES) = acc[r][v];
}

/* k in [begin, end) of one panel. */
ATTRIBUTE CPU_INLINE void SET(steps)(const int64_t rows, const struct multiply *t, const float *a,
                                     const float *w, const int64_t range[2],
                                     FLOATS acc[ROWS][PANEL / LANES])
{
    for (int64_t k = range[0]; k < range[1]; k++) {
        const FLOATS *wk = (const FLOATS *)(w + k * PANEL);

        UNROLL for (int64_t r = 0; r < rows; r++)
        {
            const FLOATS ak = (FLOATS){0} + a[r * t->a_stride + k];

            UNROLL for (int64_t v = 0; v < PANEL / LANES; v++) acc[r][v] = acc[r][v] + ak * wk[v];
        }
    }
}

/* k_count steps on `rows` (a constant of at most ROWS) rows of one panel, accumulators in
 * registers. */
ATTRIBUTE CPU_INLINE void SET(multiply_block)(const int64_t rows, const struct multiply *t,
                                              const float *a, const float *w, float *c)
{
    FLOATS acc[ROWS][PANEL / LANES];
    int64_t range[2] = {0, t->round_k ? 0 : t->k_count};

    SET(load)(rows, c, t->c_stride, acc);
    SET(steps)(rows, t, a, w, range, acc);
    while (range[1] < t->k_count) {
        range[0] = range[1];
        range[1] = range[0] + t->round_k < t->k_count ? range[0] + t->round_k : t->k_count;
        SET(steps)(rows, t, a, w, range, acc);
        UNROLL for (int64_t r = 0; r < rows; r++) UNROLL for (int64_t v = 0; v < PANEL / LANES; v++)
            SET(round_f16)(&acc[r][v]);
    }
    SET(store)(rows, c, t->c_stride, acc);
}

ATTRIBUTE static void SET(multiply)(const struct multiply *t)
{
    for (int64_t row = 0; row < t->rows;) {
        const bool full = t->rows - row >= ROWS;
        const float *a = t->a + row * t->a_stride;

        for (int64_t p = 0; p < t->panels; p++) {
            const float *w = t->w + p * STEP_K * PANEL;
            float *c = t->c + row * t->c_stride + p * PANEL;

            if (full)
                SET(multiply_block)(ROWS, t, a, w, c);
            else
                SET(multiply_block)(1, t, a, w, c);
        }
        row += full ? ROWS : 1;
    }
}

ATTRIBUTE CPU_INLINE void SET(round)(int32_t dtype, FLOATS *x)
{
    if (dtype == HUM_F16)
        SET(round_f16)(x);
    else if (dtype == HUM_BF16)
        SET(round_bf16)(x);
}

ATTRIBUTE static void SET(dequantize)(const struct dequantize *d)
{
    for (int64_t k = 0; k < d->k_count; k++) {
        const uint8_t *codes = d->codes + k * PANEL;
        FLOATS *out = (FLOATS *)(d->out + k * PANEL);
        _Alignas(64) float v[PANEL];

        for (int j = 0; j < PANEL; j++)
            v[j] = d->lut[codes[j]];
        UNROLL for (int64_t i = 0; i < PANEL / LANES; i++)
        {
            FLOATS x = *(const FLOATS *)(v + i * LANES);

            if (d->zero)
                x -= *(const FLOATS *)(d->zero + i * LANES);
            if (d->zero_rounds)
                SET(round)(d->round, &x);
            if (d->scale) {
                x *= *(const FLOATS *)(d->scale + i * LANES);
                SET(round)(d->round, &x);
            }
            out[i] = x;
        }
    }
}

/* The factor of a row, and that of LANES columns if there is one; 1 for the one that is not there,
 * which leaves the other as it is. */
ATTRIBUTE CPU_INLINE void SET(factors)(const struct flush *f, int64_t row, int64_t col, FLOATS *out,
                                       FLOATS *column)
{
    *out = (FLOATS){0} + (f->row ? f->row[row] : 1.0f);
    *column = (FLOATS){0} + 1.0f;
    if (f->col)
        *column = *(const FLOATS *)(f->col + col);
}

ATTRIBUTE static void SET(flush_f32)(const struct flush *f)
{
    for (int64_t row = 0; row < f->rows; row++)
        for (int64_t col = 0; col < f->columns; col += LANES) {
            FLOATS *c0 = (FLOATS *)(f->c0 + row * f->stride + col);
            FLOATS *c1 = (FLOATS *)(f->c1 + row * f->stride + col);
            FLOATS x, column;

            SET(factors)(f, row, col, &x, &column);
            x *= column;
            FMA(x, *c0, *c1);
            *c1 = x;
            *c0 = (FLOATS){0};
        }
}

ATTRIBUTE static void SET(flush_f16)(const struct flush *f)
{
    for (int64_t row = 0; row < f->rows; row++)
        for (int64_t col = 0; col < f->columns; col += LANES) {
            FLOATS *c0 = (FLOATS *)(f->c0 + row * f->stride + col);
            FLOATS *c1 = (FLOATS *)(f->c1 + row * f->stride + col);
            FLOATS x, column;

            SET(factors)(f, row, col, &x, &column);
            SET(round_f16)(&x);
            SET(round_f16)(&column);
            x *= column;
            SET(round_f16)(&x);
            SET(fma_f16)(&x, c0, c1);
            *c1 = x;
            *c0 = (FLOATS){0};
        }
}

#undef FLOATS
#undef WORDS
