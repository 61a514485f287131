#include "harness/weights/describe.h"

#include "harness/weights/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Address space for one layer: codes, scales and zero points of experts in one tensor take the
 * most (2.1 GB for those of gpt-oss-120b). */
static const size_t layer_bytes = (size_t)1 << 34;

struct describing {
    struct description *out;
    struct arena *arena;
    struct errs *errs;
    bool lost; /* a row, for want of memory */
    uint64_t weights;
    size_t notes;
};

static void add(struct describing *d, struct table *t, const char *const cells[TABLE_COLUMNS])
{
    for (size_t i = 0; i < strlen(t->aligns); i++)
        if (!cells[i]) {
            d->lost = true;
            return;
        }
    if (!table_add(t, cells))
        d->lost = true;
}

static void tell(struct describing *d, const char *what, const char *value)
{
    const char *cells[TABLE_COLUMNS] = {what, value};

    add(d, &d->out->head, cells);
}

static const char *shape_of(const struct tensor *t, struct arena *a)
{
    const char *text = t->rank ? "" : "scalar";

    for (int i = 0; text && i < t->rank; i++)
        text = arena_printf(a, "%s%s%" PRId64, text, i ? "x" : "", t->shape[i]);
    return text;
}

static void add_tensors(struct describing *d, const struct checkpoint *c)
{
    static const char *const head[TABLE_COLUMNS] = {"tensor", "format", "shape", "bytes"};

    add(d, &d->out->tensors, head);
    for (size_t i = 0; i < c->tensors.count; i++) {
        const struct tensor *t = &c->tensors.tensors[i];
        const char *cells[TABLE_COLUMNS] = {t->name, t->format->name, shape_of(t, d->arena),
                                            arena_printf(d->arena, "%" PRIu64, t->bytes)};

        add(d, &d->out->tensors, cells);
    }
}

static void find(struct describing *d, bool suspicious, const char *layer, const char *sentence)
{
    const char *cells[TABLE_COLUMNS] = {suspicious ? "suspicious" : "note", layer, sentence};

    d->notes += !suspicious;
    add(d, &d->out->findings, cells);
}

/* Counts that are worth a sentence when they are not 0: "COUNT of TOTAL WHAT". */
static void add_findings(struct describing *d, const char *layer, const struct standard *s,
                         const struct standard_stats *m)
{
    int64_t weights = s->n * standard_matrices(s) * s->k;
    int64_t zeros = s->n * standard_matrices(s) * standard_groups(s);
    const struct {
        bool suspicious;
        int64_t count, total;
        const char *what;
    } rows[] = {
        {true, m->nan_codes, weights, "weight codes are NaN"},
        {true, s->out_of_range, weights, "weight codes are outside of the range of their bits"},
        {true, m->scale_nan, m->scales, "scales are NaN"},
        {true, m->scale_infinite, m->scales, "scales are infinite"},
        {true, s->zeros_outside, zeros, "zero points are outside of the range of their bits"},
        {true, s->zeros_odd, zeros,
         "stored zero points contradict the config, which says symmetric"},
        {true, !isfinite(m->scale_2), 1, "second scales are NaN or infinite"},
        {false, m->scale_zero, m->scales, "scales are 0"},
        {false, m->scale_negative, m->scales, "scales are negative"},
        {false, m->scale_subnormal, m->scales, "scales are subnormal"},
        {false, m->constant, m->groups, "groups hold one code only"},
        {false, m->all_zero, m->groups, "groups are all zero"},
        {false, s->rounded, m->scales, "scales are rounded by the conversion"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].count)
            find(d, rows[i].suspicious, layer,
                 arena_printf(d->arena, "%" PRId64 " of %" PRId64 " %s", rows[i].count,
                              rows[i].total, rows[i].what));
}

static const char *zero_text(const struct standard *s, const struct standard_stats *m,
                             struct arena *a)
{
    if (s->zero == REF_ZERO_NONE)
        return "none";
    if (m->zero_min == m->zero_max)
        return arena_printf(a, "%d", m->zero_min);
    return arena_printf(a, "%d to %d", m->zero_min, m->zero_max);
}

static const char *range_text(const struct standard_stats *m, struct arena *a)
{
    if (m->scale_min == m->scale_max)
        return arena_printf(a, "%.6g", m->scale_min);
    return arena_printf(a, "%.6g to %.6g", m->scale_min, m->scale_max);
}

static void add_layer(struct describing *d, const struct layer *l, const struct standard *s)
{
    struct arena *a = d->arena;
    struct standard_stats m;
    const char *cells[TABLE_COLUMNS] = {l->name, l->schema->name, layers_weights(s, a),
                                        layers_scales(s, a)};

    standard_measure(s, &m);
    cells[4] = range_text(&m, a);
    cells[5] = s->scale_2 == REF_SCALE_2_NONE ? "none" : arena_printf(a, "%.9g", m.scale_2);
    cells[6] = zero_text(s, &m, a);
    cells[7] = standard_suspicious(s, &m) ? "suspicious" : "ok";
    add(d, &d->out->layers, cells);
    add_findings(d, l->name, s, &m);
    d->out->suspicious += standard_suspicious(s, &m);
    d->weights += (uint64_t)(s->n * standard_matrices(s)) * (uint64_t)s->k;
}

static enum err_code add_layers(struct describing *d, const struct layers *layers)
{
    static const char *const head[TABLE_COLUMNS] = {
        "layer", "schema", "weights", "scales", "scale range", "scale 2", "zero points", "state"};
    struct arena scratch;
    enum err_code rc = ERR_NONE;

    if (!layers->count)
        return ERR_NONE;
    if (!arena_init(&scratch, layer_bytes))
        return errs_add(d->errs, ERR_NOMEM, NOWHERE, "no memory to convert layers");
    add(d, &d->out->layers, head);
    for (size_t i = 0; i < layers->count; i++) {
        const struct layer *l = &layers->items[i];
        const char *refused[TABLE_COLUMNS] = {l->name, l->schema->name, "", "", "", "",
                                              "",      "refused"};
        struct standard s;
        enum err_code got;

        arena_reset(&scratch);
        got = layers_convert(layers, l, &scratch, &s, d->errs);
        if (got) {
            add(d, &d->out->layers, refused);
            d->out->refused++;
        } else
            add_layer(d, l, &s);
        rc = rc ? rc : got;
    }
    arena_free(&scratch);
    return rc;
}

static const char *config_text(const struct checkpoint *c, struct arena *a)
{
    const char *method;

    if (!c->config)
        return "none found: tensors are described, not converted";
    method = schema_method(c->config, a);
    return arena_printf(a, "%s: %s%s", c->config_file, method,
                        schema_knows(c->config) ? "" : " (no schema is known for this)");
}

static void add_totals(struct describing *d, const struct layers *layers)
{
    struct arena *a = d->arena;

    tell(d, "layers",
         arena_printf(a, "%zu quantized, %" PRIu64 " weights", layers->count - d->out->refused,
                      d->weights));
    tell(d, "findings",
         arena_printf(a, "%zu suspicious layers, %zu refused layers, %zu notes", d->out->suspicious,
                      d->out->refused, d->notes));
}

enum err_code describe_checkpoint(const struct checkpoint *c, const char *path, struct arena *arena,
                                  struct description *out, struct errs *errs)
{
    struct describing d = {.out = out, .arena = arena, .errs = errs};
    struct layers layers;
    enum err_code rc;

    *out = (struct description){.head = {.arena = arena, .aligns = "ll"},
                                .tensors = {.arena = arena, .aligns = "lllr"},
                                .layers = {.arena = arena, .aligns = "llllllll"},
                                .findings = {.arena = arena, .aligns = "lll"}};
    TRY(layers_find(c, arena, &layers, errs));
    tell(&d, "checkpoint", path);
    tell(&d, "files", arena_printf(arena, "%zu", c->map_count));
    tell(&d, "tensors", arena_printf(arena, "%zu, %" PRIu64 " bytes", c->tensors.count, c->bytes));
    tell(&d, "config", config_text(c, arena));
    tell(&d, "parameters", c->param ? c->param : "torch_dtype not stated");
    add_tensors(&d, c);
    rc = add_layers(&d, &layers);
    add_totals(&d, &layers);
    if (d.lost)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for all rows");
    return rc;
}
