/* argument: what a kernel is given, as it is written on a command line.
 *
 *     3=f32[1024]:ramp     an array: unwritten (also when nothing is said), zero, one, ramp, nan,
 *                          random, value:V, value:V,V,V or file:PATH
 *     3=f32[]:file:PATH    as many elements as the file, or the list of values, has
 *     3=u32:576            a scalar
 *     3=@1+1024:512        the buffer of argument 1 from byte 1024 on, 512 bytes of it (or the rest)
 *
 * Sizes and values are expressions as in descriptions (expression.h), 3=f32[64*576] or 3=u32:1<<10, but
 * without commas, which separate values.
 *
 * Reading the text and making the bytes are two steps, so that a typing mistake is answered before
 * anything is compiled. The texts must outlive the arguments. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/device/device.h"
#include "harness/device/elem.h"

typedef enum {
    CONTENT_UNWRITTEN, /* nothing was ever stored there */
    CONTENT_ZERO,
    CONTENT_ONE,
    CONTENT_RAMP, /* 0, 1, 2, ..., starting over where the type could not hold the
                     next exactly */
    CONTENT_NAN,
    CONTENT_RANDOM, /* floats uniform in [-1, 1), integers uniform over all values
                     */
    CONTENT_VALUES,
    CONTENT_FILE
} content;

typedef struct {
    int index;
    elem type;
    bool is_array;
    size_t count; /* 0: as many as there are */
    content fill;
    const char *text; /* the values, or the path */
    bool is_alias;    /* of another argument's buffer: */
    int of;
    size_t offset, bytes; /* bytes 0: the rest */
} argument;

bool argument_parse(const char *text, argument *out, err *e);

/* The bytes, made with malloc, and how many elements they are. */
void *argument_make_data(const argument *a, uint64_t seed, size_t *count, err *e);

/* 0=u32:64 */
bool argument_parse_constant(const char *text, constant_value *out, err *e);

/* "64", "64,2" or "64,2,1"; what is not said is 1. `option` is for messages. */
bool argument_parse_size(const char *option, const char *text, size3 *out, err *e);

/* The whole number that `text` begins with, from 0 to max, and what follows it. */
bool argument_parse_number(const char *text, uint64_t max, uint64_t *out, const char **rest);
