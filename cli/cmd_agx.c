/* cmd_agx: `assay agx`. Mesa's compiler for Apple GPUs: is it here, and bring it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/agx/agx.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "verb.h"

/* Talk of the script ends in its reason. */
static const char *find_last_line(char *text) {
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = 0;
    char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

static bool set_up(const char *folder, err *e) {
    char home[PATH_MAX - 32], script[PATH_MAX], *output = NULL;
    int status = 1;
    if (!os_find_home(home, sizeof home, e))
        return false;
    snprintf(script, sizeof script, "%s/tools/agx_setup.sh", home);
    const char *const argv[] = {"/bin/sh", script, folder, NULL};
    fprintf(stderr, "downloading 190 MB of Debian packages and unpacking 740 MB into %s\n", folder);
    bool ok = child_run(argv, &output, &status, e);
    if (ok && status != 0)
        ok = err_set(e, EXIT_CANNOT, "%.240s", output ? find_last_line(output) : "");
    free(output);
    return ok;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    char folder[PATH_MAX];
    bool is_setup = count == 1 && strcmp(names[0], "setup") == 0;
    if (count > 0 && !is_setup)
        return err_code(e, EXIT_USAGE, "agx takes 'setup' or nothing, not '%.80s'", names[0]);
    if (!agx_find_folder(folder, sizeof folder, e) || (is_setup && !set_up(folder, e)))
        return e->code;
    agx_compiler *c = agx_compiler_new(e);
    if (!c)
        return e->code;
    printf("folder    %s\ncompiler  %s\n", folder, agx_compiler_get_name(c));
    agx_compiler_free(c);
    return EXIT_OK;
}

VERB(verb_agx, "agx", .names = "[setup]",
     .about = "bring Mesa's compiler for Apple GPUs, which lint --agx asks, or show where it is",
     .notes =
         "`assay agx setup` unpacks Debian packages (Mesa's OpenCL driver and clang 22, 740 MB) "
         "into\n"
         "assay-agx beside the cache of compiled kernels, or into ASSAY_AGX. It needs apt-get, "
         "dpkg-deb\n"
         "and a C compiler, no root, and installs nothing: apt verifies the signature of the "
         "archive\n"
         "and the hash of every package. The archive is that of the machine's own apt sources, or\n"
         "ASSAY_AGX_URI. docs/agx.md says what the compiler's numbers are worth.\n");
