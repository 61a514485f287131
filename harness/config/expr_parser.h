/* expr_parser.h - what expr_parse.c (the grammar) and expr_types.c (what words and operands mean)
 * share; no interface of the module.
 */
#ifndef HARNESS_CONFIG_EXPR_PARSER_H
#define HARNESS_CONFIG_EXPR_PARSER_H

#include "harness/config/expr_code.h"

/* What an operand is, as far as comparing needs it. */
enum type {
    TYPE_NUMBER,
    TYPE_CONDITION,
    TYPE_WORD, /* a value that only its axis can name: word, format, tile, seed */
    TYPE_OPEN  /* what the other side makes of a name or number; one OP_PUSH at `first` */
};

struct operand {
    enum type type;
    int axis;  /* a bare axis, else -1 */
    int first; /* its first instruction */
    struct token token;
};

struct parser {
    const char *text;
    size_t size, next; /* where the next token is looked for */
    struct place at;
    struct arena *arena;
    struct errs *errs;
    struct expr *e;
    struct token now;
    int level, depth; /* of nesting; of the stack, as evaluated so far */
    bool failed;      /* an error was added: only the first of a condition is */
};

/* Where a token of the text stands in the file. */
struct place expr_place(const struct parser *p, const struct token *t);

#define BAD(p, t, ...)                                                                \
    do {                                                                              \
        if (!(p)->failed)                                                             \
            (void)errs_add((p)->errs, ERR_CONFIG, expr_place((p), (t)), __VA_ARGS__); \
        (p)->failed = true;                                                           \
    } while (0)

/* Append an instruction; its index. */
int expr_emit(struct parser *p, enum op op, int arg, int64_t value);

/* An operand that nothing gave a meaning: a name is unknown, a number must be one. */
void expr_settle(struct parser *p, struct operand *o);

void expr_need_number(struct parser *p, struct operand *o, const char *sign);
void expr_need_condition(struct parser *p, struct operand *o);

enum type expr_type_of_axis(int axis);

/* The two sides of a comparison: words take their meaning from the axis on the other side. */
void expr_find_meaning(struct parser *p, struct operand *a, struct operand *b);
void expr_check_comparison(struct parser *p, const char *sign, const struct operand *a,
                           const struct operand *b);

/* An item of `left in [..]`: a single name or number. */
void expr_list_meaning(struct parser *p, const struct operand *left, struct operand *item);

#endif
