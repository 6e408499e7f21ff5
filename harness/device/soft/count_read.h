/* count_read: the rows of the engine, with what their sites are from the table in the compiled kernel. */
#pragma once

#include "counted.h"

bool count_read(const char *object, const counted_row *rows, size_t count, count_list *out, err *e);
