/* json: bytes and numbers as JSON that any reader accepts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A string with its quotes. Takes any bytes: invalid UTF-8 becomes U+FFFD, and control characters
 * are escaped. */
void json_print_text(FILE *out, const char *data, size_t bytes);

/* A field of an object: "key": "text". */
void json_print_field(FILE *out, const char *key, const char *text);

/* The next field of an object: the same after a comma. */
void json_add_field(FILE *out, const char *key, const char *text);

/* json_print_text without the quotes; also used to show text from files on a terminal. */
void json_print_escaped(FILE *out, const char *data, size_t bytes);

/* The shortest text that reads back as the same float (is_single) or double; null if it is not
 * finite. */
void json_print_number(FILE *out, double value, bool is_single);
