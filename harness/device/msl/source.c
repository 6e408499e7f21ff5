/* source: makes one text of a .metal file and what it includes.
 *
 * A file whose only directives are includes and pragmas is put together here, with #line marks, and
 * needs no tool. Anything more (#define, #if) goes through a C preprocessor (preprocess.c),
 * which keeps line marks of its own. Includes that are not beside the file go
 * to the preprocessor too: it searches the folders of CPATH and reports missing files well.
 *
 * A compiler of MSL has a preprocessor and Metal's headers of its own, but no folder to find local
 * includes in: it is given the text as assembled here, before any tool. */
#include "internal.h"

#include "harness/base/os.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEEPEST_INCLUDE = 64 };

/* A file with #pragma once that was included. The first time may have been in a branch that the
 * preprocessor leaves out, so until one is outside of all conditions, the text goes in each time,
 * between #ifndef and #endif. */
typedef struct {
    char *path;
    bool is_sure; /* it is in, whatever the conditions are */
    bool is_open; /* it is being put in: it includes itself */
} once_file;

typedef struct {
    text out;
    bool needs_tool;  /* there are directives that only a preprocessor understands */
    bool is_missing;  /* an include that is not beside the file */
    const char *root; /* the file that is read */
    const msl_extras *extras;
    text outside; /* files that were included from other folders, with a line end each */
    err refused;  /* an include that must not be read, or too many of them */
    once_file *once;
    size_t once_count, once_room;
    int depth;      /* of includes */
    int conditions; /* around the current line */
} splicer;

/* The word of a directive ("include"), and where its operand begins. */
static size_t split_directive(const char *line, size_t bytes, const char **word,
                              const char **operand) {
    const char *end = line + bytes, *p = line + 1;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    *word = p;
    while (p < end && *p >= 'a' && *p <= 'z')
        p++;
    size_t n = (size_t)(p - *word);
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    *operand = p;
    return n;
}

static bool word_is(const char *word, size_t bytes, const char *what) {
    return strlen(what) == bytes && memcmp(word, what, bytes) == 0;
}

/* A path beside the file, from the operand of #include; false for <system> and broken ones. */
static bool read_local_include(const char *path, const char *operand, const char *end, char *out,
                               size_t size) {
    if (operand >= end || *operand != '"')
        return false;
    const char *close = memchr(operand + 1, '"', (size_t)(end - operand - 1));
    if (!close)
        return false;
    const char *slash = strrchr(path, '/');
    int folder = operand[1] == '/' || !slash ? 0 : (int)(slash - path + 1);
    int n = snprintf(out, size, "%.*s%.*s", folder, path, (int)(close - operand - 1), operand + 1);
    return n > 0 && (size_t)n < size;
}

static bool begins_with(const char *operand, const char *end, const char *what) {
    return (size_t)(end - operand) > strlen(what) && strncmp(operand, what, strlen(what)) == 0;
}

/* One of the few that are not empty here: the preprocessor brings them. */
static bool is_framework(const char *operand, const char *end) {
    return begins_with(operand, end, "<MetalPerformancePrimitives/") ||
           begins_with(operand, end, "<metal_tensor") ||
           begins_with(operand, end, "<metal_cooperative_tensor");
}

static bool is_known_header(const char *operand, const char *end) {
    return begins_with(operand, end, "<metal") || begins_with(operand, end, "<simd/") ||
           is_framework(operand, end);
}

static bool has_pragma_once(const char *path, const char *source) {
    tokens t;
    bool is_found = false;
    tokens_cut(&t, path, source);
    for (size_t i = 0; i < t.directive_count && !is_found; i++) {
        const directive *d = &t.directives[i];
        const char *word, *operand;
        size_t n = split_directive(source + d->begin, d->bytes, &word, &operand);
        is_found = word_is(word, n, "pragma") && strncmp(operand, "once", 4) == 0;
    }
    tokens_free(&t);
    return is_found;
}

/* A file is the same one however its path is written: a.h, b/../a.h. */
static size_t find_once(splicer *s, const char *path) {
    char real[PATH_MAX];
    if (!realpath(path, real))
        snprintf(real, sizeof real, "%s", path);
    for (size_t i = 0; i < s->once_count; i++)
        if (strcmp(s->once[i].path, real) == 0)
            return i;
    *ARRAY_ADD(s->once, s->once_count, s->once_room) =
        (once_file){.path = text_copy(real, strlen(real))};
    return s->once_count - 1;
}

static void splice(splicer *s, const char *path, const char *source);

static void splice_once(splicer *s, const char *path, const char *source) {
    size_t before = s->once_count, i = find_once(s, path);
    bool is_new = i == before, is_sure = s->conditions == 0;
    if (s->once[i].is_sure || s->once[i].is_open)
        return;
    bool is_guarded = !is_new || !is_sure;
    s->once[i].is_open = true;
    if (is_guarded)
        text_print(&s->out, "#ifndef ASSAY_ONCE_%zu\n#define ASSAY_ONCE_%zu\n", i, i);
    splice(s, path, source);
    if (is_guarded)
        text_print(&s->out, "\n#endif\n");
    s->once[i].is_open = false; /* the array may have moved */
    s->once[i].is_sure = is_sure;
}

static bool is_below(const char *path, const char *folder) {
    char file[PATH_MAX], real[PATH_MAX];
    if (!realpath(path, file) || !realpath(*folder ? folder : ".", real))
        return false;
    size_t bytes = strlen(real);
    return strncmp(file, real, bytes) == 0 && (bytes == 1 || file[bytes] == '/');
}

/* What lies in the kernel's folder, or in one that was given, may be included; from elsewhere only what
 * is a source by its name. */
static bool may_read(splicer *s, const char *path, const char *from, int line) {
    static const char *const endings[] = {".h", ".hpp", ".hh", ".hxx", ".inc", ".metal", NULL};
    char folder[PATH_MAX];
    copy_folder(s->root, folder, sizeof folder);
    bool is_inside = is_below(path, folder);
    for (size_t i = 0; i < s->extras->folder_count && !is_inside; i++)
        is_inside = is_below(path, s->extras->folders[i]);
    if (is_inside)
        return true;
    size_t bytes = strlen(path);
    for (size_t i = 0; endings[i]; i++) {
        size_t n = strlen(endings[i]);
        if (bytes > n && strcmp(path + bytes - n, endings[i]) == 0) {
            text_print(&s->outside, "%s\n", path);
            return true;
        }
    }
    return err_set(
        &s->refused, EXIT_USAGE,
        "%.90s:%d: %.90s is not in the kernel's folder and is not a source: it is not read", from,
        line, path);
}

/* True if the directive is done with: an include that was spliced in. */
static bool splice_include(splicer *s, const char *path, const char *operand, const char *end,
                           int line) {
    char beside[PATH_MAX];
    char *included = NULL;
    bool is_local = read_local_include(path, operand, end, beside, sizeof beside);
    if (s->depth >= DEEPEST_INCLUDE || s->out.used >= LONGEST_TEXT)
        err_set(&s->refused, EXIT_USAGE,
                "%.160s:%d: files include each other without end, or more than %d MB of them", path,
                line, LONGEST_TEXT >> 20);
    else if (is_local && access(beside, F_OK) == 0 && may_read(s, beside, path, line))
        included = os_read_plain(beside, LONGEST_TEXT, NULL, &s->refused);
    if (!included) {
        s->needs_tool = s->is_missing = true;
        return false;
    }
    s->depth++;
    if (has_pragma_once(beside, included))
        splice_once(s, beside, included);
    else
        splice(s, beside, included);
    s->depth--;
    text_add(&s->out, "\n", 1);
    print_line_mark(&s->out, line, path);
    free(included);
    return true;
}

static void splice(splicer *s, const char *path, const char *source) {
    tokens t;
    tokens_cut(&t, path, source);
    print_line_mark(&s->out, 1, path);
    int conditions = s->conditions;
    size_t done = 0;
    for (size_t i = 0; i < t.directive_count && !s->is_missing; i++) {
        const directive *d = &t.directives[i];
        const char *word, *operand, *end = source + d->begin + d->bytes;
        size_t n = split_directive(source + d->begin, d->bytes, &word, &operand);
        bool include = word_is(word, n, "include") || word_is(word, n, "import");
        s->needs_tool = s->needs_tool || (include && is_framework(operand, end));
        if (include && !is_known_header(operand, end)) {
            text_add(&s->out, source + done, d->begin - done);
            if (splice_include(s, path, operand, end, d->line))
                done = d->begin + d->bytes;
            else
                done = d->begin;
        } else if (!include && n > 0 && !word_is(word, n, "pragma") && !word_is(word, n, "line")) {
            s->needs_tool = true;
            s->conditions += (n >= 2 && memcmp(word, "if", 2) == 0) - word_is(word, n, "endif");
        }
    }
    s->conditions = conditions;
    /* A backslash may split a word, and %: begins a directive too. */
    s->needs_tool = s->needs_tool || strstr(source, "__METAL_VERSION__") || strchr(source, '\\') ||
                    strstr(source, "%:") || strstr(source, "_Pragma");
    text_add(&s->out, source + done, strlen(source + done));
    tokens_free(&t);
}

char *source_from_text(const char *name, const char *given, const msl_extras *extras, char **whole,
                       err *e) {
    splicer s = {.root = name, .extras = extras};
    splice(&s, name, given);
    for (size_t i = 0; i < s.once_count; i++)
        free(s.once[i].path);
    free(s.once);
    *whole = NULL;
    if (s.refused.code != EXIT_OK) {
        *e = s.refused;
        free(s.out.data);
        free(s.outside.data);
        return NULL;
    }
    if (!s.needs_tool) {
        free(s.outside.data);
        return text_take(&s.out);
    }
    const source_facts facts = {extras, &s.outside, s.is_missing};
    char *spliced = text_take(&s.out), *source = preprocess(given, spliced, name, &facts, e);
    free(s.outside.data);
    if (source && s.is_missing) {
        text_print(&s.out, "#include <metal_stdlib>\n%s", source);
        *whole = text_take(&s.out);
    } else if (source) {
        *whole = spliced;
        spliced = NULL;
    }
    free(spliced);
    return source;
}

/* Macros stand in front of the text, so that every compiler sees them. */
static char *add_macros(const char *path, const char *given, const msl_extras *extras) {
    text out = {0};
    for (size_t i = 0; i < extras->macro_count; i++) {
        const char *macro = extras->macros[i];
        int name = (int)strcspn(macro, "=");
        text_print(&out, "#define %.*s %s\n", name, macro, macro[name] ? macro + name + 1 : "1");
    }
    if (extras->macro_count > 0)
        print_line_mark(&out, 1, path);
    text_add(&out, given, strlen(given));
    return text_take(&out);
}

char *source_load(const char *path, const msl_extras *extras, char **whole, err *e) {
    size_t bytes = 0;
    char *given = os_read_plain(path, LONGEST_TEXT, &bytes, e);
    if (!given)
        return NULL;
    char *source = NULL;
    *whole = NULL;
    if (strncmp(given, "\xEF\xBB\xBF", 3) == 0) /* a byte order mark is no token */
        memcpy(given, "   ", 3);
    if (strlen(given) != bytes)
        err_set(e, EXIT_USAGE, "%.160s has a zero byte at %zu: it is not text", path,
                strlen(given));
    else {
        char *all = add_macros(path, given, extras);
        source = source_from_text(path, all, extras, whole, e);
        free(all);
    }
    free(given);
    return source;
}
