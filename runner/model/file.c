/* model/file: see file.h. gguf.c finds out whether it is a model. */
#include "file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"

#define SHIPPED "models/assay-tiny.gguf"

bool model_file_find(const char *given, char *path, size_t size, err *e) {
    char home[PATH_MAX];
    if (!given && !os_find_home(home, sizeof home, e))
        return false;
    int length =
        given ? snprintf(path, size, "%s", given) : snprintf(path, size, "%s/" SHIPPED, home);
    if (length < 0 || (size_t)length >= size)
        return err_set(e, EXIT_USAGE, "the path of the model is longer than %zu bytes", size - 1);
    if (access(path, F_OK) == 0)
        return true;
    if (given)
        return err_set(e, EXIT_USAGE,
                       "there is no file %.140s; give a GGUF file with -m, or get one with "
                       "`make model`",
                       given);
    return err_set(e, EXIT_CANNOT,
                   "the model that comes with the project, " SHIPPED ", is missing; give a GGUF "
                   "file with -m, or get one with `make model`");
}
