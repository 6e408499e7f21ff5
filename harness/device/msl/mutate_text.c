/* mutate_text: the text of a mutant, how it is shown, and which kernels it is part of. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "mutate.h"

const char *mutate_get_name(mutate_kind kind) {
    static const char *const names[MUTATE_KINDS] = {
        [MUTATE_BOUND] = "off-by-one bound",
        [MUTATE_GUARD] = "dropped guard",
        [MUTATE_BARRIER] = "dropped barrier",
        [MUTATE_INDEX] = "swapped index",
        [MUTATE_NIBBLE] = "wrong nibble",
        [MUTATE_PLUS] = "+ to -",
        [MUTATE_MINUS] = "- to +",
        [MUTATE_TIMES] = "* to +",
        [MUTATE_TERM] = "dropped term",
        [MUTATE_CONSTANT] = "constant +-1",
        [MUTATE_LANE] = "wrong lane",
        [MUTATE_UNSET] = "uninitialised",
        [MUTATE_EDGE] = "one edge",
    };
    return names[kind];
}

void mutate_free(mutation_list *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].with);
    free(l->items);
    *l = (mutation_list){NULL, 0, 0};
}

char *mutate_apply(const char *source, const mutation *m) {
    text out = {0};
    text_add(&out, source, m->begin);
    text_add(&out, m->with, strlen(m->with));
    /* Line ends of the removed text are kept, so that what follows keeps its line. */
    for (uint32_t i = 0; i < m->bytes; i++)
        if (source[m->begin + i] == '\n')
            text_add(&out, "\n", 1);
    const char *rest = source + m->begin + m->bytes;
    text_add(&out, rest, strlen(rest));
    return text_take(&out);
}

static char *fold_blanks(const char *begin, const char *end) {
    text out = {0};
    for (const char *p = begin; p < end; p++) {
        bool is_blank = isspace((unsigned char)*p) != 0;
        if (!is_blank)
            text_add(&out, p, 1);
        else if (out.used > 0 && p + 1 < end && !isspace((unsigned char)p[1]))
            text_add(&out, " ", 1);
    }
    return text_take(&out);
}

static char *fold_lines(const char *source, size_t begin, size_t end) {
    while (begin > 0 && source[begin - 1] != '\n')
        begin--;
    while (source[end] && source[end] != '\n')
        end++;
    return fold_blanks(source + begin, source + end);
}

void mutate_describe(const char *source, const mutation *m, char **before, char **after) {
    char *changed = mutate_apply(source, m);
    size_t rest = strlen(source) - m->begin - m->bytes;
    *before = fold_lines(source, m->begin, m->begin + m->bytes);
    *after = fold_lines(changed, m->begin, strlen(changed) - rest);
    free(changed);
}

void mutate_name_decl(const tokens *t, const decl *d, char *name, size_t size) {
    name[0] = 0;
    if (d->name == NOT_FOUND || token_is(t, d->name, "operator") || t->list[d->name].bytes >= size)
        return;
    memcpy(name, token_text(t, d->name), t->list[d->name].bytes);
    name[t->list[d->name].bytes] = 0;
}

/* Parts ------------------------------------------------------------------------------------- */

bool mutate_has_part(const mutate_parts *p, const char *name) {
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->names[i], name) == 0)
            return true;
    return !*name;
}

void mutate_free_parts(mutate_parts *p) {
    for (size_t i = 0; i < p->count; i++)
        free(p->names[i]);
    free(p->names);
    *p = (mutate_parts){NULL, 0, 0};
}

static bool add_part(mutate_parts *p, const char *data, size_t bytes) {
    char *name = text_copy(data, bytes);
    if (mutate_has_part(p, name)) {
        free(name);
        return false;
    }
    *ARRAY_ADD(p->names, p->count, p->room) = name;
    return true;
}

typedef struct {
    const tokens *t;
    const char *wanted;
    mutate_parts *parts;
    bool has_grown;
} collector;

/* The kernel's name, as a word, or as strings that stand side by side and give it. */
static bool is_kernel_name(const tokens *t, at i, const char *name) {
    if (token_is(t, i, name))
        return true;
    size_t left = strlen(name);
    for (; i < t->count && t->list[i].kind == TOKEN_STRING && t->list[i].bytes >= 2; i++) {
        size_t n = t->list[i].bytes - 2;
        if (n > left || memcmp(token_text(t, i) + 1, name, n) != 0)
            return false;
        name += n;
        left -= n;
        if (left == 0 && !(i + 1 < t->count && t->list[i + 1].kind == TOKEN_STRING))
            return true;
    }
    return false;
}

/* The kernel is it, or is named in it: by a host name, or by a macro that makes it. */
static bool mentions_kernel(const collector *c, const decl *d) {
    for (at i = d->begin; i < d->end; i++)
        if (is_kernel_name(c->t, i, c->wanted))
            return true;
    return false;
}

static bool collect(void *context, const decl *d, const char *prefix) {
    (void)prefix;
    collector *c = context;
    char name[64];
    mutate_name_decl(c->t, d, name, sizeof name);
    if (!mutate_has_part(c->parts, name) && !mentions_kernel(c, d))
        return true;
    for (at i = d->begin; i < d->end; i++)
        if (c->t->list[i].kind == TOKEN_WORD &&
            add_part(c->parts, token_text(c->t, i), c->t->list[i].bytes))
            c->has_grown = true;
    return true;
}

/* What macros mention: any text may use them. */
static void collect_macros(const tokens *t, mutate_parts *p) {
    for (size_t i = 0; i < t->directive_count; i++) {
        const char *begin = t->source + t->directives[i].begin;
        const char *end = begin + t->directives[i].bytes;
        const char *word = begin + 1 + strspn(begin + 1, " \t");
        if (strncmp(word, "define", 6) != 0)
            continue;
        for (const char *q = begin; q < end; q++) {
            size_t n = 0;
            while (q + n < end && (isalnum((unsigned char)q[n]) || q[n] == '_'))
                n++;
            if (n > 0)
                add_part(p, q, n);
            q += n;
        }
    }
}

bool mutate_find_parts(const char *const *sources, size_t count, const char *name,
                       mutate_parts *out, err *e) {
    *out = (mutate_parts){NULL, 0, 0};
    tokens *t = calloc(count + 1, sizeof *t);
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        tokens_cut(&t[i], "kernel", sources[i]);
        ok = tokens_pair(&t[i], e);
        collect_macros(&t[i], out);
    }
    add_part(out, name, strlen(name));
    collector c = {.wanted = name, .parts = out, .has_grown = true};
    while (ok && c.has_grown) {
        c.has_grown = false;
        for (size_t i = 0; i < count; i++) {
            c.t = &t[i];
            decl_visit(&t[i], collect, &c);
        }
    }
    for (size_t i = 0; t && i < count; i++)
        if (t[i].list)
            tokens_free(&t[i]);
    free(t);
    return ok;
}
