/* lex: Python as tokens, with the ends of statements and blocks as Python's own tokenizer has them. */
#include <ctype.h>
#include <string.h>

#include "harness/base/array.h"
#include "internal.h"

typedef struct {
    const char *p, *start;
    int line;
    py_tokens *out;
    int indents[64], depth;
    uint32_t opened[256]; /* tokens of brackets and indents that are still open */
    int open_count, brackets;
} lexer;

static py_token *add(lexer *l, py_kind kind, const char *begin, size_t bytes) {
    py_token *t = ARRAY_ADD(l->out->items, l->out->count, l->out->room);
    *t = (py_token){.kind = kind, .begin = begin, .bytes = bytes, .line = l->line};
    return t;
}

static bool open_pair(lexer *l) {
    if (l->open_count == (int)(sizeof l->opened / sizeof *l->opened))
        return false;
    l->opened[l->open_count++] = (uint32_t)l->out->count - 1;
    return true;
}

static bool close_pair(lexer *l) {
    if (l->open_count == 0)
        return false;
    uint32_t from = l->opened[--l->open_count], to = (uint32_t)l->out->count - 1;
    l->out->items[from].pair = to;
    l->out->items[to].pair = from;
    return true;
}

/* At the start of a line outside of brackets: blocks open and close. */
static bool read_indent(lexer *l) {
    int width = 0;
    const char *p = l->p;
    for (; *p == ' ' || *p == '\t' || *p == '\f'; p++)
        width = *p == '\t' ? (width / 8 + 1) * 8 : width + 1;
    l->p = p;
    if (*p == '\n' || *p == '\r' || *p == '#' || !*p)
        return true;
    if (width > l->indents[l->depth]) {
        if (l->depth == 63)
            return false;
        l->indents[++l->depth] = width;
        add(l, PY_INDENT, p, 0);
        return open_pair(l);
    }
    bool ok = true;
    while (ok && width < l->indents[l->depth]) {
        l->depth--;
        add(l, PY_DEDENT, p, 0);
        ok = close_pair(l);
    }
    return ok;
}

/* p is at the quote, after a prefix of letters. */
static bool read_string(lexer *l, const char *prefix) {
    char quote = *l->p;
    bool is_long = l->p[1] == quote && l->p[2] == quote;
    int line = l->line;
    const char *begin = l->p + (is_long ? 3 : 1), *p = begin;
    for (; *p; p++) {
        if (*p == '\\' && p[1]) {
            l->line += p[1] == '\n';
            p++;
        } else if (*p == quote && (!is_long || (p[1] == quote && p[2] == quote))) {
            break;
        } else if (*p == '\n') {
            if (!is_long)
                return false;
            l->line++;
        }
    }
    if (!*p)
        return false;
    py_token *t = add(l, PY_STRING, begin, (size_t)(p - begin));
    t->line = line;
    for (const char *c = prefix; c < l->p; c++) {
        t->is_raw |= *c == 'r' || *c == 'R';
        t->is_format |= *c == 'f' || *c == 'F';
        t->is_bytes |= *c == 'b' || *c == 'B';
    }
    l->p = p + (is_long ? 3 : 1);
    return true;
}

static bool read_mark(lexer *l) {
    static const char *const marks[] = {
        "**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", "->", ":=", "+=",
        "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^=", "**", "//", "<<", ">>"};
    size_t n = 1;
    for (size_t i = 0; i < sizeof marks / sizeof *marks && n == 1; i++)
        if (strncmp(l->p, marks[i], strlen(marks[i])) == 0)
            n = strlen(marks[i]);
    char c = *l->p;
    add(l, PY_MARK, l->p, n);
    l->p += n;
    if (strchr("([{", c)) {
        l->brackets++;
        return open_pair(l);
    }
    if (strchr(")]}", c)) {
        l->brackets--;
        return close_pair(l);
    }
    return true;
}

static bool read_token(lexer *l) {
    const char *p = l->p;
    if (isalpha((unsigned char)*p) || *p == '_' || (unsigned char)*p >= 128) {
        while (isalnum((unsigned char)*p) || *p == '_' || (unsigned char)*p >= 128)
            p++;
        const char *from = l->p;
        if ((*p == '"' || *p == '\'') && p - from <= 2 &&
            strspn(from, "rRbBfFuU") >= (size_t)(p - from)) {
            l->p = p;
            return read_string(l, from);
        }
        add(l, PY_NAME, from, (size_t)(p - from));
        l->p = p;
        return true;
    }
    if (*p == '"' || *p == '\'')
        return read_string(l, p);
    if (isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1]))) {
        while (isalnum((unsigned char)*p) || *p == '.' || *p == '_' ||
               ((*p == '-' || *p == '+') && (p[-1] == 'e' || p[-1] == 'E') && l->p[1] != 'x'))
            p++;
        add(l, PY_NUMBER, l->p, (size_t)(p - l->p));
        l->p = p;
        return true;
    }
    return read_mark(l);
}

static void end_line(lexer *l) {
    size_t n = l->out->count;
    if (n > 0 && l->out->items[n - 1].kind != PY_NEWLINE &&
        l->out->items[n - 1].kind != PY_INDENT && l->out->items[n - 1].kind != PY_DEDENT)
        add(l, PY_NEWLINE, l->p, 0);
}

bool lex_python(importer *im, const char *text, int line, int file, py_tokens *out, err *e) {
    lexer l = {.p = text, .start = text, .line = line, .out = out};
    bool ok = true, is_fresh = true;
    out->file = file;
    while (ok && *l.p) {
        if (is_fresh && l.brackets == 0)
            ok = read_indent(&l);
        is_fresh = false;
        if (*l.p == '\n') {
            if (l.brackets == 0)
                end_line(&l);
            l.line++;
            l.p++;
            is_fresh = true;
        } else if (*l.p == '#') {
            l.p += strcspn(l.p, "\n");
        } else if (*l.p == '\\' && (l.p[1] == '\n' || l.p[1] == '\r')) {
            l.p += l.p[1] == '\r' ? 3 : 2;
            l.line++;
        } else if (*l.p == ' ' || *l.p == '\t' || *l.p == '\r' || *l.p == '\f') {
            l.p++;
        } else if (*l.p) {
            ok = ok && read_token(&l);
        }
    }
    if (ok)
        end_line(&l);
    for (; ok && l.depth > 0; l.depth--) {
        add(&l, PY_DEDENT, l.p, 0);
        ok = close_pair(&l);
    }
    add(&l, PY_END, l.p, 0);
    return (ok && l.open_count == 0) ||
           err_set(e, EXIT_USAGE,
                   "%.160s:%d: not Python that can be read (a string or bracket does "
                   "not end)",
                   im->files[file].path, l.line);
}
