/* expansion: keeps the lines of macros' bodies through the preprocessor.
 *
 * A preprocessor puts all that a macro expands to on one line, that of the expansion. Kernels are
 * often written as macros of many lines, so those lines are marked: a word that names the line is put
 * before the first token of each line of a body, the preprocessor carries it to wherever the macro is
 * expanded, and afterwards it becomes a #line mark. Words stand only where the preprocessor does nothing
 * with what is beside them: not next to # and ##, not in the arguments of another macro. Macros of one
 * line, and those that are no code (values, explicit instantiations), stay as they are: the line of
 * their expansion says more. */
#include "internal.h"

#include "harness/base/macro_place.h"
#include "harness/base/path.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words: ASSAY_IN_7_ begins a body, ASSAY_AT_8_ begins a line of it, ASSAY_OUT_0_ ends it. */
static const char stem[] = "ASSAY_";
enum { STEM = sizeof stem - 1, DEEPEST = 200 };

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static size_t measure_word(const char *p) {
    size_t n = 0;
    while (is_word(p[n]))
        n++;
    return n;
}

/* Marking --------------------------------------------------------------------------------------- */

typedef struct {
    const char *p, *end; /* what is left of a #define */
    text *out;
    const char
        *macros; /* "\nNAME(" for each macro with parameters, and "\nPARAMETER(" of this one */
    int line;
    bool is_new_line; /* nothing of this line is written yet */
    char before[3];   /* the token before */
    int depth, call;  /* of brackets; that of the outermost arguments of a macro, or 0 */
    macro_line place; /* file and name of the macro */
    macro_lines *lines;
} marker;

static void add_word(marker *m, const char *what) {
    macro_line *l = ARRAY_ADD(m->lines->items, m->lines->count, m->lines->room);
    *l = m->place;
    l->line = m->line;
    text_print(m->out, " %s%s_%zu_ ", stem, what, m->lines->count - 1);
}

static bool is_macro(const marker *m, const char *word, size_t bytes) {
    char name[MACRO_NAME + 4];
    if (bytes > MACRO_NAME)
        return false;
    snprintf(name, sizeof name, "\n%.*s(", (int)bytes, word);
    return strstr(m->macros, name) != NULL;
}

/* Comments and blanks, and the backslashes that go on with the next line. */
static bool skip_blanks(marker *m) {
    const char *p = m->p, *begin = p;
    for (; p < m->end; p++) {
        if (*p == '/' && p[1] == '*') {
            const char *close = strstr(p + 2, "*/");
            const char *after = close && close + 2 <= m->end ? close + 2 : m->end;
            for (; p < after; p++)
                if (*p == '\n') {
                    m->line++;
                    m->is_new_line = true;
                }
            p--;
        } else if (*p == '\n') {
            m->line++;
            m->is_new_line = true;
        } else if (!isspace((unsigned char)*p) &&
                   !(*p == '\\' && (p[1] == '\n' || (p[1] == '\r' && p[2] == '\n'))))
            break;
    }
    text_add(m->out, begin, (size_t)(p - begin));
    m->p = p;
    return p < m->end;
}

static size_t measure_token(const char *p, const char *end) {
    size_t n = measure_word(p);
    if (n > 0)
        return n;
    if (*p == '"' || *p == '\'') {
        const char *q = p + 1;
        while (q < end && *q != *p)
            q += *q == '\\' ? 2 : 1;
        return (size_t)((q < end ? q + 1 : end) - p);
    }
    return p[0] == '#' && p[1] == '#' ? 2 : 1;
}

/* A word may stand before this token. */
static bool may_mark(const marker *m) {
    return m->call == 0 && *m->p != '#' && *m->p != '(' && m->before[0] != '#';
}

static void copy_token(marker *m, bool after_macro) {
    size_t n = measure_token(m->p, m->end);
    if (*m->p == '(') {
        m->depth++;
        if (after_macro && m->call == 0)
            m->call = m->depth;
    } else if (*m->p == ')') {
        if (m->depth == m->call)
            m->call = 0;
        m->depth--;
    }
    text_add(m->out, m->p, n);
    snprintf(m->before, sizeof m->before, "%.*s", n < 2 ? (int)n : 2, m->p);
    m->p += n;
}

static void mark_body(marker *m) {
    bool is_first = true, after_macro = false;
    while (skip_blanks(m)) {
        if (*m->p == '/' && m->p[1] == '/') { /* a comment up to the end of the macro */
            text_add(m->out, m->p, (size_t)(m->end - m->p));
            m->p = m->end;
            break;
        }
        if ((is_first || m->is_new_line) && may_mark(m)) {
            add_word(m, is_first ? "IN" : "AT");
            is_first = m->is_new_line = false;
        }
        size_t word = measure_word(m->p);
        bool is_call = word > 0 && is_macro(m, m->p, word);
        copy_token(m, after_macro);
        after_macro = is_call;
    }
    if (!is_first)
        text_print(m->out, " %sOUT_0_ ", stem);
}

/* "NAME(PARAMETERS)": its length; the parameters go where the names of macros are. */
static size_t read_head(const char *p, const char *end, text *names) {
    size_t n = measure_word(p);
    if (p + n >= end || p[n] != '(')
        return n;
    const char *close = memchr(p + n, ')', (size_t)(end - p) - n);
    if (!close)
        return 0;
    for (const char *q = p + n + 1; q < close; q++) {
        size_t bytes = measure_word(q);
        if (bytes > 0)
            text_print(names, "\n%.*s(", (int)bytes, q);
        q += bytes > 0 ? bytes - 1 : 0;
    }
    return (size_t)(close + 1 - p);
}

/* The operand of a #define, or NULL. */
static const char *find_define(const char *line, const char *end) {
    const char *p = line + 1;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (end - p < 8 || strncmp(p, "define", 6) != 0 || !isspace((unsigned char)p[6]))
        return NULL;
    p += 6;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

static bool has(const char *p, const char *end, const char *what) {
    const char *found = strstr(p, what);
    return found && found < end;
}

/* Code of several lines: what has a body, or statements that are not explicit instantiations. */
static bool is_wanted(const char *p, const char *end) {
    return memchr(p, '\n', (size_t)(end - p)) &&
           (memchr(p, '{', (size_t)(end - p)) ||
            (memchr(p, ';', (size_t)(end - p)) && !has(p, end, "template")));
}

static char *list_macros(const tokens *t) {
    text names = {0};
    text_print(&names, "\n__VA_OPT__(");
    for (size_t i = 0; i < t->directive_count; i++) {
        const char *line = t->source + t->directives[i].begin;
        const char *p = find_define(line, line + t->directives[i].bytes);
        size_t n = p ? measure_word(p) : 0;
        if (n > 0 && p[n] == '(')
            text_print(&names, "\n%.*s(", (int)n, p);
    }
    return text_take(&names);
}

/* `# 12 "file"` and `#line 12 "file"`: the name, as it is written. */
static bool read_mark(const char *line, const char *end, int *number, char *file, size_t size) {
    const char *p = line + 1;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (strncmp(p, "line", 4) == 0)
        p += 4 + strspn(p + 4, " \t");
    if (p >= end || !isdigit((unsigned char)*p))
        return false;
    *number = (int)strtol(p, NULL, 10);
    const char *quote = memchr(p, '"', (size_t)(end - p));
    const char *close = quote ? memchr(quote + 1, '"', (size_t)(end - quote - 1)) : NULL;
    if (close)
        snprintf(file, size, "%.*s", (int)(close - quote - 1), quote + 1);
    return true;
}

static void mark_define(const char *line, const directive *d, const char *file, const char *macros,
                        text *out, macro_lines *lines) {
    const char *end = line + d->bytes, *name = find_define(line, end);
    text names = {0};
    text_print(&names, "%s", macros);
    size_t head = read_head(name, end, &names);
    const char *body = name + head;
    text_add(out, line, (size_t)(body - line));
    marker m = {.p = body,
                .end = end,
                .out = out,
                .macros = names.data,
                .line = d->line,
                .place = {.file = text_copy(file, strlen(file))},
                .lines = lines};
    for (const char *p = line; p < body; p++)
        m.line += *p == '\n';
    snprintf(m.place.macro, sizeof m.place.macro, "%.*s", (int)measure_word(name), name);
    size_t before = lines->count;
    mark_body(&m);
    for (size_t i = before + 1; i < lines->count; i++) /* each has its own */
        lines->items[i].file = text_copy(file, strlen(file));
    if (before == lines->count)
        free(m.place.file);
    free(names.data);
}

char *expansion_mark(const char *name, const char *source, macro_lines *lines) {
    tokens t;
    text out = {0};
    char file[PATH_MAX];
    int ignored;
    size_t done = 0;
    if (strstr(source, stem) && (strstr(source, "ASSAY_IN_") || strstr(source, "ASSAY_AT_")))
        return NULL;
    snprintf(file, sizeof file, "%s", name);
    tokens_cut(&t, name, source);
    char *macros = list_macros(&t);
    for (size_t i = 0; i < t.directive_count; i++) {
        const directive *d = &t.directives[i];
        const char *line = source + d->begin, *end = line + d->bytes, *p = find_define(line, end);
        read_mark(line, end, &ignored, file, sizeof file);
        if (!p || !is_wanted(p, end) || measure_word(p) == 0 || measure_word(p) >= MACRO_NAME)
            continue;
        text_add(&out, source + done, d->begin - done);
        mark_define(line, d, file, macros, &out, lines);
        done = d->begin + d->bytes;
    }
    free(macros);
    tokens_free(&t);
    if (lines->count == 0)
        return NULL;
    text_add(&out, source + done, strlen(source + done));
    return text_take(&out);
}

void expansion_free(macro_lines *lines) {
    for (size_t i = 0; i < lines->count; i++)
        free(lines->items[i].file);
    free(lines->items);
    *lines = (macro_lines){0};
}

/* Resolving ------------------------------------------------------------------------------------- */

typedef struct {
    const char *p;
    text out;
    const macro_lines *lines;
    char file[PATH_MAX]; /* where the preprocessor says this is, as it is written */
    int line;
    size_t stack[DEEPEST]; /* the macros that are being expanded: the line of each */
    int depth;
    bool is_stale; /* the next token needs a #line mark */
} resolver;

static void print_place(resolver *r) {
    char name[PATH_MAX];
    if (r->depth == 0) {
        text_print(&r->out, "\n#line %d \"%s\"\n", r->line, r->file);
        return;
    }
    const macro_line *l = &r->lines->items[r->stack[r->depth - 1]];
    macro_place p = {.line = r->line};
    snprintf(p.macro, sizeof p.macro, "%s", l->macro);
    snprintf(p.file, sizeof p.file, "%.63s", path_get_name(r->file));
    macro_place_name(l->file, &p, name, sizeof name);
    text_print(&r->out, "\n#line %d \"%s\"\n", l->line, name);
}

/* One of our words; false if it is not where it was put. */
static bool obey_word(resolver *r) {
    char what[4];
    size_t number;
    int n = 0;
    if (sscanf(r->p + STEM, "%3[A-Z]_%zu_%n", what, &number, &n) != 2 || n == 0 ||
        is_word(r->p[STEM + n]) || number >= r->lines->count)
        return false;
    bool is_in = what[0] == 'I';
    if ((is_in && r->depth == DEEPEST) || (!is_in && r->depth == 0))
        return false;
    if (is_in)
        r->stack[r->depth++] = number;
    else if (what[0] == 'A')
        r->stack[r->depth - 1] = number;
    else
        r->depth--;
    r->is_stale = true;
    r->p += STEM + n;
    return true;
}

static bool is_ours(const char *p) {
    return strncmp(p, stem, STEM) == 0 &&
           (strncmp(p + STEM, "IN_", 3) == 0 || strncmp(p + STEM, "AT_", 3) == 0 ||
            strncmp(p + STEM, "OUT_", 4) == 0);
}

/* A string that a macro has made of marked text has our words in it. */
static void copy_string(resolver *r) {
    size_t n = measure_token(r->p, r->p + strlen(r->p));
    for (const char *end = r->p + n; r->p < end;) {
        if (is_ours(r->p)) {
            r->p += measure_word(r->p);
            r->p += *r->p == ' ';
        } else
            text_add(&r->out, r->p++, 1);
    }
}

static void copy_directive(resolver *r) {
    const char *end = r->p + strcspn(r->p, "\n");
    int number;
    text_add(&r->out, r->p, (size_t)(end - r->p) + (*end == '\n'));
    if (read_mark(r->p, end, &number, r->file, sizeof r->file))
        r->line = number;
    else
        r->line++;
    r->is_stale = r->depth > 0;
    r->p = end + (*end == '\n');
}

static bool copy_text(resolver *r, bool *at_start) {
    if (*r->p == '\n') {
        text_add(&r->out, r->p++, 1);
        r->line++;
        r->is_stale = r->is_stale || r->depth > 0;
        *at_start = true;
        return true;
    }
    if (isspace((unsigned char)*r->p)) {
        text_add(&r->out, r->p++, 1);
        return true;
    }
    if (*at_start && *r->p == '#') {
        copy_directive(r);
        return true;
    }
    *at_start = false;
    if (is_ours(r->p))
        return obey_word(r);
    if (r->is_stale)
        print_place(r);
    r->is_stale = false;
    size_t n = measure_word(r->p);
    for (size_t i = 1; i + STEM < n; i++)
        if (is_ours(r->p + i)) /* glued to another word */
            return false;
    if (*r->p == '"') {
        copy_string(r);
        return true;
    }
    n = *r->p == '\'' ? measure_token(r->p, r->p + strlen(r->p)) : n > 0 ? n : 1;
    text_add(&r->out, r->p, n);
    r->p += n;
    return true;
}

char *expansion_resolve(const char *preprocessed, const macro_lines *lines) {
    resolver *r = array_new(1, sizeof *r);
    bool ok = true, at_start = true;
    *r = (resolver){.p = preprocessed, .lines = lines, .line = 1};
    while (ok && *r->p)
        ok = copy_text(r, &at_start);
    char *made = ok ? text_take(&r->out) : NULL;
    free(r->out.data);
    free(r);
    return made;
}
