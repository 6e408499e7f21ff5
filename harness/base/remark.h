/* remark: a message about a place in a file, in the form that compilers print. */
#pragma once

#include <stddef.h>

typedef enum { REMARK_WARNING, REMARK_ERROR } remark_kind;

typedef struct {
    remark_kind kind;
    char *file;
    int line, column; /* from 1; 0: unknown */
    const char *rule; /* a name that lives as long as the program: "buffer-index" */
    char text[512];
} remark;

typedef struct {
    remark *items;
    size_t count, room;
} remark_list;

void remark_add(remark_list *list, remark_kind kind, const char *file, int line, int column,
                const char *rule, const char *format, ...) __attribute__((format(printf, 7, 8)));
/* Drops warnings of a file on lines that end in a comment NOLINT(rule). */
void remark_drop_silenced(remark_list *list, const char *file, const char *text);
void remark_sort(remark_list *list); /* by place; equal ones become one */
size_t remark_count(const remark_list *list, remark_kind kind);
void remark_free(remark_list *list);
