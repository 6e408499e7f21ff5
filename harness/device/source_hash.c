/* source_hash: see source_hash.h. Lines are searched, not preprocessed: an include that #if
 * disables counts too, which can only make two hashes differ that could be equal. */
#include "source_hash.h"

#include <assert.h>
#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/sha256.h"
#include "tape.h"

enum { LARGEST = 1 << 30 };

typedef struct {
    const library_project *project;
    char **paths; /* first met first */
    size_t count;
} file_list;

static void add_file(file_list *l, const char *path) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->paths[i], path) == 0)
            return;
    l->paths = realloc(l->paths, (l->count + 1) * sizeof *l->paths);
    assert(l->paths);
    l->paths[l->count] = strdup(path);
    assert(l->paths[l->count++]);
}

/* The file that an include of `name` means; false if it is not found: the compiler reports that. */
static bool find_include(const library_project *p, const char *from, const char *name, char *path,
                         size_t size) {
    const char *slash = strrchr(from, '/');
    if (path_print(path, size, NULL, "%.*s%s", slash ? (int)(slash + 1 - from) : 0, from, name) &&
        access(path, F_OK) == 0)
        return true;
    for (size_t i = 0; i < p->include_count; i++) {
        char folder[PATH_MAX];
        if (path_join(folder, sizeof folder, NULL, p->folder, p->includes[i]) &&
            path_print(path, size, NULL, "%s/%s", folder, name) && access(path, F_OK) == 0)
            return true;
    }
    return false;
}

/* Adds the files of `#include "name"` lines. */
static void list_includes(file_list *l, const char *from, const char *text) {
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *p = line + strspn(line, " \t");
        if (*p != '#')
            continue;
        p += 1 + strspn(p + 1, " \t");
        if (strncmp(p, "include", 7) != 0)
            continue;
        p += 7 + strspn(p + 7, " \t");
        size_t length = *p == '"' ? strcspn(p + 1, "\"\n") : 0;
        char name[PATH_MAX], path[PATH_MAX];
        if (length == 0 || length >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)length, p + 1);
        if (find_include(l->project, from, name, path, sizeof path))
            add_file(l, path);
    }
}

static void add_bytes(sha256 *h, const char *path) {
    size_t bytes;
    char *all = os_read_plain(path, LARGEST, &bytes, NULL);
    if (all)
        sha256_add(h, all, bytes);
    free(all);
}

/* Adds the files that a description takes arrays from: {n} in a name stands for any size. */
static void add_arrays(sha256 *h, const char *from, const char *text) {
    for (const char *p = text; (p = strstr(p, " from ")); p++) {
        const char *name = p + 6 + strspn(p + 6, " \t");
        char pattern[PATH_MAX];
        size_t used = (size_t)(path_get_name(from) - from), room = sizeof pattern - 1;
        if (used >= room)
            continue;
        memcpy(pattern, from, used);
        for (; *name && !isspace((unsigned char)*name) && used < room; name++) {
            bool is_size = *name == '{' && strchr(name, '}');
            pattern[used++] = is_size ? '*' : *name;
            name = is_size ? strchr(name, '}') : name;
        }
        pattern[used] = 0;
        glob_t found;
        if (glob(pattern, 0, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc; i++)
                add_bytes(h, found.gl_pathv[i]);
        globfree(&found);
    }
}

const char *source_skip(const char *p) {
    const bool is_line = p[0] == '/' && p[1] == '/';
    if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end ? end + 2 : p + strlen(p);
    }
    if (!is_line && *p != '"' && *p != '\'')
        return p;
    const char *start = p++;
    while (*p && *p != '\n' && (is_line || *p != *start))
        p += *p == '\\' && p[1] ? 2 : 1;
    return p + (!is_line && *p == *start);
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

size_t source_strip(char *text, bool is_description) {
    char *to = text;
    bool is_apart = false; /* from what came before */
    for (const char *p = text; *p;) {
        const bool is_literal = *p == '"' || *p == '\'', is_comment = is_description && *p == '#';
        const char *after = is_comment                      ? p + strcspn(p, "\n")
                            : is_description && !is_literal ? p
                                                            : source_skip(p);
        if (!is_literal && (after > p || isspace((unsigned char)*p))) {
            p = after > p ? after : p + 1;
            is_apart = true;
            continue;
        }
        if (is_apart && to > text && is_word(to[-1]) && is_word(*p))
            *to++ = ' ';
        is_apart = false;
        const size_t length = is_literal ? (size_t)(after - p) : 1;
        memmove(to, p, length);
        to += length;
        p += length;
    }
    *to = 0;
    return (size_t)(to - text);
}

/* The text of a file into a hash, and what it includes into the list. */
static bool add_text(sha256 *h, file_list *l, const char *path, err *e) {
    char *text = os_read_plain(path, LARGEST, NULL, e);
    if (!text)
        return false;
    bool is_description = path_ends_with(path, ".op");
    if (is_description)
        add_arrays(h, path, text);
    list_includes(l, path, text); /* lines of C in a description have some, too */
    sha256_add(h, text, source_strip(text, is_description) + 1);
    free(text);
    return true;
}

static bool take_file(void *context, const char *path, err *e) {
    (void)e;
    add_file(context, path);
    return true;
}

bool source_hash_find(const char *path, const library *lib, char hex[SOURCE_HASH_SIZE], err *e) {
    file_list l = {.project = library_get_project(lib)};
    char digest[65];
    sha256 h;
    sha256_start(&h);
    bool ok = os_is_folder(path) ? folder_walk(path, ".metal", NULL, take_file, &l, e)
                                 : take_file(&l, path, e);
    for (size_t i = 0; ok && i < l.count; i++)
        ok = add_text(&h, &l, l.paths[i], e);
    sha256_finish(&h, digest);
    snprintf(hex, SOURCE_HASH_SIZE, "%.16s", digest);
    for (size_t i = 0; i < l.count; i++)
        free(l.paths[i]);
    free(l.paths);
    return ok;
}
