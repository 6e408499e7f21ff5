/* path: paths that are made of parts. One that does not fit is an error, never cut. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

bool path_print(char *path, size_t size, err *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* What a name means in a folder: itself if it is absolute. */
bool path_join(char *path, size_t size, err *e, const char *folder, const char *name);
