/* vector_body.h - the loops of vector.h for one instruction set; vector.c includes it once for each.
 *
 * Given: SET(name) appends the set's name, ATTRIBUTE allows its instructions, LANES f32 fit one register,
 * ROWS x PANEL accumulators fit the registers, FMA(x, y, z) is one rounding of a whole vector.
 * There is no include guard, since each inclusion makes other functions. Vectors go by pointer: passed by
 * value their calling convention would depend on the instruction set.
 */

typedef float SET(lanes) __attribute__((vector_size(4 * LANES), may_alias));
typedef uint32_t SET(words) __attribute__((vector_size(4 * LANES), may_alias));
#define lanes SET(lanes)
#define words SET(words)

enum { SET(per_panel) = PANEL / LANES };

/* round_f16 of round.h. All integers compared here are below 2^31. */
ATTRIBUTE CPU_INLINE void SET(round_f16)(lanes *x)
{
    const words low = (words){0} + (113u << 23), high = (words){0} + (143u << 23);
    const words inf = (words){0} + 0x7f800000u, sign = (words)*x & 0x80000000u;
    words e = (words)*x & inf;
    lanes magic;

    e = CHOOSE((words)(e < low), low, e);
    e = CHOOSE((words)(e > high), high, e);
    magic = (lanes)((e + (13u << 23)) | 0x400000u);
    *x = (*x + magic) - magic;
    e = (words)*x & 0x7fffffffu;
    e = CHOOSE((words)(e >= 0x47800000u) & (words)(e < inf), inf, e);
    *x = (lanes)(e | sign);
}

/* round_bf16 of round.h. */
ATTRIBUTE CPU_INLINE void SET(round_bf16)(lanes *x)
{
    const words u = (words)*x, nan = (words){0} + 0x7fc00000u;
    const words r = (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;

    *x = (lanes)CHOOSE((words)((u & 0x7fffffffu) > 0x7f800000u), nan, r);
}

/* fma_f16 of round.h: x = RN_f16(x y + z). A true comparison is all ones, that is -1. */
ATTRIBUTE CPU_INLINE void SET(fma_f16)(lanes *x, const lanes *y, const lanes *z)
{
    const lanes p = *x * *y, s = p + *z, t = s - p, e = (p - (s - t)) + (*z - t);
    const lanes none = {0};
    const words off = ((words)(e > none) | (words)(e < none)) & ~(words)s & 1u;
    const words same = ~((words)(e > none) ^ (words)(s > none));

    *x = (lanes)((words)s + CHOOSE(same, off, -off));
    SET(round_f16)(x);
}

/* k_count steps on `rows` (a constant of at most ROWS) rows of one panel, accumulators in registers. */
ATTRIBUTE CPU_INLINE void SET(multiply_block)(const int rows, const struct multiply *t,
                                              const float *a, const float *w, float *c)
{
    const int64_t period = t->round_k ? t->round_k : t->k_count;
    lanes acc[ROWS][PANEL / LANES];

    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < SET(per_panel); v++)
        acc[r][v] = *(const lanes *)(c + r * t->c_stride + v * LANES);
    for (int64_t begin = 0; begin < t->k_count; begin += period) {
        const int64_t end = begin + period < t->k_count ? begin + period : t->k_count;

        for (int64_t k = begin; k < end; k++) {
            const lanes *wk = (const lanes *)(w + k * PANEL);

            UNROLL for (int r = 0; r < rows; r++)
            {
                const lanes ak = (lanes){0} + a[r * t->a_stride + k];

                UNROLL for (int v = 0; v < SET(per_panel); v++) acc[r][v] = acc[r][v] + ak * wk[v];
            }
        }
        if (t->round_k)
            UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < SET(per_panel); v++)
                SET(round_f16)(&acc[r][v]);
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < SET(per_panel); v++) *
        (lanes *)(c + r * t->c_stride + v * LANES) = acc[r][v];
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

ATTRIBUTE CPU_INLINE void SET(round)(int32_t dtype, lanes *x)
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
        lanes *out = (lanes *)(d->out + k * PANEL);
        _Alignas(64) float v[PANEL];

        for (int j = 0; j < PANEL; j++)
            v[j] = d->lut[codes[j]];
        UNROLL for (int i = 0; i < SET(per_panel); i++)
        {
            lanes x = *(const lanes *)(v + i * LANES);

            if (d->zero)
                x -= *(const lanes *)(d->zero + i * LANES);
            if (d->zero_rounds)
                SET(round)(d->round, &x);
            if (d->scale) {
                x *= *(const lanes *)(d->scale + i * LANES);
                SET(round)(d->round, &x);
            }
            out[i] = x;
        }
    }
}

/* The factor of a row, and that of LANES columns if there is one; 1 for the one that is not there, which
 * leaves the other as it is. */
ATTRIBUTE CPU_INLINE void SET(factors)(const struct flush *f, int64_t row, int64_t col, lanes *out,
                                       lanes *column)
{
    *out = (lanes){0} + (f->row ? f->row[row] : 1.0f);
    *column = (lanes){0} + 1.0f;
    if (f->col)
        *column = *(const lanes *)(f->col + col);
}

ATTRIBUTE static void SET(flush_f32)(const struct flush *f)
{
    for (int64_t row = 0; row < f->rows; row++)
        for (int64_t col = 0; col < f->columns; col += LANES) {
            lanes *c0 = (lanes *)(f->c0 + row * f->stride + col);
            lanes *c1 = (lanes *)(f->c1 + row * f->stride + col);
            lanes x, column;

            SET(factors)(f, row, col, &x, &column);
            x *= column;
            FMA(x, *c0, *c1);
            *c1 = x;
            *c0 = (lanes){0};
        }
}

ATTRIBUTE static void SET(flush_f16)(const struct flush *f)
{
    for (int64_t row = 0; row < f->rows; row++)
        for (int64_t col = 0; col < f->columns; col += LANES) {
            lanes *c0 = (lanes *)(f->c0 + row * f->stride + col);
            lanes *c1 = (lanes *)(f->c1 + row * f->stride + col);
            lanes x, column;

            SET(factors)(f, row, col, &x, &column);
            SET(round_f16)(&x);
            SET(round_f16)(&column);
            x *= column;
            SET(round_f16)(&x);
            SET(fma_f16)(&x, c0, c1);
            *c1 = x;
            *c0 = (lanes){0};
        }
}

#undef lanes
#undef words
