/* cmd_compare: `assay compare`. Two runs of bench or of an experiment against each other, from
 * their files. */
#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "comparison.h"
#include "harness/base/os.h"
#include "verb.h"

static struct {
    double min_effect;
    bool explain, markdown;
    const char *clock;
    uint64_t seed;
} settings = {.min_effect = 3, .seed = 1};

static const option options[] = {
    {"min-effect", OPTION_PERCENT, &settings.min_effect, "PERCENT",
     "smallest change worth a verdict (default 3)", 0, 0},
    {"clock", OPTION_TEXT, &settings.clock, "C", "gpu, encode or wall (default gpu)", 0, 0},
    {"explain", OPTION_FLAG, &settings.explain, NULL, "the numbers and the rule of each verdict", 0,
     0},
    {"md", OPTION_FLAG, &settings.markdown, NULL, "print Markdown instead of the table", 0, 0},
    {"seed", OPTION_NUMBER, &settings.seed, "N", "seed of the bootstrap (default 1)", 0,
     UINT64_MAX},
};

/* Files of one side, each with the name that pairs it with the other side: its name without
 * folders, or empty if two files were given, which are a pair whatever they are called. */
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
    size_t length = strlen(name);
    char path[PATH_MAX], samples[PATH_MAX];
    struct stat s;
    if (length < 5 || strcmp(name + length - 4, ".csv") != 0 ||
        (length > 12 && strcmp(name + length - 12, ".samples.csv") == 0))
        return false;
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
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

static bool read_side(const char *path, bool is_lone, source_list *out, err *e) {
    const char *slash = strrchr(path, '/');
    if (os_is_folder(path))
        return read_folder(path, out, e);
    return add_source(out, is_lone ? "" : slash ? slash + 1 : path, path, e);
}

static const source *find_source(const source_list *l, const char *name) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].name, name) == 0)
            return &l->items[i];
    return NULL;
}

/* The note on a pair: first what makes it incomparable. */
static void note_pair(comparison_row *c, const source *base, const result_case *b,
                      const source *now, const result_case *n) {
    static const char *const keys[] = {"driver", "compiler", "os", "cpu"};
    if (n && n->row.message[0])
        snprintf(c->note, sizeof c->note, "%.150s", n->row.message);
    if (!b || !n || !b->count || !n->count)
        return;
    const results_meta *x = &base->list.meta, *y = &now->list.meta;
    if (strcmp(results_meta_find(x, "device"), results_meta_find(y, "device")) != 0) {
        c->test.obstacle = "they are from different devices";
        snprintf(c->note, sizeof c->note, "other device: %.50s", results_meta_find(x, "device"));
        return;
    }
    comparison_doubt(c, b->row.labels, n->row.labels);
    size_t used = strlen(c->note);
    if (b->row.hash[0] && n->row.hash[0])
        used += (size_t)snprintf(c->note + used, sizeof c->note - used, "%s%s", used ? ", " : "",
                                 strcmp(b->row.hash, n->row.hash) == 0 ? "same source"
                                                                       : "source changed");
    if (strcmp(b->row.math, n->row.math) != 0)
        used += (size_t)snprintf(c->note + used, sizeof c->note - used, "%sother math",
                                 used ? ", " : "");
    for (size_t i = 0; i < sizeof keys / sizeof *keys && used < sizeof c->note; i++)
        if (strcmp(results_meta_find(x, keys[i]), results_meta_find(y, keys[i])) != 0)
            used += (size_t)snprintf(c->note + used, sizeof c->note - used, "%sother %s",
                                     used ? ", " : "", keys[i]);
}

static void add_pair(comparison_list *l, const source *base, const result_case *b,
                     const source *now, const result_case *n, timing_clock clock) {
    const source *s = base ? base : now;
    char key[600];
    snprintf(key, sizeof key, "%s%s%s", s->name, s->name[0] ? ":" : "",
             b ? b->row.name : n->row.name);
    comparison_row *c = comparison_add(l, key, b ? b->samples : NULL, b ? b->count : 0,
                                       n ? n->samples : NULL, n ? n->count : 0, clock);
    note_pair(c, base, b, now, n);
}

/* Every case of the base, then those that only the other side has. Cases without a time on either
 * side are left out. */
static void pair_up(const source_list *base, const source_list *now, timing_clock clock,
                    comparison_list *l) {
    for (size_t i = 0; i < base->count; i++) {
        const source *x = &base->items[i], *y = find_source(now, x->name);
        for (size_t c = 0; c < x->list.count; c++) {
            const result_case *b = &x->list.cases[c];
            if (b->count)
                add_pair(l, x, b, y, y ? results_list_find(&y->list, b->row.name) : NULL, clock);
        }
    }
    for (size_t i = 0; i < now->count; i++) {
        const source *y = &now->items[i], *x = find_source(base, y->name);
        for (size_t c = 0; c < y->list.count; c++) {
            const result_case *n = &y->list.cases[c];
            const result_case *b = x ? results_list_find(&x->list, n->row.name) : NULL;
            if (n->count && !(b && b->count))
                add_pair(l, x, NULL, y, n, clock);
        }
    }
}

static bool find_clock(timing_clock *out, err *e) {
    *out = CLOCK_GPU;
    for (int i = 0; settings.clock && i < CLOCK_COUNT; i++)
        if (strcmp(settings.clock, timing_get_clock_name((timing_clock)i)) == 0) {
            *out = (timing_clock)i;
            return true;
        }
    return !settings.clock ||
           err_set(e, EXIT_USAGE, "no clock is called '%.40s'; there are gpu, encode and wall",
                   settings.clock);
}

static exit_code run(const char *const *names, size_t count, err *e) {
    source_list base = {NULL, 0}, now = {NULL, 0};
    comparison_list l = {NULL, 0};
    timing_clock clock;
    if (count != 2) {
        err_set(e, EXIT_USAGE, "compare takes two result files or folders, BASE and NEW");
        return e->code;
    }
    exit_code code;
    bool is_lone = !os_is_folder(names[0]) && !os_is_folder(names[1]);
    if (find_clock(&clock, e) && read_side(names[0], is_lone, &base, e) &&
        read_side(names[1], is_lone, &now, e)) {
        pair_up(&base, &now, clock, &l);
        comparison_options o = {.min_effect = settings.min_effect / 100,
                                .explain = settings.explain,
                                .markdown = settings.markdown,
                                .seed = settings.seed};
        code = comparison_print(&l, &o, stdout);
    } else
        code = e->code;
    comparison_free(&l);
    sources_free(&base);
    sources_free(&now);
    return code;
}

const verb verb_compare = {
    .name = "compare",
    .names = "BASE NEW",
    .about =
        "compare two runs of bench or of experiments: which cases are slower, and is it certain?",
    .notes =
        "BASE and NEW are NAME.csv files of bench or of experiments, with their NAME.samples.csv\n"
        "beside them, or folders of such. Rows of the same name in column `case` are compared. A\n"
        "case is slower when the ratio of medians is beyond the smallest effect,\n"
        "its 95% bootstrap interval is clear of 1, and a Mann-Whitney test agrees after Holm's\n"
        "correction over all cases; same when the whole interval is within the smallest effect;\n"
        "ambiguous when neither can be said, or when a run was disturbed (labels busy, throttled,\n"
        "ramp). Intervals are wider where neighbouring samples resemble each other. Exit status: 4 "
        "if one is slower, else 5 if one is\n"
        "ambiguous or missing, else 0.\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = run,
};
