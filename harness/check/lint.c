/* lint: see lint.h. Owns the order of the steps, which kernels a compiler error applies to, and what is found by the
 * words of a text or by reading it again as C++ for OpenCL. */
#include "lint.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/toolchain.h"
#include "harness/device/soft/compile.h"
#include "harness/device/source_hash.h"

enum { LINT_BYTES = 16 << 20 };

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
static const diagnostic *find_place(const diagnostic_list *list, size_t i) {
    for (size_t n = i; n < diagnostic_end_notes(list, i); n++)
        if (!is_ours(list->items[n].file))
            return &list->items[n];
    return &list->items[i];
}

/* Errors in the body of a kernel belong to that kernel; those of one instantiation name it in a
 * note; errors outside kernels belong to all of them. */
static void blame(const msl_unit *u, const diagnostic_list *list, size_t i, bool *guilty) {
    bool is_found = false;
    const diagnostic *place = find_place(list, i);
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
        const diagnostic *place = find_place(&list, i);
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

static void add_messages(const diagnostic_list *list, const char *rule, remark_list *out) {
    for (size_t i = 0; i < list->count; i = diagnostic_end_notes(list, i))
        remark_add(out, REMARK_ERROR, list->items[i].file, list->items[i].line,
                   list->items[i].column, rule, "%s", list->items[i].text);
}

/* A file that the front end cannot read. Its messages begin with file and line where known. */
static void report_unread(const char *path, const err *why, lint_report *out) {
    diagnostic_list list;
    diagnostic_read(why->detail, &list);
    add_messages(&list, "parse", &out->remarks);
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

/* Does a text ask who reads it? -------------------------------------------------------------------

   A kernel that asks which compiler, processor, system or harness it is compiled for, or where and
   when, can be one kernel when it is checked and another when it is used. What the language itself
   defines (__METAL_VERSION__, __HAVE_BFLOAT__, __METAL_MACOS__, TARGET_OS_...) and what a project
   defines may be asked for.

   Looks at the words of the file and of all that it includes, directives too, as they are written:
   a branch that is left out here is taken elsewhere. */

enum { LONGEST_FILE = 16 << 20, LONGEST_WORD = 128 };

/* A word that ends in * is the beginning of words. */
static const struct {
    const char *subject, *words[24];
} questions[] = {
    {"which harness runs it", {"__ASSAY*", "ASSAY_*"}},
    {"which compiler reads it",
     {"__clang*", "__GNUC*", "__GNUG__", "__VERSION__", "__llvm__", "__apple_build*", "_MSC_*",
      "__INTEL*", "__NVCC__", "__CUDA*", "__OPENCL*", "__HIP*", "__OPTIMIZE*", "__NO_INLINE__",
      "__SANITIZE*", "__has_*", "__is_target*", "__is_identifier", "__building_module"}},
    {"how it is compiled",
     {"__STDC*", "__GCC_*", "__GXX_*", "__AIR*", "__FINITE_MATH*", "__FLT*", "__DBL*", "__LDBL*",
      "__INT*", "__UINT*", "__SIZEOF*", "__CHAR*", "__WCHAR*", "__PTRDIFF*", "__EXCEPTIONS",
      "__LP64__", "_LP64", "__BYTE_ORDER*", "__ORDER_*"}},
    {"which processor runs it",
     {"__x86_64*", "__amd64*", "__i386*", "__aarch64*", "__arm*", "__ARM*", "__riscv*", "__ppc*",
      "__PPC*", "__powerpc*", "__s390*", "__wasm*", "__NVPTX*", "__PTX*", "__SPIR*", "__AMDGCN*",
      "__AMDGPU*", "__SSE*", "__AVX*"}},
    {"which system it is on",
     {"__APPLE__", "__MACH__", "__linux*", "__gnu_linux__", "__unix*", "__ELF__", "_WIN32",
      "_WIN64", "__FreeBSD__", "__ANDROID__"}},
    {"where or when it is compiled",
     {"__FILE*", "__BASE_FILE__", "__INCLUDE_LEVEL__", "__DATE__", "__TIME__", "__TIMESTAMP__"}},
};

/* What a word asks for; NULL: nothing. */
static const char *find_subject(const char *word) {
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        for (const char *const *w = questions[i].words; *w; w++) {
            size_t n = strlen(*w);
            bool is_stem = (*w)[n - 1] == '*';
            if (is_stem ? strncmp(word, *w, n - 1) == 0 : strcmp(word, *w) == 0)
                return questions[i].subject;
        }
    return NULL;
}

/* A backslash joins two lines, also in the middle of a word and with blanks after it. The line ends come after the
 * joined line, so that the next one keeps its number. */
static void join_lines(char *text) {
    char *to = text;
    size_t joined = 0;
    for (const char *p = text; *p; p++) {
        size_t n = p[0] == '\\' ? 1 + strspn(p + 1, " \t\v\f\r") : 0;
        if (n > 0 && p[n] == '\n') {
            p += n;
            joined++;
            continue;
        }
        *to++ = *p;
        for (; *p == '\n' && joined > 0; joined--)
            *to++ = '\n';
    }
    *to = 0;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The bytes of a word, or of a number, in which ' separates digits; 0: it is neither. */
static size_t measure_word(const char *p) {
    const bool is_number = isdigit((unsigned char)*p);
    size_t n = 0;
    while (is_word(p[n]) || (n > 0 && is_number && p[n] == '\'' && is_word(p[n + 1])))
        n++;
    return n;
}

static void check_text(char *text, const char *file, remark_list *out) {
    char word[LONGEST_WORD];
    const char *start = text;
    int line = 1;
    join_lines(text);
    for (const char *p = text, *end; *p; p = end) {
        const size_t length = measure_word(p);
        end = length > 0 ? p + length : source_skip(p) > p ? source_skip(p) : p + 1;
        snprintf(word, sizeof word, "%.*s", (int)length, p);
        const char *subject = find_subject(word);
        if (subject)
            remark_add(out, REMARK_ERROR, file, line, (int)(p - start) + 1, "environment",
                       "'%s' asks %s: a kernel must be the same whoever compiles and runs it", word,
                       subject);
        for (; p < end; p++)
            if (*p == '\n') {
                line++;
                start = p + 1;
            }
    }
}

/* Files of the program: its devices, and the headers of its kernels, some of which offer what only some devices
 * have. */
static bool is_own(const char *file) {
    char home[PATH_MAX], base[PATH_MAX], real[PATH_MAX];
    err ignored;
    if (!os_find_home(home, sizeof home, &ignored) || !realpath(home, base) ||
        !realpath(file, real))
        return false;
    const size_t n = strlen(base);
    const bool is_header = strncmp(real + n, "/kernels/", 9) == 0 && path_ends_with(real, ".h");
    return strncmp(real, base, n) == 0 &&
           (is_header || strncmp(real + n, "/harness/device/", 16) == 0);
}

/* The name in a line mark, `#line 1 "file"` or `# 1 "file"`; "" if the line is none. */
static void read_mark(const char *line, char *name, size_t size) {
    size_t used = 0;
    name[0] = 0;
    if (*line++ != '#')
        return;
    line += strspn(line, " ");
    line += strncmp(line, "line ", 5) == 0 ? 5 : 0;
    line += strspn(line, "0123456789 ");
    if (*line++ != '"')
        return;
    for (; *line && *line != '"' && *line != '\n' && used + 1 < size; line++) {
        line += *line == '\\' && line[1];
        name[used++] = *line;
    }
    name[used] = 0;
}

typedef struct {
    char **names;
    size_t count, room;
    remark_list own; /* what the program's own files ask, which is theirs to ask */
} file_list;

static void check_file(file_list *done, const char *file, remark_list *out) {
    err ignored;
    for (size_t i = 0; i < done->count; i++)
        if (strcmp(done->names[i], file) == 0)
            return;
    *ARRAY_ADD(done->names, done->count, done->room) = strdup(file);
    char *text = os_read_source(file, LONGEST_FILE, NULL, &ignored);
    if (text)
        check_text(text, file, is_own(file) ? &done->own : out);
    else if (strchr(file, '?')) /* as in a line mark */
        remark_add(out, REMARK_ERROR, file, 1, 1, "environment",
                   "it cannot be searched: its name has control characters");
    free(text);
}

/* A word that is put together, by ## or in another way, is not seen above. What asks for this program reads
 * differently with and without it. */
static void check_reading(const char *path, const msl_unit *u, const msl_extras *extras,
                          remark_list *out) {
    msl_extras own = *extras;
    err ignored;
    own.is_apple = false;
    msl_unit *other = msl_load_with(path, &own, &ignored);
    if (!other || strcmp(msl_get_expanded(u), msl_get_expanded(other)) != 0)
        remark_add(out, REMARK_ERROR, path, 1, 1, "environment",
                   "it asks which harness runs it: with __ASSAY__ defined it reads differently");
    msl_free(other);
}

/* Without a unit, of a file that cannot be parsed, only the file itself is searched. */
static void check_environment(const char *path, const msl_unit *u, const msl_extras *extras,
                              remark_list *out) {
    file_list done = {0};
    char name[PATH_MAX], mark[PATH_MAX];
    size_t before = out->count;
    check_file(&done, path, out);
    snprintf(mark, sizeof mark, "%s", path);
    for (char *p = mark; *p; p++)
        *p = path_get_mark(*p);
    for (const char *p = u ? msl_get_text(u) : ""; *p; p += *p == '\n') {
        read_mark(p, name, sizeof name);
        if (name[0] && name[0] != '<' && strcmp(name, mark) != 0)
            check_file(&done, name, out);
        p += strcspn(p, "\n");
    }
    if (u && done.own.count == 0 && out->count == before)
        check_reading(path, u, extras, out);
    remark_free(&done.own);
    while (done.count > 0)
        free(done.names[--done.count]);
    free(done.names);
}

/* Read as C++ for OpenCL, which finds the address-space mistakes of MSL ----------------------------

   The file must already compile for the software device. An error is then either a mistake that C++
   cannot see, or valid MSL that the strict parser rejects. The compiler's message says which: what is
   about types and names can be either, and such a file counts as not wholly judged; the rest is the
   file's mistake. Here is the wording of clang's messages: what they mean and how they are translated to
   MSL's terms. */

/* What an error of the strict parse is. */
typedef enum {
    VERDICT_FINE,    /* MSL allows it */
    VERDICT_SPACE,   /* an address-space mistake */
    VERDICT_MISTAKE, /* another mistake that C++ lets pass */
    VERDICT_BEYOND   /* types and names, as the first compiler knows them better */
} verdict;

enum { ADDRESS_SPACES = 4, STRICT_SECONDS = 300 };
static const char *const opencl_spaces[ADDRESS_SPACES] = {"__private", "__global", "__local",
                                                          "__constant"};
static const char *const msl_spaces[ADDRESS_SPACES] = {"thread", "device", "threadgroup",
                                                       "constant"};

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
    for (int i = 0; i < ADDRESS_SPACES; i++) {
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
        "kernel must have void", /* rules of msl/rules.c */
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
    for (int s = 0; s < ADDRESS_SPACES; s++)
        replace(text, size, opencl_spaces[s], msl_spaces[s]);
}

/* The compiler says some things twice, in two ways. */
static bool is_last(const remark_list *list, const diagnostic *d, const char *text) {
    const remark *r = list->count ? &list->items[list->count - 1] : NULL;
    return r && r->line == d->line && r->column == d->column && strcmp(r->text, text) == 0;
}

/* What the parser cannot read does not spoil its other errors: clang recovers and goes on. */
static void judge_all(const msl_unit *u, const diagnostic_list *list, remark_list *out,
                      strict_result *result) {
    char text[448];
    result->taken = true;
    for (size_t i = 0; i < list->count; i = diagnostic_end_notes(list, i)) {
        const diagnostic *d = find_place(list, i);
        verdict v = judge(u, list, i);
        if (v == VERDICT_FINE)
            continue;
        translate(list, i, text, sizeof text);
        if (v != VERDICT_BEYOND && !is_last(out, d, text))
            remark_add(out, REMARK_ERROR, d->file, d->line, d->column,
                       v == VERDICT_SPACE ? "address-space" : "language", "%s", text);
        if (v == VERDICT_BEYOND && result->taken) {
            snprintf(result->why, sizeof result->why, "%.120s:%d: %.200s", d->file, d->line, text);
            result->line = strcmp(d->file, msl_get_name(u)) == 0 ? d->line : 1;
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
    *result = (strict_result){.taken = false, .line = 1};
    if (!os_find_cache(cache, sizeof cache, e))
        return false;
    os_remove_left(cache, "strict.", "*");
    snprintf(source, sizeof source, "%s/strict.%ld.clcpp", cache, (long)getpid());
    char *text = msl_rewrite_strict(u);
    bool ok = os_write_own(source, text, strlen(text), e) &&
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

/* At its line, which need not be said twice. */
static void report_unlinted(const char *path, const strict_result *r, remark_list *out) {
    char place[PATH_MAX];
    const int length = snprintf(place, sizeof place, "%.120s:%d: ", path, r->line);
    const bool is_here = strncmp(r->why, place, (size_t)length) == 0;
    remark_add(out, REMARK_WARNING, path, r->line, 1, LINT_NOT_LINTED,
               "compiled, not linted: the strict parser does not accept %s%s",
               is_here ? "this: " : "", r->why + (is_here ? length : 0));
}

/* The text is as Apple's compiler reads it. */
bool linter_check(linter *l, const char *path, const msl_extras *given, lint_report *out, err *e) {
    *out = (lint_report){0};
    msl_extras extras = *given;
    extras.is_apple = true;
    char *text = os_read_source(path, LINT_BYTES, NULL, e);
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
    check_environment(path, u, &extras, &out->remarks);
    msl_free(u);
    remark_drop_silenced(&out->remarks, path, text);
    if (ok && out->compiled && !out->strict.taken && !remark_count(&out->remarks, REMARK_ERROR))
        report_unlinted(path, &out->strict, &out->remarks);
    remark_sort(&out->remarks);
    free(text);
    return ok;
}

/* For NVIDIA GPUs ----------------------------------------------------------------------------- */

/* Clang's messages if any has a location; else the error's sentence, at the kernel. */
static void report_ptx(const msl_signature *s, const char *path, const err *why, remark_list *out) {
    diagnostic_list list;
    diagnostic_read(why->detail, &list);
    add_messages(&list, "ptx", out);
    if (list.count == 0)
        remark_add(out, REMARK_ERROR, path, s->line, 1, "ptx", "%s%s%.*s", why->text,
                   why->detail[0] ? ": " : "", (int)strcspn(why->detail, "\n"), why->detail);
    diagnostic_free(&list);
}

/* path gets the file of the PTX. */
static bool make_ptx(ptx_compiler *c, const msl_unit *u, const char *kernel, math_mode math,
                     char path[PATH_MAX], err *why) {
    size_t count = msl_count_constants(u);
    msl_constant_text *ones = array_new(count + 1, sizeof *ones);
    for (size_t i = 0; i < count; i++) {
        ones[i].index = msl_get_constant(u, i)->index;
        snprintf(ones[i].text, sizeof ones[i].text, "1");
    }
    char *text = msl_rewrite(u, kernel, ones, count, why);
    char *ptx = text ? ptx_compile(c, text, kernel, math, path, PATH_MAX, why) : NULL;
    bool ok = ptx != NULL;
    free(ptx);
    free(text);
    free(ones);
    return ok;
}

static char *disassemble(ptx_compiler *c, const char *assembler, const char *ptx_path,
                         const char *kernel, err *e) {
    char tool[PATH_MAX], folder[1024], cubin[1100], *code = NULL;
    if (!ptx_find_tool("nvdisasm", tool, sizeof tool))
        return err_null(e, EXIT_CANNOT, "nvdisasm, which the CUDA toolkit brings, is not found");
    if (!os_make_scratch(folder, sizeof folder, e))
        return NULL;
    snprintf(cubin, sizeof cubin, "%s/k.cubin", folder);
    if (ptx_assemble(c, assembler, ptx_path, kernel, cubin, NULL, e))
        code = ptx_disassemble(tool, cubin, e);
    os_remove_folder(folder);
    return code;
}

bool lint_measure_ptx(ptx_compiler *c, const msl_unit *u, const char *kernel, math_mode math,
                      ptx_needs *needs, char **code, err *e) {
    char path[PATH_MAX], assembler[PATH_MAX];
    if (!ptx_find_tool("ptxas", assembler, sizeof assembler))
        return err_set(e, EXIT_CANNOT, "ptxas, which the CUDA toolkit brings, is not found");
    return make_ptx(c, u, kernel, math, path, e) &&
           ptx_assemble(c, assembler, path, kernel, NULL, needs, e) &&
           (!code || (*code = disassemble(c, assembler, path, kernel, e)));
}

bool lint_check_ptx(ptx_compiler *c, const char *path, const msl_extras *extras, remark_list *out,
                    size_t *kernels, size_t *compiled, err *e) {
    char assembler[PATH_MAX], ptx[PATH_MAX];
    const bool assembles = ptx_find_tool("ptxas", assembler, sizeof assembler);
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
        if (make_ptx(c, u, s->host_name, MATH_SAFE, ptx, &why) &&
            (!assembles || ptx_assemble(c, assembler, ptx, s->host_name, NULL, NULL, &why)))
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
