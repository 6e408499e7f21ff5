/* toolkit: the parts of NVIDIA's toolkit that are used where they are found: libdevice, ptxas, nvdisasm and
 * compute-sanitizer. Declared in ptx.h. */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/child.h"
#include "harness/base/os.h"
#include "ptx.h"

static const char libdevice[] = "libdevice.10.bc";
static const char advice[] =
    "install the CUDA toolkit, or pip install nvidia-cuda-nvcc, or name the file in "
    "ASSAY_LIBDEVICE";

static bool take(const char *found, char *path, size_t size) {
    return access(found, R_OK) == 0 && snprintf(path, size, "%s", found) < (int)size;
}

static bool take_inside(const char *folder, const char *inside, char *path, size_t size) {
    char whole[PATH_MAX];
    return folder && *folder &&
           snprintf(whole, sizeof whole, "%s/%s", folder, inside) < (int)sizeof whole &&
           take(whole, path, size);
}

/* The last match: of several versions the newest. */
static bool take_match(const char *pattern, char *path, size_t size) {
    glob_t found;
    bool ok = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0 &&
              take(found.gl_pathv[found.gl_pathc - 1], path, size);
    globfree(&found);
    return ok;
}

/* The folder of a toolkit: that of the variables, of nvcc along PATH, or the usual places. */
static bool find_in_toolkit(const char *inside, char *path, size_t size) {
    char nvcc[PATH_MAX], whole[PATH_MAX + 64];
    if (take_inside(getenv("CUDA_HOME"), inside, path, size) ||
        take_inside(getenv("CUDA_PATH"), inside, path, size))
        return true;
    if (os_find_program("nvcc", nvcc, sizeof nvcc)) {
        char *slash = strrchr(nvcc, '/');
        if (slash)
            *slash = 0;
        snprintf(whole, sizeof whole, "%s/..", nvcc);
        if (take_inside(whole, inside, path, size))
            return true;
    }
    static const char *const usual[] = {"/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda",
                                        "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        snprintf(whole, sizeof whole, "%s/%s", usual[i], inside);
        if (take_match(whole, path, size))
            return true;
    }
    return false;
}

/* Python packages that bring it: nvidia-cuda-nvcc in both of its layouts, and Triton. */
static bool find_in_packages(char *path, size_t size) {
    static const char *const inside[] = {"nvidia/cuda_nvcc/nvvm/libdevice",
                                         "nvidia/cu[0-9]*/nvvm/libdevice",
                                         "triton/backends/nvidia/lib"};
    char folders[4][1024] = {"", "", "/usr/local/lib/python3*/dist-packages",
                             "/usr/lib/python3*/dist-packages"};
    const char *environment = getenv("VIRTUAL_ENV"), *home = getenv("HOME");
    if (environment && *environment)
        snprintf(folders[0], sizeof folders[0], "%.900s/lib/python3*/site-packages", environment);
    if (home && *home)
        snprintf(folders[1], sizeof folders[1], "%.900s/.local/lib/python3*/site-packages", home);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        for (size_t j = 0; j < sizeof inside / sizeof *inside && folders[i][0]; j++) {
            char pattern[PATH_MAX + 128];
            snprintf(pattern, sizeof pattern, "%s/%s/%s", folders[i], inside[j], libdevice);
            if (take_match(pattern, path, size))
                return true;
        }
    return false;
}

bool ptx_find_libdevice(char *path, size_t size, err *e) {
    const char *given = getenv("ASSAY_LIBDEVICE");
    if (given && *given)
        return take(given, path, size) ||
               err_set(e, EXIT_CANNOT, "ASSAY_LIBDEVICE is %.120s, which cannot be read", given);
    char inside[64];
    snprintf(inside, sizeof inside, "nvvm/libdevice/%s", libdevice);
    return find_in_toolkit(inside, path, size) || find_in_packages(path, size) ||
           err_set(e, EXIT_CANNOT, "%s, NVIDIA's math functions, is not found; %s", libdevice,
                   advice);
}

bool ptx_find_assembler(char *path, size_t size) {
    return os_find_program("ptxas", path, size) || find_in_toolkit("bin/ptxas", path, size);
}

bool ptx_find_disassembler(char *path, size_t size) {
    return os_find_program("nvdisasm", path, size) || find_in_toolkit("bin/nvdisasm", path, size);
}

bool ptx_find_sanitizer(char *path, size_t size) {
    return os_find_program("compute-sanitizer", path, size) ||
           find_in_toolkit("bin/compute-sanitizer", path, size);
}

/* Assembler and disassembler -------------------------------------------------------------------- */

/* The number before a word, such as that of " bytes spill stores"; 0 if there is none. */
static uint32_t read_before(const char *report, const char *word) {
    const char *at = strstr(report, word), *first = at;
    while (first > report && first[-1] >= '0' && first[-1] <= '9')
        first--;
    return first < at ? (uint32_t)strtoul(first, NULL, 10) : 0;
}

bool ptx_assemble(const ptx_compiler *c, const char *assembler, const char *ptx_path,
                  const char *name, const char *cubin, ptx_needs *needs, err *e) {
    char target[40];
    const char *known = ptx_compiler_get_target(c);
    snprintf(target, sizeof target, "-arch=%s%s", known, strcmp(known, "sm_90") == 0 ? "a" : "");
    const char *const argv[] = {assembler,
                                target,
                                "-v",
                                "-o",
                                cubin ? cubin : "/dev/null",
                                ptx_path,
                                cubin ? "-lineinfo" : NULL,
                                NULL};
    char *output = NULL;
    int status;
    if (!child_run(argv, &output, &status, e))
        return false;
    const char *report = output ? output : "";
    if (status != 0) {
        err_set(e, EXIT_WRONG, "ptxas rejects kernel '%.100s'", name);
        err_set_detail(e, report);
    } else if (needs)
        *needs = (ptx_needs){.registers = read_before(report, " registers"),
                             .spill_bytes = read_before(report, " bytes spill stores") +
                                            read_before(report, " bytes spill loads")};
    free(output);
    return status == 0;
}

char *ptx_disassemble(const char *disassembler, const char *cubin, err *e) {
    const char *const argv[] = {disassembler, "-g", "-c", cubin, NULL};
    char *output = NULL;
    int status;
    if (!child_run(argv, &output, &status, e))
        return NULL;
    if (status == 0 && output)
        return output;
    err_set(e, EXIT_CANNOT, "nvdisasm cannot read the machine code");
    err_set_detail(e, output ? output : "");
    free(output);
    return NULL;
}
