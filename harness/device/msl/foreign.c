/* foreign: what kernel text may not have, because it reaches past the language to the compiler, the
 * linker or the machine.
 *
 * It looks at tokens after the preprocessor, so that neither a macro nor a line that is split hides a
 * word. This is for the reader's sake, who gets a sentence with file and line: what it misses is caught
 * where kernels run (soft/sandbox.h). */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define REFUSE(t, i, ...) (err_set(e, EXIT_WRONG, "%.120s:%d: " __VA_ARGS__), false)

enum { MOST_ELEMENTS = 1 << 24 };

/* __section__ is section. */
static void strip(const char **word, size_t *bytes) {
    if (*bytes > 4 && strncmp(*word, "__", 2) == 0 && strncmp(*word + *bytes - 2, "__", 2) == 0) {
        *word += 2;
        *bytes -= 4;
    }
}

/* A star stands for any end. */
static bool is_plain(const char *word, size_t bytes, const char *what) {
    const size_t length = strlen(what);
    strip(&word, &bytes);
    if (what[length - 1] == '*')
        return bytes >= length - 1 && memcmp(word, what, length - 1) == 0;
    return length == bytes && memcmp(word, what, bytes) == 0;
}

static bool is_listed(const char *word, size_t bytes, const char *const *list) {
    for (; *list; list++)
        if (is_plain(word, bytes, *list))
            return true;
    return false;
}

/* Attributes that choose where code lies, when it runs, what it is called or whether it is watched. */
static bool is_foreign_attribute(const tokens *t, at i) {
    static const char *const names[] = {"section",
                                        "alias",
                                        "ifunc",
                                        "weak",
                                        "weakref",
                                        "weak_import",
                                        "constructor",
                                        "destructor",
                                        "init_priority",
                                        "naked",
                                        "no_sanitize*",
                                        "no_address_safety_analysis",
                                        "disable_sanitizer_instrumentation",
                                        "uninitialized",
                                        "loader_uninitialized",
                                        "nodebug",
                                        "address_space",
                                        "no_instrument_function",
                                        "optnone",
                                        "tls_model",
                                        "interrupt",
                                        "cleanup",
                                        "target",
                                        "target_clones",
                                        "patchable_function_entry",
                                        "dllexport",
                                        "dllimport",
                                        "allocate",
                                        "thread",
                                        "code_seg",
                                        "cpu_dispatch",
                                        "cpu_specific",
                                        "asm",
                                        "nocf_check",
                                        "ext_vector_type", /* wider than what validation watches */
                                        "vector_size",
                                        "neon_vector_type",
                                        "matrix_type",
                                        NULL};
    return t->list[i].kind == TOKEN_WORD && is_listed(token_text(t, i), t->list[i].bytes, names);
}

/* From the first bracket of an attribute to its last: only names, not what is in their brackets. */
static bool check_attribute(const tokens *t, at open, err *e) {
    at close = t->list[open].pair;
    for (at i = open + 1; i < close && close != NOT_FOUND; i++) {
        const char *word = token_text(t, i);
        size_t bytes = t->list[i].bytes;
        strip(&word, &bytes);
        if (is_foreign_attribute(t, i))
            return REFUSE(t, i, "the attribute '%.*s' is not part of MSL", token_file(t, i),
                          t->list[i].line, (int)bytes, word);
        if (token_is(t, i, "(") && t->list[i - 1].kind == TOKEN_WORD && t->list[i].pair > i)
            i = t->list[i].pair;
    }
    return true;
}

static bool check_word(const tokens *t, at i, err *e) {
    static const char *const assembly[] = {"asm", "__asm", NULL};
    static const char *const attributes[] = {"attribute", "__attribute", "__declspec", NULL};
    static const char *const builtins[] = {"__builtin_return_address",
                                           "__builtin_frame_address",
                                           "__builtin_extract_return_addr",
                                           "__builtin_frob_return_addr",
                                           "__builtin_setjmp",
                                           "__builtin_longjmp",
                                           "__builtin_alloca",
                                           "__builtin_alloca_with_align",
                                           "__builtin_unwind_init",
                                           "__builtin_eh_return",
                                           "__builtin_thread_pointer",
                                           "__builtin_ia32_*",
                                           "__builtin_arm_*",
                                           "__builtin_aarch64_*",
                                           "__builtin_neon_*",
                                           "__seg_fs",
                                           "__seg_gs",
                                           "__builtin_dwarf_cfa",
                                           "__builtin_sponentry",
                                           "__builtin_readcyclecounter",
                                           "__builtin_readsteadycounter",
                                           "__builtin_FILE*",
                                           "__builtin_source_location",
                                           "__builtin_cpu_*",
                                           "__atomic_*", /* validation does not watch these */
                                           "__c11_atomic_*",
                                           "__opencl_atomic_*",
                                           "__scoped_atomic_*",
                                           "__sync_*",
                                           "_Atomic",
                                           "__vector",
                                           "assay", /* the device's own */
                                           "soft_here",
                                           NULL};
    static const char *const raw[] = {"R", "LR", "uR", "UR", "u8R", NULL};
    const char *word = token_text(t, i);
    const size_t bytes = t->list[i].bytes;
    if (is_listed(word, bytes, raw) && word[bytes] == '"') /* it could hide the words after it */
        return REFUSE(t, i, "a raw string is not part of MSL", token_file(t, i), t->list[i].line);
    if (is_listed(word, bytes, assembly))
        return REFUSE(t, i, "assembly is not part of MSL", token_file(t, i), t->list[i].line);
    if (is_listed(word, bytes, builtins))
        return REFUSE(t, i, "'%.*s' is not part of MSL", token_file(t, i), t->list[i].line,
                      (int)bytes, word);
    return !is_listed(word, bytes, attributes) || !token_is(t, i + 1, "(") ||
           check_attribute(t, token_is(t, i + 2, "(") ? i + 2 : i + 1, e);
}

/* `type name[a][b]`: more elements than any memory of a kernel has take the compiler minutes. */
static bool check_array(const msl_unit *u, at i, err *e) {
    static const char *const others[] = {"return", "else", "case", "new", "delete", "goto", NULL};
    const tokens *t = &u->tokens;
    if (i < 2 || t->list[i - 1].kind != TOKEN_WORD ||
        (t->list[i - 2].kind != TOKEN_WORD && !token_is(t, i - 2, ">")) ||
        token_is_one_of(t, i - 2, others))
        return true;
    uint64_t elements = 1;
    for (at open = i; token_is(t, open, "[") && t->list[open].pair > open + 1;
         open = t->list[open].pair + 1) {
        scope s = {.unit = u};
        int64_t value;
        if (!constant_evaluate(&s, open + 1, t->list[open].pair, &value) || value < 1)
            continue;
        elements = (uint64_t)value > MOST_ELEMENTS ? MOST_ELEMENTS + 1 : elements * (uint64_t)value;
        if (elements > MOST_ELEMENTS)
            return REFUSE(t, i,
                          "the array '%.*s' has more than %d elements, more than any memory holds",
                          token_file(t, i), t->list[i].line, (int)t->list[i - 1].bytes,
                          token_text(t, i - 1), MOST_ELEMENTS);
    }
    return true;
}

/* Directives ----------------------------------------------------------------------------------- */

static size_t take_word(const char **p, const char *end) {
    while (*p < end && (**p == ' ' || **p == '\t'))
        ++*p;
    const char *begin = *p;
    while (*p < end && ((**p >= 'a' && **p <= 'z') || (**p >= 'A' && **p <= 'Z') || **p == '_'))
        ++*p;
    return (size_t)(*p - begin);
}

static bool is_foreign_pragma(const char *p, const char *end) {
    static const char *const first[] = {
        "redefine_extname", "weak",          "comment",         "init_seg", "section",
        "data_seg",         "bss_seg",       "const_seg",       "code_seg", "alloc_text",
        "dependency",       "include_alias", "detect_mismatch", "optimize", NULL};
    static const char *const second[] = {"optimize", "attribute",  "section",
                                         "module",   "dependency", "push_options",
                                         "target",   "visibility", NULL};
    size_t n = take_word(&p, end);
    if (is_listed(p - n, n, first))
        return true;
    if (!is_plain(p - n, n, "clang") && !is_plain(p - n, n, "GCC"))
        return false;
    n = take_word(&p, end);
    return is_listed(p - n, n, second);
}

/* After the preprocessor only line marks and pragmas are left, and Metal's own headers. */
static bool check_directive(const msl_unit *u, const directive *d, err *e) {
    const tokens *t = &u->tokens;
    const char *p = t->source + d->begin + 1, *end = t->source + d->begin + d->bytes;
    size_t n = take_word(&p, end);
    const char *word = p - n;
    at next = 0;
    while (next < t->count && t->list[next].begin < d->begin)
        next++;
    bool is_bad = is_plain(word, n, "pragma")
                      ? is_foreign_pragma(p, end)
                      : is_plain(word, n, "embed") || is_plain(word, n, "include_next");
    for (const char *q = p; is_plain(word, n, "include") && q + 1 < end; q++)
        is_bad = is_bad || (q[0] == '.' && q[1] == '.');
    if (!is_bad)
        return true;
    return REFUSE(t, next, "'%.*s' is not part of MSL", token_file(t, next), d->line,
                  (int)(d->bytes < 60 ? d->bytes : 60), t->source + d->begin);
}

bool foreign_refuse(const msl_unit *u, err *e) {
    const tokens *t = &u->tokens;
    for (at i = 0; i < t->count; i++) {
        if (t->list[i].kind == TOKEN_WORD && !check_word(t, i, e))
            return false;
        if (attribute_begins(t, i) && !check_attribute(t, i + 1, e))
            return false;
        if (token_is(t, i, "[") && !check_array(u, i, e))
            return false;
    }
    for (size_t i = 0; i < t->directive_count; i++)
        if (!check_directive(u, &t->directives[i], e))
            return false;
    return true;
}
