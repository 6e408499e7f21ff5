/* root: the folder that is worked on. It holds the results, and its commit is the one that rows
 * name.
 *
 * It is the user's project (a folder marked by a file assay.project) when the current folder is in
 * one; else Assay's source tree, when the program runs from there; else, for an installed program,
 * the current folder. The files of the program itself are os_find_home's. */
#ifndef ASSAY_ROOT_H
#define ASSAY_ROOT_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

#define PROJECT_FILE "assay.project"

/* The project that the current folder is in; false if it is in none. */
bool root_find_project(char *path, size_t size);
bool root_find(char *path, size_t size, err *e);

#endif
