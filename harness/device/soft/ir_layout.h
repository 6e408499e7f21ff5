/* ir_layout: how values of LLVM's types lie in memory, read from the text of a module. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of the module's text. */
typedef struct {
    const char *at;
    size_t bytes;
} span;

/* `%struct.S = type { float, i8 }` */
typedef struct {
    span name, body;
} ir_named;

typedef struct {
    ir_named *list;
    size_t count, room;
} ir_types;

void ir_types_read(ir_types *t, const char *module);

/* The size of a type; 0 if it is not known. marks, if it is not NULL: SOFT_MARK_UNSET for each byte
 * of a value, SOFT_MARK_MAYBE where that may be padding, 0 for padding. */
uint64_t ir_measure(const ir_types *t, span type, unsigned char *marks);

/* The type that the text begins with; empty if it is not understood. */
span ir_get_type(const ir_types *t, span text);

/* The type of the elements of an array type, however deep; the type itself if it is none. */
span ir_get_element(span type);

/* Member number n of a struct type, if another one comes after it. */
bool ir_get_member(const ir_types *t, span type, uint64_t n, span *member);

/* The type and offset of member n of `{ a, b }`, or of a type of that name. */
bool ir_find_member(const ir_types *t, span type, uint64_t n, span *member, int64_t *offset);

/* Has the type an array in it, outside of the shim's own classes? */
bool ir_has_array(const ir_types *t, span type);
