/* values: elements of a buffer as text that reads back as the same bits. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "harness/device/elem.h"

/* Rows of aligned values, each row preceded by the index of its first. Elements that nothing has
 * written have no value. */
void values_print(FILE *out, elem type, const void *array, const bool *unwritten, size_t count);
