/* stack_use: see stack_use.h. */
#include "stack_use.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"
#include "harness/base/os.h"

/* A kernel that needs more private memory than a fiber's stack has would write over its neighbours.
 * The compiler lists what each function needs; MSL has no recursion, so their sum is enough. */
bool stack_check(const char *object, const char *name, err *e) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", object);
    char *dot = strrchr(path, '.');
    if (!dot || dot + 4 >= path + sizeof path)
        return true;
    memcpy(dot, ".su", 4);
    char *text = os_read_file(path, NULL, NULL);
    unlink(path);
    unsigned long long need = 0;
    for (const char *p = text; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const char *tab = memchr(p, '\t', strcspn(p, "\n"));
        need += tab ? strtoull(tab + 1, NULL, 10) : 0;
    }
    free(text);
    if (need <= SOFT_STACK_USABLE)
        return true;
    return err_set(e, EXIT_WRONG,
                   "kernel '%.80s' needs %llu bytes of private memory per thread; there are %d",
                   name, need, SOFT_STACK_USABLE);
}
