/* ir_member: pointers to an array that is a member of a struct. Running out of it is running into
 * the next member, which no gap can show. */
#pragma once

#include "ir_calls.h"

/* Finds in each function the values that point to the first element of such an array: those that are
 * made of it, and those that were loaded from pointer variables which point to nothing else; and the
 * parameters that are given one. */
void ir_find_members(ir_routines *all);

/* Is the value parameter k of the function, or made of it, with elements of the type that it was
 * given? Only of parameters that are given such a pointer. */
bool ir_is_of_param(const ir_routine *r, span name, size_t *k);
/* Does line n store parameter k in its variable? */
bool ir_is_param_store(const ir_routine *r, size_t n, size_t *k);
/* Does line n access memory with a pointer of ir_is_of_param? At which address, and how many bytes. */
bool ir_is_param_access(const ir_routine *r, size_t n, size_t *k, span *at, uint64_t *bytes);
/* The pointer of this name. */
const ir_pointer *ir_find_pointer(const ir_pointers *p, span name);

/* Is line n a subscript of one of them, whose element is then used? *index is the operand, such as
 * `i64 %3`, *count the elements there are. */
bool ir_is_element(const ir_function *f, const ir_pointers *p, size_t n, span *index,
                   uint64_t *count);

/* Does line n load the memory around a bit-field, to store it again with the field's new value? Where,
 * and the size of that memory. */
bool ir_is_bit_field_store(const ir_function *f, size_t n, span *place, unsigned long *bits);
