#include "root.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os.h"
#include "path.h"

static bool has_file(const char *folder, const char *name) {
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

bool root_find_above(const char *folder, char *path, size_t size) {
    if (snprintf(path, size, "%s", folder) >= (int)size)
        return false;
    while (!has_file(path, PROJECT_FILE)) {
        char *slash = strrchr(path, '/');
        if (!slash || !slash[1])
            return false;
        slash[slash == path] = 0; /* the last folder above is "/" */
    }
    return true;
}

bool root_find_project(char *path, size_t size) {
    const char *given = getenv("ASSAY_PROJECT");
    char here[PATH_MAX];
    if (given && *given)
        return snprintf(path, size, "%s", given) < (int)size && has_file(path, PROJECT_FILE);
    return getcwd(here, sizeof here) && root_find_above(here, path, size);
}

bool root_keeps(const char *file, const char *other) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(path_get_name(other) - other), other);
    return os_is_below(file, folder) ||
           (root_find_project(folder, sizeof folder) && os_is_below(file, folder));
}

bool root_set_project(const char *folder, err *e) {
    char path[PATH_MAX];
    if (!realpath(folder, path))
        return err_set(e, EXIT_USAGE, "there is no project folder %.160s: %s", folder,
                       strerror(errno));
    if (!has_file(path, PROJECT_FILE))
        return err_set(e, EXIT_USAGE,
                       "%.120s is not a project: it has no file " PROJECT_FILE
                       "; assay init makes one",
                       folder);
    return setenv("ASSAY_PROJECT", path, 1) == 0;
}

bool root_find(char *path, size_t size, err *e) {
    if (root_find_project(path, size) ||
        (os_find_home(path, size, NULL) && has_file(path, "Makefile")))
        return true;
    return getcwd(path, size) ||
           err_set(e, EXIT_CANNOT, "cannot find the current folder: %s", strerror(errno));
}
