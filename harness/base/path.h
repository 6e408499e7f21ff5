/* path: paths that are made of parts (one that does not fit is an error, never cut), and the files below a
 * folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

bool path_print(char *path, size_t size, err *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* What a name means in a folder: itself if it is absolute. */
bool path_join(char *path, size_t size, err *e, const char *folder, const char *name);

/* The part after the last slash. */
const char *path_get_name(const char *path);
/* What stands for a character of a path in a line mark, which is one line: '?' for control characters. */
char path_get_mark(char c);
/* Does it end so, with something before that? */
bool path_ends_with(const char *path, const char *end);
bool path_is_source(const char *path); /* a kernel's or a header, by its name */

/* Calls `take` with the path of every file below the folder whose name ends so, in the order of the
 * names. What begins with a dot is left out, and so are the folders of whose names `skip` says true
 * (NULL: none). False from `take` ends the walk. */
typedef bool folder_take(void *context, const char *path, err *e);
bool folder_skip_all(const char *name);
bool folder_walk(const char *folder, const char *ending, bool (*skip)(const char *name),
                 folder_take *take, void *context, err *e);
