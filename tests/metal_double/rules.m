/* rules: what Metal asks of texts and of memory, found out on Linux. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "double.h"
#include "harness/base/os.h"
#include "harness/base/sha256.h"
#include "harness/device/soft/compile.h"

/* Texts --------------------------------------------------------------------------------------- */

/* Asking the compiler takes a second: that a text is right is remembered, by the text and all that
 * it is compiled with. */
static bool name_note(const char *text, const char *compiler, char *path, size_t size, err *e) {
    char cache[PATH_MAX - 128], folder[PATH_MAX - 100], hex[65];
    sha256 h;
    sha256_start(&h);
    sha256_add(&h, text, strlen(text));
    sha256_add(&h, compiler, strlen(compiler));
    sha256_finish(&h, hex);
    if (!os_find_cache(cache, sizeof cache, e))
        return false;
    snprintf(folder, sizeof folder, "%s/double", cache);
    snprintf(path, size, "%s/%s.right", folder, hex);
    return os_make_folder(folder, e);
}

static bool check_text(const char *text, err *e) {
    soft_compiler *compiler = soft_compiler_new(e);
    char note[PATH_MAX], *messages = NULL;
    bool is_right = false;
    bool ok = compiler && name_note(text, soft_compiler_get_name(compiler), note, sizeof note, e);
    if (ok && access(note, R_OK) != 0) {
        ok = soft_compiler_check_syntax(compiler, text, &is_right, &messages, e);
        if (ok && is_right)
            ok = os_write_file(note, "", 0, e);
        else if (ok) {
            ok = err_set(e, EXIT_WRONG, "program_source does not compile");
            err_set_detail(e, messages ? messages : "");
        }
    }
    free(messages);
    soft_compiler_free(compiler);
    return ok;
}

bool double_compile_whole(const msl_unit *unit, err *e) {
    char *text = msl_rewrite_whole(unit, e);
    bool ok = text && check_text(text, e);
    free(text);
    return ok;
}

/* Memory -------------------------------------------------------------------------------------- */

bool double_is_mapped(const void *memory, size_t bytes, bool *is_private_file) {
    unsigned long at = (unsigned long)(uintptr_t)memory, end = at + bytes, first, last, inode;
    char line[PATH_MAX + 128], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    *is_private_file = false;
    while (maps && at < end && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &first, &last, rights, &inode) != 4 ||
            last <= at)
            continue;
        if (first > at)
            break;
        *is_private_file |= inode != 0 && rights[3] == 'p';
        at = last;
    }
    if (maps)
        fclose(maps);
    return at >= end;
}
