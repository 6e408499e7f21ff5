/* preprocess: a C preprocessor with empty Metal headers (include/), which sees no other files than it
 * should; with the lines of macros kept, as expansion.c does. */
#include "internal.h"

#include "harness/base/os.h"
#include "harness/base/toolchain.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PREPROCESS_SECONDS = 60, PREPROCESS_MB = 768 };

static void print_quoted(text *out, const char *path) {
    text_add(out, "\"", 1);
    for (; *path; path++) {
        if (*path == '"' || *path == '\\')
            text_add(out, "\\", 1);
        text_add(out, path, 1);
    }
    text_add(out, "\"", 1);
}

void print_line_mark(text *out, int line, const char *path) {
    text_print(out, "#line %d ", line);
    print_quoted(out, path);
    text_add(out, "\n", 1);
}

void copy_folder(const char *path, char *folder, size_t size) {
    const char *slash = strrchr(path, '/');
    snprintf(folder, size, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

/* An entry of the overlay: the path as it is, and with its links followed. */
static void print_entry(text *out, const char *kind, const char *path) {
    char here[PATH_MAX] = "", real[PATH_MAX];
    const char *forms[2] = {path, realpath(path, real) ? real : NULL};
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return;
    for (int i = 0; i < 2 && forms[i]; i++) {
        text full = {0}, quoted = {0};
        text_print(&full, "%s%s%s", i == 0 ? here : "", i == 0 && *here ? "/" : "", forms[i]);
        text_add(&full, "", 1);
        for (const char *p = full.data; *p; p++) {
            if (*p == '"' || *p == '\\')
                text_add(&quoted, "\\", 1);
            text_add(&quoted, p, 1);
        }
        text_add(&quoted, "", 1);
        text_print(out, "%s{\"type\":\"%s\",\"name\":\"%s\",\"external-contents\":\"%s\"}\n",
                   out->data[out->used - 1] == '[' ? "" : ",", kind, quoted.data, quoted.data);
        free(full.data);
        free(quoted.data);
    }
}

static void print_lines(text *out, const char *kind, const char *lines, char separator) {
    for (const char *p = lines; p && *p;) {
        const char *end = strchr(p, separator);
        size_t n = end ? (size_t)(end - p) : strlen(p);
        char *path = text_copy(p, n);
        if (n > 0)
            print_entry(out, kind, path);
        free(path);
        p += n + (end != NULL);
    }
}

/* The files that exist, for the preprocessor: whatever the text asks for, by #include, #embed or
 * __has_include, anything else is not there. */
static bool write_overlay(const char *path, const char *const *folders, const source_facts *s,
                          err *e) {
    const char *search = getenv("CPATH");
    text out = {0};
    text_print(&out, "{\"version\":0,\"case-sensitive\":\"true\",\"fallthrough\":\"false\","
                     "\"roots\":[");
    for (; *folders; folders++)
        print_entry(&out, "directory-remap", *folders);
    for (size_t i = 0; i < s->extras->folder_count; i++)
        print_entry(&out, "directory-remap", s->extras->folders[i]);
    print_lines(&out, "directory-remap", search, ':');
    if (s->outside->used > 0) {
        char *files = text_copy(s->outside->data, s->outside->used);
        print_lines(&out, "file", files, '\n');
        free(files);
    }
    text_print(&out, "]}\n");
    bool ok = os_write_file(path, out.data, out.used, e);
    free(out.data);
    return ok;
}

/* how: "-E", or "-frewrite-includes": only includes are done. */
static bool run_preprocessor(const char *in, const char *out, const char *folder, const char *name,
                             const char *how, const source_facts *s, err *e) {
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
    const char *fixed[] = {tool,
                           "-E",
                           how,
                           "-x",
                           "c++",
                           "-w",
                           "-std=c++17",
                           "-fno-caret-diagnostics",
                           "-undef",
                           "-nostdinc",
                           "-D__METAL__=1",
                           version,
                           "-D__METAL_MACOS__=1",
                           language >= 310 ? "-D__HAVE_BFLOAT__=1" : "-U__HAVE_BFLOAT__",
                           language >= 400 ? "-D__HAVE_TENSOR__=1" : "-U__HAVE_TENSOR__",
                           extras->is_apple ? "-U__ASSAY__" : "-D__ASSAY__=1",
                           headers,
                           beside,
                           "-o",
                           out,
                           in};
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
    int status = 0;
    bool ok = true;
    if (strstr(tool, "clang")) { /* others have no such option, and compile nothing here */
        argv[n++] = "-ivfsoverlay";
        argv[n++] = overlay;
        ok = write_overlay(overlay, folders, s, e);
    }
    ok = ok && os_run_within(argv, PREPROCESS_SECONDS, PREPROCESS_MB, &output, &status, e);
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
    const source_facts *facts;
} workshop;

/* The text goes in through a file of its own, so that it need not be one of the caller's. */
static char *run_on(const workshop *w, const char *source, const char *how, err *e) {
    text marked = {0};
    char *result = NULL;
    print_line_mark(&marked, 1, w->name);
    text_add(&marked, source, strlen(source));
    if (os_write_file(w->in, marked.data, marked.used, e) &&
        run_preprocessor(w->in, w->out, w->beside, w->name, how, w->facts, e))
        result = os_read_plain(w->out, LONGEST_TEXT, NULL, e);
    if (result)
        forget_folder(result, w->folder);
    free(marked.data);
    return result;
}

/* Where only includes were done, line marks name the file that went in, which has lines before the
 * caller's: one mark, and macros that were given with another. */
static char *name_main(const workshop *w, const char *whole) {
    const size_t macros = w->facts->extras->macro_count;
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
    bool is_missing = w->facts->is_missing;
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

char *preprocess(const char *source, const char *spliced, const char *name, const source_facts *s,
                 err *e) {
    workshop *w = array_new(1, sizeof *w);
    *w = (workshop){.name = name, .facts = s};
    char *result = NULL;
    if (os_make_scratch(w->folder, sizeof w->folder, e)) {
        snprintf(w->in, sizeof w->in, "%s%s", w->folder, in_name);
        snprintf(w->out, sizeof w->out, "%s/out.metal", w->folder);
        copy_folder(name, w->beside, sizeof w->beside);
        result = run_with_lines(w, source, spliced);
        if (!result)
            result = run_on(w, source, "-E", e);
        os_remove_folder(w->folder);
    }
    free(w);
    return result;
}
