/* source: makes one text of a .metal file and what it includes.
 *
 * A file whose only directives are includes and pragmas is put together here, with #line marks, and
 * needs no tool. Anything more (#define, #if) goes through a C preprocessor,
 * which keeps line marks of its own. Includes that are not beside the file go
 * to the preprocessor too: it searches the folders of CPATH and reports missing files well.
 *
 * A compiler of MSL has a preprocessor and Metal's headers of its own, but no folder to find local
 * includes in: it is given the text as assembled here, before any tool. */
#include "internal.h"

#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/toolchain.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LONGEST_TEXT = 16 << 20,
    DEEPEST_INCLUDE = 64,
    PREPROCESS_SECONDS = 60,
    PREPROCESS_MB = 768,
};

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

static void print_quoted(text *out, const char *path) {
    text_add(out, "\"", 1);
    for (; *path; path++) {
        if (*path == '"' || *path == '\\')
            text_add(out, "\\", 1);
        text_add(out, path, 1);
    }
    text_add(out, "\"", 1);
}

static void print_line_mark(text *out, int line, const char *path) {
    text_print(out, "#line %d ", line);
    print_quoted(out, path);
    text_add(out, "\n", 1);
}

/* "." if it has none. */
static void copy_folder(const char *path, char *folder, size_t size) {
    const char *slash = strrchr(path, '/');
    snprintf(folder, size, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

/* Includes ------------------------------------------------------------------------------------ */

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

/* One of the few that are not empty here: the preprocessor brings them. */
static bool is_framework(const char *operand, const char *end) {
    return word_is_one_of(
        operand, (size_t)(end - operand),
        "<MetalPerformancePrimitives/* <metal_tensor* <metal_cooperative_tensor*");
}

static bool is_known_header(const char *operand, const char *end) {
    return word_is_one_of(operand, (size_t)(end - operand), "<metal* <simd/*") ||
           is_framework(operand, end);
}

static bool has_pragma_once(const char *path, const char *source) {
    tokens t;
    bool is_found = false;
    tokens_cut(&t, path, source);
    for (size_t i = 0; i < t.directive_count && !is_found; i++) {
        const directive *d = &t.directives[i];
        is_found = directive_is(&t, d, "pragma") && strncmp(source + d->operand, "once", 4) == 0;
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
    char folder[PATH_MAX];
    copy_folder(s->root, folder, sizeof folder);
    bool is_inside = is_below(path, folder);
    for (size_t i = 0; i < s->extras->folder_count && !is_inside; i++)
        is_inside = is_below(path, s->extras->folders[i]);
    if (is_inside)
        return true;
    const char *dot = strrchr(path, '.');
    if (dot && dot > path && word_is_one_of(dot, strlen(dot), ".h .hpp .hh .hxx .inc .metal")) {
        text_print(&s->outside, "%s\n", path);
        return true;
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
        const char *operand = source + d->operand, *end = source + d->begin + d->bytes;
        bool include = directive_is(&t, d, "include import");
        s->needs_tool = s->needs_tool || (include && is_framework(operand, end));
        if (include && !is_known_header(operand, end)) {
            text_add(&s->out, source + done, d->begin - done);
            if (splice_include(s, path, operand, end, d->line))
                done = d->begin + d->bytes;
            else
                done = d->begin;
        } else if (!include && d->word_bytes > 0 && !directive_is(&t, d, "pragma line")) {
            s->needs_tool = true;
            s->conditions += directive_is(&t, d, "if if*") - directive_is(&t, d, "endif");
        }
    }
    s->conditions = conditions;
    /* A backslash may split a word, and %: begins a directive too. */
    s->needs_tool = s->needs_tool || strstr(source, "__METAL_VERSION__") || strchr(source, '\\') ||
                    strstr(source, "%:") || strstr(source, "_Pragma");
    text_add(&s->out, source + done, strlen(source + done));
    tokens_free(&t);
}

/* The preprocessor: clang's, with empty Metal headers (include/), which sees no other files than it
 * should. ------------------------------------------------------------------------------------- */

/* An entry of the overlay: the path as it is, and with its links followed. */
static void print_entry(text *out, const char *kind, const char *path) {
    char here[PATH_MAX] = "", real[PATH_MAX];
    const char *forms[2] = {path, realpath(path, real) ? real : NULL};
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return;
    for (int i = 0; i < 2 && forms[i]; i++) {
        char *full =
            text_format("%s%s%s", i == 0 ? here : "", i == 0 && *here ? "/" : "", forms[i]);
        text_print(out, "%s{\"type\":\"%s\",\"name\":", out->data[out->used - 1] == '[' ? "" : ",",
                   kind);
        print_quoted(out, full);
        text_print(out, ",\"external-contents\":");
        print_quoted(out, full);
        text_print(out, "}\n");
        free(full);
    }
}

static void print_entries(text *out, const char *kind, const char *paths, const char *separator) {
    char *copy = text_copy(paths, strlen(paths)), *rest = NULL;
    for (char *p = strtok_r(copy, separator, &rest); p; p = strtok_r(NULL, separator, &rest))
        print_entry(out, kind, p);
    free(copy);
}

/* The files that exist, for the preprocessor: whatever the text asks for, by #include, #embed or
 * __has_include, anything else is not there. */
static bool write_overlay(const char *path, const char *const *folders, const splicer *s, err *e) {
    const char *search = getenv("CPATH");
    text out = {0};
    text_print(&out, "{\"version\":0,\"case-sensitive\":\"true\",\"fallthrough\":\"false\","
                     "\"roots\":[");
    for (; *folders; folders++)
        print_entry(&out, "directory-remap", *folders);
    for (size_t i = 0; i < s->extras->folder_count; i++)
        print_entry(&out, "directory-remap", s->extras->folders[i]);
    print_entries(&out, "directory-remap", search ? search : "", ":");
    print_entries(&out, "file", s->outside.data ? s->outside.data : "", "\n");
    text_print(&out, "]}\n");
    bool ok = os_write_file(path, out.data, out.used, e);
    free(out.data);
    return ok;
}

/* how: "-E", or "-frewrite-includes": only includes are done. */
static bool run_preprocessor(const char *in, const char *out, const char *folder, const char *name,
                             const char *how, const splicer *s, err *e) {
    const msl_extras *extras = s->extras;
    char tool[PATH_MAX], home[PATH_MAX], headers[PATH_MAX + 64], beside[PATH_MAX + 4], version[40];
    char overlay[PATH_MAX + 8], scratch[PATH_MAX];
    if (!toolchain_find_preprocessor(tool, sizeof tool, e) || !os_find_home(home, sizeof home, e))
        return false;
    copy_folder(in, scratch, sizeof scratch);
    snprintf(overlay, sizeof overlay, "%.4000s.yaml", in);
    int language = extras->language ? extras->language : MSL_LANGUAGE;
    snprintf(version, sizeof version, "-D__METAL_VERSION__=%d", language);
    snprintf(headers, sizeof headers, "-I%s/harness/device/msl/include", home);
    snprintf(beside, sizeof beside, "-I%s", folder);
    /* clang-format off */
    const char *fixed[] = {tool, "-E", how, "-x", "c++", "-w", "-std=c++17", "-fno-caret-diagnostics",
                           "-undef", "-nostdinc", "-D__METAL__=1", version, "-D__METAL_MACOS__=1",
                           language >= 310 ? "-D__HAVE_BFLOAT__=1" : "-U__HAVE_BFLOAT__",
                           language >= 400 ? "-D__HAVE_TENSOR__=1" : "-U__HAVE_TENSOR__",
                           extras->is_apple ? "-U__ASSAY__" : "-D__ASSAY__=1",
                           headers, beside, "-o", out, in};
    /* clang-format on */
    enum { FIXED = sizeof fixed / sizeof *fixed };
    const char **argv = array_new(FIXED + 2 * extras->folder_count + 3, sizeof *argv);
    size_t n = FIXED;
    memcpy(argv, fixed, sizeof fixed);
    for (size_t i = 0; i < extras->folder_count; i++) {
        argv[n++] = "-I";
        argv[n++] = extras->folders[i];
    }
    const char *const folders[] = {scratch, folder, headers + 2, NULL};
    char *output = NULL;
    bool ok = true;
    if (strstr(tool, "clang")) { /* others have no such option, and compile nothing here */
        argv[n++] = "-ivfsoverlay";
        argv[n++] = overlay;
        ok = write_overlay(overlay, folders, s, e);
    }
    const child_limits limits = {.seconds = PREPROCESS_SECONDS, .memory_mb = PREPROCESS_MB};
    child_end end = {.status = 0};
    ok = ok && child_run_within(argv, &limits, &output, &end, e);
    const int status = end.status;
    if (ok && end.is_late)
        ok = err_set(e, EXIT_WRONG, "%.120s was stopped after %d s", argv[0], PREPROCESS_SECONDS);
    if (ok && (status > 128 || (status != 0 && output && strstr(output, "out of memory"))))
        ok = err_set(e, EXIT_USAGE, "the macros of %.160s expand to more text than a file may have",
                     name);
    else if (ok && status != 0) {
        ok = err_set(e, EXIT_USAGE, "%.160s cannot be preprocessed", name);
        err_set_detail(e, output ? output : "");
    }
    unlink(overlay);
    free(argv);
    free(output);
    return ok;
}

/* The preprocessor names the folder it was given, which has another name each time; compiled
 * kernels are found again by their text. */
static const char any_folder[] = "/assay", in_name[] = "/in.metal";
static void forget_folder(char *preprocessed, const char *folder) {
    char *to = preprocessed;
    for (const char *from = preprocessed, *next; *from; from = next) {
        const char *found = strstr(from, folder);
        size_t bytes = found ? (size_t)(found - from) : strlen(from);
        memmove(to, from, bytes);
        to += bytes;
        next = from + bytes;
        if (found) {
            memcpy(to, any_folder, sizeof any_folder - 1);
            to += sizeof any_folder - 1;
            next += strlen(folder);
        }
    }
    *to = 0;
}

typedef struct {
    char folder[PATH_MAX - 16], in[PATH_MAX], out[PATH_MAX], beside[PATH_MAX];
    const char *name;
    const splicer *splicer;
} workshop;

/* The text goes in through a file of its own, so that it need not be one of the caller's. */
static char *run_on(const workshop *w, const char *source, const char *how, err *e) {
    text marked = {0};
    char *result = NULL;
    print_line_mark(&marked, 1, w->name);
    text_add(&marked, source, strlen(source));
    if (os_write_file(w->in, marked.data, marked.used, e) &&
        run_preprocessor(w->in, w->out, w->beside, w->name, how, w->splicer, e))
        result = os_read_plain(w->out, LONGEST_TEXT, NULL, e);
    if (result)
        forget_folder(result, w->folder);
    free(marked.data);
    return result;
}

/* Where only includes were done, line marks name the file that went in, which has lines before the
 * caller's: one mark, and macros that were given with another. */
static char *name_main(const workshop *w, const char *whole) {
    const size_t macros = w->splicer->extras->macro_count;
    const int extra = macros > 0 ? (int)macros + 2 : 1;
    char in[sizeof any_folder + sizeof in_name];
    snprintf(in, sizeof in, "%s%s", any_folder, in_name);
    text out = {0};
    for (const char *line = whole; *line;) {
        size_t bytes = strcspn(line, "\n");
        int number = 0, n = 0;
        bool is_mark = sscanf(line, "# %d \"%n", &number, &n) == 1 && n > 0;
        const char *close = is_mark ? memchr(line + n, '"', bytes - (size_t)n) : NULL;
        if (close && close - (line + n) == (ptrdiff_t)strlen(in) && number > extra &&
            memcmp(line + n, in, strlen(in)) == 0) {
            text_print(&out, "# %d ", number - extra);
            print_quoted(&out, w->name);
            close++;
            text_add(&out, close, (size_t)(line + bytes - close) + (line[bytes] == '\n'));
        } else
            text_add(&out, line, bytes + (line[bytes] == '\n'));
        line += bytes + (line[bytes] == '\n');
    }
    return text_take(&out);
}

/* With the lines of macros kept, where there are macros of several lines; else NULL. Headers from
 * folders that were given are put in first, for their macros. */
static char *run_with_lines(const workshop *w, const char *source, const char *spliced) {
    err ignored;
    macro_lines lines = {0};
    bool is_missing = w->splicer->is_missing;
    if (!is_missing && !strstr(spliced, "\\\n") && !strstr(spliced, "\\\r\n"))
        return NULL;
    char *included = is_missing ? run_on(w, source, "-frewrite-includes", &ignored) : NULL;
    char *whole = included ? name_main(w, included) : NULL;
    char *marked =
        whole || !is_missing ? expansion_mark(w->name, whole ? whole : spliced, &lines) : NULL;
    free(included);
    char *expanded = marked ? run_on(w, marked, "-E", &ignored) : NULL;
    char *result = expanded ? expansion_resolve(expanded, &lines) : NULL;
    expansion_free(&lines);
    free(whole);
    free(marked);
    free(expanded);
    return result;
}

/* The text of a file with macros expanded; spliced: with its includes put in, where they were found. */
static char *preprocess(const char *source, const char *spliced, const splicer *s, err *e) {
    workshop *w = array_new(1, sizeof *w);
    *w = (workshop){.name = s->root, .splicer = s};
    char *result = NULL;
    if (os_make_scratch(w->folder, sizeof w->folder, e)) {
        snprintf(w->in, sizeof w->in, "%s%s", w->folder, in_name);
        snprintf(w->out, sizeof w->out, "%s/out.metal", w->folder);
        copy_folder(s->root, w->beside, sizeof w->beside);
        result = run_with_lines(w, source, spliced);
        if (!result)
            result = run_on(w, source, "-E", e);
        os_remove_folder(w->folder);
    }
    free(w);
    return result;
}

/* All of it ----------------------------------------------------------------------------------- */

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
    char *spliced = text_take(&s.out), *source = preprocess(given, spliced, &s, e);
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
