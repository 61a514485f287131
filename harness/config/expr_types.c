#include "harness/config/expr_parser.h"

#include "harness/config/near.h"
#include "harness/core/utf8.h"

#include "reference/dtype.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 160, HINT = 96 };

struct place expr_place(const struct parser *p, const struct token *t)
{
    struct place at = p->at;

    at.column += (int)utf8_count(p->text, t->start);
    return at;
}

int expr_emit(struct parser *p, enum op op, int arg, int64_t value)
{
    int i = p->e->count++;

    p->e->code[i] = (struct code){op, arg, value};
    p->depth += expr_effect(op);
    if (p->depth >= EXPR_STACK)
        BAD(p, &p->now, "where: the condition is too complicated");
    return i;
}

static void unknown_name(struct parser *p, const struct token *t)
{
    struct near near = near_to(t->word);
    char hint[HINT];

    for (int i = 0; i < AX_COUNT; i++)
        near_offer(&near, axes[i].key);
    for (int i = 0; i < expr_part_count; i++)
        near_offer(&near, expr_parts[i].name);
    if (!strcmp(t->word, "true") || !strcmp(t->word, "false") || !strcmp(t->word, "auto"))
        BAD(p, t, "where: '%s' must be compared with an axis", t->word);
    else
        BAD(p, t, "where: unknown axis '%s'%s", t->word, near_hint(&near, hint, sizeof hint));
}

void expr_settle(struct parser *p, struct operand *o)
{
    static const struct axis number = {.key = "number", .kind = AXIS_INT, .max = INT64_MAX};
    char buf[TEXT];

    if (o->type != TYPE_OPEN || p->failed)
        return;
    o->type = TYPE_NUMBER;
    if (o->token.kind == T_NAME)
        unknown_name(p, &o->token);
    else if (axis_parse(&number, o->token.word, &p->e->code[o->first].value, buf, sizeof buf))
        BAD(p, &o->token, "where: '%s' is not a number (decimal without leading zeros, or 0x...)",
            o->token.word);
}

static const char *kind_of(const struct operand *o)
{
    static const char *const kinds[] = {
        [AXIS_INT] = "a number",    [AXIS_BOOL] = "true or false", [AXIS_WORD] = "a word",
        [AXIS_FORMAT] = "a format", [AXIS_WEIGHT] = "a format",    [AXIS_TILE] = "a tile",
        [AXIS_SEED] = "a seed",
    };

    if (o->axis >= 0)
        return kinds[axes[o->axis].kind];
    return o->type == TYPE_CONDITION ? "a condition" : "a number";
}

void expr_need_number(struct parser *p, struct operand *o, const char *sign)
{
    expr_settle(p, o);
    if (o->type != TYPE_NUMBER)
        BAD(p, &o->token, "where: '%s' takes numbers, and '%s' is %s", sign, o->token.word,
            kind_of(o));
}

void expr_need_condition(struct parser *p, struct operand *o)
{
    expr_settle(p, o);
    if (o->type != TYPE_CONDITION)
        BAD(p, &o->token, "where: expected a condition such as 'm <= 64', and '%s' is %s",
            o->token.word, kind_of(o));
    else if (o->axis >= 0)
        (void)expr_emit(p, OP_TRUTH, 0, 0);
    o->axis = -1;
}

enum type expr_type_of_axis(int axis)
{
    if (axes[axis].kind == AXIS_INT)
        return TYPE_NUMBER;
    return axes[axis].kind == AXIS_BOOL ? TYPE_CONDITION : TYPE_WORD;
}

/* Does `side` give the word `o` its value? Numbers are themselves, but for auto. */
static bool gives_words(const struct operand *side, const struct operand *o)
{
    if (side->axis < 0 || side->type == TYPE_OPEN)
        return false;
    if (axes[side->axis].kind == AXIS_INT)
        return axes[side->axis].may_be_auto && !strcmp(o->token.word, "auto");
    return true;
}

static void offer_words(const struct axis *x, struct near *near)
{
    near_offer_all(near, x->words);
    for (int i = 0; i < dtype_count && (x->kind == AXIS_FORMAT || x->kind == AXIS_WEIGHT); i++)
        near_offer(near, dtypes[i].name);
}

static void take_word(struct parser *p, const struct operand *side, struct operand *o)
{
    const struct axis *x = &axes[side->axis];
    struct near near = near_to(o->token.word);
    char buf[TEXT], hint[HINT];
    const char *expected =
        axis_parse(x, o->token.word, &p->e->code[o->first].value, buf, sizeof buf);

    offer_words(x, &near);
    if (expected)
        BAD(p, &o->token, "where: %s: expected %s, found '%s'%s", x->key, expected, o->token.word,
            near_hint(&near, hint, sizeof hint));
    p->e->code[o->first].op = OP_PUSH;
    o->type = side->type;
    o->axis = side->axis;
}

/* An axis' name may be another's word: in `scales == fill`, fill is the word of scales. */
static bool is_word_of(const struct operand *side, const struct operand *o)
{
    char buf[TEXT];
    int64_t v;

    return side->type == TYPE_WORD && o->type == TYPE_WORD && side->axis != o->axis &&
           axes[side->axis].kind == AXIS_WORD &&
           !axis_parse(&axes[side->axis], o->token.word, &v, buf, sizeof buf);
}

static bool names(const struct operand *side, const struct operand *o)
{
    return (o->type == TYPE_OPEN && gives_words(side, o)) || is_word_of(side, o);
}

void expr_find_meaning(struct parser *p, struct operand *a, struct operand *b)
{
    if (names(a, b))
        take_word(p, a, b);
    else if (names(b, a))
        take_word(p, b, a);
    expr_settle(p, a);
    expr_settle(p, b);
}

static bool is_format(const struct operand *o)
{
    return axes[o->axis].kind == AXIS_FORMAT || axes[o->axis].kind == AXIS_WEIGHT;
}

static bool comparable(const struct operand *a, const struct operand *b)
{
    if (a->type != b->type)
        return false;
    if (a->type != TYPE_WORD || a->axis == b->axis)
        return true;
    if (is_format(a) && is_format(b))
        return true;
    return axes[a->axis].kind == axes[b->axis].kind && axes[a->axis].words == axes[b->axis].words;
}

void expr_check_comparison(struct parser *p, const char *sign, const struct operand *a,
                           const struct operand *b)
{
    const struct operand *word = a->type != TYPE_NUMBER ? a : b;
    bool has_auto =
        p->e->code[a->first].value == AXIS_AUTO || p->e->code[b->first].value == AXIS_AUTO;
    bool sign_orders = *sign == '<' || *sign == '>';

    if (!comparable(a, b))
        BAD(p, &b->token, "where: '%s' is %s and '%s' is %s: they cannot be compared",
            a->token.word, kind_of(a), b->token.word, kind_of(b));
    else if (sign_orders && word->type != TYPE_NUMBER)
        BAD(p, &word->token, "where: '%s' compares numbers, and '%s' is %s: use ==, != or in", sign,
            word->token.word, kind_of(word));
    else if (sign_orders && has_auto)
        BAD(p, &b->token, "where: auto can be compared by == and != only");
}

void expr_list_meaning(struct parser *p, const struct operand *left, struct operand *item)
{
    if (gives_words(left, item))
        take_word(p, left, item);
    expr_settle(p, item);
    if (!p->failed)
        expr_check_comparison(p, "==", left, item);
}
