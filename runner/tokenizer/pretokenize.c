/* pretokenize: see pretokenize.h. Owns the rules for words; knows no vocabulary.
 *
 * White space: a run of it leaves its last character to the word that follows, but only if one
 * does. */
#include "pretokenize.h"

#include <assert.h>
#include <string.h>

#include "unicode.h"

static const pretokenizer all[] = {
    {.name = "smollm", .lone_numbers = true},
    {.name = "gpt-2"},
    {.name = "llama-bpe", .newer = true, .most_digits = 3, .whole_words = true, .add_bos = true},
    {.name = "qwen2", .newer = true, .most_digits = 1},
};
const char pretokenizer_names[] = "smollm, gpt-2, llama-bpe, qwen2";

const pretokenizer *pretokenizer_find(const char *name, size_t bytes) {
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i].name) == bytes && memcmp(all[i].name, name, bytes) == 0)
            return &all[i];
    return NULL;
}

/* Where a word is looked for: numbers end the text where they are words of their own. */
typedef struct {
    const code_points *text;
    bool stop_at_numbers;
} view;

static bool is_inside(const view *v, size_t i) {
    return i < v->text->count && !(v->stop_at_numbers && v->text->classes[i] == UNICODE_NUMBER);
}

static bool is_class(const view *v, size_t i, unicode_class c) {
    return is_inside(v, i) && v->text->classes[i] == c;
}

/* The code point at i; past the end one that no rule matches. */
static uint32_t get_point(const view *v, size_t i) {
    return is_inside(v, i) ? v->text->points[i] : UNICODE_LAST;
}

static size_t skip_class(const view *v, size_t i, unicode_class c) {
    while (is_class(v, i, c))
        i++;
    return i;
}

static bool is_line_end(uint32_t point) {
    return point == '\r' || point == '\n';
}

static uint32_t to_lower(uint32_t point) {
    return point >= 'A' && point <= 'Z' ? point + ('a' - 'A') : point;
}

/* The end of 's 't 'm 'd 're 've 'll at `at`, or `at` where there is none. */
static size_t find_contraction(const view *v, size_t at, bool any_case) {
    if (get_point(v, at) != '\'')
        return at;
    uint32_t a = get_point(v, at + 1), b = get_point(v, at + 2);
    if (any_case) {
        a = to_lower(a);
        b = to_lower(b);
    }
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return at + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return at + 3;
    return at;
}

/* `at` is white space. */
static size_t find_space_end(const view *v, size_t at) {
    size_t end = skip_class(v, at, UNICODE_SPACE);
    return end - at > 1 && is_inside(v, end) ? end - 1 : end;
}

static size_t find_gpt2(const view *v, size_t at) {
    size_t end = find_contraction(v, at, false);
    if (end > at)
        return end;
    size_t from = at + (get_point(v, at) == ' ');
    if (is_inside(v, from) && v->text->classes[from] != UNICODE_SPACE)
        return skip_class(v, from, (unicode_class)v->text->classes[from]);
    return find_space_end(v, at);
}

/* `at` is white space: up to the last line end of the run, if there is one in it. */
static size_t find_newer_space_end(const view *v, size_t at) {
    size_t last = at;
    for (size_t i = at; is_class(v, i, UNICODE_SPACE); i++)
        if (is_line_end(get_point(v, i)))
            last = i + 1;
    return last > at ? last : find_space_end(v, at);
}

static size_t find_newer(const view *v, size_t at, size_t most_digits) {
    size_t end = find_contraction(v, at, true);
    if (end > at)
        return end;
    uint32_t point = get_point(v, at);
    bool number = is_class(v, at, UNICODE_NUMBER);
    if (!is_line_end(point) && !number &&
        (is_class(v, at, UNICODE_LETTER) || is_class(v, at + 1, UNICODE_LETTER)))
        return skip_class(v, at + 1, UNICODE_LETTER);
    if (number) {
        for (end = at + 1; end - at < most_digits && is_class(v, end, UNICODE_NUMBER);)
            end++;
        return end;
    }
    size_t from = at + (point == ' ');
    if (is_class(v, from, UNICODE_OTHER)) {
        end = skip_class(v, from, UNICODE_OTHER);
        while (is_line_end(get_point(v, end)))
            end++;
        return end;
    }
    return find_newer_space_end(v, at);
}

size_t pretokenizer_find_end(const pretokenizer *p, const code_points *text, size_t at) {
    assert(at < text->count);
    view v = {text, p->lone_numbers};
    if (!is_inside(&v, at))
        return at + 1;
    return p->newer ? find_newer(&v, at, p->most_digits) : find_gpt2(&v, at);
}
