#include "made_of.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/path.h"
#include "harness/base/root.h"
#include "harness/base/sha256.h"
#include "harness/check/op.h"
#include "harness/device/source_hash.h"
#include "harness/device/sources.h"
#include "harness/device/tape.h"

/* C files of the build ------------------------------------------------------------------------- */

typedef struct {
    sha256 h;
    bool *seen, is_any;
} built_sum;

static size_t find_source(const char *path) {
    size_t i = 0;
    while (i < source_file_count && strcmp(source_files[i].path, path) != 0)
        i++;
    return i;
}

static void add_source(built_sum *s, size_t i) {
    sha256_add(&s->h, source_files[i].path, strlen(source_files[i].path) + 1);
    sha256_add(&s->h, source_files[i].sum, strlen(source_files[i].sum) + 1);
    s->seen[i] = s->is_any = true;
}

/* All whose path begins so; with a * at the end only what is directly in that folder. */
static void add_place(built_sum *s, const char *place) {
    size_t length = strcspn(place, "*");
    for (size_t i = 0; i < source_file_count; i++) {
        const char *path = source_files[i].path;
        if (!s->seen[i] && strncmp(path, place, length) == 0 &&
            !(place[length] && strchr(path + length, '/')))
            add_source(s, i);
    }
}

/* A file, what it includes of its room, and NAME.c of each NAME.h. The lists of all ops say nothing of one. */
static void add_closure(built_sum *s, const char *path, const char *room) {
    char name[PATH_MAX];
    size_t i = find_source(path), length = strlen(path);
    if (i == source_file_count || s->seen[i] || strncmp(path, room, strlen(room)) != 0 ||
        strcmp(path, "kernels/kernels.h") == 0 || strcmp(path, "kernels/ops.h") == 0)
        return;
    add_source(s, i);
    for (const char *p = source_files[i].includes; *p; p += strcspn(p, " ") + 1) {
        int size = (int)strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s%.*s", (int)(path_get_name(path) - path), path, size, p);
        add_closure(s, name, room);
        snprintf(name, sizeof name, "%.*s", size, p);
        add_closure(s, name, room);
    }
    if (path_ends_with(path, ".h")) {
        snprintf(name, sizeof name, "%.*s.c", (int)length - 2, path);
        add_closure(s, name, room);
    }
}

/* False if this program has no such part. */
static bool find_built(const char *part, const char *name, char hex[SOURCE_HASH_SIZE]) {
    static const struct {
        const char *part, *room; /* NULL, or that of its file NAME.c */
        const char *places[5];
    } parts[] = {
        {"device", NULL, {"harness/device/msl/", "harness/device/shim/", "harness/device/*"}},
        {"runner", NULL, {"runner/model/", "runner/llama/", "runner/rwkv7/", "runner/choice/"}},
        {"experiment", "experiments/", {"experiments/lab", "experiments/sheet"}},
        {"description", "kernels/", {NULL}},
    };
    built_sum s = {.seen = array_new(source_file_count + 1, sizeof *s.seen)};
    char path[PATH_MAX], digest[65];
    sha256_start(&s.h);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(parts[i].part, part) != 0)
            continue;
        snprintf(path, sizeof path, "%s%.200s.c", parts[i].room ? parts[i].room : "", name);
        if (strcmp(part, "device") == 0) {
            snprintf(path, sizeof path, "harness/device/%.24s/", name);
            add_place(&s, path);
        } else if (parts[i].room && strcmp(name, "*") == 0)
            add_place(&s, parts[i].room);
        else if (parts[i].room)
            add_closure(&s, path, parts[i].room);
        for (const char *const *place = parts[i].places; *place && (s.is_any || !parts[i].room);
             place++)
            add_place(&s, *place);
    }
    sha256_finish(&s.h, digest);
    snprintf(hex, SOURCE_HASH_SIZE, "%.16s", digest);
    free(s.seen);
    return s.is_any;
}

/* Names ---------------------------------------------------------------------------------------- */

/* The name that a file has in a text. */
static void shorten(const char *part, const char *name, char *out, size_t size) {
    char root[PATH_MAX];
    const char *own = strstr(name, "kernels/");
    size_t length = root_find_project(root, sizeof root) ? strlen(root) : 0;
    bool is_description = strcmp(part, "description") == 0;
    if (is_description && length && strncmp(name, root, length) == 0 && name[length] == '/')
        snprintf(out, size, "%s", name + length + 1);
    else if (is_description && own && find_source(own) < source_file_count)
        snprintf(out, size, "%.*s", (int)(strlen(own + 8) - 2), own + 8);
    else if (strcmp(part, "kernel") == 0 && path_ends_with(name, ".metal") && name[0] != '/')
        snprintf(out, size, "%.*s", (int)strlen(name) - 6, name);
    else
        snprintf(out, size, "%s", name);
    if (out[0] == '/' || strpbrk(out, " +=:,?"))
        snprintf(out, size, "?");
}

/* Of what a name means, in full or as it is in a text. */
static bool find_hash(const library *lib, const char *part, const char *name,
                      char hex[SOURCE_HASH_SIZE], err *e) {
    char path[PATH_MAX], file[PATH_MAX], root[PATH_MAX], own[PATH_MAX];
    if (strcmp(part, "kernel") == 0) {
        if (strcmp(name, "*") == 0)
            return source_hash_find_folder(library_get_folder(lib), hex, e);
        return path_print(file, sizeof file, e, "%s%s", name,
                          path_ends_with(name, ".metal") ? "" : ".metal") &&
               library_find_path(lib, file, path, sizeof path, e) &&
               source_hash_find(path, lib, hex, e);
    }
    bool is_description = strcmp(part, "description") == 0;
    if (is_description && (path_ends_with(name, ".op") || path_ends_with(name, ".c"))) {
        bool is_project = root_find_project(root, sizeof root) &&
                          path_join(path, sizeof path, e, root, name) && access(path, F_OK) == 0;
        shorten(part, name, own, sizeof own);
        if (is_project)
            return source_hash_find(path, lib, hex, e);
        return find_built(part, own, hex) ||
               err_set(e, EXIT_USAGE, "there is no description %.160s", name);
    }
    return find_built(part, name, hex) ||
           err_set(e, EXIT_USAGE, "this program has no %.20s %.120s", part, name);
}

static bool sum_names(const library *lib, const char *part, const char *const *names, size_t count,
                      char sum[16], err *e) {
    char hex[SOURCE_HASH_SIZE], digest[65];
    sha256 all;
    sha256_start(&all);
    for (size_t i = 0; i < count; i++) {
        if (!find_hash(lib, part, names[i], hex, e))
            return false;
        sha256_add(&all, hex, SOURCE_HASH_SIZE);
    }
    sha256_finish(&all, digest);
    snprintf(sum, 16, "%.8s", count == 1 ? hex : digest);
    return true;
}

/* Texts ---------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of the names: what was used first does not matter. Files of another folder than this
 * program's are not named: whether these have changed since cannot be told later. */
static bool add_sorted(char text[MADE_OF], const library *lib, const char *part,
                       const char *const *names, size_t count, err *e) {
    char sum[16], list[MADE_OF] = "", name[PATH_MAX];
    size_t used = 0, start = strlen(text);
    bool fits = true, is_named = strcmp(part, "kernel") != 0 || library_is_default(lib);
    for (size_t i = 0; fits && i < count; i++) {
        if (is_named)
            shorten(part, names[i], name, sizeof name);
        else
            snprintf(name, sizeof name, "?");
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? "+" : "", name);
        fits = used < sizeof list;
    }
    if (fits && !sum_names(lib, part, names, count, sum, e))
        return false;
    int n = fits ? snprintf(text + start, MADE_OF - start, "%s%s:%s=%s", start ? " " : "", part,
                            list, sum)
                 : MADE_OF;
    if (start + (size_t)n < MADE_OF)
        return true;
    text[start] = 0; /* too many to name: all of them */
    return strcmp(names[0], "*") != 0 && made_of_add_one(text, lib, part, "*", e);
}

bool made_of_add(char text[MADE_OF], const library *lib, const char *part, const char *const *names,
                 size_t count, err *e) {
    const char **sorted = array_new(count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = names[i];
    qsort(sorted, count, sizeof *sorted, compare_names);
    bool ok = count == 0 || add_sorted(text, lib, part, sorted, count, e);
    free(sorted);
    return ok;
}

bool made_of_add_one(char text[MADE_OF], const library *lib, const char *part, const char *name,
                     err *e) {
    return made_of_add(text, lib, part, &name, 1, e);
}

bool made_of_add_tape(char text[MADE_OF], const tape *t, const op *o, err *e) {
    const char **files = array_new(t->count + 1, sizeof *files);
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++) {
        const char *file = library_get_file(t->lib, t->launches[i].pipeline);
        size_t k = 0;
        while (k < count && strcmp(files[k], file) != 0)
            k++;
        if (k == count)
            files[count++] = file;
    }
    bool ok = made_of_add(text, t->lib, "kernel", files, count, e);
    if (ok && o && o->source) /* an op that is neither ours nor a project's has no description */
        made_of_add_one(text, t->lib, "description", o->source, NULL);
    ok = ok && made_of_add_one(text, t->lib, "device",
                               device_get_facts(library_get_device(t->lib))->api, e);
    free(files);
    return ok;
}

bool made_of_read(const char **at, made_of_part *out) {
    const char *p = *at + strspn(*at, " "), *end = p + strcspn(p, " ");
    const char *colon = strchr(p, ':'), *equals = strchr(p, '=');
    if (p == end || !colon || !equals || colon > equals || equals > end ||
        (size_t)(colon - p) >= sizeof out->part || (size_t)(equals - colon) > sizeof out->names ||
        (size_t)(end - equals) > sizeof out->sum)
        return false;
    snprintf(out->part, sizeof out->part, "%.*s", (int)(colon - p), p);
    snprintf(out->names, sizeof out->names, "%.*s", (int)(equals - colon - 1), colon + 1);
    snprintf(out->sum, sizeof out->sum, "%.*s", (int)(end - equals - 1), equals + 1);
    *at = end;
    return true;
}

bool made_of_find(const char *text, const char *part, made_of_part *out) {
    while (made_of_read(&text, out))
        if (strcmp(out->part, part) == 0)
            return true;
    return false;
}

void made_of_compare(const char *base, const char *now, char *text, size_t size) {
    made_of_part x, y;
    size_t used = 0;
    text[0] = 0;
    if (!made_of_find(base, "kernel", &x) || !made_of_find(now, "kernel", &y))
        return;
    for (const char *at = now; made_of_read(&at, &y) && used < size;)
        if (!made_of_find(base, y.part, &x) || strcmp(x.sum, y.sum) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " and " : "", y.part);
    if (used < size)
        snprintf(text + used, size - used, used ? " changed" : MADE_OF_SAME);
}

bool made_of_find_sum(const library *lib, const made_of_part *p, char sum[16], err *e) {
    enum { MOST = MADE_OF / 2 };
    const char *names[MOST];
    char copy[MADE_OF];
    size_t count = 0;
    memcpy(copy, p->names, sizeof copy);
    for (char *name = strtok(copy, "+"); name; name = strtok(NULL, "+"))
        names[count++] = name;
    return sum_names(lib, p->part, names, count, sum, e);
}
