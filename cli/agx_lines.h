/* agx_lines: the instructions that Mesa's compiler makes of a kernel for an M1, by line of its source. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    bool annotate; /* all lines of the files, else those with the most instructions */
    bool code;     /* the instructions after each line */
    size_t top;    /* how many lines */
} agx_line_settings;

/* code: the disassembly that agx_compile gives. */
void agx_print_lines(const char *kernel, const char *code, const agx_line_settings *s);
