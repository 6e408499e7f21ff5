/* elem: the element types a buffer can hold, and their exact conversion to double. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    ELEM_U8, /* also raw bytes: quantised blocks, structs */
    ELEM_I8,
    ELEM_U16,
    ELEM_I16,
    ELEM_U32,
    ELEM_I32,
    ELEM_U64,
    ELEM_I64,
    ELEM_F16,
    ELEM_BF16,
    ELEM_F32,
    ELEM_COUNT
} elem;

const char *elem_get_name(elem type); /* "f32" */
bool elem_find(const char *name, elem *type);
size_t elem_get_bytes(elem type);
bool elem_is_float(elem type);

/* Unit roundoff: half the distance from 1 to the next value (2^-24 for f32). 0 for integers. */
double elem_get_roundoff(elem type);

/* Element i of an array, as a double (64-bit integers beyond 2^53 round). */
double elem_read(elem type, const void *array, size_t i);

/* Stores value as element i, rounded to nearest even (floats) or truncated and clamped (integers).
 */
void elem_write(elem type, void *array, size_t i, double value);

float half_to_float(uint16_t bits);
uint16_t half_from_float(float value); /* round to nearest even, as IEEE 754 requires */
float bfloat_to_float(uint16_t bits);
uint16_t bfloat_from_float(float value);

/* The element type of an MSL type: "const float4 *" is f32. False for structs and the like. */
bool elem_find_msl(const char *type, elem *out);
