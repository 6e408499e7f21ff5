/* cmd_setup: the verbs that set something up: `assay init` and `assay import`, a project; `assay agx`, a compiler;
 * `assay cache`. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/agx/agx.h"
#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/root.h"
#include "harness/device/code_cache.h"
#include "verb.h"

/* init: a folder with one kernel and its description --------------------------------------------- */

static bool wants_c;

static const option init_option_list[] = {
    FLAG_OPTION("c", &wants_c, "describe the op in C instead of in a short text"),
};

static bool copy_file(const char *from, const char *to, const char *name, err *e) {
    char source[PATH_MAX], copy[PATH_MAX];
    size_t bytes;
    if (!path_join(source, sizeof source, e, from, name) ||
        !path_join(copy, sizeof copy, e, to, name))
        return false;
    if (access(copy, F_OK) == 0)
        return err_set(e, EXIT_USAGE, "%.160s exists already, and init replaces nothing", copy);
    char *text = os_read_file(source, &bytes, e);
    bool ok = text && os_write_file(copy, text, bytes, e);
    free(text);
    if (ok)
        printf("%s\n", copy);
    return ok;
}

static exit_code run_init(const char *const *names, size_t count, err *e) {
    const char *const files[] = {PROJECT_FILE, "softcap.metal",
                                 wants_c ? "softcap.c" : "softcap.op"};
    char from[PATH_MAX];
    bool ok =
        (count == 1 ||
         err_set(e, EXIT_USAGE, "init takes one folder, as in assay init my_kernels")) &&
        os_join_home(from, sizeof from, e, wants_c ? "examples/softcap_c" : "examples/softcap") &&
        os_make_folder(names[0], e);
    for (size_t i = 0; ok && i < sizeof files / sizeof *files; i++)
        ok = copy_file(from, names[0], files[i], e);
    if (!ok)
        return e->code;
    fputs("now: assay check -C ", stderr);
    options_print_word(stderr, names[0]);
    return fputc('\n', stderr), EXIT_OK;
}

VERB(verb_init, "init", run_init, .names = "DIR",
     .about = "make a folder for kernels of your own, with one example and its description",
     .notes =
         "The example is softcap.metal and softcap.op (or softcap.c): check, validate, bench,\n"
         "lint, mutants and report work on it with -C DIR, or from inside the folder, exactly as\n"
         "on Assay's own kernels. The file assay.project marks the folder. Files that exist are\n"
         "not replaced.\n",
     VERB_OPTIONS(init_option_list));

/* import: the work is done by import/import.py, in a process of its own -------------------------- */

static struct {
    const char *out, *mlx, *torch;
    option_list values;
} import_settings = {.out = "imported"};

static const option import_option_list[] = {
    TEXT_OPTION("out", &import_settings.out, "DIR", "write the project to DIR (default: imported)"),
    LIST_OPTION("set", &import_settings.values, "NAME=VALUE",
                "a size or type that only the running program would know: V=4096, packed=uint32"),
    TEXT_OPTION("mlx", &import_settings.mlx, "DIR",
                "a checkout of MLX, for kernels that use more of its headers than Assay's own has"),
    TEXT_OPTION("torch", &import_settings.torch, "DIR",
                "a checkout of PyTorch, or its torch/include, for kernels that include c10/metal"),
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

static exit_code run_import(const char *const *names, size_t count, err *e) {
    char python[PATH_MAX], script[PATH_MAX];
    if (count == 0)
        return err_code(e, EXIT_USAGE,
                        "name a .py file or a folder, as in assay import model.py --out kernels");
    if (!os_find_program("python3", python, sizeof python))
        return err_code(e, EXIT_CANNOT,
                        "import needs python3, 3.8 or newer, which is not installed");
    if (!os_join_home(script, sizeof script, e, "import/import.py"))
        return e->code;
    const char **paths = array_new(count + 1, sizeof *paths);
    memcpy(paths, names, count * sizeof *paths);
    const char *const *given = options_list_values(
        script, import_option_list, sizeof import_option_list / sizeof *import_option_list, paths);
    size_t n = 0;
    while (given[n])
        n++;
    const char **argv = array_new(n + 4, sizeof *argv);
    argv[0] = python;
    argv[1] = "-I"; /* nothing of the user's folders and environment is imported */
    argv[2] = "-S";
    memcpy(argv + 3, given, n * sizeof *argv);
    exit_code code = run_script(argv, e);
    free(paths);
    free(argv);
    return code;
}

VERB(verb_import, "import", run_import, .names = "FILE.py|FOLDER...",
     .about = "make a project of the Metal kernels that Python files have in strings",
     .notes =
         "Finds the calls of mx.fast.metal_kernel and torch.mps.compile_shader and writes each\n"
         "kernel as a .metal file, with the signature that MLX gives it, and, where its launch is\n"
         "found, NAME.args for `assay launch --args`. Findings name the line of the Python file.\n"
         "Needs python3 (3.8 or newer), which reads the files and executes nothing of them. Sizes\n"
         "that a file does not say are assumed and listed. Exit status: 1 if a call could not be\n"
         "imported.\n\n"
         "  assay import mlx_lm/tuner/losses.py --out losses\n"
         "  assay lint -C losses\n"
         "  assay launch --args losses/kl_forward.args --validate\n",
     VERB_OPTIONS(import_option_list));

/* agx: Mesa's compiler for Apple GPUs: is it here, and bring it ---------------------------------- */

/* Talk of the script ends in its reason. */
static const char *find_last_line(char *text) {
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = 0;
    char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

static bool set_up(const char *folder, err *e) {
    char script[PATH_MAX], *output = NULL;
    int status = 1;
    if (!os_join_home(script, sizeof script, e, "tools/agx_setup.sh"))
        return false;
    const char *const argv[] = {"/bin/sh", script, folder, NULL};
    fprintf(stderr, "downloading 190 MB of Debian packages and unpacking 740 MB into %s\n", folder);
    bool ok = child_run(argv, &output, &status, e);
    if (ok && status != 0)
        ok = err_set(e, EXIT_CANNOT, "%.240s", output ? find_last_line(output) : "");
    free(output);
    return ok;
}

static exit_code run_agx(const char *const *names, size_t count, err *e) {
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

VERB(verb_agx, "agx", run_agx, .names = "[setup]",
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

/* cache: the compiled code that is kept: where, how much, and away with it ----------------------- */

static struct { bool clear, json; } cache_settings;

static const option cache_option_list[] = {
    FLAG_OPTION("clear", &cache_settings.clear, "remove everything from it"),
    FLAG_OPTION("json", &cache_settings.json, "print one JSON object"),
};

static void print_facts(const cache_facts *f) {
    printf("path       %s\n", f->path);
    printf("size       %.1f MB in %zu file%s, of at most %.1f MB\n", (double)f->bytes * 1e-6,
           f->files, f->files == 1 ? "" : "s", (double)f->limit * 1e-6);
    printf("compiling  %.1f s\n", f->seconds);
}

static void print_json(const cache_facts *f) {
    json j = json_start_line(stdout);
    json_add_text(&j, "path", f->path);
    json_add_count(&j, "bytes", f->bytes);
    json_add_count(&j, "files", f->files);
    json_add_count(&j, "limit", f->limit);
    json_add_real(&j, "compile_s", f->seconds);
    json_close(&j);
}

static exit_code run_cache(err *e) {
    cache_facts f;
    if (cache_settings.clear) {
        if (!cache_room_clear(&f, e))
            return e->code;
        fprintf(stderr, "removed %.1f MB in %zu file%s\n", (double)f.bytes * 1e-6, f.files,
                f.files == 1 ? "" : "s");
    }
    if (!cache_room_find(&f, e))
        return e->code;
    if (cache_settings.json)
        print_json(&f);
    else
        print_facts(&f);
    return EXIT_OK;
}

VERB_ALONE(
    verb_cache, "cache", run_cache,
    .about = "show where compiled kernels are cached and how large the cache is, or clear it",
    .notes =
        "Everything in it can be made again: kernels compiled for the software device and for\n"
        "NVIDIA GPUs, and descriptions of ops. `compiling` is the time that it took. When the\n"
        "cache passes its limit (ASSAY_CACHE_LIMIT, default 1G), the least recently used is\n"
        "deleted.\n",
    VERB_OPTIONS(cache_option_list));
