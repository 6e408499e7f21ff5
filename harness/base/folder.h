/* folder: the files below a folder. */
#pragma once

#include <stdbool.h>

#include "err.h"

/* Calls `take` with the path of every file below the folder whose name ends so, in the order of the
 * names. What begins with a dot is left out, and so are the folders of whose names `skip` says true
 * (NULL: none). False from `take` ends the walk. */
typedef bool folder_take(void *context, const char *path, err *e);
bool folder_walk(const char *folder, const char *ending, bool (*skip)(const char *name),
                 folder_take *take, void *context, err *e);
