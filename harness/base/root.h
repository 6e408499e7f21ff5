/* root: the folder that is worked on. It holds the results, and its commit is the one that rows
 * name.
 *
 * It is the user's project (a folder marked by a file assay.project) when one is given with -C or
 * the current folder is in one; else Assay's source tree, when the program runs from there; else,
 * for an installed program, the current folder. The files of the program itself are os_find_home's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

#define PROJECT_FILE "assay.project"

/* The project is this one, whatever the current folder is, for this process and its workers (by the
 * environment variable ASSAY_PROJECT). */
bool root_set_project(const char *folder, err *e);
/* The project that was set, or that the current folder is in; false if there is none. */
bool root_find_project(char *path, size_t size);
/* The project that an absolute folder is in; false if there is none. */
bool root_find_above(const char *folder, char *path, size_t size);
/* Is a file below the folder of another, or in the project? Links are followed. */
bool root_keeps(const char *file, const char *other);
bool root_find(char *path, size_t size, err *e);
