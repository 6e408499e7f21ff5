/* tuned: the ways that make models faster on a device than the rules do, as `assay tune` found.
 *
 * The table is results/<device>/tuned.csv: a row per choice that is made otherwise than by the
 * rules. A person may read and edit it; only the columns op, format, accumulates, shape and kernel
 * must be there. A row also holds for up to 1.25 times as many or as few tokens or keys, where no
 * other is nearer; one token stands for itself alone, and 0 keys stand for any number. Everything
 * else must be equal. A row whose kernel, whose rule's kernel or whose device code has changed
 * since (column made_of) is not used. */
#pragma once

#include <limits.h>

#include "harness/device/tape.h"
#include "harness/measure/freshness.h"
#include "harness/measure/results.h"
#include "rules.h"

typedef struct {
    choice choice;
    const kernel *way;
    /* What is known of it, as in the file; "" where nothing is. */
    char rule[96];                    /* the way that the rule takes */
    char gain[16], low[16], high[16]; /* how many times as fast the model is with it, in `test` */
    char test[32], model[96];         /* where it gained most */
    char made_of[MADE_OF];            /* both ways and the device; "": written by hand */
    char date[24], commit[32];
} tuned_row;

typedef struct tuned {
    tuned_row *items; /* in the order of choice_compare */
    size_t count, capacity;
    size_t stale;        /* rows of the file that are not used */
    char path[PATH_MAX]; /* of the file it was read from; "": none */
} tuned;

tuned *tuned_new(void);
tuned *tuned_copy(const tuned *t); /* the rows */
void tuned_free(tuned *t);
/* In place of the row of the same choice, if there is one. */
void tuned_put(tuned *t, const tuned_row *r);
/* Every row that holds for the choice. */
void tuned_drop_near(tuned *t, const choice *c);
/* The row of exactly this choice, or NULL. */
const tuned_row *tuned_get(const tuned *t, const choice *c);
/* The way that the table says for a choice, by the rule above; NULL: it says nothing. */
const kernel *tuned_find(const tuned *t, const choice *c);

/* For the device and the kernels of a library. A file that cannot be read, one of another device
 * and a row that names what does not exist are EXIT_USAGE, with file and line; with made_of, such a
 * row is stale. */
tuned *tuned_read(const char *path, const library *lib, err *e);
/* Whole or not at all; the folder is made. A table without rows has no file: one that is there is
 * removed. */
bool tuned_write(const tuned *t, const results_meta *m, const char *path, err *e);
/* The column made_of: the files of the way and of the rule's, the description and the device. */
bool tuned_find_made_of(const library *lib, const choice *c, const kernel *way, const kernel *rule,
                        char text[MADE_OF], err *e);

/* results/<device>/tuned.csv */
bool tuned_find_path(const device_facts *f, char *path, size_t size, err *e);
/* The table that is used on the library's device: that file, or the one that ASSAY_TUNED names;
 * *out is NULL if there is none or ASSAY_TUNED is "off". */
bool tuned_open(const library *lib, tuned **out, err *e);
