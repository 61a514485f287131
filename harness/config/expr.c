#include "harness/config/expr_code.h"

#include "reference/dtype.h"

/* clang-format off */
const struct expr_part expr_parts[] = {
    {"block_m", AX_BLOCK, axis_tile_m},
    {"block_n", AX_BLOCK, axis_tile_n},
    {"block_k", AX_BLOCK, axis_tile_k},
    {"warp_m",  AX_WARP,  axis_tile_m},
    {"warp_n",  AX_WARP,  axis_tile_n},
    {"warp_k",  AX_WARP,  axis_tile_k},
    {"a_bits",  AX_A,     NULL},
    {"b_bits",  AX_B,     NULL},
    {"c_bits",  AX_C,     NULL},
    {"bs_bits", AX_BS,    NULL},
};
/* clang-format on */
const int expr_part_count = sizeof expr_parts / sizeof expr_parts[0];

int expr_effect(enum op op)
{
    switch (op) {
    case OP_PUSH:
    case OP_AXIS:
    case OP_PART:
        return 1;
    case OP_TRUTH:
    case OP_NOT:
    case OP_NEG:
    case OP_IN:
        return 0;
    case OP_IF_AND:
    case OP_IF_OR:
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
        return -1;
    }
    return 0;
}

static int64_t part_of(const struct expr_part *part, int64_t value)
{
    if (value == AXIS_AUTO)
        return AXIS_AUTO;
    if (part->get)
        return part->get(value);
    return value >= 0 && value < dtype_count ? dtypes[value].bits : AXIS_AUTO;
}

/* False: no number comes out (auto, a division by zero, an overflow). INT64_MIN counts as
 * overflow: it is auto. */
static bool arithmetic(enum op op, int64_t x, int64_t y, int64_t *out)
{
    bool overflow = false;

    if (x == AXIS_AUTO || y == AXIS_AUTO)
        return false;
    if (op == OP_ADD)
        overflow = __builtin_add_overflow(x, y, out);
    else if (op == OP_SUB)
        overflow = __builtin_sub_overflow(x, y, out);
    else if (op == OP_MUL)
        overflow = __builtin_mul_overflow(x, y, out);
    else if (!y)
        return false;
    else
        *out = op == OP_DIV ? x / y : x % y;
    return !overflow && *out != AXIS_AUTO;
}

/* Auto has no order. */
static bool ordered(enum op op, int64_t x, int64_t y)
{
    if (x == AXIS_AUTO || y == AXIS_AUTO)
        return false;
    if (op == OP_LT)
        return x < y;
    if (op == OP_LE)
        return x <= y;
    return op == OP_GT ? x > y : x >= y;
}

/* Any operation on two numbers; false: as arithmetic. */
static inline bool binary(enum op op, int64_t x, int64_t y, int64_t *out)
{
    if (op < OP_EQ)
        return arithmetic(op, x, y, out);
    if (op == OP_EQ)
        *out = x == y;
    else if (op == OP_NE)
        *out = x != y;
    else
        *out = ordered(op, x, y);
    return true;
}

static bool is_among(const struct code *items, int count, int64_t x)
{
    for (int i = 0; i < count; i++)
        if (items[i].value == x)
            return true;
    return false;
}

/* The parser has counted the stack: what an operation takes was pushed, which no analyser sees. */
/* NOLINTBEGIN(clang-analyzer-core.*,clang-analyzer-core.uninitialized.*) */
bool expr_eval(const struct expr *e, const int64_t v[AX_COUNT])
{
    int64_t stack[EXPR_STACK];
    int64_t *top = stack + 1; /* one past the topmost; below all lies a false */

    stack[0] = 0;
    for (const struct code *c = e->code; c < e->code + e->count; c++) {
        switch (c->op) {
        case OP_PUSH:
            *top++ = c->value;
            break;
        case OP_AXIS:
            *top++ = v[c->arg];
            break;
        case OP_PART:
            *top++ = part_of(&expr_parts[c->arg], v[expr_parts[c->arg].axis]);
            break;
        case OP_TRUTH:
            top[-1] = top[-1] == 1;
            break;
        case OP_NOT:
            top[-1] = !top[-1];
            break;
        case OP_NEG:
            if (!arithmetic(OP_SUB, 0, top[-1], &top[-1]))
                return false;
            break;
        case OP_IN:
            top[-1] = is_among(c + 1, c->arg, top[-1]);
            c += c->arg;
            break;
        case OP_IF_AND:
        case OP_IF_OR:
            if (top[-1] == (c->op == OP_IF_OR))
                c = e->code + c->arg - 1;
            else
                top--;
            break;
        case OP_ADD:
        case OP_SUB:
        case OP_MUL:
        case OP_DIV:
        case OP_MOD:
        case OP_EQ:
        case OP_NE:
        case OP_LT:
        case OP_LE:
        case OP_GT:
        case OP_GE:
            top--;
            if (!binary(c->op, top[-1], top[0], &top[-1]))
                return false;
            break;
        }
    }
    return top[-1] == 1;
}
/* NOLINTEND(clang-analyzer-core.*,clang-analyzer-core.uninitialized.*) */

bool expr_mentions(const struct expr *e, enum axis_id axis)
{
    return e->mentions >> axis & 1;
}
