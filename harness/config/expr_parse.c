#include "harness/config/expr_parser.h"

#include <stdio.h>
#include <string.h>

_Static_assert(AX_COUNT <= 64, "the set of mentioned axes is one word");

enum { LEVELS = 64, LONGEST = 4096 };

static void advance(struct parser *p)
{
    p->now = expr_token(p->text, p->size, p->next);
    p->next = p->now.start + p->now.length;
}

static bool is(const struct parser *p, const char *word)
{
    return p->now.kind != T_END && p->now.kind != T_BAD && !strcmp(p->now.word, word);
}

/* Signs of other languages, and what is written here. */
/* clang-format off */
static const struct {
    const char *sign, *instead;
} foreign[] = {
    {"=", "write '=='"}, {"&", "write 'and'"}, {"|", "write 'or'"}, {"!", "write 'not'"},
    {"\"", "words stand without quotes"}, {"'", "words stand without quotes"},
};
/* clang-format on */

/* The parser met `now` where `expected` is due. */
static void unexpected(struct parser *p, const char *expected)
{
    const char *instead = NULL;

    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (p->now.kind == T_BAD && !strcmp(foreign[i].sign, p->now.word))
            instead = foreign[i].instead;
    if (p->now.kind == T_END)
        BAD(p, &p->now, "where: expected %s, but the condition ends", expected);
    else if (instead)
        BAD(p, &p->now, "where: unexpected '%s': %s", p->now.word, instead);
    else
        BAD(p, &p->now, "where: expected %s, found '%s'", expected, p->now.word);
}

static void parse_or(struct parser *p, struct operand *o);

static bool enter(struct parser *p)
{
    if (++p->level > LEVELS)
        BAD(p, &p->now, "where: the condition is nested more than %d deep", LEVELS);
    return !p->failed;
}

static void parse_parentheses(struct parser *p, struct operand *o)
{
    struct token open = p->now;

    advance(p);
    if (enter(p))
        parse_or(p, o);
    p->level--;
    if (p->failed)
        return;
    if (!is(p, ")")) {
        unexpected(p, "')'");
        return;
    }
    advance(p);
    expr_settle(p, o);
    if (o->type == TYPE_CONDITION)
        expr_need_condition(p, o);
    if (o->type != TYPE_WORD) {
        o->axis = -1;
        (void)snprintf(open.word, sizeof open.word, "(...)");
        o->token = open;
    }
}

static void parse_name(struct parser *p, struct operand *o)
{
    int axis = axis_find(p->now.word);

    for (int i = 0; i < expr_part_count; i++)
        if (!strcmp(expr_parts[i].name, p->now.word)) {
            o->type = TYPE_NUMBER;
            o->first = expr_emit(p, OP_PART, i, 0);
            advance(p);
            return;
        }
    o->axis = axis;
    o->type = axis < 0 ? TYPE_OPEN : expr_type_of_axis(axis);
    o->first = expr_emit(p, axis < 0 ? OP_PUSH : OP_AXIS, axis, 0);
    advance(p);
}

static void parse_primary(struct parser *p, struct operand *o)
{
    *o = (struct operand){.type = TYPE_OPEN, .axis = -1, .token = p->now};
    if (p->failed)
        return;
    if (is(p, "(")) {
        parse_parentheses(p, o);
    } else if (p->now.kind == T_NAME) {
        parse_name(p, o);
    } else if (p->now.kind == T_NUMBER) {
        o->first = expr_emit(p, OP_PUSH, 0, 0);
        advance(p);
    } else {
        unexpected(p, "an axis or a number");
    }
}

static void parse_unary(struct parser *p, struct operand *o)
{
    struct token minus = p->now;

    if (!is(p, "-")) {
        parse_primary(p, o);
        return;
    }
    advance(p);
    if (enter(p))
        parse_unary(p, o);
    p->level--;
    if (p->failed)
        return;
    expr_need_number(p, o, "-");
    (void)expr_emit(p, OP_NEG, 0, 0);
    o->axis = -1;
    o->token.start = minus.start;
}

/* clang-format off */
static const struct {
    const char *sign;
    enum op op;
    int rank; /* 0: products, 1: sums, 2: comparisons of anything, 3: of numbers only */
} signs[] = {
    {"*",  OP_MUL, 0}, {"/",  OP_DIV, 0}, {"%",  OP_MOD, 0},
    {"+",  OP_ADD, 1}, {"-",  OP_SUB, 1},
    {"==", OP_EQ,  2}, {"!=", OP_NE,  2},
    {"<",  OP_LT,  3}, {"<=", OP_LE,  3}, {">",  OP_GT,  3}, {">=", OP_GE,  3},
};
/* clang-format on */
enum { SIGN_COUNT = sizeof signs / sizeof signs[0] };

/* The sign at `now`, of a rank from `low` to `high`; -1: none. */
static int sign_of(const struct parser *p, int low, int high)
{
    for (int i = 0; i < SIGN_COUNT; i++)
        if (signs[i].rank >= low && signs[i].rank <= high && is(p, signs[i].sign))
            return i;
    return -1;
}

/* Products (rank 0) and sums of products (rank 1), from left to right. */
static void parse_arithmetic(struct parser *p, struct operand *o, int rank)
{
    int sign;

    if (rank)
        parse_arithmetic(p, o, rank - 1);
    else
        parse_unary(p, o);
    while (!p->failed && (sign = sign_of(p, rank, rank)) >= 0) {
        struct operand right;

        expr_need_number(p, o, signs[sign].sign);
        advance(p);
        if (rank)
            parse_arithmetic(p, &right, rank - 1);
        else
            parse_unary(p, &right);
        expr_need_number(p, &right, signs[sign].sign);
        (void)expr_emit(p, signs[sign].op, 0, 0);
        o->axis = -1;
    }
}

/* After a comparison its left operand is a condition. */
static void become_condition(struct operand *o)
{
    o->type = TYPE_CONDITION;
    o->axis = -1;
    (void)snprintf(o->token.word, sizeof o->token.word, "this");
}

static void list_item(struct parser *p, const struct operand *left)
{
    bool minus = left->type == TYPE_NUMBER && is(p, "-");
    struct operand item = {.type = TYPE_OPEN, .axis = -1};

    if (minus)
        advance(p);
    item.token = p->now;
    if (p->now.kind != T_NUMBER && (minus || p->now.kind != T_NAME)) {
        unexpected(p, "a value");
        return;
    }
    item.first = expr_emit(p, OP_PUSH, 0, 0);
    p->depth--; /* data of OP_IN, never executed */
    expr_list_meaning(p, left, &item);
    if (minus)
        p->e->code[item.first].value = -p->e->code[item.first].value;
    advance(p);
}

static void parse_in(struct parser *p, struct operand *left)
{
    int in, count = 0;

    expr_settle(p, left);
    advance(p);
    in = expr_emit(p, OP_IN, 0, 0);
    if (!is(p, "["))
        unexpected(p, "'['");
    do {
        advance(p);
        if (!p->failed)
            list_item(p, left);
        count++;
    } while (!p->failed && is(p, ","));
    if (!p->failed && !is(p, "]"))
        unexpected(p, "',' or ']'");
    advance(p);
    p->e->code[in].arg = count;
    become_condition(left);
}

static void parse_comparison(struct parser *p, struct operand *o)
{
    struct operand right;
    int sign;

    parse_arithmetic(p, o, 1);
    if (p->failed)
        return;
    sign = sign_of(p, 2, 3);
    if (is(p, "in")) {
        parse_in(p, o);
    } else if (is(p, "not")) {
        BAD(p, &p->now, "where: 'not' stands before the comparison: not a_dtype in [f16, bf16]");
    } else if (sign >= 0) {
        advance(p);
        parse_arithmetic(p, &right, 1);
        if (!p->failed)
            expr_find_meaning(p, o, &right);
        if (!p->failed)
            expr_check_comparison(p, signs[sign].sign, o, &right);
        (void)expr_emit(p, signs[sign].op, 0, 0);
        become_condition(o);
    } else {
        expr_settle(p, o);
    }
    if (!p->failed && (sign_of(p, 2, 3) >= 0 || is(p, "in")))
        BAD(p, &p->now, "where: comparisons do not chain: join two with 'and'");
}

static void parse_not(struct parser *p, struct operand *o)
{
    if (!is(p, "not")) {
        parse_comparison(p, o);
        return;
    }
    *o = (struct operand){.type = TYPE_CONDITION, .axis = -1, .token = p->now};
    advance(p);
    if (enter(p))
        parse_not(p, o);
    p->level--;
    if (p->failed)
        return;
    expr_need_condition(p, o);
    (void)expr_emit(p, OP_NOT, 0, 0);
}

/* The right side is evaluated only if the left one does not decide, so that `n == 0 or k % n ==
 * 0` divides by no zero. */
static void parse_joined(struct parser *p, struct operand *o, bool is_or)
{
    const char *word = is_or ? "or" : "and";

    if (is_or)
        parse_joined(p, o, false);
    else
        parse_not(p, o);
    while (!p->failed && is(p, word)) {
        struct operand right;
        int jump;

        expr_need_condition(p, o);
        jump = expr_emit(p, is_or ? OP_IF_OR : OP_IF_AND, 0, 0);
        advance(p);
        if (is_or)
            parse_joined(p, &right, false);
        else
            parse_not(p, &right);
        if (!p->failed)
            expr_need_condition(p, &right);
        p->e->code[jump].arg = p->e->count;
    }
}

static void parse_or(struct parser *p, struct operand *o)
{
    parse_joined(p, o, true);
}

static void parse_all(struct parser *p)
{
    struct operand o;

    advance(p);
    if (p->now.kind == T_END) {
        BAD(p, &p->now, "where: the condition is empty");
        return;
    }
    parse_or(p, &o);
    if (p->failed)
        return;
    if (p->now.kind != T_END)
        unexpected(p, "'and', 'or' or the end");
    expr_need_condition(p, &o);
}

const struct expr *expr_parse(const char *text, struct place at, struct arena *arena,
                              struct errs *errs)
{
    struct parser p = {.text = text, .size = strlen(text), .at = at, .arena = arena, .errs = errs};

    if (p.size > LONGEST) {
        BAD(&p, &p.now, "where: a condition has at most %d characters", LONGEST);
        return NULL;
    }
    p.e = ARENA_NEW(arena, 1, struct expr);
    if (p.e) /* no token makes more than two instructions */
        p.e->code = arena_alloc(arena, 2 * p.size + 2, sizeof *p.e->code);
    if (!p.e || !p.e->code) {
        (void)errs_add(errs, ERR_NOMEM, at, "where: no memory for the condition");
        return NULL;
    }
    parse_all(&p);
    for (int i = 0; i < p.e->count; i++) {
        const struct code *c = &p.e->code[i];

        if (c->op == OP_AXIS || c->op == OP_PART)
            p.e->mentions |= UINT64_C(1)
                             << (c->op == OP_AXIS ? c->arg : (int)expr_parts[c->arg].axis);
    }
    return p.failed ? NULL : p.e;
}
