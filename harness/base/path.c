#include "path.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool path_print(char *path, size_t size, err *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, size, format, arguments);
    va_end(arguments);
    return (length >= 0 && (size_t)length < size) ||
           err_set(e, EXIT_USAGE, "the path %.120s... is too long", path);
}

bool path_join(char *path, size_t size, err *e, const char *folder, const char *name) {
    return name[0] == '/' ? path_print(path, size, e, "%s", name)
                          : path_print(path, size, e, "%s/%s", folder, name);
}

const char *path_get_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool path_ends_with(const char *path, const char *end) {
    size_t length = strlen(path), tail = strlen(end);
    return length > tail && strcmp(path + length - tail, end) == 0;
}
