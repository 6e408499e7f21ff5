/* json: bytes and numbers as JSON that any reader accepts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An object or a list that is being written; commas, line ends and indents follow from where it is. Fields
 * of the outermost have lines of their own, and so have fields and objects in them. */
enum { JSON_DEPTH = 8 };

typedef struct {
    FILE *out;
    int depth;
    char ends[JSON_DEPTH]; /* the brackets that are open */
    bool has_items;        /* the innermost of them */
    bool is_bracket;       /* the last item is an object or a list */
    bool is_line;          /* all on one line */
} json;

/* bracket: { or [. key: NULL in a list, and for what stands alone. */
json json_start(FILE *out, char bracket);
json json_start_line(FILE *out); /* an object without line ends inside */
void json_open(json *j, const char *key, char bracket);
void json_close(json *j); /* and ends the line after the last */

/* What comes before a value: the caller prints the value itself to what this gives. */
FILE *json_add_key(json *j, const char *key);
void json_add_text(json *j, const char *key, const char *text); /* null for NULL */
void json_add_bytes(json *j, const char *key, const char *data, size_t bytes);
void json_add_count(json *j, const char *key, uint64_t value);
void json_add_integer(json *j, const char *key, int64_t value);
void json_add_real(json *j, const char *key, double value); /* null if it is not finite */
void json_add_flag(json *j, const char *key, bool value);

/* A string with its quotes. Takes any bytes: invalid UTF-8 becomes U+FFFD, and control characters
 * are escaped. */
void json_print_text(FILE *out, const char *data, size_t bytes);

/* json_print_text without the quotes; also used to show text from files on a terminal. */
void json_print_escaped(FILE *out, const char *data, size_t bytes);

/* The shortest text that reads back as the same float (is_single) or double; null if it is not
 * finite. */
void json_print_number(FILE *out, double value, bool is_single);
