/* line: the pieces of a line of a text that people write (descriptions of ops and of launches).
 * Lines are cut in place. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

char *line_skip_blanks(char *p);
void line_trim_end(char *text);
/* The next word, cut off; "" at the end. */
char *line_take_word(char **at);
/* The first word of a line, without its comment; "" if there is none. *rest: what follows it, trimmed. */
char *line_take_keyword(char *line, char **rest);
/* The text up to the next of these words (a list that ends in NULL), cut off; *at is then at that
 * word. */
char *line_take_until(char **at, const char *const *words);
/* The ] of a [; NULL if it has none. */
char *line_find_close(char *open);
/* "a, f(b, c)" is two parts. False if one is empty or there are more than `most`. */
bool line_split(char *text, const char **parts, size_t most, size_t *count);

/* How many characters at the start of the text are a name: letters, digits after the first, _. */
size_t line_count_name(const char *text);
bool line_is_name(const char *text);
