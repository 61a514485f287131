#include "reference/buffers.h"

#include <string.h>

static bool multiply(int64_t a, int64_t b, int64_t *out)
{
    if (b && a > INT64_MAX / b)
        return false;
    *out = a * b;
    return true;
}

static const char *check_sizes(const struct ref_experts *e)
{
    if (e->m < 0 || e->top_k < 1)
        return "m must be at least 0 and top_k at least 1";
    if (e->form == REF_EXPERTS_BATCHED &&
        (e->experts < 1 || e->max_tokens < 0 || e->dispatchers < 1))
        return "the batched form needs experts, dispatchers and max_tokens";
    if (e->gate_up.n < 1 || e->gate_up.k < 1 || e->down.n < 1 || e->down.k < 1)
        return "the layers must have columns";
    if (e->gated && e->gate_up.n % 2)
        return "a gated activation needs an even gate_up n";
    if (e->down.k != (e->gated ? e->gate_up.n / 2 : e->gate_up.n))
        return e->gated ? "down k is not half of gate_up n" : "down k is not gate_up n";
    return e->down.n == e->gate_up.k ? NULL : "down n is not gate_up k";
}

/* Rows of the first buffer, of those between, and of the last. */
struct rows {
    int64_t input, routed, output;
};

static bool count_rows(const struct ref_experts *e, struct rows *r)
{
    r->output = e->m;
    if (e->form == REF_EXPERTS_BATCHED)
        return multiply(e->experts, e->max_tokens, &r->input) &&
               multiply(r->input, e->dispatchers, &r->routed);
    if (!multiply(e->m, e->top_k, &r->routed))
        return false;
    r->input = e->form == REF_EXPERTS_INDEXED ? e->m : r->routed;
    return true;
}

static const char *fill(struct ref_buffer *b, int64_t rows, int64_t cols, const struct dtype *t)
{
    int64_t bytes;

    if (t->bits == 4 && cols % 2)
        return "a 4-bit buffer has an odd number of columns";
    b->rows = rows;
    b->cols = t->bits == 4 ? cols / 2 : cols;
    b->t = t;
    if (!multiply(rows, b->cols, &bytes) ||
        !multiply(bytes, t->bits == 4 ? 1 : t->bits / 8, &bytes))
        return "a buffer has more bytes than can be counted";
    b->bytes = (size_t)bytes;
    return NULL;
}

static void place(struct ref_buffer *buffers)
{
    int from_last = 0;

    for (int i = REF_BUFFER_COUNT - 1; i >= 0; i--)
        if (buffers[i].t)
            buffers[i].workspace = from_last++ % 2 ? 2 : 1;
}

const char *ref_buffers(const struct ref_experts *e, struct ref_buffer out[REF_BUFFER_COUNT])
{
    const char *problem = check_sizes(e);
    struct rows r;

    memset(out, 0, REF_BUFFER_COUNT * sizeof out[0]);
    if (problem)
        return problem;
    if (!count_rows(e, &r))
        return "there are more rows than can be counted";
    if (e->gate_up.a->bits < 16)
        problem = fill(&out[REF_BUFFER_QUANTED_GATE_UP_INPUT], r.input, e->gate_up.k, e->gate_up.a);
    if (!problem)
        problem = fill(&out[REF_BUFFER_GATE_UP_OUTPUT], r.routed, e->gate_up.n, e->gate_up.c);
    if (!problem)
        problem = fill(&out[REF_BUFFER_ACTIVATION_OUTPUT], r.routed, e->down.k, e->down.c);
    if (!problem && e->down.a->bits < 16)
        problem = fill(&out[REF_BUFFER_QUANTED_DOWN_INPUT], r.routed, e->down.k, e->down.a);
    if (!problem)
        problem = fill(&out[REF_BUFFER_DOWN_OUTPUT], r.routed, e->down.n, e->down.c);
    if (!problem && e->form != REF_EXPERTS_BATCHED)
        problem = fill(&out[REF_BUFFER_OUTPUT], r.output, e->down.n, e->down.c);
    place(out);
    return problem;
}

void ref_workspaces(const struct ref_buffer buffers[REF_BUFFER_COUNT], size_t bytes[2])
{
    bytes[0] = bytes[1] = 0;
    for (int i = 0; i < REF_BUFFER_COUNT; i++)
        if (buffers[i].t && buffers[i].bytes > bytes[buffers[i].workspace - 1])
            bytes[buffers[i].workspace - 1] = buffers[i].bytes;
}
