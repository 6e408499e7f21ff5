#include "freshness.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/path.h"
#include "harness/device/tape.h"

typedef struct {
    char *key; /* part and names */
    char sum[16];
} known_sum;

struct freshness {
    library *lib;
    known_sum *known;
    size_t count;
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

static const char *find_sum(freshness *f, const made_of_part *p) {
    char key[MADE_OF + 32];
    snprintf(key, sizeof key, "%s:%s", p->part, p->names);
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->known[i].key, key) == 0)
            return f->known[i].sum;
    f->known = realloc(f->known, (f->count + 1) * sizeof *f->known);
    assert(f->known);
    known_sum *k = &f->known[f->count++];
    *k = (known_sum){.key = strdup(key)};
    if (!made_of_find_sum(f->lib, p, k->sum, NULL))
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
        if (strchr(p.names, '?') || strcmp(find_sum(f, &p), p.sum) == 0)
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
    const char *head = csv_get_meta(c, key);
    if (row < csv_count_rows(c) &&
        (csv_find_column(c, name, &column, NULL) || csv_find_column(c, other, &column, NULL)))
        return csv_get_text(c, row, column);
    return head ? head : "";
}

/* A case that was not timed has no number that could be stale. */
static bool is_untimed(const csv_file *c, size_t row) {
    size_t n;
    return row < csv_count_rows(c) && results_has_rows(c) && csv_find_column(c, "n", &n, NULL) &&
           strcmp(csv_get_text(c, row, n), "0") == 0;
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
    size_t used = strlen(text);
    if (count == 0)
        return;
    used += (size_t)snprintf(text + used, size - used, "%s", used ? "; " : "");
    if (used < size && count == o->rows)
        snprintf(text + used, size - used, "all rows are %s%s", what, about);
    else if (used < size)
        snprintf(text + used, size - used, "%zu of %zu rows %s %s%s", count, o->rows,
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
