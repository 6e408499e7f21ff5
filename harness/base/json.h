/* json: bytes and numbers as JSON that any reader accepts. */
#ifndef ASSAY_JSON_H
#define ASSAY_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A string with its quotes. Any bytes will do: what is not UTF-8 becomes U+FFFD, and no control
 * character comes out as itself. */
void json_print_text(FILE *out, const char *data, size_t bytes);

/* The same without the quotes: also how text from a file is shown on a terminal. */
void json_print_escaped(FILE *out, const char *data, size_t bytes);

/* The shortest text that reads back as the same float (is_single) or double; null for what is not
 * finite. */
void json_print_number(FILE *out, double value, bool is_single);

#endif
