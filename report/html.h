/* html: text, links and tables of a page. Whatever comes from a file goes through here, and comes
 * out as text: no file can put an element into the page. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Escaped; good between tags and inside "..." of an attribute. */
void html_print_character(FILE *out, char c);
void html_print(FILE *out, const char *text);
/* The same for printf-formatted text, cut at 1000 bytes. */
void html_printf(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A link to a file: its path from the folder that the page is in. Both folders are absolute. */
void html_print_link(FILE *out, const char *page_folder, const char *path, const char *text);

/* A chart embedded as an image, made smaller first, and a text for readers who cannot see it. `text`
 * ends with a zero byte. */
void html_print_svg(FILE *out, const char *text, size_t bytes, const char *label);

/* Text in which `code` between backquotes is set as code. */
void html_print_prose(FILE *out, const char *text);

/* A coloured word: kind is good, bad, unknown or plain. */
void html_print_badge(FILE *out, const char *kind, const char *text);

/* A number for people: four significant digits; "-" for NaN. */
void html_format_number(double value, char *text, size_t size);

/* Tables that sort: a column is of numbers or of text. The caller prints cells between rows. */
typedef struct {
    const char *title;
    bool is_number;
    const char *about; /* shown when pointed at, or NULL */
} html_column;

void html_start_table(FILE *out, const html_column *columns, size_t count, const char *caption);
void html_end_table(FILE *out);
void html_print_text_cell(FILE *out, const char *text);
/* `value` is what it is sorted by, `shown` what is seen; the former is left out where the latter begins with it. */
void html_print_number_cell(FILE *out, double value, const char *shown);
