/* array_file: arrays in files, as numpy writes them (.npy) or as raw elements (any other name). */
#pragma once

#include "harness/base/err.h"
#include "harness/device/elem.h"

/* Reads exactly `count` values. A .npy file says what it holds (floats and integers of any size, in
 * C order); another holds elements of `type`. */
bool array_file_read(const char *path, elem type, double *values, size_t count, err *e);
