#include "path.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

char path_get_mark(char c) {
    return (unsigned char)c < ' ' ? '?' : c;
}

bool path_ends_with(const char *path, const char *end) {
    size_t length = strlen(path), tail = strlen(end);
    return length > tail && strcmp(path + length - tail, end) == 0;
}

bool path_is_source(const char *path) {
    static const char *const endings[] = {".metal", ".h", ".hpp", ".hh", ".hxx", ".inc"};
    bool is_source = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        is_source = is_source || path_ends_with(path_get_name(path), endings[i]);
    return is_source;
}

typedef struct {
    const char *ending;
    bool (*skip)(const char *name);
    folder_take *take;
    void *context;
    char path[PATH_MAX]; /* of where it is */
} walk;

typedef struct level {
    const struct level *above;
    dev_t device;
    ino_t number;
} level;

static bool visit_folder(walk *w, const level *above, err *e);

static bool visit(walk *w, const level *here, const char *name, err *e) {
    const size_t length = strlen(w->path);
    if (name[0] == '.')
        return true;
    if (!path_print(w->path + length, sizeof w->path - length, NULL, "/%s", name)) {
        w->path[length] = 0;
        return err_set(e, EXIT_USAGE, "the path of %.60s in %.120s is too long", name, w->path);
    }
    bool ok = os_is_folder(w->path)
                  ? (w->skip && w->skip(name)) || visit_folder(w, here, e)
                  : !path_ends_with(w->path, w->ending) || w->take(w->context, w->path, e);
    w->path[length] = 0;
    return ok;
}

/* Links can make a folder endless: one that it is in is not visited again. */
static bool visit_folder(walk *w, const level *above, err *e) {
    struct dirent **entries;
    struct stat s;
    int n = stat(w->path, &s) == 0 ? scandir(w->path, &entries, NULL, alphasort) : -1;
    if (n < 0)
        return err_set(e, EXIT_USAGE, "cannot read the folder %.200s", w->path);
    const level here = {above, s.st_dev, s.st_ino}, *same = above;
    while (same && (same->device != s.st_dev || same->number != s.st_ino))
        same = same->above;
    bool ok = true;
    for (int i = 0; i < n; i++) {
        ok = ok && (same || visit(w, &here, entries[i]->d_name, e));
        free(entries[i]);
    }
    free(entries);
    return ok;
}

bool folder_skip_all(const char *name) {
    (void)name;
    return true;
}

bool folder_walk(const char *folder, const char *ending, bool (*skip)(const char *name),
                 folder_take *take, void *context, err *e) {
    walk w = {ending, skip, take, context, ""};
    return path_print(w.path, sizeof w.path, e, "%s", folder) && visit_folder(&w, NULL, e);
}
