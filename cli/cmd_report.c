/* cmd_report: `assay report`. Stored results as one page. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "experiments/experiment.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/root.h"
#include "report/page.h"
#include "verb.h"

static struct { const char *claims, *out; } settings;

static const option options[] = {
    TEXT_OPTION("out", &settings.out, "FILE", "the page (default results/report.html)"),
    TEXT_OPTION("claims", &settings.claims, "FILE.csv", "the claims (default results/claims.csv)"),
};

static bool draw(const claim_list *claims, const store *s, err *e) {
    char home[PATH_MAX], root[PATH_MAX], path[PATH_MAX + 32], folder[PATH_MAX];
    if (!os_find_home(home, sizeof home, e) || !root_find(root, sizeof root, e))
        return false;
    const char **names = array_new(experiment_count + 1, sizeof *names);
    for (size_t i = 0; i < experiment_count; i++)
        names[i] = experiments[i]->name;
    page_content c = {
        .store = s, .claims = claims, .experiments = names, .experiment_count = experiment_count};
    snprintf(path, sizeof path, "%s/results/report.html", root);
    const char *out = settings.out ? settings.out : path;
    if (!settings.out && snprintf(folder, sizeof folder, "%s/results", root) < (int)sizeof folder)
        os_make_folder(folder, NULL); /* if it cannot be made, the page cannot be written */
    bool ok = page_write(&c, home, out, e);
    if (ok)
        printf("%s\n", out);
    free(names);
    return ok;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    claim_list claims = {.count = 0};
    store s = {.count = 0};
    bool ok = claims_open(settings.claims, names, count, &claims, &s, e) && draw(&claims, &s, e);
    size_t failures = ok ? page_count_failures(&s) : 0;
    ok = ok && store_admit_skipped(&s, e);
    for (size_t i = 0; failures > 0 && i < s.skipped_count; i++)
        fprintf(stderr, "left out: %s\n", s.skipped[i]);
    if (failures > 0)
        ok = err_set(
            e, EXIT_WRONG,
            "%zu of the experiments, checks and validations failed: the top of the page says "
            "which",
            failures);
    claims_free(&claims);
    store_free(&s);
    return ok ? EXIT_OK : e->code;
}

VERB(verb_report, "report", .names = "[DIR...]",
     .about = "show stored results as one HTML page: verdicts, claims, experiments, times",
     .notes =
         "DIR is a device's folder of results, or a folder of them (default results/). Nothing\n"
         "is measured: only CSV files and the charts beside them are read, and the same files\n"
         "give the same page. The page needs no network: charts, style and script are embedded;\n"
         "rows and samples stay in the CSV files, which it links to.\n"
         "Prints the path of the page, which is always written. A file that is malformed, or of\n"
         "another device than its folder, is left out: the top of the page and the message name\n"
         "it, and the exit status is 2. It is 1 if an experiment, a check or a validation\n"
         "failed; they are listed there too.\n",
     VERB_OPTIONS(options), .reads_results = true);
