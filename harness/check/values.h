/* values: elements of a buffer as text that reads back as the same bits. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "harness/device/elem.h"

/* Rows of aligned values, each row preceded by the index of its first. */
void values_print(FILE *out, elem type, const void *array, size_t count);
