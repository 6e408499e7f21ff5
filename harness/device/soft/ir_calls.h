/* ir_calls: what functions of a module hand each other in registers. A struct of up to 16 bytes is
 * loaded as one or two numbers, passed or returned, and stored again: a copy, which its members need
 * no value for. */
#pragma once

#include "ir_function.h"

enum { IR_MOST_PARAMS = 16 };

/* A load that such a copy begins with, or the store that it ends with. */
typedef struct {
    size_t line;
    span place;             /* the operand that is loaded from or stored to */
    uint64_t bytes, offset; /* offset: in what is handed over */
    int slot;               /* 0: a result; 1 + k: parameter k */
    bool is_store;
} ir_transfer;

/* A value that points to the first of `count` elements. */
typedef struct {
    span name, element;
    uint64_t count;
} ir_pointer;

typedef struct {
    ir_pointer *list;
    size_t count, room;
} ir_pointers;

typedef struct {
    ir_function body;
    span name;
    bool is_own; /* of the kernel's files, not of the shim */
    span params[IR_MOST_PARAMS];
    size_t param_count;
    bool gives;                    /* the result may have bytes without a value */
    uint32_t takes;                /* a bit for each parameter that may */
    uint32_t keeps, returns;       /* likewise: a pointer that is stored elsewhere, or returned */
    ir_pointers members;           /* pointers to arrays that are members of structs */
    span elements[IR_MOST_PARAMS]; /* of parameters that are given one; empty: none */
    bool is_mixed[IR_MOST_PARAMS]; /* given elements of several types */
    ir_transfer *transfers;
    size_t transfer_count, transfer_room;
} ir_routine;

typedef struct {
    ir_routine *list;
    size_t count, room;
} ir_routines;

/* Reads the head of a function whose lines are known; its variables if it is one of the kernel's. */
void ir_routine_read(ir_routine *r);
void ir_routine_free(ir_routine *r);

bool ir_is_call(span line);
/* The function of the kernel that the line calls, and its arguments; NULL: none. */
ir_routine *ir_find_callee(const ir_routines *all, span line, span args[IR_MOST_PARAMS]);

/* Finds the transfers of all functions, and watches the variables that take part. */
void ir_link(ir_routines *all);
