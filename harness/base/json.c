#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The length of the UTF-8 character at p, and which one it is; 0 if there is none. */
static size_t decode(const unsigned char *p, size_t left, uint32_t *code) {
    size_t length = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (length == 0 || p[0] > 0xf4 || length > left)
        return 0;
    *code = length == 1 ? p[0] : p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return *code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000)
               ? 0
               : length;
}

void json_print_escaped(FILE *out, const char *data, size_t bytes) {
    static const char plain[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const unsigned char *p = (const unsigned char *)data;
    for (size_t i = 0; i < bytes;) {
        uint32_t code;
        size_t length = decode(p + i, bytes - i, &code);
        const char *special = length == 1 && code ? strchr(plain, (int)code) : NULL;
        if (length == 0)
            fputs("\xef\xbf\xbd", out);
        else if (special)
            fprintf(out, "\\%c", names[special - plain]);
        else if (code < 0x20 || (code >= 0x7f && code < 0xa0))
            fprintf(out, "\\u%04x", (unsigned)code);
        else
            fwrite(p + i, 1, length, out);
        i += length ? length : 1;
    }
}

void json_print_text(FILE *out, const char *data, size_t bytes) {
    putc('"', out);
    json_print_escaped(out, data, bytes);
    putc('"', out);
}

void json_print_number(FILE *out, double value, bool is_single) {
    char text[32] = "null";
    for (int digits = 6; isfinite(value) && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (is_single ? (float)back == (float)value : back == value)
            break;
    }
    fputs(text, out);
}

/* What is in the outermost, and in what stands in that: fields, and in a list what has brackets itself. */
static bool has_line(const json *j) {
    bool is_inner = j->depth == 2 && j->ends[0] == '}' && (j->ends[1] == '}' || j->is_bracket);
    return !j->is_line && (j->depth == 1 || is_inner);
}

static FILE *add_key(json *j, const char *key, bool is_bracket) {
    j->is_bracket = is_bracket;
    if (j->has_items)
        fputs(has_line(j) ? "," : ", ", j->out);
    if (has_line(j))
        fprintf(j->out, "\n%*s", 2 * j->depth, "");
    j->has_items = true;
    if (key) {
        json_print_text(j->out, key, strlen(key));
        fputs(": ", j->out);
    }
    return j->out;
}

FILE *json_add_key(json *j, const char *key) {
    return add_key(j, key, false);
}

void json_open(json *j, const char *key, char bracket) {
    fputc(bracket, j->depth ? add_key(j, key, true) : j->out);
    assert(j->depth < JSON_DEPTH);
    j->ends[j->depth++] = bracket == '{' ? '}' : ']';
    j->has_items = false;
}

json json_start(FILE *out, char bracket) {
    json j = {.out = out};
    json_open(&j, NULL, bracket);
    return j;
}

json json_start_line(FILE *out) {
    json j = {.out = out, .is_line = true};
    json_open(&j, NULL, '{');
    return j;
}

void json_close(json *j) {
    assert(j->depth > 0);
    if (j->has_items && has_line(j))
        fprintf(j->out, "\n%*s", 2 * (j->depth - 1), "");
    fputc(j->ends[--j->depth], j->out);
    j->has_items = j->is_bracket = true;
    if (j->depth == 0)
        fputc('\n', j->out);
}

void json_add_bytes(json *j, const char *key, const char *data, size_t bytes) {
    if (data)
        json_print_text(json_add_key(j, key), data, bytes);
    else
        fputs("null", json_add_key(j, key));
}

void json_add_text(json *j, const char *key, const char *text) {
    json_add_bytes(j, key, text, text ? strlen(text) : 0);
}

void json_add_count(json *j, const char *key, uint64_t value) {
    fprintf(json_add_key(j, key), "%" PRIu64, value);
}

void json_add_integer(json *j, const char *key, int64_t value) {
    fprintf(json_add_key(j, key), "%" PRId64, value);
}

void json_add_real(json *j, const char *key, double value) {
    json_print_number(json_add_key(j, key), value, false);
}

void json_add_flag(json *j, const char *key, bool value) {
    fputs(value ? "true" : "false", json_add_key(j, key));
}
