/* ir_function: the functions of an unoptimised module, their variables, and which of these checked mode has
 * to know about. */
#pragma once

#include "harness/device/ir.h"

enum { IR_MOST_PARAMS = 16 };

typedef struct {
    span name, type;
    uint64_t bytes;
    long debug; /* where it is declared, as a number of the metadata; -1: not known */
    bool is_array, is_unset;
    bool is_skipped; /* a case of a switch jumps over its declaration */
    bool is_copy;    /* unset is what it is copied from */
    bool escapes;    /* there may be pointers to it after its life */
} variable;

/* A value of the function. */
typedef struct {
    span name;
    size_t line;  /* that defines it */
    int variable; /* whose address it is, or that of a part of it; -1: it is none */
    span path;    /* which part, as it is written; empty for all of it */
} ir_value;

/* A load that a copy in registers begins with, or the store that it ends with. */
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
    span name;
    bool is_own; /* of the kernel's files, not of the shim */
    const ir_types *types;
    char note[32];  /* that follows where a variable is filled with the pattern */
    bool has_lives; /* the module says where variables begin and end */
    span *lines;
    size_t line_count, line_room;
    variable *variables;
    size_t count, room;
    ir_value *values; /* a hash table */
    size_t capacity;

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
} ir_function;

typedef struct {
    ir_function *list;
    size_t count, room;
} ir_functions;

/* Reads a function whose lines are known: its head, and if it is one of the kernel's its variables. */
void ir_function_read(ir_function *f);
void ir_function_free(ir_function *f);
/* Watches what is copied from a watched variable. */
bool ir_is_watched(const variable *v);
/* NULL: it is not the address of a variable. */
const ir_value *ir_find_address(const ir_function *f, span name);
/* Where the line stores to, or what a call takes first; NULL if that is not a variable. */
const ir_value *ir_find_target(const ir_function *f, span line);
/* An address of a part of a variable, from one of the whole. */
bool ir_is_derived(span value);
/* A copy of a whole watched variable, or to one: `call void @llvm.memcpy...(to, from, ...)`, or the
 * constructor or assignment of a vector. *bytes: how many, as an operand. */
bool ir_is_copy(const ir_function *f, span line, span *to, span *from, span *bytes);

/* The function of the kernel that the line calls, and its arguments; NULL: none. */
ir_function *ir_find_called(const ir_functions *all, span line, span args[IR_MOST_PARAMS]);

/* Finds, when all functions are read, what they have to do with each other:
 * - what they hand each other in registers, and watches the variables that take part;
 * - variable.escapes, where an address can be used after the variable's life: it was stored in one that lives
 *   longer, or leaves the function. Such variables stand where arrays do, and no other takes their place;
 * - the values that point to the first element of an array that is a member of a struct, out of which one runs
 *   into the next member, which no gap can show: values that are made of the array, and those that were loaded
 *   from pointer variables which point to nothing else; and the parameters that are given one. */
void ir_functions_link(ir_functions *all);

/* Is the value parameter k of the function, or made of it, with elements of the type that it was
 * given? Only of parameters that are given such a pointer. */
bool ir_is_of_param(const ir_function *f, span name, size_t *k);
/* Does line n store parameter k in its variable? */
bool ir_is_param_store(const ir_function *f, size_t n, size_t *k);
/* Does line n access memory with a pointer of ir_is_of_param? At which address, and how many bytes. */
bool ir_is_param_access(const ir_function *f, size_t n, size_t *k, span *at, uint64_t *bytes);
/* The pointer of this name; NULL: it is none of them. */
const ir_pointer *ir_find_pointer(const ir_pointers *p, span name);
/* Is line n a subscript of one of f->members, whose element is then used? *index is the operand, such as
 * `i64 %3`, *count the elements there are. */
bool ir_is_element(const ir_function *f, size_t n, span *index, uint64_t *count);

/* Does line n load the memory around a bit-field, to store it again with the field's new value? Where,
 * and the size of that memory. */
bool ir_is_bit_field_store(const ir_function *f, size_t n, span *place, unsigned long *bits);
