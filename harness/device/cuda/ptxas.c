/* ptxas: NVIDIA's assembler and disassembler, where the toolkit is installed. Declared in ptx.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "ptx.h"

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
    if (!os_run(argv, &output, &status, e))
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
    if (!os_run(argv, &output, &status, e))
        return NULL;
    if (status == 0 && output)
        return output;
    err_set(e, EXIT_CANNOT, "nvdisasm cannot read the machine code");
    err_set_detail(e, output ? output : "");
    free(output);
    return NULL;
}
