/* expr_code.h - what expr_parse.c, expr_token.c and expr.c share: tokens, and the code of a
 * condition; no interface of the module.
 */
#ifndef HARNESS_CONFIG_EXPR_CODE_H
#define HARNESS_CONFIG_EXPR_CODE_H

#include "harness/config/expr.h"

enum { EXPR_STACK = 256, EXPR_WORD = 64 };

enum token_kind { T_END, T_NAME, T_NUMBER, T_SIGN, T_BAD };

struct token {
    enum token_kind kind;
    size_t start, length; /* in the text */
    char word[EXPR_WORD]; /* the token itself, cut */
};

/* The token of `text`, of `size` bytes, at or after byte `from`. A number is whatever starts
 * with a digit ("64x128x64"). */
struct token expr_token(const char *text, size_t size, size_t from);

/* Postfix code on a stack of numbers; conditions are 0 and 1. */
/* clang-format off */
enum op {
    OP_PUSH,   /* value */
    OP_AXIS,   /* v[arg] */
    OP_PART,   /* parts[arg] of an axis */
    OP_TRUTH,  /* top == 1: an axis as a condition, so that auto is not one */
    OP_NOT,
    OP_NEG,
    OP_IN,     /* top is among the next `arg` instructions' values, which are skipped */
    OP_IF_AND, /* top is 0: jump to arg, else drop it */
    OP_IF_OR,  /* top is 1: jump to arg, else drop it */
    OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD,
    OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE
};

/* clang-format on */

/* How an instruction changes the height of the stack. */
int expr_effect(enum op op);

struct code {
    enum op op;
    int arg;
    int64_t value;
};

struct expr {
    struct code *code;
    int count;
    uint64_t mentions; /* bit axis: mentioned */
};

struct expr_part {
    const char *name;
    enum axis_id axis;
    int64_t (*get)(int64_t tile); /* NULL: the bits of a format */
};

extern const struct expr_part expr_parts[]; /* numbers inside the value of an axis */
extern const int expr_part_count;

#endif
