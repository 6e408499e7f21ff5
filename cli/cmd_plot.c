/* cmd_plot: `assay plot`. Draws charts again from stored files: of one folder, or of several
 * devices in the same charts. */
#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/experiment.h"
#include "harness/base/csv.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/measure/plot.h"
#include "verb.h"

static struct { const char *out; } settings;

static const option options[] = {
    TEXT_OPTION("out", &settings.out, "DIR",
                "folder for the charts (default: beside the files, if they are in one folder)"),
};

enum { NAME = 128 };

/* What to draw: folders and files, and the names (without .csv) found in them. */
typedef struct {
    const char *const *paths;
    size_t count;
    char (*names)[NAME];
    size_t name_count;
} request;

static void add_name(request *r, const char *file) {
    char name[NAME];
    if (!path_ends_with(file, ".csv") || path_ends_with(file, ".samples.csv") ||
        strlen(file) >= NAME)
        return;
    snprintf(name, sizeof name, "%.*s", (int)strlen(file) - 4, file);
    for (size_t i = 0; i < r->name_count; i++)
        if (strcmp(r->names[i], name) == 0)
            return;
    r->names = realloc(r->names, (r->name_count + 1) * sizeof *r->names);
    assert(r->names);
    memcpy(r->names[r->name_count++], name, sizeof name);
}

static bool add_names(request *r, const char *path, err *e) {
    struct dirent **found = NULL;
    struct stat s;
    if (stat(path, &s) != 0)
        return err_set(e, EXIT_USAGE, "there is no folder or file %.160s", path);
    if (!S_ISDIR(s.st_mode)) {
        add_name(r, path_get_name(path));
        return true;
    }
    int count = scandir(path, &found, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        add_name(r, found[i]->d_name);
        free(found[i]);
    }
    free(found);
    return count >= 0 || err_set(e, EXIT_USAGE, "cannot read the folder %.160s", path);
}

static bool read_request(request *r, err *e) {
    if (r->count == 0)
        return err_set(e, EXIT_USAGE,
                       "plot takes a folder of results, such as results/apple-m4, or a file");
    if (r->count > PLOT_FILES)
        return err_set(e, EXIT_USAGE, "a chart takes %d devices at most, not %zu", PLOT_FILES,
                       r->count);
    for (size_t i = 0; i < r->count; i++)
        if (!add_names(r, r->paths[i], e))
            return false;
    return r->count == 1 || settings.out ||
           err_set(e, EXIT_USAGE, "charts of %zu folders need an output folder: use --out DIR",
                   r->count);
}

/* The files of a name, one per device; how many. */
static size_t find_files(const request *r, const char *name, char (*paths)[PATH_MAX]) {
    size_t found = 0;
    char file[NAME + 8];
    snprintf(file, sizeof file, "%s.csv", name);
    for (size_t i = 0; i < r->count; i++) {
        struct stat s;
        bool is_file = strcmp(path_get_name(r->paths[i]), file) == 0 && !os_is_folder(r->paths[i]);
        int n = is_file ? snprintf(paths[found], PATH_MAX, "%s", r->paths[i])
                        : snprintf(paths[found], PATH_MAX, "%s/%s", r->paths[i], file);
        found += n > 0 && n < PATH_MAX && stat(paths[found], &s) == 0 &&
                 plot_has_chart(name, paths[found]);
    }
    return found;
}

static void choose_folder(const request *r, char *folder, size_t size) {
    snprintf(folder, size, "%s", settings.out ? settings.out : r->paths[0]);
    if (settings.out || os_is_folder(folder))
        return;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    else
        snprintf(folder, size, ".");
}

/* Files that cannot be read, or are of an experiment that failed, keep no other from being drawn. */
static size_t keep_sound(char (*paths)[PATH_MAX], size_t found, const char **files, err *first) {
    size_t kept = 0;
    for (size_t f = 0; f < found; f++) {
        err why = {.code = EXIT_OK};
        csv_file *file = csv_read(paths[f], &why);
        bool is_experiment = file && csv_get_meta(file, "experiment");
        const char *failed = is_experiment ? csv_get_meta(file, "failed") : NULL;
        if (failed)
            fprintf(stderr, "%s: no chart, because the experiment failed: %s\n", paths[f], failed);
        else if (file)
            files[kept++] = paths[f];
        else if (first->code == EXIT_OK)
            *first = why;
        csv_file_free(file);
    }
    return kept;
}

/* All that can be drawn; then the first error. */
static bool draw_all(const request *r, err *e) {
    static char paths[PLOT_FILES][PATH_MAX], folder[PATH_MAX];
    const char *files[PLOT_FILES];
    err first = {.code = EXIT_OK}, why;
    size_t drawn = 0, seen = 0;
    choose_folder(r, folder, sizeof folder);
    for (size_t i = 0; i < r->name_count; i++) {
        size_t found = find_files(r, r->names[i], paths);
        size_t sound = keep_sound(paths, found, files, &first);
        seen += found;
        if (sound == 0)
            continue;
        const experiment *x = experiment_find(r->names[i]);
        if (plot_draw(r->names[i], x ? x->finding : NULL, files, sound, folder, &why)) {
            printf("%s/%s.svg\n", folder, r->names[i]);
            drawn++;
        } else if (first.code == EXIT_OK)
            first = why;
    }
    if (first.code != EXIT_OK) {
        *e = first;
        return false;
    }
    return drawn + seen > 0 ||
           err_set(e, EXIT_USAGE,
                   "%.160s has no results; `assay bench` and `assay experiment all` "
                   "make them",
                   r->paths[0]);
}

static exit_code run_verb(const char *const *paths, size_t count, err *e) {
    request r = {.paths = paths, .count = count};
    bool ok = read_request(&r, e) && draw_all(&r, e);
    free(r.names);
    return ok ? EXIT_OK : e->code;
}

VERB(verb_plot, "plot", .names = "DIR|FILE.csv...",
     .about = "redraw the charts of stored results: experiments, bench, check",
     .notes = "DIR is a folder of results, such as results/apple-m4. Each NAME.csv in it becomes a "
              "chart\n"
              "by plots/NAME.gp; results without a script of their own, such as those of bench, "
              "become\n"
              "one line per row. Several folders share the same charts, one series per device.\n"
              "check.csv, made by `assay check --csv DIR/check.csv`, becomes a chart of errors.\n",
     VERB_OPTIONS(options), .reads_results = true);
