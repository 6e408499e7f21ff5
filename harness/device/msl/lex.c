/* lex: strings that grow, and MSL text as tokens with paired brackets. Cutting succeeds for any bytes:
 * what is not C++ becomes a one-byte mark, which the compiler will reject. */
#include "internal.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST_NESTING = 400, LONGEST_ANGLE = 4096 };

/* Strings ------------------------------------------------------------------------------------- */

void text_add(text *t, const char *data, size_t bytes) {
    if (t->room - t->used <= bytes) {
        t->room = (t->used + bytes + 1) * 2;
        t->data = realloc(t->data, t->room);
        assert(t->data && "out of memory");
    }
    memcpy(t->data + t->used, data, bytes);
    t->used += bytes;
    t->data[t->used] = 0;
}

static void print_list(text *t, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int n = vsnprintf(NULL, 0, format, arguments);
    assert(n >= 0);
    char *line = array_new(1, (size_t)n + 1);
    vsnprintf(line, (size_t)n + 1, format, again);
    va_end(again);
    text_add(t, line, (size_t)n);
    free(line);
}

void text_print(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_list(t, format, arguments);
    va_end(arguments);
}

char *text_format(const char *format, ...) {
    text t = {0};
    va_list arguments;
    va_start(arguments, format);
    print_list(&t, format, arguments);
    va_end(arguments);
    return text_take(&t);
}

char *text_take(text *t) {
    if (!t->data)
        text_add(t, "", 0);
    char *data = t->data;
    *t = (text){0};
    return data;
}

char *text_copy(const char *data, size_t bytes) {
    text t = {0};
    text_add(&t, data, bytes);
    return text_take(&t);
}

uint64_t text_hash(const char *data, size_t bytes, uint64_t seed) {
    uint64_t h = (seed ^ 0xcbf29ce484222325u) * 0x100000001b3u;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (unsigned char)data[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

/* Cutting ------------------------------------------------------------------------------------- */

typedef struct {
    const char *p; /* what is left */
    bool line_start, is_macro;
    int line;
    uint32_t file;
    size_t room, file_room;
} cutter;

static bool is_word_start(char c) {
    return isalpha((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_word_char(char c) {
    return is_word_start(c) || isdigit((unsigned char)c);
}

static uint32_t add_file(tokens *t, cutter *c, const char *name, size_t bytes) {
    for (uint32_t i = 0; i < t->file_count; i++)
        if (strlen(t->files[i]) == bytes && memcmp(t->files[i], name, bytes) == 0)
            return i;
    *ARRAY_ADD(t->files, t->file_count, c->file_room) = text_copy(name, bytes);
    return t->file_count - 1;
}

/* `# 12 "file" 2` or `#line 12 "file"`: the next line is line 12 of that file. */
static void obey_line_marker(tokens *t, cutter *c, const char *p, const char *end) {
    p++;
    p += strspn(p, " \t");
    if (strncmp(p, "line", 4) == 0)
        p += 4;
    p += strspn(p, " \t");
    if (p >= end || !isdigit((unsigned char)*p))
        return;
    char *after;
    long n = strtol(p, &after, 10);
    if (n < 0 || n > 100000000)
        return;
    c->line = (int)n - 1;
    const char *quote = memchr(after, '"', (size_t)(end - after));
    const char *close = quote ? memchr(quote + 1, '"', (size_t)(end - quote - 1)) : NULL;
    if (close)
        c->file = add_file(t, c, quote + 1, (size_t)(close - quote - 1));
}

static void cut_directive(tokens *t, cutter *c) {
    const char *begin = c->p, *p = begin;
    int line = c->line;
    for (; *p && *p != '\n'; p++) {
        if (*p == '\\' && p[1] == '\r' && p[2] == '\n')
            p++;
        if (*p == '\\' && p[1] == '\n') {
            p++;
            c->line++;
        } else if (*p == '/' && p[1] == '*') {
            const char *close = strstr(p + 2, "*/");
            for (p += 2; *p && p != close; p++)
                c->line += *p == '\n';
            if (!*p)
                break;
            p++;
        } else if (*p == '\r' && p[1] == '\n') {
            p++; /* the line's end is not part of the directive */
            break;
        }
    }
    if (p > begin && p[-1] == '\r')
        p--;
    obey_line_marker(t, c, begin, p);
    const char *word = begin + 1 + strspn(begin + 1, " \t"), *operand = word;
    while (operand < p && (isalpha((unsigned char)*operand) || *operand == '_'))
        operand++;
    directive d = {.begin = (uint32_t)(begin - t->source),
                   .bytes = (uint32_t)(p - begin),
                   .word = (uint32_t)(word - t->source),
                   .word_bytes = (uint32_t)(operand - word),
                   .operand = (uint32_t)(operand + strspn(operand, " \t") - t->source),
                   .line = line,
                   .file = c->file};
    *ARRAY_ADD(t->directives, t->directive_count, t->directive_room) = d;
    c->p = p;
}

/* Blanks, comments and directives before the next token. */
static void skip_trivia(tokens *t, cutter *c) {
    for (;;) {
        if (*c->p == '\n') {
            c->line++;
            c->line_start = true;
            c->p++;
        } else if (isspace((unsigned char)*c->p)) {
            c->p++;
        } else if (c->p[0] == '\\' && (c->p[1] == '\n' || c->p[1] == '\r')) {
            c->p++;
        } else if (c->p[0] == '/' && c->p[1] == '/') {
            for (; *c->p && *c->p != '\n'; c->p++)
                if (c->p[0] == '\\' && c->p[1] == '\n') {
                    c->line++;
                    c->p++;
                }
        } else if (c->p[0] == '/' && c->p[1] == '*') {
            const char *close = strstr(c->p + 2, "*/");
            const char *end = close ? close + 2 : c->p + strlen(c->p);
            for (; c->p < end; c->p++)
                c->line += *c->p == '\n';
        } else if (*c->p == '#' && c->line_start && !c->is_macro) {
            cut_directive(t, c);
        } else {
            return;
        }
    }
}

static size_t measure_quoted(const char *p) {
    char quote = *p;
    const char *q = p + 1;
    while (*q && *q != quote && *q != '\n')
        q += *q == '\\' && q[1] && q[1] != '\n' ? 2 : 1;
    return (size_t)(q - p) + (*q == quote);
}

static size_t measure_number(const char *p) {
    const char *q = p + 1;
    while (is_word_char(*q) || *q == '.' || (*q == '\'' && is_word_char(q[1])) ||
           ((*q == '+' || *q == '-') && strchr("eEpP", q[-1]) &&
            !(p[0] == '0' && (p[1] == 'x' || p[1] == 'X') && strchr("eE", q[-1]))))
        q++;
    return (size_t)(q - p);
}

uint32_t token_measure_float(const tokens *t, at i) {
    const char *p = token_text(t, i), *exponents = "eE";
    uint32_t n = 0, bytes = t->list[i].bytes;
    bool hex = bytes > 1 && (p[1] == 'x' || p[1] == 'X'), is_float = false;
    if (t->list[i].kind != TOKEN_NUMBER)
        return 0;
    if (hex) {
        exponents = "pP";
        n = 2;
    }
    for (bool in_exponent = false; n < bytes; n++) {
        bool is_digit = hex && !in_exponent ? isxdigit((unsigned char)p[n]) != 0
                                            : isdigit((unsigned char)p[n]) != 0;
        if (!in_exponent && strchr(exponents, p[n])) {
            is_float = in_exponent = true;
            n += n + 1 < bytes && (p[n + 1] == '+' || p[n + 1] == '-');
        } else if (p[n] == '.') {
            is_float = is_float || !hex;
        } else if (!is_digit && p[n] != '\'') {
            break;
        }
    }
    return is_float ? n : 0;
}

static size_t measure_mark(const char *p) {
    static const char *const marks[] = {
        "<<=", ">>=", "...", "::", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&",
        "||",  "++",  "--",  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", NULL};
    for (size_t i = 0; marks[i]; i++)
        if (strncmp(p, marks[i], strlen(marks[i])) == 0)
            return strlen(marks[i]);
    return 1;
}

static void cut(tokens *t, const char *name, const char *source, bool is_macro) {
    *t = (tokens){.source = source};
    cutter c = {.p = source, .line_start = true, .is_macro = is_macro, .line = 1};
    add_file(t, &c, name, strlen(name));
    assert(strlen(source) < UINT32_MAX / 2);
    for (;;) {
        skip_trivia(t, &c);
        token k = {TOKEN_MARK, (uint32_t)(c.p - source), 0, NOT_FOUND, c.line, c.file};
        if (!*c.p) {
            k.kind = TOKEN_END;
        } else if (is_word_start(*c.p)) {
            k.kind = TOKEN_WORD;
            while (is_word_char(c.p[k.bytes]))
                k.bytes++;
        } else if (isdigit((unsigned char)*c.p) ||
                   (*c.p == '.' && isdigit((unsigned char)c.p[1]))) {
            k.kind = TOKEN_NUMBER;
            k.bytes = (uint32_t)measure_number(c.p);
        } else if (*c.p == '"' || *c.p == '\'') {
            k.kind = TOKEN_STRING;
            k.bytes = (uint32_t)measure_quoted(c.p);
        } else {
            k.bytes = (uint32_t)measure_mark(c.p);
        }
        t->list = array_grow(t->list, t->count, &c.room, sizeof *t->list);
        t->list[t->count] = k;
        if (k.kind == TOKEN_END)
            return; /* not counted */
        t->count++;
        c.p += k.bytes;
        c.line_start = false;
    }
}

void tokens_cut(tokens *t, const char *name, const char *source) {
    cut(t, name, source, false);
}

tokens tokens_cut_define(const tokens *t, const directive *d, char **operand) {
    tokens macro;
    *operand = text_copy(t->source + d->operand, d->begin + d->bytes - d->operand);
    cut(&macro, "", *operand, true);
    return macro;
}

static bool complain(const tokens *t, at i, const char *what, err *e) {
    return err_set(e, EXIT_USAGE, "%.120s:%d: this '%c' %s", TOKEN_PLACE(t, i), *token_text(t, i),
                   what);
}

bool tokens_pair(tokens *t, err *e) {
    at open[DEEPEST_NESTING];
    uint32_t depth = 0;
    for (at i = 0; i < t->count; i++) {
        token *k = &t->list[i];
        char c = k->kind == TOKEN_MARK && k->bytes == 1 ? t->source[k->begin] : 0;
        if (c == '(' || c == '[' || c == '{') {
            if (depth == DEEPEST_NESTING)
                return complain(t, i, "is nested too deeply", e);
            open[depth++] = i;
        } else if (c == ')' || c == ']' || c == '}') {
            if (!depth)
                return complain(t, i, "closes nothing", e);
            at other = open[--depth];
            char o = *token_text(t, other);
            if ((c == ')') != (o == '(') || (c == ']') != (o == '['))
                return complain(t, other, "is not closed before another bracket is", e);
            k->pair = other;
            t->list[other].pair = i;
        }
    }
    return !depth || complain(t, open[depth - 1], "is never closed", e);
}

void tokens_free(tokens *t) {
    for (uint32_t i = 0; i < t->file_count; i++)
        free(t->files[i]);
    for (size_t i = 0; i < t->prefix_count; i++)
        free(t->prefixes[i]);
    free(t->prefixes);
    free(t->decls);
    free(t->files);
    free(t->list);
    free(t->directives);
    *t = (tokens){0};
}

/* Questions ----------------------------------------------------------------------------------- */

bool token_is(const tokens *t, at i, const char *what) {
    if (i >= t->count)
        return false;
    const token *k = &t->list[i];
    return strncmp(t->source + k->begin, what, k->bytes) == 0 && !what[k->bytes];
}

bool word_is_one_of(const char *word, size_t bytes, const char *words) {
    for (const char *w = words; w; w = strchr(w, ' ')) {
        w += *w == ' ';
        if (*w != *word)
            continue;
        if (strncmp(w, word, bytes) == 0 && (w[bytes] == ' ' || !w[bytes]))
            return true;
        size_t stem = strcspn(w, "* ");
        if (stem > 0 && w[stem] == '*' && stem <= bytes && strncmp(w, word, stem) == 0)
            return true;
    }
    return false;
}

bool token_is_one_of(const tokens *t, at i, const char *words) {
    return i < t->count && word_is_one_of(token_text(t, i), t->list[i].bytes, words);
}

bool token_is_word(const tokens *t, at i) {
    return i < t->count && t->list[i].kind == TOKEN_WORD;
}

bool token_is_same(const tokens *t, at a, at b) {
    return t->list[a].bytes == t->list[b].bytes &&
           memcmp(token_text(t, a), token_text(t, b), t->list[a].bytes) == 0;
}

const char *token_text(const tokens *t, at i) {
    return i < t->count ? t->source + t->list[i].begin : "";
}

at token_before(at i) {
    return i == 0 || i == NOT_FOUND ? NOT_FOUND : i - 1;
}

const char *token_file(const tokens *t, at i) {
    return t->files[t->list[i < t->count ? i : t->count].file];
}

uint64_t token_hash(const tokens *t, at i, uint64_t seed) {
    return text_hash(token_text(t, i), i < t->count ? t->list[i].bytes : 0, seed);
}

char *token_copy(const tokens *t, at i) {
    return text_copy(token_text(t, i), i < t->count ? t->list[i].bytes : 0);
}

bool tokens_want_blank(const tokens *t, at a, at b) {
    if (t->list[a].kind != TOKEN_MARK && t->list[b].kind != TOKEN_MARK)
        return true;
    if (token_is_one_of(t, b, "< > :: , ) ] [ .") || token_is_one_of(t, a, "< :: ( [ . ! ~"))
        return false;
    if (token_is(t, b, "("))
        return t->list[a].kind == TOKEN_MARK || token_is(t, b + 1, "*") || token_is(t, b + 1, "&");
    return !(token_is(t, a, "*") && token_is(t, b, "*"));
}

char *tokens_join(const tokens *t, at begin, at end) {
    text out = {0};
    for (at i = begin; i < end && i < t->count; i++) {
        if (i > begin && tokens_want_blank(t, i - 1, i))
            text_add(&out, " ", 1);
        text_add(&out, token_text(t, i), t->list[i].bytes);
    }
    return text_take(&out);
}

void tokens_spell(const tokens *t, at begin, at end, char *out, size_t size) {
    char *joined = tokens_join(t, begin, end);
    snprintf(out, size, "%s", joined);
    free(joined);
}

/* Brackets and lists -------------------------------------------------------------------------- */

at tokens_close(const tokens *t, at i) {
    return t->list[i].pair != NOT_FOUND && t->list[i].pair > i ? t->list[i].pair : i;
}

/* `<` between blanks inside a template's arguments is a comparison: `sizeof(T) < 8`. */
static bool is_comparison(const tokens *t, at i) {
    const token *k = &t->list[i];
    return i == 0 || t->list[i - 1].kind != TOKEN_WORD ||
           (isspace((unsigned char)t->source[k->begin - 1]) &&
            isspace((unsigned char)t->source[k->begin + 1]));
}

at tokens_close_angle(const tokens *t, at i) {
    int depth = 0;
    for (at k = i; k < t->count && k - i < LONGEST_ANGLE; k++) {
        char c = *token_text(t, k);
        if (c == '(' || c == '[' || c == '{')
            k = t->list[k].pair;
        else if (c == ')' || c == ']' || c == '}' || c == ';')
            return NOT_FOUND;
        else if (token_is(t, k, "<") && !(depth > 0 && is_comparison(t, k)))
            depth++;
        else if (token_is(t, k, ">"))
            depth--;
        else if (token_is(t, k, ">>"))
            depth -= 2;
        if (depth <= 0)
            return depth == 0 ? k : NOT_FOUND;
    }
    return NOT_FOUND;
}

at tokens_find(const tokens *t, at i, at end, const char *words) {
    while (i < end && !token_is_one_of(t, i, words))
        i = tokens_close(t, i) + 1;
    return i < end ? i : end;
}

bool tokens_have(const tokens *t, at begin, at end, const char *words) {
    while (begin < end && !token_is_one_of(t, begin, words))
        begin++;
    return begin < end;
}

at tokens_end_item(const tokens *t, at i, at end) {
    for (; i < end; i++) {
        char c = *token_text(t, i);
        if (c == '(' || c == '[' || c == '{') {
            i = t->list[i].pair;
        } else if (token_is(t, i, "<") && i > 0 && t->list[i - 1].kind == TOKEN_WORD) {
            at close = tokens_close_angle(t, i);
            if (close < end)
                i = close;
        } else if (c == ',') {
            return i;
        }
    }
    return end;
}

char *tokens_unquote(const tokens *t, at begin, at end) {
    text out = {0};
    for (at i = begin; i < end && i < t->count; i++)
        if (t->list[i].kind == TOKEN_STRING && t->list[i].bytes >= 2)
            text_add(&out, token_text(t, i) + 1, t->list[i].bytes - 2);
    return text_take(&out);
}

/* Preprocessor lines -------------------------------------------------------------------------- */

bool directive_is(const tokens *t, const directive *d, const char *words) {
    return d->word_bytes > 0 && word_is_one_of(t->source + d->word, d->word_bytes, words);
}

bool directive_has(const tokens *t, const directive *d, const char *what) {
    const char *begin = t->source + d->begin, *found = strstr(begin, what);
    return found && found + strlen(what) <= begin + d->bytes;
}

/* Attributes, [[a, b(c)]]: two '[' in a row are always one in C++, so a[b[i]] and lambdas cannot be
 * mistaken for it. ---------------------------------------------------------------------------- */

bool attribute_begins(const tokens *t, at i) {
    return token_is(t, i, "[") && token_is(t, i + 1, "[") &&
           t->list[i].pair == t->list[i + 1].pair + 1;
}

at attribute_skip(const tokens *t, at i) {
    return attribute_begins(t, i) ? t->list[i].pair + 1 : i;
}

attribute attribute_start(at begin) {
    return (attribute){NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, begin};
}

/* Moves a->next into the next [[ ]]; false when there is none. */
static bool enter(const tokens *t, at end, attribute *a) {
    for (at i = a->next; i < end; i++) {
        if (attribute_begins(t, i)) {
            a->begin = i;
            a->close = t->list[i].pair;
            a->next = i + 2;
            return true;
        }
        i = tokens_close(t, i);
    }
    return false;
}

bool attribute_next(const tokens *t, at end, attribute *a) {
    for (;;) {
        if (a->close == NOT_FOUND && !enter(t, end, a))
            return false;
        at stop = a->close - 1;
        if (a->next >= stop) {
            a->next = a->close + 1;
            a->close = NOT_FOUND;
            continue;
        }
        at item_end = tokens_end_item(t, a->next, stop);
        a->name = a->open = NOT_FOUND;
        for (at i = a->next; i < item_end && a->open == NOT_FOUND; i++) {
            if (t->list[i].kind == TOKEN_WORD)
                a->name = i;
            else if (token_is(t, i, "("))
                a->open = i;
        }
        a->next = item_end + 1;
        if (a->name != NOT_FOUND)
            return true;
    }
}
