#include "profile_gate.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>

const char *const profile_gated[PROFILE_GATED] = {"sectors",      "instructions",  "conflicts",
                                                  "idle lanes",   "private bytes", "registers",
                                                  "spilled bytes"};

void profile_get_gated(const profile *p, double out[PROFILE_GATED]) {
    const profile_line *s = &p->sum;
    out[0] = (double)profile_sum_device(s, COUNT_SECTORS);
    out[1] = (double)s->instructions;
    out[2] = (double)profile_sum_shared(s, COUNT_CONFLICTS);
    out[3] = (double)(s->instructions * MSL_LANES) - (double)s->work[WORK_ALL];
    out[4] = p->private_bytes;
    out[5] = p->registers ? (double)p->registers : (double)NAN;
    out[6] = p->registers ? (double)p->spill_bytes : (double)NAN;
}

const char *profile_get_cpu(void) {
    static struct utsname name;
    return uname(&name) == 0 ? name.machine : "unknown";
}

/* A column that files of an earlier version lack, or an empty cell, is a number that is not known. */
static double read_if_known(const csv_file *f, size_t row, const char *title) {
    err e;
    size_t at;
    double n;
    return csv_find_column(f, title, &at, &e) && csv_get_double(f, row, at, &n, &e) ? n : NAN;
}

bool profile_is_of_this_cpu(const csv_file *f, size_t row) {
    err e;
    size_t at;
    return !csv_find_column(f, "cpu", &at, &e) ||
           strcmp(csv_get_text(f, row, at), profile_get_cpu()) == 0;
}

bool profile_read_gated(const csv_file *f, const char *name, double out[PROFILE_GATED], bool *found,
                        err *e) {
    static const char *const titles[] = {
        "case",         "line",           "load_sectors",    "store_sectors",
        "instructions", "conflicts_load", "conflicts_store", "lane_instructions",
        "private_bytes"};
    size_t at[9];
    double n[9];
    for (int i = 0; i < 9; i++)
        if (!csv_find_column(f, titles[i], &at[i], e))
            return false;
    *found = false;
    for (size_t r = 0; r < csv_count_rows(f) && !*found; r++) {
        if (strcmp(csv_get_text(f, r, at[0]), name) != 0 ||
            strcmp(csv_get_text(f, r, at[1]), "0") != 0)
            continue;
        for (int i = 1; i < 9; i++)
            if (!csv_get_double(f, r, at[i], &n[i], e))
                return false;
        *found = true;
        const double all[PROFILE_GATED] = {n[2] + n[3],
                                           n[4],
                                           n[5] + n[6],
                                           n[4] * (double)MSL_LANES - n[7],
                                           n[8],
                                           read_if_known(f, r, "registers"),
                                           read_if_known(f, r, "spill_bytes")};
        memcpy(out, all, sizeof all);
        if (!profile_is_of_this_cpu(f, r))
            out[1] = out[3] = NAN; /* instructions, and what lanes are idle in */
    }
    return true;
}
