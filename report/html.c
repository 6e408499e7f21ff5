#include "html.h"

#include <assert.h>
#include <ctype.h>
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

/* Charts ------------------------------------------------------------------------------------- */

static const char *find_within(const char *p, const char *end, const char *what) {
    for (size_t length = strlen(what); p + length <= end; p++)
        if (memcmp(p, what, length) == 0)
            return p;
    return NULL;
}

/* Copies a tag. Numbers keep one decimal from 10 on and none from 100 on, and lose zeros at the end; "x" becomes
 * 'x' unless a text has such quotes inside. Returns the end of the copy. */
static char *copy_tag(const char *p, const char *end, char *out) {
    char quote = find_within(p, end, "\"'") ? '"' : '\'';
    for (char last = 0; p < end; p++, last = out[-1]) {
        size_t digits = *p == '.' && isdigit((unsigned char)last) ? strspn(p + 1, "0123456789") : 0;
        if (isspace((unsigned char)*p)) {
            if (last != ' ' && last != ',')
                *out++ = ' ';
        } else if (digits > 0) {
            bool is_large = isdigit((unsigned char)out[-2]);
            size_t kept = !is_large ? digits : isdigit((unsigned char)out[-3]) ? 0 : 1;
            while (kept > 0 && p[kept] == '0')
                kept--;
            memcpy(out, p, kept ? kept + 1 : 0);
            out += kept ? kept + 1 : 0;
            p += digits;
        } else
            *out++ = *p == '"' ? quote : *p;
    }
    return out;
}

/* Removes what says nothing from a tag of gnuplot, which does not nest groups that set these: values
 * that they have anyway. Returns the tag's new end. */
static char *drop_defaults(char *tag, char *end) {
    static const char *const names[] = {" stroke-linecap='butt'", " stroke-linejoin='miter'",
                                        " stroke-width='1'", " color='black'", " class='gridline'"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = find_within(tag, end, names[i]);
        size_t length = strlen(names[i]);
        if (!found)
            continue;
        memmove(tag + (found - tag), found + length, (size_t)(end - found) - length);
        end -= length;
    }
    return end;
}

/* What is not drawn, from *p on: the prolog, comments, titles, and marks that gnuplot defines and the
 * chart does not use, <path id='gpPt7' .../>. How many bytes. */
static size_t find_unseen(const char *p, const char *tag_end, const char *all, const char *end) {
    static const char *const names[][2] = {
        {"<!--", "-->"}, {"<title>", "</title>"}, {"<desc>", "</desc>"}};
    const char *id = find_within(p, tag_end, "id='gpPt");
    char used[24];
    if (id && tag_end[-2] == '/') {
        snprintf(used, sizeof used, "'#%.*s'", (int)strcspn(id + 4, "'"), id + 4);
        return find_within(all, end, used) ? 0 : (size_t)(tag_end - p);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(p, names[i][0], strlen(names[i][0])) == 0) {
            const char *last = find_within(p, end, names[i][1]);
            return last ? (size_t)(last - p) + strlen(names[i][1]) : 0;
        }
    return p[1] == '?' || p[1] == '!' ? (size_t)(tag_end - p) : 0;
}

/* The same picture in half the bytes: gnuplot writes many groups with nothing in them. */
static size_t shrink_svg(const char *all, const char *end, char *out) {
    char *to = out, *group = NULL; /* the start tag of a group with nothing in it so far */
    bool is_gnuplot = find_within(all, end, "gnuplot_canvas") != NULL;
    for (const char *p = all; p < end;) {
        const char *close = *p == '<' ? memchr(p, '>', (size_t)(end - p)) : NULL;
        size_t unseen = close ? find_unseen(p, close + 1, all, end) : 0;
        if (unseen > 0) {
            p += unseen;
        } else if (close && group && strncmp(p, "</g>", 4) == 0) {
            to = group;
            group = NULL;
            p = close + 1;
        } else if (close) {
            char *tag = to;
            group = strncmp(p, "<g ", 3) == 0 ? tag : NULL;
            to = copy_tag(p, close + 1, tag);
            to = is_gnuplot ? drop_defaults(tag, to) : to;
            p = close + 1;
        } else if (isspace((unsigned char)*p)) {
            if (to > out && to[-1] != '>' && to[-1] != ' ')
                *to++ = ' ';
            p++;
        } else {
            *to++ = *p++;
            group = NULL;
        }
    }
    return (size_t)(to - out);
}

void html_print_svg(FILE *out, const char *text, size_t bytes, const char *label) {
    char *small = malloc(bytes + 1);
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

/* Without the end that HTML does not need: there are thousands. */
void html_print_number_cell(FILE *out, double value, const char *shown) {
    fputs("<td class=n", out);
    if (!isnan(value) && !(fabs(strtod(shown, NULL) - value) <= 1e-3 * fabs(value)))
        fprintf(out, " data-v=%.6g", value);
    fputc('>', out);
    html_print(out, shown);
}
