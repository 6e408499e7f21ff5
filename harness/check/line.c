#include "line.h"

#include <ctype.h>
#include <string.h>

char *line_skip_blanks(char *p) {
    return p + strspn(p, " \t\r");
}

void line_trim_end(char *text) {
    for (size_t n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]); n--)
        text[n - 1] = 0;
}

char *line_take_word(char **at) {
    char *word = line_skip_blanks(*at), *end = word + strcspn(word, " \t\r");
    *at = *end ? end + 1 : end;
    *end = 0;
    return word;
}

char *line_take_keyword(char *line, char **rest) {
    line[strcspn(line, "#")] = 0;
    *rest = line;
    char *word = line_take_word(rest);
    *rest = line_skip_blanks(*rest);
    line_trim_end(*rest);
    return word;
}

size_t line_count_name(const char *text) {
    size_t n = 0;
    while (isalpha((unsigned char)text[n]) || text[n] == '_' ||
           (n > 0 && isdigit((unsigned char)text[n])))
        n++;
    return n;
}

bool line_is_name(const char *text) {
    return *text && line_count_name(text) == strlen(text);
}

char *line_find_close(char *open) {
    int depth = 0;
    for (char *p = open; *p; p++) {
        depth += (*p == '[') - (*p == ']');
        if (depth == 0)
            return p;
    }
    return NULL;
}

bool line_split(char *text, const char **parts, size_t most, size_t *count) {
    int depth = 0;
    *count = 0;
    for (char *p = text, *from = text;; p++) {
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        if (*p && (*p != ',' || depth > 0))
            continue;
        bool is_last = !*p;
        *p = 0;
        from = line_skip_blanks(from);
        line_trim_end(from);
        if (!*from || *count == most)
            return false;
        parts[(*count)++] = from;
        if (is_last)
            return true;
        from = p + 1;
    }
}

char *line_take_until(char **at, const char *const *words) {
    char *from = line_skip_blanks(*at), *p = from;
    while (*p) {
        char *word = line_skip_blanks(p);
        size_t length = strcspn(word, " \t\r");
        bool ends = false;
        for (size_t i = 0; p > from && words[i]; i++)
            ends = ends || (strlen(words[i]) == length && strncmp(word, words[i], length) == 0);
        if (ends) {
            *p = 0;
            *at = word;
            line_trim_end(from);
            return from;
        }
        p = word + length;
    }
    *at = p;
    line_trim_end(from);
    return from;
}
