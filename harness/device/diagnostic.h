/* diagnostic: the messages of clang, taken apart. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    bool is_error; /* else a note that belongs to the error before it */
    char *file, *text;
    int line, column;
} diagnostic;

typedef struct {
    diagnostic *items;
    size_t count, room;
} diagnostic_list;

/* Errors and notes; warnings and everything else are left out. */
void diagnostic_read(const char *messages, diagnostic_list *out);
void diagnostic_free(diagnostic_list *list);

/* Cuts off the number after the last ':', and that. False: there is none. */
bool diagnostic_cut_number(char *text, int *number);

/* The notes of the error at i are the items from i + 1 to here. */
size_t diagnostic_end_notes(const diagnostic_list *list, size_t i);
