#include "lint_ptx.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/device/diagnostic.h"

enum { CAPABILITY = 90 };

struct ptx_linter {
    ptx_compiler *compiler;
    char assembler[PATH_MAX]; /* "": none */
    char name[512];
};

ptx_linter *ptx_linter_new(err *e) {
    ptx_linter *l = array_new(1, sizeof *l);
    l->compiler = ptx_compiler_new(CAPABILITY, e);
    if (!l->compiler) {
        free(l);
        return NULL;
    }
    if (!ptx_find_assembler(l->assembler, sizeof l->assembler))
        l->assembler[0] = 0;
    snprintf(l->name, sizeof l->name, "%.250s; %s%.200s", ptx_compiler_get_name(l->compiler),
             l->assembler[0] ? "assembled by " : "not assembled: there is no ptxas", l->assembler);
    return l;
}

void ptx_linter_free(ptx_linter *l) {
    if (!l)
        return;
    ptx_compiler_free(l->compiler);
    free(l);
}

const char *ptx_linter_get_name(const ptx_linter *l) {
    return l->name;
}

/* Clang's messages if any has a location; else the error's sentence, at the kernel. */
static void report(const msl_signature *s, const char *path, const err *why, remark_list *out) {
    diagnostic_list list;
    diagnostic_read(why->detail, &list);
    for (size_t i = 0; i < list.count; i = diagnostic_end_notes(&list, i))
        remark_add(out, REMARK_ERROR, list.items[i].file, list.items[i].line, list.items[i].column,
                   "ptx", "%s", list.items[i].text);
    if (list.count == 0)
        remark_add(out, REMARK_ERROR, path, s->line, 1, "ptx", "%s%s%.*s", why->text,
                   why->detail[0] ? ": " : "", (int)strcspn(why->detail, "\n"), why->detail);
    diagnostic_free(&list);
}

/* path gets the file of the PTX. */
static bool make_ptx(ptx_linter *l, const msl_unit *u, const char *kernel, math_mode math,
                     char path[PATH_MAX], err *why) {
    size_t count = msl_count_constants(u);
    msl_constant_text *ones = array_new(count + 1, sizeof *ones);
    for (size_t i = 0; i < count; i++) {
        ones[i].index = msl_get_constant(u, i)->index;
        snprintf(ones[i].text, sizeof ones[i].text, "1");
    }
    char *text = msl_rewrite(u, kernel, ones, count, why);
    char *ptx = text ? ptx_compile(l->compiler, text, kernel, math, path, PATH_MAX, why) : NULL;
    bool ok = ptx != NULL;
    free(ptx);
    free(text);
    free(ones);
    return ok;
}

static bool compile(ptx_linter *l, const msl_unit *u, const msl_signature *s, err *why) {
    char path[PATH_MAX];
    return make_ptx(l, u, s->host_name, MATH_SAFE, path, why) &&
           (!l->assembler[0] ||
            ptx_assemble(l->compiler, l->assembler, path, s->host_name, NULL, NULL, why));
}

bool ptx_linter_has_assembler(const ptx_linter *l) {
    return l->assembler[0] != 0;
}

static char *disassemble(ptx_linter *l, const char *ptx_path, const char *kernel, err *e) {
    char tool[PATH_MAX], folder[1024], cubin[1100], *code = NULL;
    if (!ptx_find_disassembler(tool, sizeof tool)) {
        err_set(e, EXIT_CANNOT, "nvdisasm, which the CUDA toolkit brings, is not found");
        return NULL;
    }
    if (!os_make_scratch(folder, sizeof folder, e))
        return NULL;
    snprintf(cubin, sizeof cubin, "%s/k.cubin", folder);
    if (ptx_assemble(l->compiler, l->assembler, ptx_path, kernel, cubin, NULL, e))
        code = ptx_disassemble(tool, cubin, e);
    os_remove_folder(folder);
    return code;
}

bool ptx_linter_measure(ptx_linter *l, const msl_unit *u, const char *kernel, math_mode math,
                        ptx_needs *needs, char **code, err *e) {
    char path[PATH_MAX];
    return make_ptx(l, u, kernel, math, path, e) &&
           ptx_assemble(l->compiler, l->assembler, path, kernel, NULL, needs, e) &&
           (!code || (*code = disassemble(l, path, kernel, e)));
}

bool ptx_linter_check(ptx_linter *l, const char *path, const msl_extras *extras,
                      ptx_lint_report *out, err *e) {
    *out = (ptx_lint_report){0};
    msl_unit *u = msl_load_with(path, extras, e);
    if (!u)
        return false;
    bool can_run = true;
    for (size_t i = 0; i < msl_count_kernels(u) && can_run; i++) {
        const msl_signature *s = msl_get_kernel(u, i);
        if (msl_get_problem(u, i))
            continue;
        err why = {.code = EXIT_OK};
        out->kernels++;
        if (compile(l, u, s, &why))
            out->compiled++;
        else if (why.code == EXIT_WRONG || why.code == EXIT_USAGE)
            report(s, path, &why, &out->remarks);
        else {
            *e = why;
            can_run = false;
        }
    }
    remark_sort(&out->remarks);
    msl_free(u);
    return can_run;
}
