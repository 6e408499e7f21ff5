/* strict: a file read as C++ for OpenCL, which finds the address-space mistakes of MSL.
 *
 * The file must already compile for the software device. An error is then either a mistake that C++
 * cannot see, or valid MSL that the strict parser rejects. The compiler's message tells which: what is
 * about types and names can be either, and such a file counts as not wholly judged; the rest is the
 * file's mistake. Owns the wording of clang's messages: what they mean and how they are translated to MSL's
 * terms. */
#include "lint.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"

/* What an error of the strict parse is. */
typedef enum {
    VERDICT_FINE,    /* MSL allows it */
    VERDICT_SPACE,   /* an address-space mistake */
    VERDICT_MISTAKE, /* another mistake that C++ lets pass */
    VERDICT_BEYOND   /* types and names, as the first compiler knows them better */
} verdict;

enum { SPACES = 4, STRICT_SECONDS = 300 };
static const char *const opencl_spaces[SPACES] = {"__private", "__global", "__local", "__constant"};
static const char *const msl_spaces[SPACES] = {"thread", "device", "threadgroup", "constant"};

static bool has(const char *text, const char *what) {
    return strstr(text, what) != NULL;
}

static bool has_one_of(const char *text, const char *const *list) {
    for (; *list; list++)
        if (has(text, *list))
            return true;
    return false;
}

/* The space that a quoted type begins with; NULL if it says none. */
static const char *find_space(const char *type, size_t bytes) {
    const char *first = NULL;
    for (int i = 0; i < SPACES; i++) {
        const char *p = strstr(type, opencl_spaces[i]);
        if (p && p < type + bytes && (!first || p < first))
            first = p;
    }
    return first;
}

/* 'const __private S' and '__global S': do two types in the message differ in their spaces? Types
 * of values do all the time; pointers, references and objects of methods must not. */
static bool has_two_spaces(const char *text) {
    const char *seen = NULL;
    bool is_object = has(text, "object parameter");
    for (const char *p = strchr(text, '\''); p;) {
        const char *end = strchr(p + 1, '\'');
        if (!end)
            return false;
        size_t bytes = (size_t)(end - p);
        const char *space = find_space(p, bytes);
        if (space && (is_object || memchr(p, '*', bytes) || memchr(p, '&', bytes) ||
                      memchr(p, '[', bytes))) {
            if (seen && strncmp(seen, space, 7) != 0)
                return true;
            seen = space;
        }
        p = strchr(end + 1, '\'');
    }
    return false;
}

/* A temporary is in no space for the compiler, and in thread memory for MSL. */
static bool is_about_temporary(const char *text) {
    static const char *const subjects[] = {"temporary object", "binding reference",
                                           "object parameter", NULL};
    return has_one_of(text, subjects) && has(text, "__private") && !has(text, "__global") &&
           !has(text, "__local") && !has(text, "__constant");
}

static bool is_in_kernel(const msl_unit *u, const diagnostic *d) {
    bool *marks = array_new(msl_count_kernels(u) + 1, sizeof *marks);
    bool is_found = msl_mark_kernels(u, d->file, d->line, marks);
    free(marks);
    return is_found;
}

/* What Apple's compiler says where clang says something else; NULL: the same. */
static const char *find_words(const char *text) {
    static const char *const words[][2] = {
        {"use of type 'double'", "'double' is not supported in Metal"},
        {"use of type 'long double'", "'long double' is not supported in Metal"},
        {"'default new'", "'new' is not supported in Metal"},
        {"'default delete'", "'delete' is not supported in Metal"},
        {"'thread_local'", "'thread_local' is not supported in Metal"},
        {"thread-local storage", "'thread_local' is not supported in Metal"},
        {"'register'", "Metal does not support the 'register' storage class specifier"},
        {"static local variable", "variables in function scope cannot be declared static"},
        {"array size is not a constant", "variable length arrays are not supported in Metal"},
        {"variable length array", "variable length arrays are not supported in Metal"},
        {"operator\"\"h'", "invalid suffix 'h' on integer constant"},
        {"zero size arrays", "zero-length arrays are not permitted in C++"},
        {"cannot be called 'main'", "non-qualified function cannot be called 'main'"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has(text, words[i][0]))
            return words[i][1];
    return NULL;
}

/* Structs are copied between address spaces in MSL, and temporaries are thread memory. The note must
 * say that a copy, or a reference to a temporary, fails by where the value is, or by being no
 * temporary; a value of another type is another matter. */
static bool is_about_copy(const char *note) {
    static const char *const copies[] = {"implicit copy constructor", "implicit copy assignment",
                                         "implicit move", NULL};
    static const char *const reasons[] = {"address space", "expects an rvalue",
                                          "would lose const qualifier", NULL};
    bool is_temporary = (has(note, "default address space") && has(note, "'__private'")) ||
                        has(note, "object in address space unqualified");
    /* The class that stands for bfloat takes no conversion that MSL makes by itself. */
    bool is_bfloat = has(note, "no known conversion from") && has(note, "bfloat' for");
    return is_temporary || is_bfloat || (has_one_of(note, copies) && has_one_of(note, reasons));
}

static verdict judge(const msl_unit *u, const diagnostic_list *list, size_t i) {
    /* A template of a kernel is a kernel, and its threadgroup variables may be in any block;
     * float4 x = {1} and h4 * 2.0f are right. */
    static const char *const places[] = {"cannot be declared in local address space",
                                         "outermost scope of a kernel", NULL};
    static const char *const dialect[] = {
        "static assertion", /* settled by the first compiler, as what follows */
        "static_assert",
        "does not have a default constructor",
        "must be initialized by a constant",
        "in constant address space must be initialized",
        "initializer element is not a compile-time",
        "implicitly-deleted",
        "implicitly deleted",
        "too few elements in vector initialization",
        "scalar operand type has greater rank",
        "reference to overloaded function could not be resolved",
        "cannot be used as the type of a kernel parameter",
        "kernel parameters may not contain pointers",
        "kernel parameter cannot be declared as a pointer",
        "bit-fields are not supported",
        "variable cannot have an initializer",
        "kernel must have void", /* rules of msl/language.c */
        "conflicting types for", /* likewise, but for those of two namespaces */
        NULL};
    static const char *const mistakes[] = {"is ambiguous", "no viable overloaded '",
                                           "no matching function for call to 'atomic_", NULL};
    /* Vectors are not classes there, and the library is declared with fewer types than it has. */
    static const char *const beyond[] = {"no matching ",
                                         "no viable ",
                                         "no member named",
                                         "no template named",
                                         "no type named",
                                         "cannot initialize",
                                         "cannot convert",
                                         "cannot bind",
                                         "cannot be deduced",
                                         "cannot be narrowed",
                                         "incompatible type",
                                         "invalid operands",
                                         "invalid argument type",
                                         "non-type template argument",
                                         "template argument",
                                         "template parameter",
                                         "excess elements",
                                         "does not match any declaration",
                                         "undefined template",
                                         "incomplete type",
                                         "member reference",
                                         "undeclared identifier",
                                         "unknown type name",
                                         "is not allowed",
                                         "expected ",
                                         "function pointer",
                                         "constant expression",
                                         NULL};
    const diagnostic *d = &list->items[i];
    bool is_space = has(d->text, "address space") || has_two_spaces(d->text);
    if ((has(d->text, "'bfloat'") && !is_space) || is_about_temporary(d->text))
        return VERDICT_FINE;
    for (size_t n = i + 1; n < diagnostic_end_notes(list, i); n++) {
        if (is_about_copy(list->items[n].text))
            return VERDICT_FINE;
        is_space = is_space || has(list->items[n].text, "address space") ||
                   has_two_spaces(list->items[n].text);
    }
    if (has_one_of(d->text, places) && is_in_kernel(u, d))
        return VERDICT_FINE;
    if (has_one_of(d->text, dialect))
        return VERDICT_FINE;
    if (is_space)
        return VERDICT_SPACE;
    bool is_mistake = has_one_of(d->text, mistakes) || find_words(d->text);
    return is_mistake || !has_one_of(d->text, beyond) ? VERDICT_MISTAKE : VERDICT_BEYOND;
}

static void replace(char *text, size_t size, const char *what, const char *with) {
    size_t n = strlen(what), m = strlen(with);
    for (char *p = strstr(text, what); p; p = strstr(p + m, what)) {
        if (strlen(text) - n + m >= size)
            return;
        memmove(p + m, p + n, strlen(p + n) + 1);
        memcpy(p, with, m);
    }
}

/* The message, with the note that explains it, in MSL's terms. */
static void translate(const diagnostic_list *list, size_t i, char *text, size_t size) {
    snprintf(text, size, "%s", list->items[i].text);
    for (size_t n = i + 1; n < diagnostic_end_notes(list, i); n++)
        if (has(list->items[n].text, "address space")) {
            size_t used = strlen(text);
            snprintf(text + used, size - used, "; %s", list->items[n].text);
            break;
        }
    const char *words = find_words(list->items[i].text);
    if (words)
        snprintf(text, size, "%s", words);
    replace(text, size, "C++ for OpenCL", "Metal");
    replace(text, size, "OpenCL", "Metal");
    replace(text, size, "*__private", "*");
    replace(text, size, "local address space", "threadgroup address space");
    for (int s = 0; s < SPACES; s++)
        replace(text, size, opencl_spaces[s], msl_spaces[s]);
}

/* The compiler says some things twice, in two ways. */
static bool is_last(const remark_list *list, const diagnostic *d, const char *text) {
    const remark *r = list->count ? &list->items[list->count - 1] : NULL;
    return r && r->line == d->line && r->column == d->column && strcmp(r->text, text) == 0;
}

/* What is beyond the parse does not make it wrong about the rest: clang goes on behind it. */
static void judge_all(const msl_unit *u, const diagnostic_list *list, remark_list *out,
                      strict_result *result) {
    char text[448];
    result->taken = true;
    for (size_t i = 0; i < list->count; i = diagnostic_end_notes(list, i)) {
        const diagnostic *d = lint_find_place(list, i);
        verdict v = judge(u, list, i);
        if (v == VERDICT_FINE)
            continue;
        translate(list, i, text, sizeof text);
        if (v != VERDICT_BEYOND && !is_last(out, d, text))
            remark_add(out, REMARK_ERROR, d->file, d->line, d->column,
                       v == VERDICT_SPACE ? "address-space" : "language", "%s", text);
        if (v == VERDICT_BEYOND && result->taken) {
            snprintf(result->why, sizeof result->why, "%.120s:%d: %.200s", d->file, d->line, text);
            result->taken = false;
        }
    }
}

static bool run_clang(const char *clang, const char *source, bool has_tensors, char **messages,
                      int *status, err *e) {
    char home[PATH_MAX - 64], header[PATH_MAX];
    if (!os_find_home(home, sizeof home, e))
        return false;
    snprintf(header, sizeof header, "%s/harness/device/msl/strict/metal.h", home);
    const char *const argv[] = {clang,
                                "-x",
                                "clcpp",
                                "-cl-std=clc++2021",
                                "--target=spir64-unknown-unknown",
                                "-cl-no-stdinc",
                                "-cl-single-precision-constant",
                                "-Xclang",
                                "-cl-ext=-all,+cl_khr_fp16,+__cl_clang_function_pointers",
                                "-fsyntax-only",
                                "-fno-caret-diagnostics",
                                "-ferror-limit=0",
                                "-Wno-everything",
                                "-Werror=zero-length-array",
                                has_tensors ? "-DASSAY_TENSORS=1" : "-UASSAY_TENSORS",
                                "-include",
                                header,
                                source,
                                NULL};
    return child_run_for(argv, STRICT_SECONDS, messages, status, e);
}

bool strict_check(const char *clang, const msl_unit *u, remark_list *out, strict_result *result,
                  err *e) {
    char cache[PATH_MAX - 64], source[PATH_MAX], *messages = NULL;
    int status = 0;
    *result = (strict_result){.taken = false};
    if (!os_find_cache(cache, sizeof cache, e))
        return false;
    snprintf(source, sizeof source, "%s/strict.%ld.clcpp", cache, (long)getpid());
    char *text = msl_rewrite_strict(u);
    bool ok = os_write_file(source, text, strlen(text), e) &&
              run_clang(clang, source, msl_text_has_tensors(text), &messages, &status, e);
    free(text);
    unlink(source);
    diagnostic_list list;
    diagnostic_read(ok ? messages : NULL, &list);
    if (ok && status != 0 && list.count == 0)
        snprintf(result->why, sizeof result->why, "%.*s",
                 messages ? (int)strcspn(messages, "\n") : 0, messages ? messages : "");
    else if (ok)
        judge_all(u, &list, out, result);
    diagnostic_free(&list);
    free(messages);
    return ok;
}
