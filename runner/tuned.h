/* tuned: which way is fastest for a choice on a device, as `assay tune` measured it.
 *
 * The table is results/<device>/tuned.csv: a row per choice. A person may read and edit it; only
 * the columns op, format, accumulates, shape and kernel must be there. A row stands for other shapes
 * too that differ only in tokens or in the length of the cache, where it is the nearest by ratio;
 * one token stands for itself alone. Everything else must be equal. A row whose kernels changed
 * since (column made_of) is still used: tune times it again. */
#pragma once

#include <limits.h>

#include "choice.h"
#include "harness/measure/result_row.h"

typedef struct {
    choice choice;
    const kernel *way;
    /* What is known of it; NaN and "" where nothing is. */
    char rule[96];        /* the way that the rule takes */
    double ns, rule_ns;   /* median of a launch, or of all steps */
    double gain;          /* how many times as fast it is as the rule's: 1 where that stays */
    double low, high;     /* interval of the gain */
    double samples, ways; /* per way; how many ways were tried */
    char cache[8], labels[128], made_of[MADE_OF], date[24], commit[32];
} tuned_row;

typedef struct tuned {
    tuned_row *items; /* in the order of choice_compare */
    size_t count, capacity;
    char path[PATH_MAX]; /* of the file it was read from; "": none */
} tuned;

/* A row about which nothing is known but the choice. */
tuned_row tuned_row_new(const choice *c);

tuned *tuned_new(void);
void tuned_free(tuned *t);
/* In place of the row of the same choice, if there is one. */
void tuned_put(tuned *t, const tuned_row *r);
/* The row of exactly this choice, or NULL. */
const tuned_row *tuned_get(const tuned *t, const choice *c);
/* The way that the table says for a choice, by the rule above; NULL: it says nothing. */
const kernel *tuned_find(const tuned *t, const choice *c);

/* A file that cannot be read, one of another device and a row that names what does not exist are
 * EXIT_USAGE, with file and line. lost, if not NULL: rows with kernels that do not exist any more
 * are counted there and left out. */
tuned *tuned_read(const char *path, const char *of_device, size_t *lost, err *e);
/* Whole or not at all; the folder is made. */
bool tuned_write(const tuned *t, const results_meta *m, const char *path, err *e);
/* The columns of a row as texts, for other forms. */
enum { TUNED_COLUMNS = 18 };
const char *tuned_get_title(int i);
void tuned_get_column(const tuned_row *r, int i, char *text, size_t size, bool *is_number);

/* results/<device>/tuned.csv */
bool tuned_find_path(const device_facts *f, char *path, size_t size, err *e);
/* The table that is used on a device: that file, or the one that ASSAY_TUNED names; *out is
 * NULL if there is none or ASSAY_TUNED is "off". */
bool tuned_open(const device_facts *f, tuned **out, err *e);
