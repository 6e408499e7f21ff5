/* expression_parts: the tree of an expression, shared by its parser and its evaluator.
 *
 * A node is whole or real, known when it is parsed; NODE_REAL converts. The evaluator is two
 * functions that call each other, one per type. */
#pragma once

#include "expression.h"

enum { EXPRESSION_VARIABLES = 16 };

typedef enum {
    /* Either type */
    NODE_CONSTANT,
    NODE_SYMBOL,
    NODE_ELEMENT,
    NODE_ADD,
    NODE_SUBTRACT,
    NODE_MULTIPLY,
    NODE_DIVIDE,
    NODE_CHOICE,
    NODE_MIN,
    NODE_MAX,
    NODE_LOOP_MIN,
    NODE_LOOP_MAX,
    /* Whole */
    NODE_VARIABLE,
    NODE_REMAINDER,
    NODE_BIT_AND,
    NODE_BIT_OR,
    NODE_BIT_XOR,
    NODE_SHIFT_LEFT,
    NODE_SHIFT_RIGHT,
    NODE_NOT,
    NODE_AND,
    NODE_OR,
    NODE_LESS, /* of whole or of real numbers */
    NODE_NOT_MORE,
    NODE_EQUAL,
    NODE_WHOLE, /* of a real number, towards 0 */
    /* Real */
    NODE_REAL, /* of a whole number */
    NODE_NEGATE,
    NODE_SUM,
    NODE_FUNCTION
} node_kind;

typedef bounded expression_function(arithmetic how, bounded a, bounded b);

typedef struct node node;
struct node {
    node_kind kind;
    bool is_whole;
    bool is_loose; /* of a sum or difference: one of three or more terms, or a factor. A kernel may
                      compute it in another form, so its error is not that of one addition */
    int variable;  /* of a loop, or its own */
    node *a, *b, *c;
    int64_t whole;
    double real, error; /* of a constant */
    const symbol *symbol;
    node *indices[EXPRESSION_AXES];
    size_t index_count;
    expression_function *function;
    /* Of a loop: the variables it depends on, a bit each, and what they were when it was
     * computed. */
    uint32_t depends;
    uint64_t computed_at; /* 0: never */
    int64_t seen[EXPRESSION_VARIABLES];
    int64_t known_whole;
    bounded known;
    node *made_before; /* list of all, to be freed */
};

struct expression {
    const char *text;
    node *root, *made;
    arithmetic how;
    uint64_t started; /* how often: results of loops are older or not */
    int64_t variables[EXPRESSION_VARIABLES];
    bool is_doubtful; /* a whole number of the node just computed may be off by one */
    bool has_failed;
    int64_t whole; /* the last value, of a whole expression */
    err *e;
};

/* Functions of one or two real numbers, as lists of names with the function. */
typedef struct {
    const char *name;
    int arguments;
    expression_function *apply;
} function_row;
extern const function_row expression_functions[];
extern const size_t expression_function_count;
