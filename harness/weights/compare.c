#include "harness/weights/compare.h"

#include "harness/weights/layers.h"

#include <inttypes.h>
#include <string.h>

static const size_t layer_bytes = (size_t)1 << 34; /* as in describe.c, for each side */

struct comparing {
    struct comparison *out;
    struct arena *arena;
    struct errs *errs;
    struct layers layers[2];
    struct arena scratch[2];
    bool lost;
    bool differs; /* the name at hand */
};

static void differ(struct comparing *c, const char *name, const char *what, const char *sentence)
{
    const char *cells[] = {name, what, sentence};

    c->differs = true;
    if (!sentence || !table_add(&c->out->differences, cells))
        c->lost = true;
}

/* Zero points in effect: 2^(bits-1) where none are stored. */
static int zero_at(const struct standard *s, int64_t i)
{
    return s->zero == REF_ZERO_NONE ? 1 << (s->b->bits - 1) : s->zeros[i];
}

static bool same_scales(const struct standard *a, const struct standard *b)
{
    return a->scale == b->scale && a->bs == b->bs && a->group == b->group &&
           a->group_n == b->group_n;
}

static void compare_codes(struct comparing *c, const char *name, const struct standard s[2])
{
    int64_t n = s[0].n * standard_matrices(&s[0]) * s[0].k, first = -1, count = 0;

    if (!memcmp(s[0].codes, s[1].codes, (size_t)n))
        return;
    for (int64_t i = 0; i < n; i++) {
        bool equal = s[0].codes[i] == s[1].codes[i];

        first = !equal && first < 0 ? i : first;
        count += !equal;
    }
    differ(c, name, "codes",
           arena_printf(c->arena,
                        "%" PRId64 " of %" PRId64 " differ, first (n, k) = (%" PRId64 ", %" PRId64
                        "): %d (value %.9g) and %d (value %.9g)",
                        count, n, first / s[0].k, first % s[0].k, s[0].codes[first],
                        standard_value(&s[0], first / s[0].k, first % s[0].k), s[1].codes[first],
                        standard_value(&s[1], first / s[0].k, first % s[0].k)));
}

static void compare_scales(struct comparing *c, const char *name, const struct standard s[2])
{
    int64_t n = standard_scale_count(&s[0]), first = -1, count = 0;

    if (!same_scales(&s[0], &s[1])) {
        differ(c, name, "scales",
               arena_printf(c->arena, "%s and %s", layers_scales(&s[0], c->arena),
                            layers_scales(&s[1], c->arena)));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        bool equal = s[0].scales[i] == s[1].scales[i];

        first = !equal && first < 0 ? i : first;
        count += !equal;
    }
    if (count)
        differ(c, name, "scales",
               arena_printf(c->arena,
                            "%" PRId64 " of %" PRId64 " differ, first number %" PRId64
                            " of them: 0x%" PRIx32 " (%.9g) and 0x%" PRIx32 " (%.9g)",
                            count, n, first, s[0].scales[first],
                            dtype_decode(s[0].bs, s[0].scales[first]), s[1].scales[first],
                            dtype_decode(s[1].bs, s[1].scales[first])));
}

static void compare_zeros(struct comparing *c, const char *name, const struct standard s[2])
{
    int64_t n = s[0].n * standard_matrices(&s[0]) * standard_groups(&s[0]);
    int64_t groups = standard_groups(&s[0]), first = -1, count = 0;

    if (s[0].zero == REF_ZERO_NONE && s[1].zero == REF_ZERO_NONE)
        return;
    if (s[0].group != s[1].group) {
        differ(c, name, "zero points", "they belong to groups of different sizes");
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        bool equal = zero_at(&s[0], i) == zero_at(&s[1], i);

        first = !equal && first < 0 ? i : first;
        count += !equal;
    }
    if (count)
        differ(c, name, "zero points",
               arena_printf(c->arena,
                            "%" PRId64 " of %" PRId64 " differ, first (n, group) = (%" PRId64
                            ", %" PRId64 "): %d and %d",
                            count, n, first / groups, first % groups, zero_at(&s[0], first),
                            zero_at(&s[1], first)));
}

static void compare_standard(struct comparing *c, const char *name, const struct standard s[2])
{
    const struct dtype *f32 = dtype_find("f32");

    if (s[0].experts != s[1].experts || s[0].n != s[1].n || s[0].k != s[1].k || s[0].b != s[1].b) {
        differ(c, name, "weights",
               arena_printf(c->arena, "%s and %s", layers_weights(&s[0], c->arena),
                            layers_weights(&s[1], c->arena)));
        return;
    }
    compare_codes(c, name, s);
    compare_scales(c, name, s);
    compare_zeros(c, name, s);
    if (s[0].scale_2 != s[1].scale_2)
        differ(c, name, "scale 2", "only one of them has a second scale");
    else if (s[0].scale_2_code != s[1].scale_2_code)
        differ(c, name, "scale 2",
               arena_printf(c->arena, "0x%" PRIx32 " (%.9g) and 0x%" PRIx32 " (%.9g)",
                            s[0].scale_2_code, dtype_decode(f32, s[0].scale_2_code),
                            s[1].scale_2_code, dtype_decode(f32, s[1].scale_2_code)));
}

static enum err_code compare_layer(struct comparing *c, const struct layer *l[2])
{
    struct standard s[2];
    enum err_code rc = ERR_NONE;

    c->out->layers++;
    c->differs = false;
    for (int i = 0; i < 2; i++) {
        enum err_code got;

        arena_reset(&c->scratch[i]);
        got = layers_convert(&c->layers[i], l[i], &c->scratch[i], &s[i], c->errs);
        rc = rc ? rc : got;
    }
    if (rc)
        differ(c, l[0]->name, "layer", "it cannot be converted");
    else
        compare_standard(c, l[0]->name, s);
    c->out->different += c->differs;
    return rc;
}

static void only_in(struct comparing *c, const char *name, const char *what, int side)
{
    differ(c, name, what, side ? "only in the second checkpoint" : "only in the first checkpoint");
    c->out->different++;
}

static enum err_code compare_layers(struct comparing *c)
{
    enum err_code rc = ERR_NONE;

    for (size_t i = 0; i < c->layers[0].count; i++) {
        const struct layer *l[2] = {&c->layers[0].items[i]};
        enum err_code got = ERR_NONE;

        l[1] = layers_get(&c->layers[1], l[0]->name);
        if (l[1])
            got = compare_layer(c, l);
        else
            only_in(c, l[0]->name, "layer", 0);
        rc = rc ? rc : got;
    }
    for (size_t i = 0; i < c->layers[1].count; i++)
        if (!layers_get(&c->layers[0], c->layers[1].items[i].name))
            only_in(c, c->layers[1].items[i].name, "layer", 1);
    return rc;
}

static void compare_tensor(struct comparing *c, const struct tensor *a, const struct tensor *b)
{
    char text[2][160];
    uint64_t i = 0;

    c->out->tensors++;
    c->differs = false;
    (void)tensor_describe(a, text[0], sizeof text[0]);
    (void)tensor_describe(b, text[1], sizeof text[1]);
    if (strcmp(text[0], text[1]) != 0 || a->bytes != b->bytes)
        differ(c, a->name, "tensor", arena_printf(c->arena, "%s and %s", text[0], text[1]));
    else if (a->bytes && memcmp(a->data, b->data, a->bytes) != 0) {
        while (a->data[i] == b->data[i])
            i++;
        differ(c, a->name, "tensor",
               arena_printf(c->arena,
                            "byte %" PRIu64 " of %" PRIu64 " is the first that differs: 0x%02x "
                            "and 0x%02x",
                            i, a->bytes, a->data[i], b->data[i]));
    }
    c->out->different += c->differs;
}

/* Tensors that no layer of its own checkpoint owns. */
static void compare_tensors(struct comparing *c)
{
    for (int side = 0; side < 2; side++) {
        const struct safetensors *mine = &c->layers[side].from->tensors;
        const struct safetensors *other = &c->layers[1 - side].from->tensors;

        for (size_t i = 0; i < mine->count; i++) {
            const struct tensor *t = &mine->tensors[i], *o;

            if (layers_own(&c->layers[side], t->name))
                continue;
            o = safetensors_find(other, t->name);
            if (!o || layers_own(&c->layers[1 - side], t->name))
                only_in(c, t->name, "tensor", side);
            else if (!side)
                compare_tensor(c, t, o);
        }
    }
}

static enum err_code compare_all(struct comparing *c)
{
    enum err_code rc;

    if (!arena_init(&c->scratch[0], layer_bytes) || !arena_init(&c->scratch[1], layer_bytes))
        return errs_add(c->errs, ERR_NOMEM, NOWHERE, "no memory to convert layers");
    rc = compare_layers(c);
    compare_tensors(c);
    if (c->lost)
        return errs_add(c->errs, ERR_NOMEM, NOWHERE, "no memory for all differences");
    return rc;
}

enum err_code compare_checkpoints(const struct checkpoint *a, const struct checkpoint *b,
                                  struct arena *arena, struct comparison *out, struct errs *errs)
{
    struct comparing c = {.out = out, .arena = arena, .errs = errs};
    enum err_code rc;

    *out = (struct comparison){.differences = {.arena = arena, .aligns = "lll"}};
    TRY(layers_find(a, arena, &c.layers[0], errs));
    TRY(layers_find(b, arena, &c.layers[1], errs));
    rc = compare_all(&c);
    arena_free(&c.scratch[0]);
    arena_free(&c.scratch[1]);
    return rc;
}
