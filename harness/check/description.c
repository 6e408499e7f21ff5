#include "description.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool describe_refuse(const description *d, int line, err *e, const char *format, ...) {
    char text[220];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return err_set(e, EXIT_USAGE, "%.60s:%d: %s", d->file, line, text);
}

described_argument *describe_find_argument(description *d, const char *name) {
    for (size_t i = 0; i < d->argument_count; i++)
        if (strcmp(d->arguments[i].name, name) == 0)
            return &d->arguments[i];
    return NULL;
}

bool describe_is_output(const described_argument *a) {
    return a->kind == ARGUMENT_OUT || a->kind == ARGUMENT_BOTH;
}
