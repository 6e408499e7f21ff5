/* foreign: what kernel text may not have, because it reaches past the language to the compiler, the
 * linker or the machine.
 *
 * It looks at tokens after the preprocessor, so that neither a macro nor a line that is split hides a
 * word. This is for the reader's sake, who gets a sentence with file and line: what it misses is caught
 * where kernels run (soft/sandbox.c). */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define REFUSE(...) err_set(e, EXIT_WRONG, "%.120s:%d: " __VA_ARGS__)

enum { MOST_ELEMENTS = 1 << 24 };
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

/* __section__ is section. */
static void strip(const char **word, size_t *bytes) {
    if (*bytes > 4 && strncmp(*word, "__", 2) == 0 && strncmp(*word + *bytes - 2, "__", 2) == 0) {
        *word += 2;
        *bytes -= 4;
    }
}

static bool is_plain(const char *word, size_t bytes, const char *words) {
    strip(&word, &bytes);
    return word_is_one_of(word, bytes, words);
}

/* Attributes that choose where code lies, when it runs, what it is called or whether it is watched; the
 * last are vectors wider than what validation watches. */
static const char attributes[] =
    "section alias ifunc weak weakref weak_import constructor destructor init_priority naked "
    "no_sanitize* no_address_safety_analysis disable_sanitizer_instrumentation uninitialized "
    "loader_uninitialized nodebug address_space no_instrument_function optnone tls_model interrupt "
    "cleanup target target_clones patchable_function_entry dllexport dllimport allocate thread "
    "code_seg cpu_dispatch cpu_specific asm nocf_check "
    "ext_vector_type vector_size neon_vector_type matrix_type";

/* Words for the stack, the machine and its files; atomic instructions that validation does not watch;
 * and names of the device's own. */
static const char builtins[] =
    "__builtin_return_address __builtin_frame_address __builtin_extract_return_addr "
    "__builtin_frob_return_addr __builtin_setjmp __builtin_longjmp __builtin_alloca "
    "__builtin_alloca_with_align __builtin_unwind_init __builtin_eh_return "
    "__builtin_thread_pointer __builtin_ia32_* __builtin_arm_* __builtin_aarch64_* "
    "__builtin_neon_* __seg_fs __seg_gs __builtin_dwarf_cfa __builtin_sponentry "
    "__builtin_readcyclecounter __builtin_readsteadycounter __builtin_FILE* "
    "__builtin_source_location __builtin_cpu_* "
    "__atomic_* __c11_atomic_* __opencl_atomic_* __scoped_atomic_* __sync_* _Atomic __vector "
    "assay soft_here";

/* From the first bracket of an attribute to its last: only names, not what is in their brackets. */
static bool check_attribute(const tokens *t, at open, err *e) {
    at close = t->list[open].pair;
    for (at i = open + 1; i < close && close != NOT_FOUND; i++) {
        const char *word = token_text(t, i);
        size_t bytes = t->list[i].bytes;
        strip(&word, &bytes);
        if (token_is_word(t, i) && word_is_one_of(word, bytes, attributes))
            return REFUSE("the attribute '%.*s' is not part of MSL", TOKEN_PLACE(t, i), (int)bytes,
                          word);
        if (token_is(t, i, "(") && token_is_word(t, i - 1))
            i = tokens_close(t, i);
    }
    return true;
}

static bool check_word(const tokens *t, at i, err *e) {
    const char *word = token_text(t, i);
    const size_t bytes = t->list[i].bytes;
    if (is_plain(word, bytes, "R LR uR UR u8R") && word[bytes] == '"') /* it could hide words */
        return REFUSE("a raw string is not part of MSL", TOKEN_PLACE(t, i));
    if (is_plain(word, bytes, "asm __asm"))
        return REFUSE("assembly is not part of MSL", TOKEN_PLACE(t, i));
    if (is_plain(word, bytes, builtins))
        return REFUSE("'%.*s' is not part of MSL", TOKEN_PLACE(t, i), TOKEN_SPELL(t, i));
    return !is_plain(word, bytes, "attribute __attribute __declspec") || !token_is(t, i + 1, "(") ||
           check_attribute(t, token_is(t, i + 2, "(") ? i + 2 : i + 1, e);
}

/* Names of arrays that a typedef or `using` gave, and how many elements each has. */
typedef struct {
    struct {
        at name;
        uint64_t elements;
    } * items;
    size_t count, room;
} array_types;

/* The elements of the type that token i names; of the last one called so. */
static uint64_t find_elements(const array_types *types, const tokens *t, at i) {
    for (size_t k = types->count; k-- > 0;)
        if (token_is_same(t, types->items[k].name, i))
            return types->items[k].elements;
    return 1;
}

static bool begins_with(const tokens *t, at i, const char *word) {
    while (i > 0 && !token_is_one_of(t, i, "; { }") && !token_is(t, i, word))
        i--;
    return token_is(t, i, word);
}

/* `type name[a][b]`, `using name = type[a]`: more elements than any memory of a kernel has take the compiler
 * minutes. */
static bool check_array(const msl_unit *u, array_types *types, at i, err *e) {
    const tokens *t = &u->tokens;
    const bool is_alias = i > 3 && token_is(t, i - 2, "=") && token_is(t, i - 4, "using");
    if (i < 2 || !token_is_word(t, i - 1) ||
        (!token_is_word(t, i - 2) && !token_is(t, i - 2, ">") && !is_alias) ||
        token_is_one_of(t, i - 2, "return else case new delete goto"))
        return true;
    const at name = is_alias ? i - 3 : i - 1;
    uint64_t elements = find_elements(types, t, is_alias ? i - 1 : i - 2);
    for (at open = i; token_is(t, open, "[") && t->list[open].pair > open + 1;
         open = t->list[open].pair + 1) {
        scope s = {.unit = u};
        int64_t value;
        if (!constant_evaluate(&s, open + 1, t->list[open].pair, &value) || value < 1)
            continue;
        elements = (uint64_t)value > MOST_ELEMENTS ? MOST_ELEMENTS + 1 : elements * (uint64_t)value;
        if (elements > MOST_ELEMENTS)
            return REFUSE("the array '%.*s' has more than %d elements, more than any memory holds",
                          TOKEN_PLACE(t, i), TOKEN_SPELL(t, name), MOST_ELEMENTS);
    }
    if (is_alias || begins_with(t, i, "typedef")) {
        ARRAY_ADD(types->items, types->count, types->room)->name = name;
        types->items[types->count - 1].elements = elements;
    }
    return true;
}

/* Directives ----------------------------------------------------------------------------------- */

static bool is_foreign_pragma(const char *p) {
    size_t n = strspn(p, letters);
    if (is_plain(p, n,
                 "redefine_extname weak comment init_seg section data_seg bss_seg const_seg "
                 "code_seg alloc_text dependency include_alias detect_mismatch optimize"))
        return true;
    if (!is_plain(p, n, "clang GCC"))
        return false;
    p += n + strspn(p + n, " \t");
    return is_plain(p, strspn(p, letters),
                    "optimize attribute section module dependency push_options target visibility");
}

/* After the preprocessor only line marks and pragmas are left, and Metal's own headers. */
static bool check_directive(const msl_unit *u, const directive *d, err *e) {
    const tokens *t = &u->tokens;
    bool is_bad = directive_is(t, d, "pragma") ? is_foreign_pragma(t->source + d->operand)
                                               : directive_is(t, d, "embed include_next");
    if (!is_bad && !(directive_is(t, d, "include") && directive_has(t, d, "..")))
        return true;
    at next = 0;
    while (next < t->count && t->list[next].begin < d->begin)
        next++;
    return REFUSE("'%.*s' is not part of MSL", token_file(t, next), d->line,
                  (int)(d->bytes < 60 ? d->bytes : 60), t->source + d->begin);
}

bool foreign_refuse(const msl_unit *u, err *e) {
    const tokens *t = &u->tokens;
    array_types types = {.count = 0};
    bool ok = true;
    for (at i = 0; i < t->count && ok; i++)
        ok = (!token_is_word(t, i) || check_word(t, i, e)) &&
             (!attribute_begins(t, i) || check_attribute(t, i + 1, e)) &&
             (!token_is(t, i, "[") || check_array(u, &types, i, e));
    for (size_t i = 0; i < t->directive_count && ok; i++)
        ok = check_directive(u, &t->directives[i], e);
    free(types.items);
    return ok;
}
