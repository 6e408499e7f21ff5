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
#include "harness/base/macro_place.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/sha256.h"
#include "harness/base/toolchain.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
    text outside; /* files that were included, with a line end each */
    err refused;  /* an include that must not be read, or too many of them */
    once_file *once;
    size_t once_count, once_room;
    int depth;      /* of includes */
    int conditions; /* around the current line */
} splicer;

static void print_quoted(text *out, const char *path, bool is_mark) {
    text_add(out, "\"", 1);
    for (; *path; path++) {
        const char mark = path_get_mark(*path);
        if (*path == '"' || *path == '\\')
            text_add(out, "\\", 1);
        if (is_mark || mark == *path)
            text_add(out, &mark, 1);
        else
            text_print(out, "\\x%02x", *path);
    }
    text_add(out, "\"", 1);
}

static void print_line_mark(text *out, int line, const char *path) {
    text_print(out, "#line %d ", line);
    print_quoted(out, path, true);
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

static bool has_pragma_once(const tokens *t) {
    bool is_found = false;
    for (size_t i = 0; i < t->directive_count && !is_found; i++) {
        const directive *d = &t->directives[i];
        is_found = directive_is(t, d, "pragma") && strncmp(t->source + d->operand, "once", 4) == 0;
    }
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

static void splice(splicer *s, const char *path, const tokens *t);

static void splice_once(splicer *s, const char *path, const tokens *t) {
    size_t before = s->once_count, i = find_once(s, path);
    bool is_new = i == before, is_sure = s->conditions == 0;
    if (s->once[i].is_sure || s->once[i].is_open)
        return;
    bool is_guarded = !is_new || !is_sure;
    s->once[i].is_open = true;
    if (is_guarded)
        text_print(&s->out, "#ifndef ASSAY_ONCE_%zu\n#define ASSAY_ONCE_%zu\n", i, i);
    splice(s, path, t);
    if (is_guarded)
        text_print(&s->out, "\n#endif\n");
    s->once[i].is_open = false; /* the array may have moved */
    s->once[i].is_sure = is_sure;
}

/* What lies in the kernel's folder, or in one that was given, may be included; from elsewhere only what
 * is a source by its name, that of the file which a link leads to. */
static bool may_read(const splicer *s, const char *path) {
    char folder[PATH_MAX], real[PATH_MAX];
    copy_folder(s->root, folder, sizeof folder);
    bool is_inside = os_is_below(path, folder);
    for (size_t i = 0; i < s->extras->folder_count && !is_inside; i++)
        is_inside = os_is_below(path, s->extras->folders[i]);
    return is_inside || (realpath(path, real) && path_is_source(real));
}

static bool refuse_read(const char *path, const char *from, int line, err *e) {
    return err_set(
        e, EXIT_USAGE,
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
    else if (is_local && access(beside, F_OK) == 0 &&
             (may_read(s, beside) || refuse_read(beside, path, line, &s->refused))) {
        text_print(&s->outside, "%s\n", beside);
        included = os_read_plain(beside, LONGEST_TEXT, NULL, &s->refused);
    }
    if (!included) {
        s->needs_tool = s->is_missing = true;
        return false;
    }
    tokens inside;
    tokens_cut(&inside, beside, included);
    s->depth++;
    if (has_pragma_once(&inside))
        splice_once(s, beside, &inside);
    else
        splice(s, beside, &inside);
    s->depth--;
    tokens_free(&inside);
    text_add(&s->out, "\n", 1);
    print_line_mark(&s->out, line, path);
    free(included);
    return true;
}

static void splice(splicer *s, const char *path, const tokens *t) {
    const char *source = t->source;
    print_line_mark(&s->out, 1, path);
    int conditions = s->conditions;
    size_t done = 0;
    for (size_t i = 0; i < t->directive_count && !s->is_missing; i++) {
        const directive *d = &t->directives[i];
        const char *operand = source + d->operand, *end = source + d->begin + d->bytes;
        bool include = directive_is(t, d, "include import");
        s->needs_tool = s->needs_tool || (include && is_framework(operand, end));
        if (include && !is_known_header(operand, end)) {
            text_add(&s->out, source + done, d->begin - done);
            if (splice_include(s, path, operand, end, d->line))
                done = d->begin + d->bytes;
            else
                done = d->begin;
        } else if (!include && d->word_bytes > 0 && !directive_is(t, d, "pragma line")) {
            s->needs_tool = true;
            s->conditions += directive_is(t, d, "if if*") - directive_is(t, d, "endif");
        }
    }
    s->conditions = conditions;
    /* A backslash may split a word, and %: begins a directive too. */
    s->needs_tool = s->needs_tool || strstr(source, "__METAL_VERSION__") || strchr(source, '\\') ||
                    strstr(source, "%:") || strstr(source, "_Pragma");
    text_add(&s->out, source + done, strlen(source + done));
}

/* Lines of macros: a preprocessor puts all that a macro expands to on one line, that of the expansion.
 * Kernels are often written as macros of many lines, so those lines are marked: a word that names the line
 * is put before the first token of each line of a body, the preprocessor carries it to wherever the macro is
 * expanded, and afterwards it becomes a #line mark. Words stand only where the preprocessor does nothing
 * with what is beside them: not next to # and ##, not in the arguments of another macro. Macros of one
 * line, and those that are no code (values, explicit instantiations), stay as they are: the line of
 * their expansion says more. ------------------------------------------------------------------- */

/* Words: ASSAY_IN_7_ begins a body, ASSAY_AT_8_ begins a line of it, ASSAY_OUT_0_ ends it. */
static const char stem[] = "ASSAY_";
enum { STEM = sizeof stem - 1, DEEPEST_MACRO = 200 };

/* A line in the body of a macro. */
typedef struct {
    char *file; /* as line marks write it */
    char macro[MACRO_NAME];
    int line;
} macro_line;

typedef struct {
    macro_line *items;
    size_t count, room;
} macro_lines;

typedef struct {
    const tokens *t; /* of the macro's name, parameters and body */
    text *out;
    const char
        *macros;      /* "\nNAME(" for each macro with parameters, and "\nPARAMETER(" of this one */
    macro_line place; /* file and name of the macro; the line of its #define */
    macro_lines *lines;
} marker;

static void add_word(const marker *m, const char *what, int line) {
    macro_line *l = ARRAY_ADD(m->lines->items, m->lines->count, m->lines->room);
    *l = m->place;
    l->file = text_copy(m->place.file, strlen(m->place.file));
    l->line += line - 1;
    text_print(m->out, " %s%s_%zu_ ", stem, what, m->lines->count - 1);
}

static bool is_macro(const marker *m, at i) {
    char name[MACRO_NAME + 4];
    if (!token_is_word(m->t, i) || m->t->list[i].bytes > MACRO_NAME)
        return false;
    snprintf(name, sizeof name, "\n%.*s(", TOKEN_SPELL(m->t, i));
    return strstr(m->macros, name) != NULL;
}

/* Copies the body, which begins at token `body`, with words in it. */
static void mark_body(const marker *m, at body) {
    const tokens *t = m->t;
    bool is_first = true, is_new_line = true;
    at call_end = 0; /* of the arguments of another macro */
    uint32_t from = body > 0 ? t->list[body - 1].begin + t->list[body - 1].bytes : 0;
    for (at i = body; i < t->count; i++) {
        const token *k = &t->list[i];
        is_new_line = is_new_line || k->line != t->list[i - 1].line;
        text_add(m->out, t->source + from, k->begin - from);
        if (is_new_line && i >= call_end && !token_is_one_of(t, i, "# (") &&
            !(i > body && token_is(t, i - 1, "#"))) {
            add_word(m, is_first ? "IN" : "AT", k->line);
            is_first = is_new_line = false;
        }
        if (i >= call_end && token_is(t, i, "(") && i > body && is_macro(m, i - 1)) {
            int depth = 0;
            for (call_end = i; call_end < t->count; call_end++) {
                depth += token_is(t, call_end, "(") - token_is(t, call_end, ")");
                if (depth == 0)
                    break;
            }
            call_end++;
        }
        text_add(m->out, token_text(t, i), k->bytes);
        from = k->begin + k->bytes;
    }
    if (!is_first)
        text_print(m->out, " %sOUT_0_ ", stem);
    text_print(m->out, "%s", t->source + from);
}

/* Code of several lines: what has a body, or statements that are not explicit instantiations. */
static bool is_wanted(const tokens *t, const directive *d) {
    const char *p = t->source + d->operand;
    size_t bytes = d->begin + d->bytes - d->operand;
    return directive_is(t, d, "define") && memchr(p, '\n', bytes) &&
           (memchr(p, '{', bytes) || (memchr(p, ';', bytes) && !directive_has(t, d, "template")));
}

/* Is it `NAME(`? */
static bool has_parameters(const tokens *t) {
    return token_is_word(t, 0) && token_is(t, 1, "(") && t->list[1].begin == t->list[0].bytes;
}

static char *list_macros(const tokens *t) {
    text names = {0};
    text_print(&names, "\n__VA_OPT__(");
    for (size_t i = 0; i < t->directive_count; i++) {
        if (!directive_is(t, &t->directives[i], "define"))
            continue;
        char *operand;
        tokens define = tokens_cut_define(t, &t->directives[i], &operand);
        if (has_parameters(&define))
            text_print(&names, "\n%.*s(", TOKEN_SPELL(&define, 0));
        tokens_free(&define);
        free(operand);
    }
    return text_take(&names);
}

static void mark_define(const tokens *all, const directive *d, const char *macros, text *out,
                        macro_lines *lines) {
    char *operand;
    tokens t = tokens_cut_define(all, d, &operand);
    text names = {0};
    text_print(&names, "%s", macros);
    at body = 1;
    for (at i = 2; has_parameters(&t) && body == 1 && i < t.count; i++)
        if (token_is(&t, i, ")"))
            body = i + 1;
        else if (token_is_word(&t, i))
            text_print(&names, "\n%.*s(", TOKEN_SPELL(&t, i));
    marker m = {.t = &t, .out = out, .macros = names.data, .lines = lines};
    m.place = (macro_line){.file = all->files[d->file], .line = d->line};
    for (uint32_t i = d->begin; i < d->operand; i++)
        m.place.line += all->source[i] == '\n';
    tokens_spell(&t, 0, 1, m.place.macro, sizeof m.place.macro);
    text_add(out, all->source + d->begin, d->operand - d->begin);
    text_add(out, operand, t.list[body - 1].begin + t.list[body - 1].bytes);
    mark_body(&m, body);
    tokens_free(&t);
    free(operand);
    free(names.data);
}

/* A text for the preprocessor with the lines of macros' bodies marked, or NULL if there are none that
 * matter. */
static char *mark_lines(const char *name, const char *source, macro_lines *lines) {
    tokens t;
    text out = {0};
    size_t done = 0;
    if (strstr(source, "ASSAY_IN_") || strstr(source, "ASSAY_AT_"))
        return NULL;
    tokens_cut(&t, name, source);
    char *macros = list_macros(&t);
    for (size_t i = 0; i < t.directive_count; i++) {
        const directive *d = &t.directives[i];
        size_t word = strcspn(source + d->operand, " \t\r\n\\(");
        if (!is_wanted(&t, d) || word == 0 || word >= MACRO_NAME)
            continue;
        text_add(&out, source + done, d->begin - done);
        mark_define(&t, d, macros, &out, lines);
        done = d->begin + d->bytes;
    }
    free(macros);
    tokens_free(&t);
    if (lines->count == 0) {
        free(out.data);
        return NULL;
    }
    text_add(&out, source + done, strlen(source + done));
    return text_take(&out);
}

static void free_lines(macro_lines *lines) {
    for (size_t i = 0; i < lines->count; i++)
        free(lines->items[i].file);
    free(lines->items);
    *lines = (macro_lines){0};
}

typedef struct {
    const tokens *t;
    text out;
    const macro_lines *lines;
    size_t stack[DEEPEST_MACRO]; /* the macros that are being expanded: the line of each */
    int depth;
    bool is_stale; /* the next token needs a #line mark */
} resolver;

static void print_place(resolver *r, at i) {
    char name[PATH_MAX];
    if (r->depth == 0) {
        text_print(&r->out, "\n#line %d \"%s\"\n", r->t->list[i].line, token_file(r->t, i));
        return;
    }
    const macro_line *l = &r->lines->items[r->stack[r->depth - 1]];
    macro_place p = {.line = r->t->list[i].line};
    snprintf(p.macro, sizeof p.macro, "%s", l->macro);
    snprintf(p.file, sizeof p.file, "%.63s", path_get_name(token_file(r->t, i)));
    macro_place_name(l->file, &p, name, sizeof name);
    text_print(&r->out, "\n#line %d \"%s\"\n", l->line, name);
}

static bool is_ours(const char *p, size_t bytes) {
    return word_is_one_of(p, bytes, "ASSAY_IN_* ASSAY_AT_* ASSAY_OUT_*");
}

/* One of our words; false if it is not where it was put. */
static bool obey_word(resolver *r, at i) {
    char what[4];
    size_t number;
    int n = 0;
    if (sscanf(token_text(r->t, i) + STEM, "%3[A-Z]_%zu_%n", what, &number, &n) != 2 || n == 0 ||
        r->t->list[i].bytes != STEM + (uint32_t)n || number >= r->lines->count)
        return false;
    bool is_in = what[0] == 'I';
    if ((is_in && r->depth == DEEPEST_MACRO) || (!is_in && r->depth == 0))
        return false;
    if (is_in)
        r->stack[r->depth++] = number;
    else if (what[0] == 'A')
        r->stack[r->depth - 1] = number;
    else
        r->depth--;
    r->is_stale = true;
    return true;
}

/* A string that a macro has made of marked text has our words in it. */
static void copy_string(resolver *r, const char *p, const char *end) {
    while (p < end) {
        size_t word = strspn(p, "ASYINTOU_0123456789");
        if (is_ours(p, word)) {
            p += word;
            p += *p == ' ';
        } else
            text_add(&r->out, p++, 1);
    }
}

static bool copy_token(resolver *r, at i) {
    const token *k = &r->t->list[i];
    const char *p = token_text(r->t, i);
    if (is_ours(p, k->bytes))
        return obey_word(r, i);
    if (r->is_stale)
        print_place(r, i);
    r->is_stale = false;
    for (uint32_t n = 1; k->kind == TOKEN_WORD && n + STEM < k->bytes; n++)
        if (is_ours(p + n, k->bytes - n)) /* glued to another word */
            return false;
    if (*p == '"')
        copy_string(r, p, p + k->bytes);
    else
        text_add(&r->out, p, k->bytes);
    return true;
}

/* What the preprocessor made of a marked text, with #line marks; NULL: the words were not where they were
 * put, and the text must do without them. */
static char *resolve_lines(const char *preprocessed, const macro_lines *lines) {
    tokens t;
    tokens_cut(&t, "", preprocessed);
    resolver *r = array_new(1, sizeof *r);
    *r = (resolver){.t = &t, .lines = lines};
    bool ok = true;
    size_t next = 0; /* directive */
    uint32_t from = 0;
    for (at i = 0; i <= t.count && ok; i++) {
        const token *k = &t.list[i];
        bool has_mark = next < t.directive_count && t.directives[next].begin < k->begin;
        while (next < t.directive_count && t.directives[next].begin < k->begin)
            next++;
        text_add(&r->out, preprocessed + from, k->begin - from);
        if (has_mark)
            r->is_stale = r->depth > 0;
        else if (r->depth > 0 && memchr(preprocessed + from, '\n', k->begin - from))
            r->is_stale = true;
        ok = i == t.count || copy_token(r, i);
        from = k->begin + k->bytes;
    }
    char *made = ok ? text_take(&r->out) : NULL;
    free(r->out.data);
    free(r);
    tokens_free(&t);
    return made;
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
        print_quoted(out, full, false);
        text_print(out, ",\"external-contents\":");
        print_quoted(out, full, false);
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
    bool ok = os_write_own(path, out.data, out.used, e);
    free(out.data);
    return ok;
}

/* What the preprocessor has read, as a rule for make: a link in the kernel's folder may lead anywhere. */
static bool check_read(const char *rule, const splicer *s, const char *const *folders, err *e) {
    char *all = os_read_plain(rule, LONGEST_TEXT, NULL, e), *from = all ? strchr(all, ':') : NULL;
    const char *search = getenv("CPATH");
    bool ok = all != NULL;
    while (ok && from && *from) {
        char path[PATH_MAX];
        size_t used = 0;
        from += strspn(from + 1, " \n") + 1;
        while (strncmp(from, "\\\n", 2) == 0)
            from += 2 + strspn(from + 2, " \n");
        for (; *from && !strchr(" \n", *from) && used + 1 < sizeof path; path[used++] = *from++)
            from +=
                (*from == '\\' && from[1] && strchr(" #", from[1])) || strncmp(from, "$$", 2) == 0;
        path[used] = 0;
        bool is_known = used == 0 || may_read(s, path);
        for (const char *const *f = folders; *f && !is_known; f++)
            is_known = os_is_below(path, *f);
        for (const char *f = search; f && *f && !is_known; f += strcspn(f, ":"), f += *f == ':') {
            char folder[PATH_MAX];
            snprintf(folder, sizeof folder, "%.*s", (int)strcspn(f, ":"), f);
            is_known = os_is_below(path, folder);
        }
        ok = is_known || refuse_read(path, s->root, 1, e);
    }
    free(all);
    return ok;
}

/* Leaves out what the preprocessor says of files that are not to be read. */
static void forget_messages(char *messages, const splicer *s) {
    char *to = messages;
    for (const char *line = messages, *next; *line; line = next) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.*s", (int)strcspn(line, ":\n"), line);
        next = line + strcspn(line, "\n") + 1;
        next -= next[-1] == 0;
        if (access(path, F_OK) == 0 && !may_read(s, path))
            continue;
        memmove(to, line, (size_t)(next - line));
        to += next - line;
    }
    *to = 0;
}

/* how: "-E", or "-frewrite-includes": only includes are done. */
static bool run_preprocessor(const char *in, const char *out, const char *folder, const char *name,
                             const char *how, const splicer *s, err *e) {
    const msl_extras *extras = s->extras;
    char tool[PATH_MAX], home[PATH_MAX], headers[PATH_MAX + 64], beside[PATH_MAX + 4], version[40];
    char overlay[PATH_MAX + 8], rule[PATH_MAX + 8], scratch[PATH_MAX];
    if (!toolchain_find_preprocessor(tool, sizeof tool, e) || !os_find_home(home, sizeof home, e))
        return false;
    copy_folder(in, scratch, sizeof scratch);
    snprintf(overlay, sizeof overlay, "%.4000s.yaml", in);
    snprintf(rule, sizeof rule, "%.4000s.d", in);
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
    const char **argv = array_new(FIXED + 2 * extras->folder_count + 6, sizeof *argv);
    size_t n = FIXED;
    memcpy(argv, fixed, sizeof fixed);
    for (size_t i = 0; i < extras->folder_count; i++) {
        argv[n++] = "-I";
        argv[n++] = extras->folders[i];
    }
    const char *const folders[] = {scratch, folder, headers + 2, NULL};
    char *output = NULL;
    bool ok = true;
    const bool is_clang = strstr(tool, "clang");
    if (is_clang) { /* others have no such option, and compile nothing here */
        argv[n++] = "-ivfsoverlay";
        argv[n++] = overlay;
        argv[n++] = "-MD";
        argv[n++] = "-MF";
        argv[n++] = rule;
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
        if (output)
            forget_messages(output, s);
        err_set_detail(e, output ? output : "");
    }
    ok = ok && (!is_clang || check_read(rule, s, folders, e));
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
    if (os_write_own(w->in, marked.data, marked.used, e) &&
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
            print_quoted(&out, w->name, true);
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
        whole || !is_missing ? mark_lines(w->name, whole ? whole : spliced, &lines) : NULL;
    free(included);
    char *expanded = marked ? run_on(w, marked, "-E", &ignored) : NULL;
    char *result = expanded ? resolve_lines(expanded, &lines) : NULL;
    free_lines(&lines);
    free(whole);
    free(marked);
    free(expanded);
    return result;
}

/* Where the cache keeps what the preprocessor and this program made of a text, which depends on nothing else,
 * unless the text asks for the time or for files. */
static bool find_kept(const char *source, const char *spliced, const splicer *s, char *path,
                      size_t size) {
    static const char *const asks[] = {"__has_",  "__TIME", "__DATE__", "embed ", "embed\t",
                                       "embed\"", "embed<", "embed/",   "embed\\"};
    char folder[PATH_MAX - 80], programs[2][PATH_MAX], hex[65];
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        if (strstr(spliced, asks[i]))
            return false;
    if (s->is_missing || !os_find_cache(folder, sizeof folder, NULL) ||
        !os_find_self(programs[0], PATH_MAX, NULL) ||
        !toolchain_find_preprocessor(programs[1], PATH_MAX, NULL))
        return false;
    const int language[] = {s->extras->language, s->extras->is_apple};
    const char *const texts[] = {programs[1], s->root, source, spliced};
    sha256 h;
    sha256_start(&h);
    for (int i = 0; i < 2; i++) {
        struct stat of = {.st_size = 0};
        const bool is_there = stat(programs[i], &of) == 0;
        const long long version[] = {is_there, of.st_size, of.st_mtime, (long long)of.st_ino};
        sha256_add(&h, version, sizeof version);
    }
    sha256_add(&h, language, sizeof language);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sha256_add(&h, texts[i], strlen(texts[i]) + 1);
    sha256_finish(&h, hex);
    return path_print(path, size, NULL, "%s/expanded/%s.metal", folder, hex);
}

/* The sum of a text stands before it. One that cannot be kept is made again. */
static char *read_kept(const char *path) {
    char *all = os_read_file(path, NULL, NULL), sum[65] = "";
    const size_t bytes = all ? strlen(all) : 0;
    if (bytes >= 64)
        sha256_of(all + 64, bytes - 64, sum);
    char *result =
        bytes >= 64 && memcmp(all, sum, 64) == 0 ? text_copy(all + 64, bytes - 64) : NULL;
    free(all);
    if (result)
        utimensat(AT_FDCWD, path, NULL, 0);
    return result;
}

static void keep(const char *path, const char *result) {
    char folder[PATH_MAX], sum[65];
    sha256_of(result, strlen(result), sum);
    char *all = text_format("%s%s", sum, result);
    copy_folder(path, folder, sizeof folder);
    if (os_make_folder(folder, NULL))
        os_write_file(path, all, strlen(all), NULL);
    free(all);
}

/* The text of a file with macros expanded; spliced: with its includes put in, where they were found. */
static char *preprocess(const char *source, const char *spliced, const splicer *s, err *e) {
    workshop *w = array_new(1, sizeof *w);
    *w = (workshop){.name = s->root, .splicer = s};
    char kept[PATH_MAX];
    const bool is_kept = find_kept(source, spliced, s, kept, sizeof kept);
    char *result = is_kept ? read_kept(kept) : NULL;
    if (!result && os_make_scratch(w->folder, sizeof w->folder, e)) {
        snprintf(w->in, sizeof w->in, "%s%s", w->folder, in_name);
        snprintf(w->out, sizeof w->out, "%s/out.metal", w->folder);
        copy_folder(s->root, w->beside, sizeof w->beside);
        result = run_with_lines(w, source, spliced);
        if (!result)
            result = run_on(w, source, "-E", e);
        os_remove_folder(w->folder);
        if (result && is_kept)
            keep(kept, result);
    }
    free(w);
    return result;
}

/* All of it ----------------------------------------------------------------------------------- */

char *source_from_text(const char *name, const char *given, const msl_extras *extras, char **whole,
                       err *e) {
    splicer s = {.root = name, .extras = extras};
    tokens t;
    tokens_cut(&t, name, given);
    splice(&s, name, &t);
    tokens_free(&t);
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
    char *given = os_read_source(path, LONGEST_TEXT, &bytes, e);
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
