#include "html.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"

/* Text ---------------------------------------------------------------------------------------- */

static void print_character(FILE *out, char c) {
    static const char special[] = "&<>\"'";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    const char *at = c ? strchr(special, c) : NULL;
    if (at)
        fputs(names[at - special], out);
    else
        fputc(c, out);
}

static void print_text(FILE *out, const char *text) {
    for (; *text; text++)
        print_character(out, *text);
}

/* One directive of printf, escaped. Returns its end. */
static const char *print_directive(FILE *out, text_escape *escape, const char *format,
                                   va_list *values) {
    char one[24], text[1000];
    size_t length = strcspn(format, "cdsuefg") + 1, plain = strcspn(format, "*");
    int precision = plain < length ? va_arg(*values, int) : 0;
    if (plain < length)
        snprintf(one, sizeof one, "%.*s%d%c", (int)plain, format, precision, format[length - 1]);
    else
        snprintf(one, sizeof one, "%.*s", (int)length, format);
    switch (format[length - 1]) {
    case 'c':
    case 'd':
        snprintf(text, sizeof text, one, va_arg(*values, int));
        break;
    case 'u':
        snprintf(text, sizeof text, one, va_arg(*values, size_t));
        break;
    case 's':
        if (strcmp(one, "%s") == 0) { /* of any length */
            escape(out, va_arg(*values, const char *));
            return format + length;
        }
        snprintf(text, sizeof text, one, va_arg(*values, const char *));
        break;
    default:
        snprintf(text, sizeof text, one, va_arg(*values, double));
    }
    escape(out, text);
    return format + length;
}

static void print_list(FILE *out, text_escape *escape, const char *format, va_list *values) {
    for (const char *p = format; *p;) {
        if (p[0] == '%' && p[1] != '%') {
            p = print_directive(out, escape, p, values);
            continue;
        }
        p += p[0] == '%';
        fputc(*p++, out);
    }
}

void print_escaped(FILE *out, text_escape *escape, const char *format, ...) {
    va_list values;
    va_start(values, format);
    print_list(out, escape, format, &values);
    va_end(values);
}

void html(FILE *out, const char *format, ...) {
    va_list values;
    va_start(values, format);
    print_list(out, print_text, format, &values);
    va_end(values);
}

void html_print_prose(FILE *out, const char *given) {
    char text[4000]; /* "us" is "µs" */
    bool in_code = false;
    format_text(given, text, sizeof text);
    for (const char *p = text; *p; p++) {
        if (*p != '`' || (!in_code && !strchr(p + 1, '`'))) {
            print_character(out, *p);
            continue;
        }
        fputs(in_code ? "</code>" : "<code>", out);
        in_code = !in_code;
    }
}

/* Links and charts ---------------------------------------------------------------------------- */

void html_print_address(FILE *out, const char *path) {
    for (; *path; path++)
        if (isalnum((unsigned char)*path) || strchr("/-_.~", *path))
            fputc(*path, out);
        else
            fprintf(out, "%%%02X", (unsigned char)*path);
}

void html_print_link(FILE *out, const char *page_folder, const char *path, const char *text) {
    size_t common = 0; /* how much of both is the same, up to the last slash */
    for (size_t i = 0;; i++) {
        char a = page_folder[i] ? page_folder[i] : '/', b = path[i];
        if (a != b)
            break;
        if (a == '/')
            common = i + 1;
        if (!page_folder[i])
            break;
    }
    fputs("<a href=\"", out);
    size_t length = strlen(page_folder);
    for (size_t i = common; i < length; i++)
        if (page_folder[i] == '/' || i + 1 == length)
            fputs("../", out);
    if (common > 0 && !strchr(path + common, '/')) /* a name with a colon is not a scheme */
        fputs("./", out);
    html_print_address(out, path + common);
    html(out, "\">%s</a>", text);
}

/* As part of an address: an element or a quote in it would end the attribute. */
static void print_data(FILE *out, const char *text, size_t bytes) {
    for (const char *end = text + bytes; text < end; text++)
        if (strchr("<#%\"&", *text) || (unsigned char)*text < ' ')
            fprintf(out, "%%%02X", (unsigned char)*text);
        else
            fputc(*text, out);
}

void html_print_svg(FILE *out, const char *text, const char *style, const char *label) {
    const char *defs = style ? strstr(text, "<defs>") : NULL;
    const size_t head = defs ? (size_t)(defs - text) : 0;
    fputs("<img src=\"data:image/svg+xml,", out);
    print_data(out, text, head);
    print_data(out, style ? style : "", style ? strlen(style) : 0);
    print_data(out, text + head, strlen(text + head));
    html(out, "\" alt=\"%s\">", label);
}

void html_print_name(FILE *out, const char *name) {
    for (; *name; name++) {
        print_character(out, *name);
        fputs(strchr("_:/", *name) ? "<wbr>" : "", out);
    }
}

/* Tables -------------------------------------------------------------------------------------- */

const char *html_format_number(double value, char text[HTML_NUMBER]) {
    return format_number(value, 4, text, HTML_NUMBER);
}

void html_start_table(FILE *out, const char *caption, ...) {
    va_list columns;
    html(out,
         "<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table "
         "class=\"sort\"><caption>%s</caption><thead><tr>",
         caption, caption);
    va_start(columns, caption);
    for (const char *c; (c = va_arg(columns, const char *));) {
        const bool is_number = *c == '#';
        const char *about = strchr(c += is_number, '|');
        html(out,
             about ? "<th scope=\"col\" data-sort=\"%s\" title=\"%s\""
                   : "<th scope=\"col\" data-sort=\"%s\"",
             is_number ? "number" : "text", about ? about + 1 : "");
        html(out, ">%.*s</th>", (int)strcspn(c, "|"), c);
    }
    va_end(columns);
    fputs("</tr></thead><tbody>\n", out);
}

void html_end_table(FILE *out) {
    fputs("</tbody></table></div>\n", out);
}

const char *html_format_time(double ns, char text[HTML_NUMBER]) {
    const size_t used = strlen(html_format_number(ns / 1000, text));
    snprintf(text + used, HTML_NUMBER - used, isnan(ns) ? "" : " µs");
    return text;
}

/* Without the end that HTML does not need: there are thousands. */
void html_print_cell(FILE *out, double value, const char *shown) {
    fputs("<td class=n", out);
    if (!isnan(value) && !(fabs(strtod(shown, NULL) - value) <= 1e-3 * fabs(value)))
        fprintf(out, " data-v=%.6g", value);
    html(out, ">%s", shown);
}

void html_print_number(FILE *out, double value, const char *unit) {
    char number[HTML_NUMBER], text[HTML_NUMBER + 32];
    html_format_number(value, number);
    snprintf(text, sizeof text, "%s%s", number, isnan(value) ? "" : unit);
    html_print_cell(out, value, text);
}

void html_print_time(FILE *out, double ns) {
    char text[HTML_NUMBER];
    html_print_cell(out, ns / 1000, html_format_time(ns, text));
}
