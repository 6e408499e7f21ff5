/* freshness: see freshness.h. */
#include "freshness.h"

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
#include "harness/device/tape.h"
#include "results.h"

/* Names ---------------------------------------------------------------------------------------- */

/* The sum of what this program was built from; NULL if it has no such part. */
static const char *find_built(const char *part, const char *name) {
    char wanted[PATH_MAX];
    snprintf(wanted, sizeof wanted, "%.20s:%s", part, name);
    for (size_t i = 0; i < built_part_count; i++)
        if (strcmp(built_parts[i].name, wanted) == 0)
            return built_parts[i].sum;
    return NULL;
}

/* "kernels/norms.c", in whatever folder it was compiled, is the description norms of this program. */
static bool shorten_own(const char *path, char *out, size_t size) {
    const char *own = strstr(path, "kernels/");
    if (!own || !path_ends_with(own, ".c"))
        return false;
    snprintf(out, size, "%.*s", (int)strlen(own) - 10, own + 8);
    return find_built("description", out);
}

/* The name that a file has in a text. */
static void shorten(const char *part, const char *name, char *out, size_t size) {
    char root[PATH_MAX];
    size_t length = root_find_project(root, sizeof root) ? strlen(root) : 0;
    bool is_description = strcmp(part, "description") == 0;
    if (is_description && length && strncmp(name, root, length) == 0 && name[length] == '/')
        snprintf(out, size, "%s", name + length + 1);
    else if (strcmp(part, "kernel") == 0 && path_ends_with(name, ".metal") && name[0] != '/')
        snprintf(out, size, "%.*s", (int)strlen(name) - 6, name);
    else if (!is_description || !shorten_own(name, out, size))
        snprintf(out, size, "%s", name);
    if (out[0] == '/' || strpbrk(out, " +=:,?"))
        snprintf(out, size, "?");
}

enum { SUM = 32 };

/* Of what a name means, in full or as it is in a text. */
static bool find_sum(const library *lib, const char *part, const char *name, char sum[SUM],
                     err *e) {
    char path[PATH_MAX], file[PATH_MAX];
    bool is_description = path_ends_with(name, ".op") || path_ends_with(name, ".c");
    if (strcmp(part, "kernel") == 0) {
        if (strcmp(name, "*") == 0)
            return source_hash_find(library_get_folder(lib), lib, sum, e);
        return path_print(file, sizeof file, e, "%s%s", name,
                          path_ends_with(name, ".metal") ? "" : ".metal") &&
               library_find_path(lib, file, path, sizeof path, e) &&
               source_hash_find(path, lib, sum, e);
    }
    if (is_description && root_find_project(file, sizeof file) &&
        path_join(path, sizeof path, e, file, name) && access(path, F_OK) == 0)
        return source_hash_find(path, lib, sum, e);
    if (is_description && shorten_own(name, file, sizeof file))
        name = file;
    const char *built = find_built(part, name);
    snprintf(sum, SUM, "%s", built ? built : "");
    return built || err_set(e, EXIT_USAGE, "this program has no %.20s %.120s", part, name);
}

static bool sum_names(const library *lib, const char *part, const char *const *names, size_t count,
                      char sum[16], err *e) {
    char own[SUM], digest[65];
    sha256 all;
    sha256_start(&all);
    for (size_t i = 0; i < count; i++) {
        if (!find_sum(lib, part, names[i], own, e))
            return false;
        sha256_add(&all, own, strlen(own) + 1);
    }
    sha256_finish(&all, digest);
    snprintf(sum, 16, "%.8s", digest);
    return true;
}

/* Texts ---------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of the names: what was used first does not matter. Files of another folder than this
 * program's are not named: whether these have changed since cannot be known later. */
bool made_of_add(char text[MADE_OF], const library *lib, const char *part, const char *const *names,
                 size_t count, err *e) {
    char sum[16], list[MADE_OF] = "", name[PATH_MAX] = "?";
    const bool is_named = strcmp(part, "kernel") != 0 || library_is_default(lib);
    size_t used = 0, start = strlen(text);
    const char **sorted = array_new(count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = names[i];
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 0; i < count && used < sizeof list; i++) {
        if (is_named)
            shorten(part, sorted[i], name, sizeof name);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? "+" : "", name);
    }
    const bool fits = used < sizeof list;
    bool ok = !fits || sum_names(lib, part, sorted, count, sum, e);
    free(sorted);
    if (!ok || count == 0)
        return ok;
    int n = fits ? snprintf(text + start, MADE_OF - start, "%s%s:%s=%s", start ? " " : "", part,
                            list, sum)
                 : MADE_OF;
    if (start + (size_t)n < MADE_OF)
        return true;
    text[start] = 0; /* too many to name: all of them */
    return strcmp(names[0], "*") != 0 && made_of_add_one(text, lib, part, "*", e);
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
        while (file && k < count && strcmp(files[k], file) != 0)
            k++;
        if (file && k == count) /* beside a candidate's launch there may be some of its base */
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

/* Rows ------------------------------------------------------------------------------------------ */

typedef struct {
    char *key; /* part and names */
    char sum[16];
} known_sum;

struct freshness {
    library *lib;
    known_sum *known;
    size_t count, room;
};

freshness *freshness_new(err *e) {
    library *lib = library_new(NULL, NULL, e);
    if (!lib)
        return NULL;
    freshness *f = array_new(1, sizeof *f);
    f->lib = lib;
    return f;
}

void freshness_free(freshness *f) {
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++)
        free(f->known[i].key);
    free(f->known);
    library_free(f->lib);
    free(f);
}

/* The sum that a part with these names has now; "gone" where it cannot be found any more. */
static const char *find_sum_now(freshness *f, const made_of_part *p) {
    const char *names[MADE_OF / 2];
    char key[MADE_OF + 32], copy[MADE_OF];
    size_t count = 0;
    snprintf(key, sizeof key, "%s:%s", p->part, p->names);
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->known[i].key, key) == 0)
            return f->known[i].sum;
    known_sum *k = ARRAY_ADD(f->known, f->count, f->room);
    *k = (known_sum){.key = strdup(key)};
    memcpy(copy, p->names, sizeof copy);
    for (char *name = strtok(copy, "+"); name; name = strtok(NULL, "+"))
        names[count++] = name;
    if (!sum_names(f->lib, p->part, names, count, k->sum, NULL))
        snprintf(k->sum, sizeof k->sum, "gone");
    return k->sum;
}

/* Adds a text to a list unless it is there already; true if it was not. What does not fit is "...". */
static bool add_text(char *list, size_t size, const char *separator, const char *text) {
    size_t used = strlen(list), length = strlen(text);
    for (const char *p = list; (p = strstr(p, text)); p++)
        if (strchr(", ", p[length]) || !p[length])
            return false;
    if (used + length + 8 < size)
        snprintf(list + used, size - used, "%s%s", used ? separator : "", text);
    else if (!path_ends_with(list, "...") && used + 6 < size)
        snprintf(list + used, size - used, "%s...", separator);
    return true;
}

/* Each of a list, so that none is there twice; how many were not. */
static size_t add_texts(char *list, size_t size, const char *separator, const char *more) {
    char text[120];
    size_t added = 0;
    for (const char *p = more, *end; *p; p = end + (*end ? strlen(separator) : 0)) {
        end = strstr(p, separator);
        end = end ? end : p + strlen(p);
        snprintf(text, sizeof text, "%.*s", (int)(end - p), p);
        added += add_text(list, size, separator, text);
    }
    return added;
}

origin freshness_judge(freshness *f, const char *made_of, char *changes, size_t size) {
    made_of_part p;
    bool is_stale = false, is_any = false;
    changes[0] = 0;
    for (const char *at = made_of; made_of_read(&at, &p); is_any = true) {
        char what[64];
        if (strchr(p.names, '?') || strcmp(find_sum_now(f, &p), p.sum) == 0)
            continue;
        bool is_one = !strpbrk(p.names, "+*") && strlen(p.names) < 40;
        snprintf(what, sizeof what, "%s%s%.40s", p.part, is_one ? " " : "s", is_one ? p.names : "");
        add_text(changes, size, ", ", what);
        is_stale = true;
    }
    return is_stale ? ORIGIN_STALE : is_any ? ORIGIN_FRESH : ORIGIN_UNKNOWN;
}

/* Of a run with uncommitted changes, or of an unknown commit? */
static bool is_dirty(const char *commit) {
    return strcmp(commit, "") == 0 || strcmp(commit, "unknown") == 0 ||
           path_ends_with(commit, "-dirty");
}

bool freshness_is_same_program(const char *build, const char *commit, const results_meta *now) {
    return strcmp(build, results_meta_find(now, "build")) == 0 ||
           (!is_dirty(commit) && strcmp(commit, results_meta_find(now, "commit")) == 0);
}

/* Files ---------------------------------------------------------------------------------------- */

static void add_date(file_origin *o, const char *date) {
    if (*date && (!o->first[0] || strcmp(date, o->first) < 0))
        snprintf(o->first, sizeof o->first, "%s", date);
    if (*date && strcmp(date, o->last) > 0)
        snprintf(o->last, sizeof o->last, "%s", date);
}

/* The column, under either of its names; else the head. */
static const char *get(const csv_file *c, size_t row, const char *name, const char *other,
                       const char *key) {
    size_t column;
    if (row < csv_count_rows(c) &&
        (csv_find_column(c, name, &column, NULL) || csv_find_column(c, other, &column, NULL)))
        return csv_get_text(c, row, column);
    return csv_find_meta(c, key);
}

/* A case that was not timed has no number that could be stale. */
static bool is_untimed(const csv_file *c, size_t row) {
    return row < csv_count_rows(c) && results_has_rows(c) &&
           strcmp(csv_find_text(c, row, "n"), "0") == 0;
}

void freshness_judge_file(freshness *f, const csv_file *c, file_origin *out) {
    size_t rows = csv_count_rows(c);
    /* What a GPU counts depends on what the row was made of alone: such files have no schema and no commit. */
    const bool is_of_counters = csv_get_meta(c, "counters") != NULL;
    *out = (file_origin){.rows = 0};
    if (rows == 0 && !results_has_rows(c))
        rows = 1;
    for (size_t r = 0; r < rows; r++) {
        char changes[sizeof out->changes];
        if (is_untimed(c, r))
            continue;
        const char *commit = get(c, r, "commit", "build_commit", "commit");
        origin o =
            freshness_judge(f, get(c, r, "made_of", "made_of", "made of"), changes, sizeof changes);
        out->rows++;
        out->fresh += o == ORIGIN_FRESH;
        out->stale += o == ORIGIN_STALE;
        out->unknown += o == ORIGIN_UNKNOWN;
        if (*commit || !is_of_counters) {
            out->dirty += is_dirty(commit);
            out->commit_count +=
                add_text(out->commits, sizeof out->commits, " ", *commit ? commit : "unknown");
        }
        add_date(out, get(c, r, "date", "test_time", "date"));
        if (o == ORIGIN_STALE)
            add_texts(out->changes, sizeof out->changes, ", ", changes);
    }
}

void file_origin_add(file_origin *sum, const file_origin *more) {
    sum->rows += more->rows;
    sum->fresh += more->fresh;
    sum->stale += more->stale;
    sum->unknown += more->unknown;
    sum->dirty += more->dirty;
    add_texts(sum->changes, sizeof sum->changes, ", ", more->changes);
    sum->commit_count += add_texts(sum->commits, sizeof sum->commits, " ", more->commits);
    add_date(sum, more->first);
    add_date(sum, more->last);
}

/* A clause of the warning: "12 of 40 rows are stale". */
static void add_clause(char *text, size_t size, const file_origin *o, size_t count,
                       const char *what, const char *about) {
    const size_t used = strlen(text);
    const char *before = used ? "; " : "";
    if (count > 0 && count == o->rows)
        snprintf(text + used, size - used, "%sall rows are %s%s", before, what, about);
    else if (count > 0)
        snprintf(text + used, size - used, "%s%zu of %zu rows %s %s%s", before, count, o->rows,
                 count == 1 ? "is" : "are", what, about);
}

void file_origin_get_warning(const file_origin *o, char *text, size_t size) {
    char changes[240];
    snprintf(changes, sizeof changes, " (changed since: %s)", o->changes);
    text[0] = 0;
    add_clause(text, size, o, o->stale, "stale", changes);
    add_clause(text, size, o, o->unknown, "of unknown origin", "");
    add_clause(text, size, o, o->dirty, "of a tree with uncommitted changes", "");
    size_t used = strlen(text);
    if (o->commit_count > 1)
        snprintf(text + used, size - used, "%srows are of %zu commits%s", used ? "; " : "",
                 o->commit_count, used ? "" : ", and nothing that they measure has changed since");
}
