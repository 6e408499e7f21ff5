/* cmd_results: `assay results`. Are stored numbers still those of the code as it is now? */
#include <stdio.h>
#include <string.h>

#include "harness/base/json.h"
#include "harness/base/path.h"
#include "harness/base/root.h"
#include "harness/base/table.h"
#include "report/store.h"
#include "verb.h"

static struct { bool json, check; } settings;

static const option options[] = {
    FLAG_OPTION("json", &settings.json, "print JSON instead of the table"),
    FLAG_OPTION(
        "check", &settings.check,
        "exit status 1 if a row is stale, of unknown origin or of uncommitted changes, or if "
        "a folder has rows of several commits"),
};

enum { FILE_NAME, ROWS, FRESH, STALE, UNKNOWN, DIRTY, COMMIT, DATE, CHANGED, COLUMNS };
static const char *const titles[COLUMNS] = {"file",  "rows",   "fresh", "stale",        "unknown",
                                            "dirty", "commit", "date",  "changed since"};

typedef struct {
    char texts[COLUMNS][200];
    const char *cells[COLUMNS];
} line;

static line make_line(const char *name, const file_origin *o) {
    line l;
    const size_t counts[] = {o->rows, o->fresh, o->stale, o->unknown, o->dirty};
    snprintf(l.texts[FILE_NAME], sizeof *l.texts, "%s", name);
    for (int i = 0; i < 5; i++)
        snprintf(l.texts[ROWS + i], sizeof *l.texts, "%zu", counts[i]);
    snprintf(l.texts[COMMIT], sizeof *l.texts, "%s", o->commits);
    if (strncmp(o->first, o->last, 10) == 0)
        snprintf(l.texts[DATE], sizeof *l.texts, "%.10s", o->first);
    else
        snprintf(l.texts[DATE], sizeof *l.texts, "%.10s to %.10s", o->first, o->last);
    snprintf(l.texts[CHANGED], sizeof *l.texts, "%s", o->changes);
    return l;
}

static void print_line(table *t, line *l) {
    for (int i = 0; i < COLUMNS; i++)
        l->cells[i] = l->texts[i];
    table_print_row(t, l->cells, STALE, strcmp(l->texts[STALE], "0") ? PAINT_BAD : PAINT_NONE);
}

static void print_table(const store_folder *f, const file_origin *sum) {
    table_column columns[COLUMNS];
    line total = make_line("total", sum);
    for (int i = 0; i < COLUMNS; i++) {
        columns[i] = (table_column){.title = titles[i],
                                    .right = i >= ROWS && i <= DIRTY,
                                    .rank = i == COMMIT ? 2 : i == DATE};
        table_fit(&columns[i], total.texts[i]);
    }
    for (size_t i = 0; i < f->count; i++) {
        line l = make_line(path_get_name(f->files[i].path), &f->files[i].origin);
        for (int k = 0; k < COLUMNS && f->files[i].origin.rows > 0; k++)
            table_fit(&columns[k], l.texts[k]);
    }
    table t = table_new(stdout, columns, COLUMNS);
    printf("# %s: %s\n", f->path, f->device);
    table_print_header(&t);
    for (size_t i = 0; i < f->count; i++) {
        line l = make_line(path_get_name(f->files[i].path), &f->files[i].origin);
        if (f->files[i].origin.rows > 0)
            print_line(&t, &l);
    }
    print_line(&t, &total);
}

static void print_json_origin(const char *name, const file_origin *o) {
    printf("{");
    json_print_field(stdout, "file", name);
    printf(", \"rows\": %zu, \"fresh\": %zu, \"stale\": %zu, \"unknown\": %zu, \"dirty\": %zu",
           o->rows, o->fresh, o->stale, o->unknown, o->dirty);
    printf(", \"commit_count\": %zu", o->commit_count);
    json_add_field(stdout, "commits", o->commits);
    json_add_field(stdout, "first", o->first);
    json_add_field(stdout, "last", o->last);
    json_add_field(stdout, "changed", o->changes);
    printf("}");
}

static void print_json_folder(const store_folder *f, const file_origin *sum, bool is_first) {
    size_t shown = 0;
    printf("%s\n  {", is_first ? "" : ",");
    json_print_field(stdout, "folder", f->path);
    json_add_field(stdout, "device", f->device);
    printf(", \"files\": [");
    for (size_t i = 0; i < f->count; i++)
        if (f->files[i].origin.rows > 0) {
            printf("%s\n    ", shown++ ? "," : "");
            print_json_origin(path_get_name(f->files[i].path), &f->files[i].origin);
        }
    printf("], \"total\": ");
    print_json_origin("total", sum);
    printf("}");
}

static exit_code judge(const store *s, err *e) {
    bool is_good = true;
    if (settings.json)
        printf("[");
    for (size_t i = 0; i < s->count; i++) {
        const store_folder *f = &s->folders[i];
        file_origin sum = store_sum_origins(f);
        if (settings.json)
            print_json_folder(f, &sum, i == 0);
        else
            print_table(f, &sum);
        is_good = is_good && sum.fresh == sum.rows && sum.dirty == 0 && sum.commit_count <= 1;
    }
    if (settings.json)
        printf("\n]\n");
    if (!store_admit_skipped(s, e))
        return e->code;
    return settings.check && !is_good ? EXIT_WRONG : EXIT_OK;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    char root[PATH_MAX], all[PATH_MAX];
    const char *folder = all;
    store s = {.count = 0};
    bool ok = root_find(root, sizeof root, e) &&
              path_print(all, sizeof all, e, "%s/results", root) &&
              store_read(count ? names : &folder, count ? count : 1, false, &s, e);
    exit_code code = ok ? judge(&s, e) : e->code;
    store_free(&s);
    return code;
}

VERB(verb_results, "results", .names = "[DIR...]",
     .about = "show which stored numbers are stale because code has changed since",
     .notes =
         "DIR is a device's folder of results, or a folder of them (default results/). Every row\n"
         "says in its column made_of what it was made of: kernel (with what it includes),\n"
         "description, code of the device, experiment, runner, each with a sum that comments and\n"
         "white space do not change. A row is stale if one of them has changed since, unknown if\n"
         "it does not say, dirty if its commit had uncommitted changes. Histories are left out.\n",
     VERB_OPTIONS(options), .reads_results = true);
