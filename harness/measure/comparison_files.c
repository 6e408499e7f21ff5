/* comparison_files: the side of comparison.h that reads result files. */
#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "comparison.h"
#include "freshness.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

/* Files of one side, each with the name that pairs it with the other side: its name without
 * folders, or empty if no folder was given: then all files are runs of one thing, whatever they are
 * called. Files of the same name are runs of the same. */
typedef struct {
    char name[256], path[PATH_MAX];
    results_list list;
} source;

typedef struct {
    source *items;
    size_t count;
} source_list;

static void sources_free(source_list *l) {
    for (size_t i = 0; i < l->count; i++)
        results_list_free(&l->items[i].list);
    free(l->items);
    *l = (source_list){NULL, 0};
}

static bool add_source(source_list *l, const char *name, const char *path, err *e) {
    l->items = realloc(l->items, (l->count + 1) * sizeof *l->items);
    assert(l->items);
    source *s = &l->items[l->count];
    *s = (source){.name = ""};
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->path, sizeof s->path, "%s", path);
    if (!results_read(path, &s->list, e))
        return false;
    l->count++;
    return true;
}

/* NAME.csv that has NAME.samples.csv beside it. */
static bool is_result(const char *folder, const char *name) {
    char path[PATH_MAX], samples[PATH_MAX];
    struct stat s;
    return path_ends_with(name, ".csv") && !path_ends_with(name, ".samples.csv") &&
           snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
           results_find_samples_path(path, samples, sizeof samples, NULL) && stat(samples, &s) == 0;
}

static bool read_folder(const char *folder, source_list *out, err *e) {
    struct dirent **names = NULL;
    int count = scandir(folder, &names, NULL, alphasort);
    bool ok = count >= 0 || err_set(e, EXIT_USAGE, "cannot read the folder %.160s", folder);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        if (ok && is_result(folder, names[i]->d_name)) {
            snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
            ok = add_source(out, names[i]->d_name, path, e);
        }
        free(names[i]);
    }
    free(names);
    if (ok && out->count == 0)
        ok = err_set(e, EXIT_USAGE, "the folder %.160s has no NAME.csv with NAME.samples.csv in it",
                     folder);
    return ok;
}

static bool read_side(const char *const *paths, size_t count, bool has_folders, source_list *out,
                      err *e) {
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        ok = os_is_folder(paths[i])
                 ? read_folder(paths[i], out, e)
                 : add_source(out, has_folders ? path_get_name(paths[i]) : "", paths[i], e);
    }
    return ok;
}

/* The first run of a case on one side; with its file. */
static const result_case *find_case(const source_list *l, const char *name, const char *key,
                                    const source **from) {
    for (size_t i = 0; i < l->count; i++) {
        const result_case *c =
            strcmp(l->items[i].name, name) == 0 ? results_list_find(&l->items[i].list, key) : NULL;
        if (c && c->count) {
            *from = &l->items[i];
            return c;
        }
    }
    return NULL;
}

/* A number of other code than this, or of code that no commit has. */
static void note_origin(comparison_row *c, freshness *fresh, const char *side,
                        const result_row *r) {
    char changes[80];
    bool is_stale = freshness_judge(fresh, r->made_of, changes, sizeof changes) == ORIGIN_STALE;
    if (is_stale)
        comparison_add_note(c, side, " is stale");
    if (path_ends_with(r->commit, "-dirty"))
        comparison_add_note(c, side, " has uncommitted changes");
}

void comparison_note_pair(comparison_row *c, const results_meta *base, const result_row *b,
                          const results_meta *now, const result_row *n) {
    char changes[80];
    static const char *const keys[] = {"driver", "os", "compiler", "cpu"};
    if (strcmp(results_meta_find(base, "device"), results_meta_find(now, "device")) != 0) {
        c->test.obstacle = "they are from different devices";
        snprintf(c->note, sizeof c->note, "other device: %.50s", results_meta_find(base, "device"));
        return;
    }
    made_of_compare(b->made_of, n->made_of, changes, sizeof changes);
    comparison_add_note(c, changes, "");
    if (strcmp(b->math, n->math) != 0)
        comparison_add_note(c, "other math", "");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(results_meta_find(base, keys[i]), results_meta_find(now, keys[i])) == 0)
            continue;
        comparison_add_note(c, "other ", keys[i]);
        if (i >= 2)
            c->test.obstacle = "another compiler or CPU, not the kernel, may be the difference: "
                               "time both here";
    }
}

/* Runs of one side must be of one device and one source; else they are not runs of the same. */
static void add_runs(comparison_row *row, comparison_side *side, const source_list *l,
                     const char *name, const char *key, timing_clock clock) {
    const source *first = NULL;
    const result_case *as = find_case(l, name, key, &first);
    for (size_t i = 0; i < l->count; i++) {
        const source *s = &l->items[i];
        const result_case *c = strcmp(s->name, name) == 0 ? results_list_find(&s->list, key) : NULL;
        if (c)
            comparison_add_note(row, c->row.message, "");
        if (!c || !c->count)
            continue;
        comparison_add_run(row, side, c->samples, c->count, clock, c->row.labels);
        if (strcmp(c->row.made_of, as->row.made_of) != 0 ||
            strcmp(results_meta_find(&s->list.meta, "device"),
                   results_meta_find(&first->list.meta, "device")) != 0)
            row->test.obstacle = "the runs of one side are of different sources or devices";
    }
}

static void add_case(comparison_list *l, freshness *fresh, const source_list *base,
                     const source_list *now, const char *name, const char *key,
                     timing_clock clock) {
    const source *from = NULL, *to = NULL;
    const result_case *b = find_case(base, name, key, &from), *n = find_case(now, name, key, &to);
    char whole[600];
    snprintf(whole, sizeof whole, "%s%s%s", name, name[0] ? ":" : "", key);
    comparison_row *c = comparison_add(l, whole);
    add_runs(c, &c->base, base, name, key, clock);
    add_runs(c, &c->now, now, name, key, clock);
    if (!b || !n)
        return;
    comparison_note_pair(c, &from->list.meta, &b->row, &to->list.meta, &n->row);
    note_origin(c, fresh, "base", &b->row);
    note_origin(c, fresh, "new", &n->row);
}

/* Every case of the base, then those that only the other side has, each once. Cases without a time on
 * either side are left out. */
static void pair_up(const source_list *base, const source_list *now, timing_clock clock,
                    freshness *fresh, comparison_list *l) {
    const source_list *sides[2] = {base, now};
    const source *first = NULL;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < sides[side]->count; i++) {
            const source *s = &sides[side]->items[i];
            for (size_t c = 0; c < s->list.count; c++) {
                const char *key = s->list.cases[c].row.name;
                bool is_first = find_case(sides[side], s->name, key, &first) && first == s;
                if (is_first && (side == 0 || !find_case(base, s->name, key, &first)))
                    add_case(l, fresh, base, now, s->name, key, clock);
            }
        }
}

static bool has_folder(const char *const *paths, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (os_is_folder(paths[i]))
            return true;
    return false;
}

bool comparison_read(const char *const *base, size_t base_count, const char *const *now,
                     size_t now_count, timing_clock clock, comparison_list *out, err *e) {
    source_list a = {NULL, 0}, b = {NULL, 0};
    bool has_folders = has_folder(base, base_count) || has_folder(now, now_count);
    *out = (comparison_list){NULL, 0};
    freshness *fresh = freshness_new(e);
    bool ok = fresh && read_side(base, base_count, has_folders, &a, e) &&
              read_side(now, now_count, has_folders, &b, e);
    if (ok)
        pair_up(&a, &b, clock, fresh, out);
    freshness_free(fresh);
    sources_free(&a);
    sources_free(&b);
    return ok;
}
