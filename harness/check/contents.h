/* contents: what a buffer starts with, or should hold at the end: a pattern, random numbers, a list
 * of values or a file. */
#pragma once

#include "expression.h"

typedef enum {
    CONTENTS_DRAWN,     /* from the distribution of a case */
    CONTENTS_UNWRITTEN, /* nothing was ever stored there */
    CONTENTS_ZERO,
    CONTENTS_ONE,
    CONTENTS_RAMP, /* 0, 1, 2, ..., starting over where the type could not hold the next exactly */
    CONTENTS_NAN,
    CONTENTS_RANDOM, /* floats uniform in [-1, 1), integers uniform over all values */
    CONTENTS_VALUES, /* 1,2,3; one of them fills an array */
    CONTENTS_FILE    /* as numpy writes it (.npy), or raw elements (any other name) */
} contents;

/* What is called "ramp" in a description. */
bool contents_find(const char *word, contents *out);

/* An array of elements with these contents, made with malloc. text: the values or the path.
 * *count: 0 for as many as there are, which it then is. name seeds random numbers. */
void *contents_make(contents c, elem type, const char *text, uint64_t seed, const char *name,
                    size_t *count, err *e);
/* The same of a file as doubles, which numpy may have stored; exactly `count` of them. */
bool contents_read_doubles(const char *path, elem type, double *values, size_t count, err *e);

/* A number or an expression as an element of the type. */
bool contents_parse_value(const char *text, elem type, const expression_scope *scope, void *out,
                          err *e);
