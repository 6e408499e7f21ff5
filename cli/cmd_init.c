/* cmd_init: `assay init`. A new project: a folder with one kernel and its description. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/base/root.h"
#include "verb.h"

static bool wants_c;

static const option options[] = {
    FLAG_OPTION("c", &wants_c,
                "describe the op in C, which can do anything, instead of in a short text"),
};

static bool copy_file(const char *from, const char *to, const char *name, err *e) {
    char source[PATH_MAX], copy[PATH_MAX];
    size_t bytes;
    if (snprintf(source, sizeof source, "%s/%s", from, name) >= (int)sizeof source ||
        snprintf(copy, sizeof copy, "%s/%s", to, name) >= (int)sizeof copy)
        return err_set(e, EXIT_USAGE, "the path %.160s is too long", to);
    if (access(copy, F_OK) == 0)
        return err_set(e, EXIT_USAGE, "%.160s exists already, and init replaces nothing", copy);
    char *text = os_read_file(source, &bytes, e);
    bool ok = text && os_write_file(copy, text, bytes, e);
    free(text);
    if (ok)
        printf("%s\n", copy);
    return ok;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    const char *const files[] = {PROJECT_FILE, "softcap.metal",
                                 wants_c ? "softcap.c" : "softcap.op"};
    char home[PATH_MAX - 32], from[PATH_MAX];
    bool ok = (count == 1 ||
               err_set(e, EXIT_USAGE, "init takes one folder, as in assay init my_kernels")) &&
              os_find_home(home, sizeof home, e) && os_make_folder(names[0], e);
    if (ok)
        snprintf(from, sizeof from, "%s/examples/%s", home, wants_c ? "softcap_c" : "softcap");
    for (size_t i = 0; ok && i < sizeof files / sizeof *files; i++)
        ok = copy_file(from, names[0], files[i], e);
    if (ok)
        fprintf(stderr, "now: assay check -C %s\n", names[0]);
    return ok ? EXIT_OK : e->code;
}

VERB(verb_init, "init", .names = "DIR",
     .about = "make a folder for kernels of your own, with one example and its description",
     .notes =
         "The example is softcap.metal and softcap.op (or softcap.c): check, validate, bench, "
         "lint,\n"
         "mutants and report work on it with -C DIR, or from inside the folder, exactly as on\n"
         "Assay's own kernels. The file assay.project marks the folder. Files that exist are not\n"
         "replaced.\n",
     VERB_OPTIONS(options));
