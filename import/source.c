/* source: the type that a kernel's text uses an input as, for inputs whose type the Python file does not
 * say: that of a pointer it is assigned to, or of a whole number that an element becomes, or uint32 where
 * bits of an element are taken. */
#include <ctype.h>
#include <string.h>

#include "internal.h"

typedef struct {
    const char *begin;
    size_t bytes;
} word;

enum { MOST_WORDS = 1 << 15, MOST_ALIASES = 16 };

static size_t cut_words(const char *p, word *out) {
    size_t count = 0;
    while (*p && count < MOST_WORDS) {
        size_t n = 1;
        if (isspace((unsigned char)*p)) {
            p++;
            continue;
        }
        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
            continue;
        }
        if (isalnum((unsigned char)*p) || *p == '_')
            while (isalnum((unsigned char)p[n]) || p[n] == '_')
                n++;
        else if (p[1] == *p && strchr("<>&|", *p))
            n = 2;
        out[count++] = (word){p, n};
        p += n;
    }
    return count;
}

static bool is(const word *w, const char *text) {
    return strlen(text) == w->bytes && memcmp(w->begin, text, w->bytes) == 0;
}

/* The word after the bracket that closes the one at i. */
static size_t skip_brackets(const word *words, size_t count, size_t i) {
    int depth = 0;
    for (; i < count; i++) {
        depth += is(&words[i], "[") - is(&words[i], "]");
        if (depth == 0)
            return i + 1;
    }
    return count;
}

/* A type by its MSL name, or what it is as a template argument. */
static const char *resolve(importer *im, const kernel_site *k, const word *w) {
    const char *name = keep_text(im, w->begin, w->bytes), *type = type_find(name);
    value *list = dict_find(k->launch, "template");
    for (size_t i = 0; !type && list && list->kind == V_LIST && i < list->list.count; i++) {
        const value *pair = list->list.items[i];
        if (pair->kind == V_LIST && pair->list.count == 2 &&
            pair->list.items[0]->kind == V_STRING && !strcmp(pair->list.items[0]->s.text, name))
            type = pair->list.items[1]->kind == V_TYPE ? pair->list.items[1]->name : "float32";
    }
    return type;
}

static bool takes_bits(const word *w) {
    static const char *const marks[] = {">>", "<<", "&", "|", "^", "%"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (is(w, marks[i]))
            return true;
    return false;
}

/* What is said where words[i] is the input or another name of it; *alias: one more name. */
static const char *look_at(importer *im, const kernel_site *k, const word *words, size_t count,
                           size_t i, const word **alias) {
    bool is_element = i + 1 < count && is(&words[i + 1], "[");
    if (i >= 3 && is(&words[i - 1], "=") && !is_element) { /* TYPE* name = input */
        const word *type = &words[i - 3];
        for (size_t back = i - 3; back > 0 && (is(type, "*") || is(type, "&")); back--)
            type = &words[back - 1];
        *alias = &words[i - 2];
        return is(type, "auto") ? NULL : resolve(im, k, type);
    }
    if (!is_element)
        return NULL;
    size_t after = skip_brackets(words, count, i + 1);
    bool is_bits =
        (after < count && takes_bits(&words[after])) || (i > 0 && takes_bits(&words[i - 1]));
    if (is_bits)
        return "uint32";
    if (i >= 3 && is(&words[i - 1], "=") && after < count && is(&words[after], ";")) {
        const char *type = resolve(im, k, &words[i - 3]);
        return type && strstr(type, "int") ? type : NULL;
    }
    return NULL;
}

bool source_has_word(importer *im, const kernel_site *k, const char *text) {
    word *words = keep(im, MOST_WORDS * sizeof *words);
    size_t count = cut_words(k->source.text, words);
    for (size_t i = 0; i < count; i++)
        if (is(&words[i], text))
            return true;
    return false;
}

bool source_is_scalar(importer *im, const kernel_site *k, const char *input) {
    word *words = keep(im, MOST_WORDS * sizeof *words);
    size_t count = cut_words(k->source.text, words);
    bool is_scalar = false;
    for (size_t i = 0; i + 1 < count; i++) {
        if (!is(&words[i], input))
            continue;
        const word *after = &words[i + 1], *before = i > 1 ? &words[i - 1] : after;
        if (is(after, "["))
            return false;
        bool is_product = is(before, "*") && (isalnum((unsigned char)*words[i - 2].begin) ||
                                              is(&words[i - 2], ")") || is(&words[i - 2], "]"));
        is_scalar |= is_product || is(after, "*") || is(after, "/") || is(after, "%") ||
                     is(before, "<") || is(after, "<");
    }
    return is_scalar;
}

const char *source_find_type(importer *im, const kernel_site *k, const char *input) {
    word *words = keep(im, MOST_WORDS * sizeof *words);
    size_t count = cut_words(k->source.text, words), names = 1;
    word aliases[MOST_ALIASES] = {{input, strlen(input)}};
    const char *found = NULL;
    for (size_t i = 0; i < count && !found; i++)
        for (size_t a = 0; a < names && !found; a++) {
            bool is_it = words[i].bytes == aliases[a].bytes &&
                         memcmp(words[i].begin, aliases[a].begin, aliases[a].bytes) == 0;
            const word *alias = NULL;
            if (is_it && !(i > 0 && is(&words[i - 1], ".")))
                found = look_at(im, k, words, count, i, &alias);
            if (alias && names < MOST_ALIASES)
                aliases[names++] = *alias;
        }
    return found;
}
