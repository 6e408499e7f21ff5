/* lint: see lint.h. Owns the order of the steps, and which kernels a compiler error applies to. */
#include "lint.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/toolchain.h"
#include "harness/device/soft/compile.h"

enum { LINT_BYTES = 16 << 20, CAPABILITY = 90 /* of the GPU that PTX is made for */ };

struct linter {
    soft_compiler *compiler;
    char clang[PATH_MAX];
};

linter *linter_new(err *e) {
    linter *l = array_new(1, sizeof *l);
    if (toolchain_find_clang(l->clang, sizeof l->clang, NULL, 0, e))
        l->compiler = soft_compiler_new(e);
    if (l->compiler)
        return l;
    free(l);
    return NULL;
}

void linter_free(linter *l) {
    if (!l)
        return;
    soft_compiler_free(l->compiler);
    free(l);
}

void lint_report_free(lint_report *r) {
    remark_free(&r->remarks);
    free(r->kernels);
    *r = (lint_report){0};
}

/* Messages of the compiler ------------------------------------------------------------------ */

static bool is_ours(const char *file) {
    return strstr(file, "/harness/device/shim/") || strstr(file, "/harness/device/msl/strict/");
}

/* An error inside the shim is attributed to the line that led there. */
const diagnostic *lint_find_place(const diagnostic_list *list, size_t i) {
    for (size_t n = i; n < diagnostic_end_notes(list, i); n++)
        if (!is_ours(list->items[n].file))
            return &list->items[n];
    return &list->items[i];
}

/* Errors in the body of a kernel belong to that kernel; those of one instantiation name it in a
 * note; errors outside kernels belong to all of them. */
static void blame(const msl_unit *u, const diagnostic_list *list, size_t i, bool *guilty) {
    bool is_found = false;
    const diagnostic *place = lint_find_place(list, i);
    for (size_t n = i + 1; n < diagnostic_end_notes(list, i); n++)
        if (strstr(list->items[n].text, "in instantiation of"))
            is_found |=
                msl_mark_instantiations(u, list->items[n].file, list->items[n].line, guilty);
    if (!is_found)
        is_found = msl_mark_instantiations(u, place->file, place->line, guilty);
    if (!is_found)
        is_found = msl_mark_kernels(u, place->file, place->line, guilty);
    for (size_t k = 0; k < msl_count_kernels(u) && !is_found; k++)
        guilty[k] = true;
}

/* The shim asserts that threadgroup variables fit, and knows sizes that the rules do not. */
static void report_message(const diagnostic *place, const char *text, remark_list *out) {
    if (!strstr(text, "MSL_THREADGROUP_BYTES")) {
        remark_add(out, REMARK_ERROR, place->file, place->line, place->column, "compile", "%s",
                   text);
        return;
    }
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->items[i].rule, "threadgroup-memory") == 0 &&
            out->items[i].line == place->line && strcmp(out->items[i].file, place->file) == 0)
            return;
    remark_add(out, REMARK_ERROR, place->file, place->line, place->column, "threadgroup-memory",
               "this variable alone is larger than the %d bytes that a threadgroup has",
               MSL_THREADGROUP_BYTES);
}

/* What Apple's compiler takes, with a warning. */
static bool report_warning(const diagnostic *place, const char *text, remark_list *out) {
    if (!strstr(text, "does not return a value"))
        return false;
    remark_add(out, REMARK_WARNING, place->file, place->line, place->column, "return-value",
               "%s: what it gives then is undefined", text);
    return true;
}

static void report_messages(const msl_unit *u, const char *messages, lint_report *out) {
    diagnostic_list list;
    diagnostic_read(messages, &list);
    bool *guilty = array_new(out->kernel_count + 1, sizeof *guilty);
    out->compiled = list.count > 0;
    for (size_t i = 0; i < list.count; i = diagnostic_end_notes(&list, i)) {
        const diagnostic *place = lint_find_place(&list, i);
        if (report_warning(place, list.items[i].text, &out->remarks))
            continue;
        /* One that only one instantiation makes too large leaves the others as they are. */
        out->compiled = out->compiled && strstr(list.items[i].text, "MSL_THREADGROUP_BYTES");
        report_message(place, list.items[i].text, &out->remarks);
        blame(u, &list, i, guilty);
    }
    /* A compiler that has crashed says nothing, or only where it was. */
    size_t said = strcspn(messages, "\n");
    if (list.count == 0 && (said == 0 || strstr(messages, "Stack dump")))
        remark_add(&out->remarks, REMARK_ERROR, msl_get_name(u), 1, 1, "compile",
                   "clang crashed on this file: an expression in it may be too large");
    else if (list.count == 0)
        remark_add(&out->remarks, REMARK_ERROR, msl_get_name(u), 1, 1, "compile", "%.*s", (int)said,
                   messages);
    for (size_t i = 0; i < out->kernel_count; i++)
        out->kernels[i].compiles = out->kernels[i].compiles && !guilty[i] && list.count > 0;
    free(guilty);
    diagnostic_free(&list);
}

/* A file that the front end cannot read. Its messages begin with file and line where known. */
static void report_unread(const char *path, const err *why, lint_report *out) {
    diagnostic_list list;
    diagnostic_read(why->detail, &list);
    for (size_t i = 0; i < list.count; i = diagnostic_end_notes(&list, i))
        remark_add(&out->remarks, REMARK_ERROR, list.items[i].file, list.items[i].line,
                   list.items[i].column, "parse", "%s", list.items[i].text);
    if (list.count == 0) {
        const char *text = why->text;
        size_t n = strlen(path);
        int line = 0;
        if (strncmp(text, path, n) == 0 && text[n] == ':' && isdigit((unsigned char)text[n + 1])) {
            line = atoi(text + n + 1);
            text = strstr(text + n, ": ") ? strstr(text + n, ": ") + 2 : text;
        }
        remark_add(&out->remarks, REMARK_ERROR, path, line > 0 ? line : 1, 1, "parse", "%s", text);
    }
    diagnostic_free(&list);
    for (size_t i = 0; i < out->kernel_count; i++)
        out->kernels[i].compiles = false;
}

/* Steps ------------------------------------------------------------------------------------- */

static void list_kernels(const msl_unit *u, lint_report *out) {
    out->kernel_count = msl_count_kernels(u);
    out->kernels = array_new(out->kernel_count + 1, sizeof *out->kernels);
    for (size_t i = 0; i < out->kernel_count; i++) {
        const msl_signature *s = msl_get_kernel(u, i);
        lint_kernel *k = &out->kernels[i];
        snprintf(k->name, sizeof k->name, "%s", s->host_name);
        k->line = s->line;
        k->compiles = k->supported = !msl_get_problem(u, i);
    }
}

static bool compile(const linter *l, const msl_unit *u, lint_report *out, err *e) {
    err why = {.code = EXIT_OK};
    char *messages = NULL, *text = msl_rewrite_whole(u, &why);
    if (!text) {
        report_unread(msl_get_name(u), &why, out);
        return true;
    }
    bool ok = soft_compiler_check_syntax(l->compiler, text, msl_get_language(u), &out->compiled,
                                         &messages, e);
    if (ok && !out->compiled)
        report_messages(u, messages ? messages : "", out);
    free(messages);
    free(text);
    return ok;
}

/* The text is as Apple's compiler reads it. */
bool linter_check(linter *l, const char *path, const msl_extras *given, lint_report *out, err *e) {
    *out = (lint_report){0};
    msl_extras extras = *given;
    extras.is_apple = true;
    char *text = os_read_plain(path, LINT_BYTES, NULL, e);
    if (!text)
        return false;
    err why = {.code = EXIT_OK};
    msl_unit *u = msl_load_with(path, &extras, &why);
    bool ok = true;
    if (u) {
        list_kernels(u, out);
        msl_check_rules(u, &out->remarks);
        ok = compile(l, u, out, e);
        if (ok && out->compiled)
            ok = strict_check(l->clang, u, &out->remarks, &out->strict, e);
    } else if (why.code == EXIT_CANNOT) {
        *e = why;
        ok = false;
    } else {
        report_unread(path, &why, out);
    }
    environment_check(path, u, &extras, &out->remarks);
    msl_free(u);
    remark_drop_silenced(&out->remarks, path, text);
    remark_sort(&out->remarks);
    free(text);
    return ok;
}

/* For NVIDIA GPUs ----------------------------------------------------------------------------- */

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
static void report_ptx(const msl_signature *s, const char *path, const err *why, remark_list *out) {
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

static bool assemble(ptx_linter *l, const msl_unit *u, const msl_signature *s, err *why) {
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

bool ptx_linter_check(ptx_linter *l, const char *path, const msl_extras *extras, remark_list *out,
                      size_t *kernels, size_t *compiled, err *e) {
    *kernels = *compiled = 0;
    msl_unit *u = msl_load_with(path, extras, e);
    if (!u)
        return false;
    bool can_run = true;
    for (size_t i = 0; i < msl_count_kernels(u) && can_run; i++) {
        const msl_signature *s = msl_get_kernel(u, i);
        if (msl_get_problem(u, i))
            continue;
        err why = {.code = EXIT_OK};
        ++*kernels;
        if (assemble(l, u, s, &why))
            ++*compiled;
        else if (why.code == EXIT_WRONG || why.code == EXIT_USAGE)
            report_ptx(s, path, &why, out);
        else {
            *e = why;
            can_run = false;
        }
    }
    remark_sort(out);
    msl_free(u);
    return can_run;
}
