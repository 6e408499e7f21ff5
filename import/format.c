/* format: string tokens as texts, f-strings, str.format, and numbers as Python prints them. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* The shortest digits that read back as the same number, as Python has it. */
static int print_float(char *out, size_t size, double f) {
    int n = 0;
    for (int digits = 1; digits <= 17; digits++) {
        n = snprintf(out, size, "%.*g", digits, f);
        if (strtod(out, NULL) == f)
            break;
    }
    return strpbrk(out, ".einf") ? n : snprintf(out, size, "%.1f", f);
}

/* spec: what follows the colon, "" without one; !r becomes "r". */
void format_value(importer *im, chars *out, value *v, const char *spec, int place) {
    char text[128];
    int n = 0;
    if (v->kind == V_STRING) {
        if (*spec == 'r')
            chars_add(im, out, "'", 1, place);
        chars_append(im, out, &v->s);
        if (*spec == 'r')
            chars_add(im, out, "'", 1, place);
        return;
    }
    double number;
    bool is_int;
    if (v->kind == V_BOOL || v->kind == V_NONE) {
        n = snprintf(text, sizeof text, "%s", v->kind == V_NONE ? "None" : v->i ? "True" : "False");
    } else if (v->kind == V_TYPE || v->kind == V_KERNEL) {
        n = snprintf(text, sizeof text, "%s", v->name ? v->name : "kernel");
    } else if (v->kind == V_LIST) {
        for (size_t i = 0; i < v->list.count; i++) {
            chars_add(im, out, i ? ", " : "[", i ? 2 : 1, place);
            format_value(im, out, v->list.items[i], "", place);
        }
        chars_add(im, out, "]", 1, place);
    } else if (value_number(im, v, &number, &is_int)) {
        const char *dot = strchr(spec, '.');
        char last = *spec ? spec[strlen(spec) - 1] : 0;
        int digits = dot ? atoi(dot + 1) : 6, width = atoi(spec + (*spec == '0'));
        if (last == 'e' || last == 'f' || last == 'g')
            n = snprintf(text, sizeof text,
                         last == 'e'   ? "%.*e"
                         : last == 'f' ? "%.*f"
                                       : "%.*g",
                         digits, number);
        else if (last == 'x')
            n = snprintf(text, sizeof text, "%0*" PRIx64, width, (uint64_t)number);
        else if (is_int)
            n = snprintf(text, sizeof text, *spec == '0' ? "%0*" PRId64 : "%*" PRId64, width,
                         (int64_t)number);
        else
            n = print_float(text, sizeof text, number);
    }
    chars_add(im, out, text, (size_t)n, place);
}

/* One escape of a plain string; the number of characters that it takes. */
static size_t read_escape(importer *im, const char *p, const char *end, chars *out, int place) {
    static const char from[] = "ntr\\'\"0abfv", to[] = "\n\t\r\\'\"\0\a\b\f\v";
    const char *found = p + 1 < end ? strchr(from, p[1]) : NULL;
    if (p + 1 < end && p[1] == '\n')
        return 2;
    if (found && p[1]) {
        chars_add(im, out, &to[found - from], 1, place);
        return 2;
    }
    chars_add(im, out, p, 1, place);
    return 1;
}

/* The end of a replacement field: its closing brace, past strings and brackets. */
static const char *find_field_end(const char *p, const char *end) {
    int depth = 0;
    for (; p < end; p++) {
        if (*p == '\'' || *p == '"') {
            const char *close = memchr(p + 1, *p, (size_t)(end - p - 1));
            p = close ? close : p;
        } else if (strchr("([{", *p)) {
            depth++;
        } else if (strchr(")]}", *p)) {
            if (depth-- == 0)
                return p;
        }
    }
    return end;
}

/* Where the expression of a field ends and its !r or :spec begins. */
static const char *find_spec(const char *p, const char *end) {
    int depth = 0;
    for (; p < end; p++) {
        depth += (strchr("([{", *p) != NULL) - (strchr(")]}", *p) != NULL);
        if (*p == '\'' || *p == '"') {
            const char *close = memchr(p + 1, *p, (size_t)(end - p - 1));
            p = close ? close : p;
        } else if (depth == 0 && ((*p == '!' && p[1] != '=') || *p == ':')) {
            return p;
        }
    }
    return end;
}

static void add_field(reader *r, const char *p, const char *end, chars *out, int line) {
    const char *spec = find_spec(p, end);
    const char *code = keep_print(r->im, "(%.*s)", (int)(spec - p), p);
    py_tokens *tokens = keep(r->im, sizeof *tokens);
    err why = {.code = EXIT_OK};
    value *v = NULL;
    if (lex_python(r->im, code, line, r->tokens->file, tokens, &why)) {
        reader inner = {.im = r->im, .tokens = tokens, .scope = r->scope};
        v = read_expression(&inner);
    }
    py_token *items = tokens->items; /* nothing of the value points into them */
    const char *how = spec < end ? keep_text(r->im, spec + 1, (size_t)(end - spec - 1)) : "";
    if (v)
        format_value(r->im, out, v, how, place_make(r->tokens->file, line));
    free(items);
}

value *format_literal(reader *r, const py_token *t) {
    value *v = value_new(r->im, V_STRING);
    const char *p = t->begin, *end = p + t->bytes;
    int line = t->line;
    chars_add(r->im, &v->s, "", 0, 0);
    while (p < end) {
        int place = place_make(r->tokens->file, line);
        if (*p == '\\' && !t->is_raw) {
            line += p + 1 < end && p[1] == '\n';
            p += read_escape(r->im, p, end, &v->s, place);
        } else if (t->is_format && (*p == '{' || *p == '}')) {
            if (p + 1 < end && p[1] == *p) {
                chars_add(r->im, &v->s, p, 1, place);
                p += 2;
                continue;
            }
            const char *close = find_field_end(p + 1, end);
            add_field(r, p + 1, close, &v->s, line);
            for (; p < close; p++)
                line += *p == '\n';
            p = close < end ? close + 1 : end;
        } else {
            chars_add(r->im, &v->s, p, 1, place);
            line += *p++ == '\n';
        }
    }
    return v;
}

value *format_call(importer *im, const value *text, const value_list *args, const value *named) {
    value *v = value_new(im, V_STRING);
    const chars *s = &text->s;
    size_t next = 0;
    chars_add(im, &v->s, "", 0, 0);
    for (size_t i = 0; i < s->bytes; i++) {
        char c = s->text[i];
        chars one = chars_slice(s, i, i + 1);
        if ((c != '{' && c != '}') || (i + 1 < s->bytes && s->text[i + 1] == c)) {
            chars_append(im, &v->s, &one);
            i += c == '{' || c == '}';
            continue;
        }
        size_t end = i + strcspn(s->text + i, "}");
        const char *field = keep_text(im, s->text + i + 1, end > i ? end - i - 1 : 0);
        size_t n = strcspn(field, ":!");
        const char *name = keep_text(im, field, n), *spec = field[n] ? field + n + 1 : "";
        size_t at = isdigit((unsigned char)*name) ? (size_t)atoi(name) : next;
        next += !*name;
        value *item = *name && !isdigit((unsigned char)*name) ? dict_find(named, name)
                      : at < args->count                      ? args->items[at]
                                                              : NULL;
        if (item)
            format_value(im, &v->s, item, spec, s->places[i]);
        i = end;
    }
    return v;
}
