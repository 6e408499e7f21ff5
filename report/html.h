/* html: text, links and tables of a page. Whatever comes from a file goes through here, and comes
 * out as text: no file can put an element into the page. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Prints the format as it is and what its directives print escaped. Takes %c, %d, %s, %zu, %e, %f and %g with
 * flags, width and precision. */
typedef void text_escape(FILE *out, const char *text);
void print_escaped(FILE *out, text_escape *escape, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for HTML, good between tags and inside "..." of an attribute. */
void html(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text in which `code` between backquotes is set as code, and numbers and units as people write them. */
void html_print_prose(FILE *out, const char *text);

/* A path in an address: characters that mean something else there are escaped. */
void html_print_address(FILE *out, const char *path);

/* A link to a file: its path from the folder that the page is in. Both folders are absolute. */
void html_print_link(FILE *out, const char *page_folder, const char *path, const char *text);

/* A chart embedded as an image, and a text for readers who cannot see it; `style`, if it is not NULL, comes before
 * its <defs>. */
void html_print_svg(FILE *out, const char *text, const char *style, const char *label);

/* A name that may wrap after each of its parts. */
void html_print_name(FILE *out, const char *name);

/* A number for people: four significant digits; "-" for NaN. Returns the text. */
enum { HTML_NUMBER = 48 };
const char *html_format_number(double value, char text[HTML_NUMBER]);

/* Tables that sort. Each column is a text, up to NULL: "#time|median GPU time" is one of numbers, with what is shown
 * when it is pointed at. The caller prints cells between rows. */
void html_start_table(FILE *out, const char *caption, ...);
void html_end_table(FILE *out);
/* `value` is what a cell is sorted by, `shown` what is seen; the former is left out where the latter begins with it. */
void html_print_cell(FILE *out, double value, const char *shown);
/* A duration in ns, always shown in µs: times can be compared without reading their units. */
const char *html_format_time(double ns, char text[HTML_NUMBER]);
/* A number with its unit; a duration. */
void html_print_number(FILE *out, double value, const char *unit);
void html_print_time(FILE *out, double ns);
