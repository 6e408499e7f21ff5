#include "values.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 32, ROW_WIDTH = 96, MOST_COLUMNS = 16 };

static void get_float_text(elem type, const void *array, size_t i, char *text, size_t size) {
    double value = elem_read(type, array, i);
    if (isnan(value)) { /* its sign means nothing, and is another one on other CPUs */
        snprintf(text, size, "nan");
        return;
    }
    if (fabs(value) < 1e6 && value == trunc(value) && !(value == 0 && signbit(value))) {
        snprintf(text, size, "%.0f", value); /* not 1e+01 */
        return;
    }
    for (int digits = 1; digits <= 9; digits++) {
        uint64_t again;
        snprintf(text, size, "%.*g", digits, value);
        elem_write(type, &again, 0, strtod(text, NULL));
        if (elem_read(type, &again, 0) == value)
            return;
    }
}

/* The shortest text for element i. */
static void get_text(elem type, const void *array, const bool *unwritten, size_t i, char *text,
                     size_t size) {
    if (unwritten[i])
        snprintf(text, size, "unwritten");
    else if (elem_is_float(type))
        get_float_text(type, array, i, text, size);
    else if (type == ELEM_U64)
        snprintf(text, size, "%" PRIu64, ((const uint64_t *)array)[i]);
    else if (type == ELEM_I64)
        snprintf(text, size, "%" PRId64, ((const int64_t *)array)[i]);
    else
        snprintf(text, size, "%.0f", elem_read(type, array, i));
}

void values_print(FILE *out, elem type, const void *array, const bool *unwritten, size_t count) {
    char text[TEXT_SIZE];
    int width = 1, index_width = snprintf(text, sizeof text, "%zu", count);
    for (size_t i = 0; i < count; i++) {
        get_text(type, array, unwritten, i, text, sizeof text);
        int n = (int)strlen(text);
        width = n > width ? n : width;
    }
    size_t columns = MOST_COLUMNS;
    while (columns > 1 && columns * (size_t)(width + 2) > ROW_WIDTH)
        columns /= 2;
    for (size_t i = 0; i < count; i++) {
        get_text(type, array, unwritten, i, text, sizeof text);
        if (i % columns == 0)
            fprintf(out, "%s%*zu:", i ? "\n" : "", index_width + 2, i);
        fprintf(out, "  %*s", width, text);
    }
    fputc('\n', out);
}
