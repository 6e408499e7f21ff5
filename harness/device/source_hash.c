/* source_hash: see source_hash.h. Lines are searched, not preprocessed: an include that #if
 * disables counts too, which can only make two hashes differ that could be equal. */
#include "source_hash.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/sha256.h"

typedef struct {
    char **paths; /* first met first */
    size_t count, capacity;
} file_list;

static void add_file(file_list *l, const char *path) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->paths[i], path) == 0)
            return;
    char *copy = array_new(strlen(path) + 1, 1);
    strcpy(copy, path);
    *ARRAY_ADD(l->paths, l->count, l->capacity) = copy;
}

/* Adds the files of `#include "name"` lines, which are beside the including file. */
static void list_includes(file_list *l, const char *from, const char *text) {
    size_t folder = strrchr(from, '/') ? (size_t)(strrchr(from, '/') - from) + 1 : 0;
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
        char path[PATH_MAX];
        if (length > 0 && folder + length < sizeof path) {
            snprintf(path, sizeof path, "%.*s%.*s", (int)folder, from, (int)length, p + 1);
            if (access(path, F_OK) == 0) /* else it is found in another folder, or not at all */
                add_file(l, path);
        }
    }
}

bool source_hash_find(const char *path, char hex[SOURCE_HASH_SIZE], err *e) {
    file_list l = {NULL};
    sha256 h;
    sha256_start(&h);
    add_file(&l, path);
    bool ok = true;
    for (size_t i = 0; ok && i < l.count; i++) {
        size_t bytes;
        char *text = os_read_file(l.paths[i], &bytes, e);
        if ((ok = text != NULL)) {
            sha256_add(&h, text, bytes);
            list_includes(&l, l.paths[i], text);
        }
        free(text);
    }
    char all[65];
    sha256_finish(&h, all);
    snprintf(hex, SOURCE_HASH_SIZE, "%.16s", all);
    for (size_t i = 0; i < l.count; i++)
        free(l.paths[i]);
    free(l.paths);
    return ok;
}

static bool is_source(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && (strcmp(dot, ".metal") == 0 || strcmp(dot, ".h") == 0);
}

bool source_hash_find_folder(const char *folder, char hex[SOURCE_HASH_SIZE], err *e) {
    struct dirent **found = NULL;
    int count = scandir(folder, &found, NULL, alphasort);
    bool ok = count >= 0 || err_set(e, EXIT_USAGE, "cannot read the folder %.160s", folder);
    sha256 h;
    char digest[65];
    sha256_start(&h);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        size_t bytes;
        snprintf(path, sizeof path, "%s/%s", folder, found[i]->d_name);
        if (ok && is_source(found[i]->d_name)) {
            char *text = os_read_file(path, &bytes, e);
            ok = text != NULL;
            sha256_add(&h, found[i]->d_name, strlen(found[i]->d_name) + 1);
            if (ok)
                sha256_add(&h, text, bytes);
            free(text);
        }
        free(found[i]);
    }
    free(found);
    sha256_finish(&h, digest);
    snprintf(hex, SOURCE_HASH_SIZE, "%.16s", digest);
    return ok;
}
