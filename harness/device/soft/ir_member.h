/* ir_member: pointers to an array that is a member of a struct. Running out of it is running into
 * the next member, which no gap can show. */
#pragma once

#include "ir_function.h"

/* A value that points to the first of `count` elements. */
typedef struct {
    span name, element;
    uint64_t count;
} ir_pointer;

typedef struct {
    ir_pointer *list;
    size_t count, room;
} ir_pointers;

/* The values that were loaded from pointer variables which point to such an array and to nothing
 * else in all of the function. */
void ir_find_members(const ir_function *f, ir_pointers *out);

/* Is line n a subscript of one of them, whose element is then used? *index is the operand, such as
 * `i64 %3`, *count the elements there are. */
bool ir_is_element(const ir_function *f, const ir_pointers *p, size_t n, span *index,
                   uint64_t *count);

/* Does line n load the memory around a bit-field, to store it again with the field's new value? Where,
 * and the size of that memory. */
bool ir_is_bit_field_store(const ir_function *f, size_t n, span *place, unsigned long *bits);
