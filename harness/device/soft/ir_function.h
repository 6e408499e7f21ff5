/* ir_function: the variables of one function of a module's text, and which of them checked mode has to
 * know about. */
#pragma once

#include "ir_layout.h"

typedef struct {
    span name, type;
    uint64_t bytes;
    long debug; /* where it is declared, as a number of the metadata; -1: not known */
    bool is_array, is_unset;
    bool is_skipped; /* a case of a switch jumps over its declaration */
    bool is_copy;    /* unset is what it is copied from */
    bool escapes;    /* there may be pointers to it after its life */
} variable;

/* A value of the function that is a variable's address, or that of a part of it. */
typedef struct {
    span name, path; /* path: which part, as it is written; empty for all of it */
    int variable;
} address;

/* The line that defines a value. */
typedef struct {
    span name;
    size_t line;
} definition;

typedef struct {
    const ir_types *types;
    char note[32];  /* that follows where a variable is filled with the pattern */
    bool has_lives; /* the module says where variables begin and end */
    span *lines;
    size_t line_count, line_room;
    variable *variables;
    size_t count, room;
    address *addresses;      /* a hash table */
    definition *definitions; /* likewise */
    size_t capacity;
} ir_function;

/* Text. */
const char *ir_find(span s, const char *word);
bool ir_begins(span s, const char *word);
bool ir_is_same(span a, span b);
/* The next local name in the text, `%x` or `%"x y"`; empty if there is none. s becomes the rest. */
span ir_take_local(span *s);
/* What is defined by the line, and what of; false if it defines nothing. */
bool ir_split_definition(span line, span *name, span *value);

/* Fills in the variables of the lines. */
void ir_function_read(ir_function *f);
void ir_function_forget(ir_function *f);
/* Watches what is copied from a watched variable. */
void ir_spread_copies(ir_function *f);
bool ir_is_watched(const variable *v);
/* The variable of this name; NULL if it is none. */
const address *ir_find_address(const ir_function *f, span name);
/* The line that defines the value, and what of; false if none does. */
bool ir_find_definition(const ir_function *f, span name, size_t *line, span *value);
/* Where the line stores to, or what a call takes first; NULL if that is not a variable. */
const address *ir_find_target(const ir_function *f, span line);
/* An address of a part of a variable, from one of the whole. */
bool ir_is_derived(span value);
/* A copy of a whole watched variable, or to one: `call void @llvm.memcpy...(to, from, ...)`, or the
 * constructor or assignment of a vector. *bytes: how many, as an operand. */
bool ir_is_copy(const ir_function *f, span line, span *to, span *from, span *bytes);
