#include "html.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"

void html_print_character(FILE *out, char c) {
    switch (c) {
    case '&':
        fputs("&amp;", out);
        break;
    case '<':
        fputs("&lt;", out);
        break;
    case '>':
        fputs("&gt;", out);
        break;
    case '"':
        fputs("&quot;", out);
        break;
    case '\'':
        fputs("&#39;", out);
        break;
    default:
        fputc(c, out);
    }
}

void html_print(FILE *out, const char *text) {
    for (; *text; text++)
        html_print_character(out, *text);
}

void html_printf(FILE *out, const char *format, ...) {
    char text[1000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    html_print(out, text);
}

void html_print_prose(FILE *out, const char *text) {
    bool in_code = false;
    for (const char *p = text; *p; p++) {
        if (*p != '`' || (!in_code && !strchr(p + 1, '`'))) {
            html_print_character(out, *p);
            continue;
        }
        fputs(in_code ? "</code>" : "<code>", out);
        in_code = !in_code;
    }
}

/* Characters of a path that mean something else in an address. */
static void print_address(FILE *out, const char *path) {
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
            strchr("/-_.~", *p))
            fputc(*p, out);
        else
            fprintf(out, "%%%02X", *p);
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
    print_address(out, path + common);
    fputs("\">", out);
    html_print(out, text);
    fputs("</a>", out);
}

static void print_base64(FILE *out, const unsigned char *data, size_t bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes; i += 3) {
        unsigned group = (unsigned)data[i] << 16;
        group |= i + 1 < bytes ? (unsigned)data[i + 1] << 8 : 0;
        group |= i + 2 < bytes ? data[i + 2] : 0;
        fputc(digits[group >> 18], out);
        fputc(digits[group >> 12 & 63], out);
        fputc(i + 1 < bytes ? digits[group >> 6 & 63] : '=', out);
        fputc(i + 2 < bytes ? digits[group & 63] : '=', out);
    }
}

void html_print_image(FILE *out, const char *type, const void *data, size_t bytes,
                      const char *label) {
    fprintf(out, "<img src=\"data:%s;base64,", type);
    print_base64(out, data, bytes);
    fputs("\" alt=\"", out);
    html_print(out, label);
    fputs("\">", out);
}

void html_print_badge(FILE *out, const char *kind, const char *text) {
    fprintf(out, "<span class=\"badge %s\">", kind);
    html_print(out, text);
    fputs("</span>", out);
}

void html_format_number(double value, char *text, size_t size) {
    format_number(value, 4, text, size);
}

void html_start_table(FILE *out, const html_column *columns, size_t count, const char *caption) {
    fputs("<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"", out);
    html_print(out, caption);
    fputs("\"><table class=\"sort\"><caption>", out);
    html_print(out, caption);
    fputs("</caption><thead><tr>", out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "<th scope=\"col\" data-sort=\"%s\"",
                columns[i].is_number ? "number" : "text");
        if (columns[i].about) {
            fputs(" title=\"", out);
            html_print(out, columns[i].about);
            fputc('"', out);
        }
        fputc('>', out);
        html_print(out, columns[i].title);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
}

void html_end_table(FILE *out) {
    fputs("</tbody></table></div>\n", out);
}

void html_print_text_cell(FILE *out, const char *text) {
    fputs("<td>", out);
    html_print(out, text);
    fputs("</td>", out);
}

void html_print_number_cell(FILE *out, double value, const char *shown) {
    fputs("<td class=\"n\"", out);
    if (!isnan(value))
        fprintf(out, " data-v=\"%.9g\"", value);
    fputc('>', out);
    html_print(out, shown);
    fputs("</td>", out);
}
