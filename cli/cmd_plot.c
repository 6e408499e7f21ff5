/* cmd_plot: `assay plot`. Draws all charts again from stored files: one folder, or several devices
 * in the same charts. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/measure/plot.h"
#include "verb.h"

static struct { const char *out; } settings;

static const option options[] = {
    {"out", OPTION_TEXT, &settings.out, "DIR",
     "where the charts go (default: the folder, if there is only one)", 0, 0},
};

/* The files of a chart that are there, one a folder. */
static size_t find_files(const char *const *folders, size_t count, const char *source,
                         char (*paths)[PATH_MAX]) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (snprintf(paths[found], PATH_MAX, "%s/%s", folders[i], source) < PATH_MAX &&
            access(paths[found], R_OK) == 0)
            found++;
    return found;
}

static bool check_folders(const char *const *folders, size_t count, err *e) {
    struct stat s;
    if (count == 0)
        return err_set(e, EXIT_USAGE, "plot takes a folder of results, such as results/apple-m4");
    if (count > PLOT_FILES)
        return err_set(e, EXIT_USAGE, "a chart takes %d devices at most, not %zu", PLOT_FILES,
                       count);
    if (count > 1 && !settings.out)
        return err_set(e, EXIT_USAGE, "charts of %zu folders need a place: name it with --out",
                       count);
    for (size_t i = 0; i < count; i++)
        if (stat(folders[i], &s) != 0 || !S_ISDIR(s.st_mode))
            return err_set(e, EXIT_USAGE, "there is no folder %.160s", folders[i]);
    return true;
}

static exit_code run(const char *const *folders, size_t count, err *e) {
    static char paths[PLOT_FILES][PATH_MAX];
    const char *files[PLOT_FILES], *name;
    size_t drawn = 0;
    if (!check_folders(folders, count, e))
        return e->code;
    const char *out = settings.out ? settings.out : folders[0];
    for (size_t i = 0; (name = plot_get_name(i)); i++) {
        size_t found = find_files(folders, count, plot_get_source(i), paths);
        for (size_t f = 0; f < found; f++)
            files[f] = paths[f];
        if (found == 0)
            continue;
        if (!plot_draw(name, files, found, out, e))
            return e->code;
        printf("%s/%s.svg\n", out, name);
        drawn++;
    }
    if (drawn == 0) {
        err_set(e, EXIT_USAGE,
                "%.160s has no files of experiments; `assay experiment all` makes them",
                folders[0]);
        return e->code;
    }
    return EXIT_OK;
}

const verb verb_plot = {
    .name = "plot",
    .names = "DIR...",
    .about = "draw the charts of experiments again, from their CSV files",
    .notes =
        "DIR is a folder that `assay experiment` left, such as results/apple-m4. Several folders\n"
        "go into the same charts, a device beside the other. check.csv, made by\n"
        "`assay check --csv DIR/check.csv`, becomes a chart of errors.\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = run,
};
