/* cmd_results: `assay results`. Are stored numbers still those of the code as it is now? */
#include <stdio.h>
#include <string.h>

#include "harness/base/path.h"
#include "harness/base/record.h"
#include "harness/base/root.h"
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

/* A file of a folder, or their sum. */
typedef struct {
    const char *file;
    file_origin origin;
    char dates[24 + 16]; /* "2026-01-02 to 2026-01-03" */
} line;

#define ORIGIN(member, kind, ...) FIELD(line, origin.member, kind, __VA_ARGS__)
static const field fields[] = {
    FIELD(line, file, FIELD_TEXT, "file", "file"),
    ORIGIN(rows, FIELD_COUNT, "rows", "rows"),
    ORIGIN(fresh, FIELD_COUNT, "fresh", "fresh"),
    ORIGIN(stale, FIELD_COUNT, "stale", "stale", .is_painted = true),
    ORIGIN(unknown, FIELD_COUNT, "unknown", "unknown"),
    ORIGIN(dirty, FIELD_COUNT, "dirty", "dirty"),
    ORIGIN(commit_count, FIELD_COUNT, "commit_count", NULL),
    ORIGIN(commits, FIELD_CHARS, "commits", "commit", .rank = 2),
    ORIGIN(first, FIELD_CHARS, "first", NULL),
    ORIGIN(last, FIELD_CHARS, "last", NULL),
    FIELD(line, dates, FIELD_CHARS, NULL, "date", .rank = 1),
    ORIGIN(changes, FIELD_CHARS, "changed", "changed since"),
};

static line make_line(const char *name, const file_origin *o) {
    line l = {.file = name, .origin = *o};
    snprintf(l.dates, sizeof l.dates, "%.10s", o->first);
    if (strncmp(o->first, o->last, 10) != 0)
        snprintf(l.dates, sizeof l.dates, "%.10s to %.10s", o->first, o->last);
    return l;
}

static void add_files(sink *s, const store_folder *f) {
    for (size_t i = 0; i < f->count; i++) {
        const line l = make_line(path_get_name(f->files[i].path), &f->files[i].origin);
        if (l.origin.rows > 0)
            sink_add(s, &l, l.origin.stale > 0 ? PAINT_BAD : PAINT_NONE);
    }
}

static void print_folder(const store_folder *f, const file_origin *sum, json *j) {
    const line total = make_line("total", sum);
    sink s = {.record = RECORD(fields), .out = j ? NULL : stdout, .json = j};
    if (!j) {
        printf("# %s: %s\n", f->path, f->device);
        add_files(&s, f);
        sink_add(&s, &total, sum->stale > 0 ? PAINT_BAD : PAINT_NONE);
        sink_end(&s);
        return;
    }
    json_open(j, NULL, '{');
    json_add_text(j, "folder", f->path);
    json_add_text(j, "device", f->device);
    json_open(j, "files", '[');
    add_files(&s, f);
    sink_end(&s);
    json_close(j);
    json_open(j, "total", '{');
    record_add_json(&s.record, &total, j);
    json_close(j);
    json_close(j);
}

static exit_code judge(const store *s, err *e) {
    bool is_good = true;
    json j;
    if (settings.json)
        j = json_start(stdout, '[');
    for (size_t i = 0; i < s->count; i++) {
        file_origin sum = store_sum_origins(&s->folders[i]);
        print_folder(&s->folders[i], &sum, settings.json ? &j : NULL);
        is_good = is_good && sum.fresh == sum.rows && sum.dirty == 0 && sum.commit_count <= 1;
    }
    if (settings.json)
        json_close(&j);
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
