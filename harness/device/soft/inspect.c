/* inspect: see inspect.h. The objects of macOS; inspect_elf.c has those of Linux. */
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "inspect_rules.h"
#include "macho.h"

/* Names of C have an underscore in front there, and the compiler calls a few functions more. */
static bool is_allowed_on_macos(const char *name) {
    static const char *const names[] = {
        "___sincosf_stret", "___exp10f",        "___bzero",          "_bzero",
        "_memset_pattern4", "_memset_pattern8", "_memset_pattern16", "dyld_stub_binder"};
    /* The object is asked before the hooks of checked mode (shim/cpu/checked.h) are linked to it. No
     * library of the program has such names. */
    static const char *const hooks[] = {"___tsan_", "___ubsan_handle_", "___assay_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        if (strncmp(name, hooks[i], strlen(hooks[i])) == 0)
            return true;
    return name[0] == '_' && inspect_is_allowed(name + 1);
}

/* Instrumentation brings one constructor of its own, which calls our empty __tsan_init. No name of
 * a kernel has a dot in it. */
static bool check_macho(const macho_file *f, const char *kernel, err *e) {
    if (!f->is_object)
        return err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' is no object", kernel);
    if (f->has_options)
        return inspect_refuse(kernel, INSPECT_LIBRARY, "", e);
    for (size_t i = 0; i < f->symbol_count; i++) {
        const char *name = macho_get_undefined(f, i);
        if (name && !is_allowed_on_macos(name))
            return inspect_refuse(kernel, INSPECT_CALLS, name + (name[0] == '_'), e);
        if (macho_is_chosen(f, i))
            return inspect_refuse(kernel, INSPECT_CHOSEN, "", e);
    }
    for (size_t i = 0; i < f->starter_count; i++)
        if (i > 0 || !macho_starts_only(f, &f->starters[i], "_tsan.module_ctor"))
            return inspect_refuse(kernel, INSPECT_STARTS, "", e);
    return true;
}

bool soft_inspect(const char *path, const char *kernel, err *e) {
    size_t bytes;
    char *data = os_read_file(path, &bytes, e);
    if (!data)
        return false;
    macho_file f;
    bool ok = macho_read((const uint8_t *)data, bytes, &f) ? check_macho(&f, kernel, e)
                                                           : inspect_elf(data, bytes, kernel, e);
    free(data);
    return ok;
}
