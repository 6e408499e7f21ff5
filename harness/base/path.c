#include "path.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os.h"

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

enum { DEEPEST = 32 }; /* links can make a folder endless */

typedef struct {
    const char *ending;
    bool (*skip)(const char *name);
    folder_take *take;
    void *context;
} walk;

static bool visit_folder(const walk *w, const char *folder, int depth, err *e);

/* A path that is too long is left out. */
static bool visit(const walk *w, const char *folder, const char *name, int depth, err *e) {
    char path[PATH_MAX];
    if (name[0] == '.' || !path_print(path, sizeof path, NULL, "%s/%s", folder, name))
        return true;
    if (os_is_folder(path))
        return (w->skip && w->skip(name)) || visit_folder(w, path, depth + 1, e);
    return !path_ends_with(path, w->ending) || w->take(w->context, path, e);
}

static bool visit_folder(const walk *w, const char *folder, int depth, err *e) {
    struct dirent **entries;
    int n = depth < DEEPEST ? scandir(folder, &entries, NULL, alphasort) : 0;
    if (n < 0)
        return err_set(e, EXIT_USAGE, "cannot read the folder %.200s", folder);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        ok = ok && visit(w, folder, entries[i]->d_name, depth, e);
        free(entries[i]);
    }
    if (n > 0)
        free(entries);
    return ok;
}

bool folder_walk(const char *folder, const char *ending, bool (*skip)(const char *name),
                 folder_take *take, void *context, err *e) {
    return visit_folder(&(walk){ending, skip, take, context}, folder, 0, e);
}
