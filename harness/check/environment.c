/* environment: does a text ask who reads it?
 *
 * A kernel that asks which compiler, processor, system or harness it is compiled for, or where and
 * when, can be one kernel when it is checked and another when it is used. What the language itself
 * defines (__METAL_VERSION__, __HAVE_BFLOAT__, __METAL_MACOS__, TARGET_OS_...) and what a project
 * defines may be asked for.
 *
 * Looks at the words of the file and of all that it includes, directives too, as they are written:
 * a branch that is left out here is taken elsewhere. */
#include "lint.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"

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

/* Words of a text -------------------------------------------------------------------------------- */

typedef struct {
    const char *p, *start; /* where it is, and where its line begins */
    int line;
} reader;

static void step(reader *r) {
    if (*r->p++ == '\n') {
        r->line++;
        r->start = r->p;
    }
}

/* A backslash joins two lines, also in the middle of a word and with blanks after it. */
static void join_lines(reader *r) {
    for (;;) {
        size_t n = r->p[0] == '\\' ? 1 + strspn(r->p + 1, " \t\v\f\r") : 0;
        if (n == 0 || r->p[n] != '\n')
            return;
        while (*r->p != '\n')
            step(r);
        step(r);
    }
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* A comment or a literal; true if there was one. */
static bool skip_passage(reader *r) {
    char c = r->p[0], end = c == '/' && r->p[1] == '/'   ? '\n'
                            : c == '/' && r->p[1] == '*' ? '*'
                                                         : c;
    if (c != '"' && c != '\'' && end == c)
        return false;
    step(r);
    if (end != c)
        step(r);
    for (; *r->p; step(r)) {
        if (*r->p == '\\' && r->p[1] && end != '*')
            step(r);
        else if (*r->p == end && (end != '*' || r->p[1] == '/'))
            break;
        else if (*r->p == '\n' && end != '*') /* a literal that does not end */
            return true;
    }
    for (int i = 0; i < (end == '*' ? 2 : 1) && *r->p; i++)
        step(r);
    return true;
}

/* A word or a number, in which ' separates digits. */
static void check_word(reader *r, const char *file, remark_list *out) {
    char word[LONGEST_WORD];
    size_t n = 0;
    int line = r->line, column = (int)(r->p - r->start) + 1;
    bool is_number = isdigit((unsigned char)*r->p);
    for (; is_word(*r->p) || (is_number && *r->p == '\'' && is_word(r->p[1])); join_lines(r)) {
        word[n] = *r->p;
        n += n + 1 < sizeof word;
        step(r);
    }
    word[n] = 0;
    const char *subject = find_subject(word);
    if (subject)
        remark_add(out, REMARK_ERROR, file, line, column, "environment",
                   "'%s' asks %s: a kernel must be the same whoever compiles and runs it", word,
                   subject);
}

static void check_text(const char *text, const char *file, remark_list *out) {
    reader r = {text, text, 1};
    while (*r.p) {
        join_lines(&r);
        if (is_word(*r.p))
            check_word(&r, file, out);
        else if (*r.p && !skip_passage(&r))
            step(&r);
    }
}

/* Files ------------------------------------------------------------------------------------------ */

/* Files of the program: its devices, and the headers of its kernels that offer what only some devices
 * have. */
static bool is_own(const char *file) {
    static const char *const own[] = {"/kernels/bytes.h",          "/kernels/prefetch.h",
                                      "/kernels/eight.h",          "/kernels/product/elements.h",
                                      "/kernels/product/skinny.h", "/kernels/swap.h"};
    char home[PATH_MAX], base[PATH_MAX], real[PATH_MAX];
    err ignored;
    if (!os_find_home(home, sizeof home, &ignored) || !realpath(home, base) ||
        !realpath(file, real))
        return false;
    size_t n = strlen(base);
    if (strncmp(real, base, n) != 0)
        return false;
    bool is_found = strncmp(real + n, "/harness/device/", 16) == 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        is_found = is_found || strcmp(real + n, own[i]) == 0;
    return is_found;
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
} file_list;

static void check_file(file_list *done, const char *file, remark_list *out) {
    err ignored;
    for (size_t i = 0; i < done->count; i++)
        if (strcmp(done->names[i], file) == 0)
            return;
    *ARRAY_ADD(done->names, done->count, done->room) = strdup(file);
    char *text = is_own(file) ? NULL : os_read_plain(file, LONGEST_FILE, NULL, &ignored);
    if (text)
        check_text(text, file, out);
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

void environment_check(const char *path, const msl_unit *u, const msl_extras *extras,
                       remark_list *out) {
    file_list done = {0};
    char name[PATH_MAX];
    size_t before = out->count;
    bool has_own = false;
    check_file(&done, path, out);
    for (const char *p = u ? msl_get_text(u) : ""; *p; p += *p == '\n') {
        read_mark(p, name, sizeof name);
        if (name[0] && name[0] != '<')
            check_file(&done, name, out);
        p += strcspn(p, "\n");
    }
    for (size_t i = 0; i < done.count; i++)
        has_own = has_own || is_own(done.names[i]);
    if (u && !has_own && out->count == before)
        check_reading(path, u, extras, out);
    while (done.count > 0)
        free(done.names[--done.count]);
    free(done.names);
}
