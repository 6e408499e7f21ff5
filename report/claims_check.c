#include "claims_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OP, KERNEL, INPUT, VERDICT, NMSE, NONFINITE, UNWRITTEN, COLUMNS };
static const char *const titles[COLUMNS] = {"op",   "kernel",    "input",    "verdict",
                                            "nmse", "nonfinite", "unwritten"};

/* A case that could not run has no error: false. */
static bool read_error(const csv_file *f, size_t row, const size_t *column, double *error) {
    double nmse, nonfinite = 0, unwritten = 0;
    const char *verdict = csv_get_text(f, row, column[VERDICT]);
    bool has_run = strcmp(verdict, "pass") == 0 || strcmp(verdict, "fail") == 0;
    if (!has_run || !csv_get_double(f, row, column[NONFINITE], &nonfinite, NULL) ||
        !csv_get_double(f, row, column[UNWRITTEN], &unwritten, NULL))
        return false;
    bool is_known = csv_get_double(f, row, column[NMSE], &nmse, NULL) && isfinite(nmse);
    *error = is_known && nonfinite == 0 && unwritten == 0 ? 100 * sqrt(nmse) : INFINITY;
    return true;
}

bool claims_find_error(const store_file *check, const char *metric, store_metric *out) {
    static const char kind[] = "rms_pct:";
    const csv_file *f = check->csv;
    size_t column[COLUMNS], cases = 0;
    if (strncmp(metric, kind, strlen(kind)) != 0)
        return false;
    for (size_t i = 0; i < COLUMNS; i++)
        if (!csv_find_column(f, titles[i], &column[i], NULL))
            return false;
    const char *name = metric + strlen(kind);
    *out = (store_metric){.unit = "%", .low = NAN, .high = NAN};
    snprintf(out->name, sizeof out->name, "%s", metric);
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        double error;
        bool is_named = strcmp(csv_get_text(f, r, column[OP]), name) == 0 ||
                        strstr(csv_get_text(f, r, column[KERNEL]), name);
        if (!is_named || strcmp(csv_get_text(f, r, column[INPUT]), "normal") != 0 ||
            !read_error(f, r, column, &error))
            continue;
        out->value = fmax(out->value, error);
        cases++;
    }
    return cases > 0;
}
