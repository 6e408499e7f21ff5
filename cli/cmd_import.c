/* cmd_import: `assay import`. A project of the kernels that Python files have in their strings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/folder.h"
#include "harness/base/os.h"
#include "import/import.h"
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

/* A file of a folder that is not Python 3 is named, and the others are taken. */
static bool take_file(void *context, const char *path, err *e) {
    (void)e;
    err why = {.code = EXIT_OK};
    if (!importer_take(context, path, stdout, stderr, &why))
        fprintf(stderr, "%s\n", why.text);
    return true;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    if (count == 0)
        return err_code(e, EXIT_USAGE,
                        "name a .py file or a folder, as in assay import model.py --out kernels");
    import_settings s = {settings.out, settings.mlx, settings.torch, settings.values.items,
                         settings.values.count};
    importer *im = importer_new(&s, e);
    bool ok = im != NULL;
    for (size_t i = 0; ok && i < count; i++)
        ok = os_is_folder(names[i]) ? folder_walk(names[i], ".py", NULL, take_file, im, e)
                                    : importer_take(im, names[i], stdout, stderr, e);
    import_counts n = ok ? importer_get_counts(im) : (import_counts){0};
    importer_free(im);
    if (!ok)
        return e->code;
    if (n.found == 0)
        return err_code(e, EXIT_USAGE, "no call of metal_kernel or compile_shader there");
    fprintf(stderr, "%zu call%s, %zu imported as %zu kernel%s", n.found, n.found == 1 ? "" : "s",
            n.imported, n.kernels, n.kernels == 1 ? "" : "s");
    if (n.imported > 0)
        fprintf(stderr, "; now: assay lint -C %s", settings.out);
    fputc('\n', stderr);
    return n.imported < n.found ? EXIT_WRONG : EXIT_OK;
}

VERB(verb_import, "import", .names = "FILE.py|FOLDER...",
     .about = "make a project of the Metal kernels that Python files have in strings",
     .notes =
         "Finds the calls of mx.fast.metal_kernel and torch.mps.compile_shader and writes each "
         "kernel\n"
         "as a .metal file, with the signature that MLX gives it, and, where its launch is found,\n"
         "NAME.args for `assay launch --args`. Findings name the line of the Python file. No "
         "Python is\n"
         "needed. Sizes that the file does not say are assumed and listed. Exit status: 1 if a "
         "call\n"
         "could not be imported.\n\n"
         "  assay import mlx_lm/tuner/losses.py --out losses\n"
         "  assay lint -C losses\n"
         "  assay launch --args losses/kl_forward.args --validate\n",
     VERB_OPTIONS(options));
