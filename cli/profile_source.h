/* profile_source: the text of the lines that are counted, and the machine code that was made of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Files, each read once. */
typedef struct {
    struct source_file {
        char *file, *text; /* text NULL: it is not found */
    } * items;
    size_t count, room;
} source_list;

/* Files are named as they were given, from the project's folder, or from where the program's own are. */
const char *source_find(source_list *s, const char *file);
/* Line n, without what is before its first word; "" if there is none. */
void source_copy_line(source_list *s, const char *file, int n, char *out, size_t size);
void source_free(source_list *s);

/* One instruction, and where it comes from. */
typedef struct {
    const char *file, *text;
    int file_length, text_length, line;
    bool is_near; /* the line is that of an instruction that it serves */
} code_line;

typedef struct {
    code_line *items;
    size_t count, room, printed;
} code_list;

/* What nvdisasm printed. Points into the text. */
code_list code_read(const char *disassembly);
/* What agx_compile gives, without the part that runs once per launch. */
code_list code_read_agx(const char *disassembly);
/* Prints the instructions of a line of a file. */
void code_print(code_list *c, const char *file, int line);
void code_free(code_list *c);
