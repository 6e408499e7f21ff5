/* msl_text: a text that the MSL front end reads and rewrites, for the suites about it. */
#ifndef ASSAY_TESTS_MSL_TEXT_H
#define ASSAY_TESTS_MSL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/device/msl/msl.h"

extern err text_why;        /* of the last function that failed */
extern msl_unit *text_unit; /* of the last text that was read */
extern char *text_cpp;      /* of the last kernel that was rewritten */

/* Reads a text as test.metal; what was made of the one before is freed. */
bool text_read(const char *text);
void text_clear(void);
const msl_signature *text_find(const char *kernel);
bool text_rewrite(const char *kernel, const msl_constant_text *constants, size_t count);
bool text_has(const char *part);  /* the C++ */
bool text_says(const char *part); /* the error */
/* The line of `text` in which `part` begins, from 1; -1 if it is not there. */
int text_find_line(const char *text, const char *part);

#endif
