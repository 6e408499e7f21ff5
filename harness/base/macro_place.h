/* macro_place: lines in the bodies of macros, as compilers report them.
 *
 * Code that comes from a macro has the line of the macro's definition, under a file name that also
 * says which macro it is and where it is expanded: "utils.h@FOO@kernel.metal@90". Compilers carry
 * such a name through messages and debug information unchanged, and it is taken apart here wherever
 * something is reported to a user. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { MACRO_NAME = 64 };

typedef struct {
    char macro[MACRO_NAME];
    char file[MACRO_NAME]; /* where it is expanded, without folders */
    int line;
} macro_place;

/* The name for lines of `file` that stand in a macro; false, with the file as it is, if it would be
 * too long to be kept whole by those who store it. */
bool macro_place_name(const char *file, const macro_place *p, char *name, size_t size);
/* Cuts a name to its file; false if it says nothing about a macro. */
bool macro_place_cut(char *name, macro_place *p);
/* ", in macro FOO expanded at line 90"; with the file's name if that is another than `file`. */
void macro_place_spell(const macro_place *p, const char *file, char *text, size_t size);
/* The same in messages: names are cut, and each line that had one ends with what it said. */
void macro_place_tell(char *text, size_t size);
