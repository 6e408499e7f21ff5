/* model_file: where the model is that a command works on. */
#ifndef ASSAY_MODEL_FILE_H
#define ASSAY_MODEL_FILE_H

#include <stddef.h>

#include "harness/base/err.h"

/* The path of a model file that is there. given NULL: the one that comes with the project. */
bool model_file_find(const char *given, char *path, size_t size, err *e);

#endif
