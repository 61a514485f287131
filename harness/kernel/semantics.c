#include "harness/kernel/semantics.h"

#include "harness/config/near.h"
#include "harness/config/rows.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct semantics_info semantics_infos[SEMANTICS_COUNT] = {
    [SEMANTICS_BLOCK_ON_OPERAND] = {"block-scale-on-operand", "gemm",
     "16-bit activations: a block scale is multiplied into the weight, w = RN_a(v RN_a(s)), not "
     "into the accumulator"},
    [SEMANTICS_ZERO_ON_MINIMUM] = {"zero-on-minimum", "quant_weight",
     "with a zero point: code = rint(RN(RN(v - min) inv)), min = RN(-zp scale) or the minimum, not "
     "rint(RN(RN(v inv) + zp))"},
    [SEMANTICS_SIDES_BY_SIZE] = {"sides-by-size", "quant_weight",
     "integers without zero point: the larger divisor belongs to the larger extreme, not to the "
     "side below zero"},
    [SEMANTICS_SCALED_QUOTIENT] = {"scaled-quotient", "quant_weight",
     "float codes: the quotient is rounded to f32 times 2^(2^(E-1) - 128) before it is rounded to "
     "a code"},
    [SEMANTICS_TWOS_COMPLEMENT] = {"twos-complement", "quant_weight",
     "intN without zero point: codes are the signed numbers, 32 bits, not offset binary"},
    [SEMANTICS_EXTREMES_BY_SIDE] = {"extremes-by-side", "process_input",
     "the floor of 1e-30 is one of the extremes, not of the scale; integers have one code more "
     "below zero"},
    [SEMANTICS_RECIPROCAL_LIMIT] = {"reciprocal-limit", "process_input",
     "scales are RN(extreme RN(1 / limit)), not RN(extreme / limit)"},
    [SEMANTICS_SCALES_ROUND_UP] = {"scales-round-up", "process_input",
     "e4m3 group scales, and those of 3 bits, are the least number that is not below, not the "
     "nearest one"},
    [SEMANTICS_STATIC_ON_SCALE] = {"static-on-scale", "process_input",
     "static_tensor_dynamic_group: raw scales are divided by the static one, and v by RN(decoded "
     "static); v stays as it is"},
    [SEMANTICS_INT4_SATURATES] = {"int4-saturates", "process_input",
     "int4: limited to [-8, 7], not the low 4 bits"},
    [SEMANTICS_FUSED_SUM] = {"fused-sum", "moe_sum",
     "acc = fma(x, w, acc), not RN(acc + RN(x w)); what is left out counts as x = +0"},
};
/* clang-format on */

/* The families that the steps of the experts pipeline belong to. */
static const char *const steps[] = {"gemm", "process_input", "moe_sum"};

enum { STEPS = sizeof steps / sizeof steps[0] };

static const struct rows_key keys[] = {
    {"versions", true}, {"family", true}, {"rule", true}, {"established", true}};
static const struct rows_form form = {"semantics", "the table of semantics", keys,
                                      sizeof keys / sizeof keys[0]};

/* ---- loading --------------------------------------------------------------------------------- */

static void unknown_rule(const struct doc_node *node, const char *name, struct errs *errs)
{
    struct near near = near_to(name);
    char hint[128];

    for (int i = 0; i < SEMANTICS_COUNT; i++)
        near_offer(&near, semantics_infos[i].name);
    (void)errs_add(errs, ERR_CONFIG, rows_place(node, "rule"), "unknown rule '%s'%s", name,
                   near_hint(&near, hint, sizeof hint));
}

/* What is wrong in a row whose form is right, or was reported. */
static void load_row(const struct doc_node *node, struct semantics *s, struct semantics_row *row,
                     struct errs *errs)
{
    const char *name = rows_text(node, "rule"), *family = rows_text(node, "family");
    int rule = 0;

    row->versions = rows_text(node, "versions");
    if (row->versions && !strchr(row->versions, ' '))
        (void)errs_add(errs, ERR_CONFIG, rows_place(node, "versions"),
                       "versions: expected a provider's name and version, got '%s'", row->versions);
    while (name && rule < SEMANTICS_COUNT && strcmp(semantics_infos[rule].name, name) != 0)
        rule++;
    row->rule = (enum semantics_rule)rule;
    if (rule == SEMANTICS_COUNT) {
        unknown_rule(node, name, errs);
        return;
    }
    if (name && family && strcmp(semantics_infos[rule].family, family) != 0)
        (void)errs_add(errs, ERR_CONFIG, rows_place(node, "family"),
                       "rule '%s' belongs to the family %s, not to '%s'", name,
                       semantics_infos[rule].family, family);
    for (size_t i = 0; name && row->versions && i < s->count; i++)
        if (s->rows[i].versions && s->rows[i].rule == row->rule &&
            !strcmp(s->rows[i].versions, row->versions))
            (void)errs_add(errs, ERR_CONFIG, rows_place(node, "rule"),
                           "rule '%s' is given twice for '%s'", name, row->versions);
}

enum err_code semantics_load(const char *path, struct arena *arena, struct semantics *out,
                             struct errs *errs)
{
    const struct doc_node *node;
    struct semantics_row *rows;
    size_t before = errs->count, count;
    enum err_code rc;

    *out = (struct semantics){0};
    if (!path)
        return ERR_NONE;
    rc = rows_load(path, &form, arena, &node, &count, errs);
    rows = ARENA_NEW(arena, count + 1, struct semantics_row);
    if (!rows)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the table of semantics");
    out->rows = rows;
    for (; node; node = node->next) {
        load_row(node, out, &rows[out->count], errs);
        out->count++;
    }
    return rc ? rc : errs->count > before ? ERR_CONFIG : ERR_NONE;
}

/* ---- use ------------------------------------------------------------------------------------- */

uint32_t semantics_of(const struct semantics *s, const char *provider)
{
    uint32_t rules = 0;

    for (size_t i = 0; i < s->count; i++)
        if (fnmatch(s->rows[i].versions, provider, 0) == 0)
            rules |= UINT32_C(1) << s->rows[i].rule;
    return rules;
}

static bool belongs(const struct semantics_info *info, const char *family)
{
    if (!family || !strcmp(info->family, family))
        return true;
    for (int i = 0; !strcmp(family, "experts") && i < STEPS; i++)
        if (!strcmp(info->family, steps[i]))
            return true;
    return false;
}

const char *semantics_names(uint32_t rules, const char *family, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < SEMANTICS_COUNT && used < size; i++)
        if (semantics_has(rules, (enum semantics_rule)i) && belongs(&semantics_infos[i], family))
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
                                     semantics_infos[i].name);
    return buf;
}

const char *semantics_note(uint32_t rules, const char *family, char buf[SEMANTICS_NOTE])
{
    char names[SEMANTICS_NOTE - 8];

    (void)semantics_names(rules, family, names, sizeof names);
    (void)snprintf(buf, SEMANTICS_NOTE, "%s%s", names[0] ? "; by " : "", names);
    return buf;
}
