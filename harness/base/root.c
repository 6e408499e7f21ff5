/* root: see root.h. */
#include "root.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os.h"

static bool has_file(const char *folder, const char *name) {
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

bool root_find_project(char *path, size_t size) {
    if (!getcwd(path, size))
        return false;
    while (!has_file(path, PROJECT_FILE)) {
        char *slash = strrchr(path, '/');
        if (!slash || !slash[1])
            return false;
        slash[slash == path] = 0; /* the last folder above is "/" */
    }
    return true;
}

bool root_find(char *path, size_t size, err *e) {
    if (root_find_project(path, size) ||
        (os_find_home(path, size, NULL) && has_file(path, "Makefile")))
        return true;
    return getcwd(path, size) ||
           err_set(e, EXIT_CANNOT, "cannot find the current folder: %s", strerror(errno));
}
