/* inspect: see inspect.h. What a kernel may call, and the objects of macOS. */
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "macho.h"

/* What the shim and the compiler call: copies, and the functions of libm that it makes of
 * __builtin_expf and its like. Those with an f at the end are for float, which is all there is. */
bool inspect_is_allowed(const char *name) {
    static const char *const names[] = {
        "memcpy",
        "memmove",
        "memset",
        "memcmp",
        "acosf",
        "acoshf",
        "asinf",
        "asinhf",
        "atan2f",
        "atanf",
        "atanhf",
        "cbrtf",
        "ceilf",
        "copysignf",
        "cosf",
        "coshf",
        "erfcf",
        "erff",
        "exp10f",
        "exp2f",
        "expf",
        "expm1f",
        "fabsf",
        "fdimf",
        "floorf",
        "fmaf",
        "fmaxf",
        "fminf",
        "fmodf",
        "frexpf",
        "hypotf",
        "ilogbf",
        "ldexpf",
        "lgammaf",
        "log10f",
        "log1pf",
        "log2f",
        "logbf",
        "logf",
        "lrintf",
        "lroundf",
        "modff",
        "nanf",
        "nearbyintf",
        "nextafterf",
        "powf",
        "remainderf",
        "remquof",
        "rintf",
        "roundevenf",
        "roundf",
        "scalbnf",
        "sincosf",
        "sinf",
        "sinhf",
        "sqrtf",
        "tanf",
        "tanhf",
        "tgammaf",
        "truncf",
        "exp",
        "log",
        "pow",
        "fmod",
        "floor",
        "__extendhfsf2",
        "__truncsfhf2",
        "__truncsfbf2",
        "__extendbfsf2",
        "__gnu_h2f_ieee",
        "__gnu_f2h_ieee",
        "__truncdfhf2",
        "__truncdfbf2",
        "__extendhfdf2",
        "__sincosf",
        "__udivti3",
        "__umodti3",
        "__divti3",
        "__modti3",
        "__multi3",
        "__fixsfti",
        "__fixunssfti",
        "__floattisf",
        "__floatuntisf",
        "__popcountdi2",
        "__tls_get_addr",
        "__powisf2",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool inspect_refuse(const char *kernel, const char *why, const char *what, err *e) {
    return err_set(e, EXIT_WRONG, "kernel '%.80s' %s%.80s%s: it is not loaded", kernel, why, what,
                   *what ? "', which MSL does not have" : "");
}

/* Names of C have an underscore in front there, and the compiler calls a few functions more. */
static bool is_allowed_on_macos(const char *name) {
    static const char *const names[] = {
        "___sincosf_stret", "___exp10f",        "___bzero",          "_bzero",
        "_memset_pattern4", "_memset_pattern8", "_memset_pattern16", "dyld_stub_binder"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
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
