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

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words: ASSAY_IN_7_ begins a body, ASSAY_AT_8_ begins a line of it, ASSAY_OUT_0_ ends it. */
static const char stem[] = "ASSAY_";
enum { STEM = sizeof stem - 1, DEEPEST = 200 };

/* Marking --------------------------------------------------------------------------------------- */

typedef struct {
    const tokens *t; /* of the macro's name, parameters and body */
    text *out;
    const char
        *macros;      /* "\nNAME(" for each macro with parameters, and "\nPARAMETER(" of this one */
    macro_line place; /* file and name of the macro; the line of its #define */
    macro_lines *lines;
} marker;

static void add_word(const marker *m, const char *what, int line) {
    macro_line *l = ARRAY_ADD(m->lines->items, m->lines->count, m->lines->room);
    *l = m->place;
    l->file = text_copy(m->place.file, strlen(m->place.file));
    l->line += line - 1;
    text_print(m->out, " %s%s_%zu_ ", stem, what, m->lines->count - 1);
}

static bool is_macro(const marker *m, at i) {
    char name[MACRO_NAME + 4];
    if (!token_is_word(m->t, i) || m->t->list[i].bytes > MACRO_NAME)
        return false;
    snprintf(name, sizeof name, "\n%.*s(", TOKEN_SPELL(m->t, i));
    return strstr(m->macros, name) != NULL;
}

/* Copies the body, which begins at token `body`, with words in it. */
static void mark_body(const marker *m, at body) {
    const tokens *t = m->t;
    bool is_first = true, is_new_line = true;
    at call_end = 0; /* of the arguments of another macro */
    uint32_t from = body > 0 ? t->list[body - 1].begin + t->list[body - 1].bytes : 0;
    for (at i = body; i < t->count; i++) {
        const token *k = &t->list[i];
        is_new_line = is_new_line || k->line != t->list[i - 1].line;
        text_add(m->out, t->source + from, k->begin - from);
        if (is_new_line && i >= call_end && !token_is_one_of(t, i, "# (") &&
            !(i > body && token_is(t, i - 1, "#"))) {
            add_word(m, is_first ? "IN" : "AT", k->line);
            is_first = is_new_line = false;
        }
        if (i >= call_end && token_is(t, i, "(") && i > body && is_macro(m, i - 1)) {
            int depth = 0;
            for (call_end = i; call_end < t->count; call_end++) {
                depth += token_is(t, call_end, "(") - token_is(t, call_end, ")");
                if (depth == 0)
                    break;
            }
            call_end++;
        }
        text_add(m->out, token_text(t, i), k->bytes);
        from = k->begin + k->bytes;
    }
    if (!is_first)
        text_print(m->out, " %sOUT_0_ ", stem);
    text_print(m->out, "%s", t->source + from);
}

static const char *end_of(const tokens *t, const directive *d) {
    return t->source + d->begin + d->bytes;
}

/* Code of several lines: what has a body, or statements that are not explicit instantiations. */
static bool is_wanted(const tokens *t, const directive *d) {
    const char *p = t->source + d->operand;
    size_t bytes = (size_t)(end_of(t, d) - p);
    return directive_is(t, d, "define") && memchr(p, '\n', bytes) &&
           (memchr(p, '{', bytes) || (memchr(p, ';', bytes) && !directive_has(t, d, "template")));
}

/* Is it `NAME(`? */
static bool has_parameters(const tokens *t) {
    return token_is_word(t, 0) && token_is(t, 1, "(") && t->list[1].begin == t->list[0].bytes;
}

static tokens cut_define(const tokens *t, const directive *d, char **operand) {
    tokens cut;
    const char *begin = t->source + d->operand;
    *operand = text_copy(begin, (size_t)(end_of(t, d) - begin));
    tokens_cut_macro(&cut, *operand);
    return cut;
}

static char *list_macros(const tokens *t) {
    text names = {0};
    text_print(&names, "\n__VA_OPT__(");
    for (size_t i = 0; i < t->directive_count; i++) {
        if (!directive_is(t, &t->directives[i], "define"))
            continue;
        char *operand;
        tokens define = cut_define(t, &t->directives[i], &operand);
        if (has_parameters(&define))
            text_print(&names, "\n%.*s(", TOKEN_SPELL(&define, 0));
        tokens_free(&define);
        free(operand);
    }
    return text_take(&names);
}

static void mark_define(const tokens *all, const directive *d, const char *macros, text *out,
                        macro_lines *lines) {
    char *operand;
    tokens t = cut_define(all, d, &operand);
    text names = {0};
    text_print(&names, "%s", macros);
    at body = 1;
    for (at i = 2; has_parameters(&t) && body == 1 && i < t.count; i++)
        if (token_is(&t, i, ")"))
            body = i + 1;
        else if (token_is_word(&t, i))
            text_print(&names, "\n%.*s(", TOKEN_SPELL(&t, i));
    marker m = {.t = &t, .out = out, .macros = names.data, .lines = lines};
    m.place = (macro_line){.file = all->files[d->file], .line = d->line};
    for (uint32_t i = d->begin; i < d->operand; i++)
        m.place.line += all->source[i] == '\n';
    tokens_spell(&t, 0, 1, m.place.macro, sizeof m.place.macro);
    text_add(out, all->source + d->begin, d->operand - d->begin);
    text_add(out, operand, t.list[body - 1].begin + t.list[body - 1].bytes);
    mark_body(&m, body);
    tokens_free(&t);
    free(operand);
    free(names.data);
}

char *expansion_mark(const char *name, const char *source, macro_lines *lines) {
    tokens t;
    text out = {0};
    size_t done = 0;
    if (strstr(source, "ASSAY_IN_") || strstr(source, "ASSAY_AT_"))
        return NULL;
    tokens_cut(&t, name, source);
    char *macros = list_macros(&t);
    for (size_t i = 0; i < t.directive_count; i++) {
        const directive *d = &t.directives[i];
        size_t word = strcspn(source + d->operand, " \t\r\n\\(");
        if (!is_wanted(&t, d) || word == 0 || word >= MACRO_NAME)
            continue;
        text_add(&out, source + done, d->begin - done);
        mark_define(&t, d, macros, &out, lines);
        done = d->begin + d->bytes;
    }
    free(macros);
    tokens_free(&t);
    if (lines->count == 0) {
        free(out.data);
        return NULL;
    }
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
    const tokens *t;
    text out;
    const macro_lines *lines;
    size_t stack[DEEPEST]; /* the macros that are being expanded: the line of each */
    int depth;
    bool is_stale; /* the next token needs a #line mark */
} resolver;

static void print_place(resolver *r, at i) {
    char name[PATH_MAX];
    if (r->depth == 0) {
        text_print(&r->out, "\n#line %d \"%s\"\n", r->t->list[i].line, token_file(r->t, i));
        return;
    }
    const macro_line *l = &r->lines->items[r->stack[r->depth - 1]];
    macro_place p = {.line = r->t->list[i].line};
    snprintf(p.macro, sizeof p.macro, "%s", l->macro);
    snprintf(p.file, sizeof p.file, "%.63s", path_get_name(token_file(r->t, i)));
    macro_place_name(l->file, &p, name, sizeof name);
    text_print(&r->out, "\n#line %d \"%s\"\n", l->line, name);
}

static bool is_ours(const char *p, size_t bytes) {
    return word_is_one_of(p, bytes, "ASSAY_IN_* ASSAY_AT_* ASSAY_OUT_*");
}

/* One of our words; false if it is not where it was put. */
static bool obey_word(resolver *r, at i) {
    char what[4];
    size_t number;
    int n = 0;
    if (sscanf(token_text(r->t, i) + STEM, "%3[A-Z]_%zu_%n", what, &number, &n) != 2 || n == 0 ||
        r->t->list[i].bytes != STEM + (uint32_t)n || number >= r->lines->count)
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
    return true;
}

/* A string that a macro has made of marked text has our words in it. */
static void copy_string(resolver *r, const char *p, const char *end) {
    while (p < end) {
        size_t word = strspn(p, "ASYINTOU_0123456789");
        if (is_ours(p, word)) {
            p += word;
            p += *p == ' ';
        } else
            text_add(&r->out, p++, 1);
    }
}

static bool copy_token(resolver *r, at i) {
    const token *k = &r->t->list[i];
    const char *p = token_text(r->t, i);
    if (is_ours(p, k->bytes))
        return obey_word(r, i);
    if (r->is_stale)
        print_place(r, i);
    r->is_stale = false;
    for (uint32_t n = 1; k->kind == TOKEN_WORD && n + STEM < k->bytes; n++)
        if (is_ours(p + n, k->bytes - n)) /* glued to another word */
            return false;
    if (*p == '"')
        copy_string(r, p, p + k->bytes);
    else
        text_add(&r->out, p, k->bytes);
    return true;
}

char *expansion_resolve(const char *preprocessed, const macro_lines *lines) {
    tokens t;
    tokens_cut(&t, "", preprocessed);
    resolver *r = array_new(1, sizeof *r);
    *r = (resolver){.t = &t, .lines = lines};
    bool ok = true;
    size_t next = 0; /* directive */
    uint32_t from = 0;
    for (at i = 0; i <= t.count && ok; i++) {
        const token *k = &t.list[i];
        bool has_mark = next < t.directive_count && t.directives[next].begin < k->begin;
        while (next < t.directive_count && t.directives[next].begin < k->begin)
            next++;
        text_add(&r->out, preprocessed + from, k->begin - from);
        if (has_mark)
            r->is_stale = r->depth > 0;
        else if (r->depth > 0 && memchr(preprocessed + from, '\n', k->begin - from))
            r->is_stale = true;
        ok = i == t.count || copy_token(r, i);
        from = k->begin + k->bytes;
    }
    char *made = ok ? text_take(&r->out) : NULL;
    free(r->out.data);
    free(r);
    tokens_free(&t);
    return made;
}
