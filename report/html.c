#include "html.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
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

/* Charts ------------------------------------------------------------------------------------- */

/* The start tag of a group that has nothing in it yet: where it begins in the text, SIZE_MAX: none. */
typedef struct {
    char *text;
    size_t count, group;
} small_svg;

/* Copies a tag from after its '<'. Coordinates lose all but one decimal, every number its zeros at the
 * end; "x" becomes 'x' if the tag has no such quotes yet inside others. Returns where the tag ends. */
static const char *copy_tag(small_svg *s, const char *p, const char *end) {
    const char *mixed = strstr(p, "\"'"), *stop = strchr(p, '>');
    char quote = mixed && mixed < stop ? '"' : '\'';
    for (s->text[s->count++] = '<'; p < end && *p != '>'; p++) {
        char last = s->text[s->count - 1];
        if (isspace((unsigned char)*p)) {
            if (!isspace((unsigned char)last) && last != ',')
                s->text[s->count++] = ' ';
        } else if (*p == '.' && isdigit((unsigned char)last) && isdigit((unsigned char)p[1])) {
            size_t from = s->count, kept, length = strspn(p + 1, "0123456789");
            kept = isdigit((unsigned char)s->text[from - 2]) && length > 1 ? 1 : length;
            while (kept > 0 && p[kept] == '0')
                kept--;
            memcpy(s->text + from, p, kept ? kept + 1 : 0);
            s->count += kept ? kept + 1 : 0;
            p += length;
        } else
            s->text[s->count++] = *p == '"' ? quote : *p;
    }
    return p;
}

/* What says nothing in a tag that was copied: the values that these have anyway. */
static void drop_defaults(small_svg *s, size_t from) {
    static const char *const names[] = {" stroke-linecap='butt'", " stroke-linejoin='miter'",
                                        " class='gridline'"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        s->text[s->count] = 0;
        char *at = strstr(s->text + from, names[i]);
        if (!at)
            continue;
        memmove(at, at + strlen(names[i]), strlen(at + strlen(names[i])));
        s->count -= strlen(names[i]);
    }
}

/* A mark that gnuplot defines and this chart does not use: <path id='gpPt7' .../>; how many bytes. */
static size_t find_unused(const char *p, const char *all) {
    const char *end = strchr(p, '>'), *id = strstr(p, "id='gpPt");
    char used[24];
    if (!end || end[-1] != '/' || !id || id > end)
        return 0;
    snprintf(used, sizeof used, "'#%.*s'", (int)strcspn(id + 4, "'"), id + 4);
    return strstr(all, used) ? 0 : (size_t)(end + 1 - p);
}

/* Elements that are not drawn, and the prolog; how many bytes. */
static size_t find_unseen(const char *p) {
    static const char *const names[][2] = {
        {"<?", "?>"}, {"<!--", "-->"}, {"<!", ">"}, {"<title>", "</title>"}, {"<desc>", "</desc>"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *end =
            strncmp(p, names[i][0], strlen(names[i][0])) == 0 ? strstr(p, names[i][1]) : NULL;
        if (end)
            return (size_t)(end - p) + strlen(names[i][1]);
    }
    return 0;
}

/* The same picture in half the bytes: gnuplot writes many groups with nothing in them. */
static size_t shrink_svg(const char *all, const char *end, char *out) {
    small_svg s = {out, 0, SIZE_MAX};
    for (const char *p = all; p < end;) {
        size_t unseen = *p == '<' ? find_unseen(p) + find_unused(p, all) : 0;
        bool is_close = strncmp(p, "</g>", 4) == 0;
        p += unseen;
        if (unseen > 0)
            continue;
        if (is_close && s.group != SIZE_MAX) {
            s.count = s.group;
            p += 4;
        } else if (*p == '<') {
            size_t at = s.count;
            bool is_group = strncmp(p, "<g ", 3) == 0;
            p = copy_tag(&s, p + 1, end);
            drop_defaults(&s, at);
            s.text[s.count++] = '>';
            s.group = is_group ? at : SIZE_MAX;
            p += p < end;
            continue;
        } else if (!isspace((unsigned char)*p) ||
                   (s.count > 0 && s.text[s.count - 1] != '>' && s.text[s.count - 1] != ' ')) {
            s.text[s.count++] = isspace((unsigned char)*p) ? ' ' : *p;
            p++;
        } else {
            p++;
            continue;
        }
        s.group = SIZE_MAX;
    }
    return s.count;
}

void html_print_svg(FILE *out, const char *text, size_t bytes, const char *label) {
    char *small = malloc(bytes + 2);
    assert(small);
    size_t count = shrink_svg(text, text + bytes, small);
    fputs("<img src=\"data:image/svg+xml,", out);
    for (size_t i = 0; i < count; i++)
        if (strchr("<#%\"&", small[i]) || (unsigned char)small[i] < ' ')
            fprintf(out, "%%%02X", (unsigned char)small[i]);
        else
            fputc(small[i], out);
    fputs("\" alt=\"", out);
    html_print(out, label);
    fputs("\">", out);
    free(small);
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
    char *end;
    fputs("<td class=\"n\"", out);
    if (!isnan(value) && (strtod(shown, &end) != value || *end))
        fprintf(out, " data-v=\"%.6g\"", value);
    fputc('>', out);
    html_print(out, shown);
    fputs("</td>", out);
}
