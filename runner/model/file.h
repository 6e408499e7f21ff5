/* model/file: which file a command uses as its model. */
#pragma once

#include <stddef.h>

#include "harness/base/err.h"

/* The path of an existing model file. given NULL: the model that comes with the project. */
bool model_file_find(const char *given, char *path, size_t size, err *e);
