/* count_line: which line of the source an instruction of a module's text belongs to, and what kind of
 * work it is. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "ir_function.h"

typedef struct {
    int line; /* 0: it is not the kernel's, or it was moved and its line is not known */
    bool is_moved;
    span file; /* as the module names it */
} count_place;

typedef struct {
    const char **metadata; /* by number; NULL: there is none */
    size_t count;
} count_lines;

void count_lines_read(count_lines *l, const char *module);
void count_lines_free(count_lines *l);

/* Of an instruction that was inlined: the innermost place outside of the shim. */
count_place count_find_place(const count_lines *l, span line);

/* A call that is a meeting of lanes: M, X or W as in count_ir.h; else 0. */
char count_find_meeting(span line);

/* The rows B of a block, for each line of the source; false if there is none. */
bool count_print_block(const count_lines *l, const span *body, size_t count, int site, FILE *out);
