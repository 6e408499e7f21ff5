/* cmd_import: `assay import`. A project of the kernels that Python files have in their strings: the work
 * is done by import/import.py, in a process of its own. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "verb.h"

static struct {
    const char *out, *mlx, *torch;
    option_list values;
} settings = {.out = "imported"};

static const option options[] = {
    TEXT_OPTION("out", &settings.out, "DIR", "write the project to DIR (default: imported)"),
    LIST_OPTION("set", &settings.values, "NAME=VALUE",
                "a size or type that only the running program would know: V=4096, packed=uint32"),
    TEXT_OPTION("mlx", &settings.mlx, "DIR",
                "a checkout of MLX, for kernels that use more of its headers than Assay's own has"),
    TEXT_OPTION("torch", &settings.torch, "DIR",
                "a checkout of PyTorch, or its folder torch/include, for kernels that include "
                "c10/metal"),
};

static exit_code run_script(const char *const *argv, err *e) {
    child c;
    fflush(stdout);
    if (!child_start(&c, argv, (int[]){-1, 1, 2}, 3, false, e))
        return e->code;
    const int status = child_get_status(child_wait(&c));
    if (status <= EXIT_CANNOT)
        return (exit_code)status;
    return err_code(e, EXIT_USAGE,
                    "the reader of Python ended with signal %d: a file is nested too deeply",
                    status - 128);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    char python[PATH_MAX], home[PATH_MAX], script[PATH_MAX];
    if (count == 0)
        return err_code(e, EXIT_USAGE,
                        "name a .py file or a folder, as in assay import model.py --out kernels");
    if (!os_find_program("python3", python, sizeof python))
        return err_code(e, EXIT_CANNOT,
                        "import needs python3, 3.8 or newer, which is not installed");
    if (!os_find_home(home, sizeof home, e) ||
        !path_join(script, sizeof script, e, home, "import/import.py"))
        return e->code;
    enum { FIXED = 12 }; /* -I, -S: nothing of the user's folders and environment is imported */
    const char **argv = array_new(FIXED + 2 * settings.values.count + count, sizeof *argv);
    size_t n = 0;
    const char *const fixed[] = {python, "-I", "-S", script, "--out", settings.out};
    for (; n < sizeof fixed / sizeof *fixed; n++)
        argv[n] = fixed[n];
    for (size_t i = 0; i < settings.values.count; i++) {
        argv[n++] = "--set";
        argv[n++] = settings.values.items[i];
    }
    if (settings.mlx) {
        argv[n++] = "--mlx";
        argv[n++] = settings.mlx;
    }
    if (settings.torch) {
        argv[n++] = "--torch";
        argv[n++] = settings.torch;
    }
    argv[n++] = "--";
    for (size_t i = 0; i < count; i++)
        argv[n++] = names[i];
    exit_code code = run_script(argv, e);
    free(argv);
    return code;
}

VERB(verb_import, "import", .names = "FILE.py|FOLDER...",
     .about = "make a project of the Metal kernels that Python files have in strings",
     .notes =
         "Finds the calls of mx.fast.metal_kernel and torch.mps.compile_shader and writes each "
         "kernel\n"
         "as a .metal file, with the signature that MLX gives it, and, where its launch is found,\n"
         "NAME.args for `assay launch --args`. Findings name the line of the Python file. Needs\n"
         "python3 (3.8 or newer), which reads the files and executes nothing of them. Sizes that\n"
         "a file does not say are assumed and listed. Exit status: 1 if a call could not be\n"
         "imported.\n\n"
         "  assay import mlx_lm/tuner/losses.py --out losses\n"
         "  assay lint -C losses\n"
         "  assay launch --args losses/kl_forward.args --validate\n",
     VERB_OPTIONS(options));
