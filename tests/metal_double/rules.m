/* rules: what Metal asks of texts and of memory, found out on Linux. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "double.h"
#include "harness/base/os.h"
#include "harness/base/sha256.h"
#include "harness/base/toolchain.h"
#include "harness/check/lint.h"
#include "harness/device/code_cache.h"
#include "harness/device/diagnostic.h"
#include "harness/device/soft/compile.h"

/* Texts --------------------------------------------------------------------------------------- */

/* Asking the compiler takes a second: that a text is right is remembered, by the text and all that
 * it is compiled with. */
static bool name_note(const char *text, int language, const char *clang, char *path, size_t size,
                      err *e) {
    static const char *const rooms[] = {"msl", "msl/strict", "shim", "shim/cpu"};
    char cache[PATH_MAX - 128], folder[PATH_MAX - 100], hex[65];
    sha256 h;
    sha256_start(&h);
    sha256_add(&h, text, strlen(text));
    sha256_add(&h, &language, sizeof language);
    if (!code_cache_hash_compiler(&h, clang, "", rooms, sizeof rooms / sizeof *rooms, e) ||
        !os_find_cache(cache, sizeof cache, e))
        return false;
    sha256_finish(&h, hex);
    snprintf(folder, sizeof folder, "%s/double", cache);
    snprintf(path, size, "%s/%s.right", folder, hex);
    return os_make_folder(folder, e);
}

static bool refuse(const char *messages, err *e) {
    err_set(e, EXIT_WRONG, "program_source does not compile");
    return err_set_detail(e, messages);
}

/* What C++ lets pass and Apple's compiler does not: the rules of lint that have its words. */
static bool check_rules(const char *clang, const msl_unit *unit, err *e) {
    remark_list found = {0};
    strict_result result;
    msl_check_refused(unit, &found);
    bool ok = strict_check(clang, unit, &found, &result, e);
    char message[4096] = "";
    for (size_t i = 0; i < found.count; i++) {
        const remark *r = &found.items[i];
        size_t used = strlen(message);
        snprintf(message + used, sizeof message - used, "%s:%d:%d: error: %s\n", r->file, r->line,
                 r->column, r->text);
    }
    remark_free(&found);
    return ok && (!*message || refuse(message, e));
}

/* A function that may end without its value gives a warning, as with Apple's compiler. */
static bool has_error(const char *messages) {
    diagnostic_list list;
    diagnostic_read(messages, &list);
    bool found = list.count == 0;
    for (size_t i = 0; i < list.count && !found; i++)
        found = list.items[i].is_error && !strstr(list.items[i].text, "-Wreturn-type");
    diagnostic_free(&list);
    return found;
}

static bool check_text(const msl_unit *unit, const char *text, err *e) {
    soft_compiler *compiler = soft_compiler_new(e);
    char note[PATH_MAX], clang[PATH_MAX], *messages = NULL;
    bool is_right = false;
    int language = msl_get_language(unit);
    bool ok = compiler && toolchain_find_clang(clang, sizeof clang, NULL, 0, e) &&
              name_note(text, language, clang, note, sizeof note, e);
    if (ok && access(note, R_OK) != 0)
        ok = soft_compiler_check_syntax(compiler, text, language, &is_right, &messages, e) &&
             (is_right || !has_error(messages ? messages : "") ||
              refuse(messages ? messages : "", e)) &&
             check_rules(clang, unit, e) &&
             os_write_file(note, "", 0, e);
    free(messages);
    soft_compiler_free(compiler);
    return ok;
}

bool double_compile_whole(const msl_unit *unit, err *e) {
    char *text = msl_rewrite_whole(unit, e);
    bool ok = text && check_text(unit, text, e);
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
