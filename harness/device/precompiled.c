#include "precompiled.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"

enum { MAKE_SECONDS = 60 };

/* The headers are included before an empty file that is always there: the compiler looks for every
 * file again when it uses the result. It compares their sizes and, unless told not to, their
 * times; the cache's name for the result tells contents apart. */
static bool make_header(void *context, const char *source, const char *object, err *e) {
    const char *const *options = context;
    const char *const more[] = {"-Xclang",   "-emit-pch", "-Xclang", "-fno-pch-timestamp",
                                "/dev/null", "-o",        object};
    size_t n = 0;
    int status;
    (void)source;
    while (options[n])
        n++;
    const char **argv = array_new(n + sizeof more / sizeof *more + 1, sizeof *argv);
    memcpy(argv, options, n * sizeof *argv);
    memcpy(argv + n, more, sizeof more);
    bool ok = os_run_for(argv, MAKE_SECONDS, NULL, &status, e);
    free(argv);
    return ok &&
           (status == 0 || err_set(e, EXIT_CANNOT, "the shim's headers cannot be precompiled"));
}

const char *precompiled_find(precompiled *p, const code_cache *cache, uint32_t how,
                             const char *const *options) {
    if (!p->was_tried && !code_cache_find(cache, "", how, ".pch", make_header, (void *)options,
                                          p->path, sizeof p->path, NULL))
        p->path[0] = 0;
    p->was_tried = true;
    return p->path[0] ? p->path : NULL;
}
