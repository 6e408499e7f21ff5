/* describe_expression: an expression of a description as C. Only names, brackets and parentheses
 * are looked at: subscripts of buffers, sum(...) and max(...); all else is the compiler's. */
#include <ctype.h>
#include <string.h>

#include "describe_parts.h"

typedef struct {
    const description *d;
    FILE *out;
    int line;
    err *e;
} writer;

static bool write_part(writer *w, const char *from, const char *end);

static bool is_letter(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The bracket that closes the one at `open`, or NULL. */
static const char *find_close(const char *open, const char *end) {
    int depth = 0;
    for (const char *p = open; p < end; p++) {
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        if (depth == 0)
            return p;
    }
    return NULL;
}

/* The first of these characters outside of inner brackets, or NULL. */
static const char *find_outside(const char *from, const char *end, char wanted) {
    int depth = 0;
    for (const char *p = from; p < end; p++) {
        if (depth == 0 && *p == wanted)
            return p;
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    }
    return NULL;
}

/* x[r, j] of x f32[rows, dim] is x[(r) * (dim) + (j)]. One index counts all elements. */
static bool write_subscript(writer *w, const described_argument *a, const char *from,
                            const char *end) {
    const char *parts[DESCRIBE_AXES + 1] = {from};
    size_t count = 1;
    for (const char *comma; (comma = find_outside(parts[count - 1], end, ','));) {
        if (count == DESCRIBE_AXES)
            return describe_refuse(w->d, w->line, w->e, "'%.40s' has too many indices", a->name);
        parts[count++] = comma + 1;
    }
    parts[count] = end + 1;
    if (count != 1 && count != a->sizes.count)
        return describe_refuse(w->d, w->line, w->e,
                               "'%.40s' has %zu sizes and is given %zu indices", a->name,
                               a->sizes.count, count);
    fputc('[', w->out);
    for (size_t i = 1; i < count; i++)
        fputc('(', w->out);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fprintf(w->out, " * (%s) + ", a->sizes.items[i]);
        fputc('(', w->out);
        if (!write_part(w, parts[i], parts[i + 1] - 1))
            return false;
        fputs(i > 0 ? "))" : ")", w->out);
    }
    fputc(']', w->out);
    return true;
}

/* sum(j < n: term): a loop, as a statement expression. */
static bool write_loop(writer *w, bool is_sum, const char *from, const char *colon,
                       const char *end) {
    const char *less = find_outside(from, colon, '<');
    from += strspn(from, " \t");
    size_t length = 0;
    while (less && from + length < less && is_letter(from[length]))
        length++;
    if (!less || length == 0 || from + length + strspn(from + length, " \t") != less)
        return describe_refuse(w->d, w->line, w->e, "a loop is given as: %s(j < COUNT: TERM)",
                               is_sum ? "sum" : "max");
    fprintf(w->out, "__extension__({ double s_ = %s, m_ = 0; const int64_t n_ = (",
            is_sum ? "0" : "-INFINITY");
    if (!write_part(w, less + 1, colon))
        return false;
    fprintf(w->out, "); for (int64_t %.*s = 0; %.*s < n_; %.*s++) { const double t_ = (",
            (int)length, from, (int)length, from, (int)length, from);
    if (!write_part(w, colon + 1, end))
        return false;
    fputs(is_sum ? "); s_ += t_; m_ += fabs(t_); } described_note_sum(s_, m_, n_); })"
                 : "); s_ = fmax(s_, t_); } (void)m_; s_; })",
          w->out);
    return true;
}

/* A name at `from` and what belongs to it; returns where it ends, or NULL. */
static const char *write_name(writer *w, const char *from, const char *end) {
    const char *after = from;
    while (after < end && is_letter(*after))
        after++;
    const char *next = after + strspn(after, " \t");
    size_t length = (size_t)(after - from);
    const described_argument *a = describe_find_argument(w->d, from, length);
    bool is_buffer = a && a->kind != ARGUMENT_VALUE;
    bool is_sum = length == 3 && strncmp(from, "sum", 3) == 0;
    bool is_max = length == 3 && strncmp(from, "max", 3) == 0;
    const char *close = next < end && (*next == '[' || *next == '(') ? find_close(next, end) : NULL;
    const char *colon = close && *next == '(' ? find_outside(next + 1, close, ':') : NULL;
    if (is_buffer && close && *next == '[') {
        fprintf(w->out, "%.*s", (int)length, from);
        return write_subscript(w, a, next + 1, close) ? close + 1 : NULL;
    }
    if ((is_sum || is_max) && colon)
        return write_loop(w, is_sum, next + 1, colon, close) ? close + 1 : NULL;
    fprintf(w->out, is_max ? "fmax" : "%.*s", (int)length, from);
    return after;
}

static bool write_part(writer *w, const char *from, const char *end) {
    while (from && from < end)
        if (isalpha((unsigned char)*from) || *from == '_') {
            from = write_name(w, from, end);
        } else if (isdigit((unsigned char)*from)) { /* 1e3f: its letters are no names */
            while (from < end && (is_letter(*from) || *from == '.'))
                fputc(*from++, w->out);
        } else {
            fputc(*from++, w->out);
        }
    return from != NULL;
}

bool describe_write_expression(const description *d, const char *text, int line, FILE *out,
                               err *e) {
    writer w = {d, out, line, e};
    int depth = 0;
    for (const char *p = text; *p && depth >= 0; p++)
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    if (depth != 0)
        return describe_refuse(d, line, e, "the brackets in '%.60s' do not match", text);
    if (strpbrk(text, ";{}\"\\"))
        return describe_refuse(d, line, e, "an expression has no ; { } \" or \\ in it: '%.60s'",
                               text);
    return write_part(&w, text, text + strlen(text));
}

void describe_write_index(const expressions *sizes, const expressions *indices, FILE *out) {
    for (size_t i = 1; i < indices->count; i++)
        fputc('(', out);
    fputs(indices->items[0], out);
    for (size_t i = 1; i < indices->count; i++)
        fprintf(out, " * (%s) + %s)", sizes->items[i], indices->items[i]);
}
