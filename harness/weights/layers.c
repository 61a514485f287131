#include "harness/weights/layers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static const struct dtype *param_of(const char *text)
{
    if (text && !strcmp(text, "float16"))
        return dtype_find("f16");
    return text && !strcmp(text, "bfloat16") ? dtype_find("bf16") : NULL;
}

enum err_code layers_find(const struct checkpoint *c, struct arena *arena, struct layers *out,
                          struct errs *errs)
{
    struct layer *items = arena_alloc(arena, c->tensors.count, sizeof *items);
    size_t n = 0;

    *out = (struct layers){.from = c, .param = param_of(c->param), .items = items};
    for (size_t i = 0; items && i < c->tensors.count; i++) {
        const struct tensor *t = &c->tensors.tensors[i];
        size_t length;
        const struct schema *s = schema_of(c->config, t, &length);

        if (!s)
            continue;
        items[n].schema = s;
        items[n].name = arena_printf(arena, "%.*s", (int)length, t->name);
        if (!items[n++].name)
            items = NULL;
    }
    if (!items)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the layers");
    qsort(items, n, sizeof *items, compare);
    out->count = n;
    return ERR_NONE;
}

const struct layer *layers_get(const struct layers *l, const char *name)
{
    const struct layer key = {.name = name};

    return l->count ? bsearch(&key, l->items, l->count, sizeof key, compare) : NULL;
}

/* bsearch for a name that is the first `n` bytes of a text. */
static const struct layer *get_prefix(const struct layers *l, const char *text, size_t n)
{
    size_t low = 0, high = l->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *name = l->items[middle].name;
        int order = strncmp(text, name, n);

        if (!order && !name[n])
            return &l->items[middle];
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* `suffix`, with a space on both sides, is one of the words of `list`. */
static bool listed(const char *list, const char *suffix)
{
    size_t n = strlen(suffix);

    for (const char *at = strstr(list, suffix); at; at = strstr(at + 1, suffix))
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

bool layers_own(const struct layers *l, const char *tensor)
{
    for (const char *at = tensor; *at; at++) {
        const struct layer *layer;

        if (*at != '.' && *at != '_')
            continue;
        layer = get_prefix(l, tensor, (size_t)(at - tensor));
        if (layer && (!strcmp(layer->schema->main, at) || listed(layer->schema->others, at)))
            return true;
    }
    return false;
}

/* A sentence about the config would come once a layer: the same one in a row is told once. */
static void forward(const struct errs *own, struct errs *errs)
{
    for (size_t i = 0; i < own->count; i++) {
        const struct err *e = &own->items[i],
                         *last = errs->count ? &errs->items[errs->count - 1] : NULL;

        if (!last || e->at.file != last->at.file || strcmp(e->text, last->text) != 0)
            (void)errs_add(errs, e->code, e->at, "%s", e->text);
    }
}

enum err_code layers_convert(const struct layers *l, const struct layer *layer, struct arena *arena,
                             struct standard *out, struct errs *errs)
{
    const struct schema_request r = {.from = &l->from->tensors,
                                     .config = l->from->config,
                                     .config_file = l->from->config_file,
                                     .param = l->param,
                                     .form = SCHEMA_EXACT,
                                     .layers = &layer->name,
                                     .count = 1};
    struct errs own = {0};
    enum err_code rc = schema_convert(layer->schema, &r, arena, out, &own);

    forward(&own, errs);
    errs_free(&own);
    return rc;
}

const char *layers_weights(const struct standard *s, struct arena *arena)
{
    if (s->experts)
        return arena_printf(arena, "%" PRId64 " x %s %" PRId64 "x%" PRId64, s->experts, s->b->name,
                            s->n, s->k);
    return arena_printf(arena, "%s %" PRId64 "x%" PRId64, s->b->name, s->n, s->k);
}

const char *layers_scales(const struct standard *s, struct arena *arena)
{
    const char *second = s->scale_2 == REF_SCALE_2_NONE ? "" : ", tensor f32";

    switch (s->scale) {
    case REF_SCALE_CHANNEL:
        return arena_printf(arena, "channel %s%s", s->bs->name, second);
    case REF_SCALE_GROUP:
        return arena_printf(arena, "group %" PRId64 " %s%s", s->group, s->bs->name, second);
    case REF_SCALE_BLOCK:
        return arena_printf(arena, "block %" PRId64 "x%" PRId64 " %s", s->group_n, s->group,
                            s->bs->name);
    case REF_SCALE_TENSOR:
        break;
    }
    return arena_printf(arena, "tensor %s", s->bs->name);
}
