/* freshness: is a stored number still that of the code as it is now? */
#pragma once

#include "harness/base/csv.h"
#include "result_row.h"

typedef enum {
    ORIGIN_FRESH,
    ORIGIN_STALE,   /* something it was made of has changed since */
    ORIGIN_UNKNOWN, /* the row does not say what it was made of */
} origin;

/* Remembers the sums of what it was asked about. */
typedef struct freshness freshness;
freshness *freshness_new(err *e);
void freshness_free(freshness *f);

/* A row by its column made_of. `changes` gets what is different now: "kernel rmsnorm, device cuda". */
origin freshness_judge(freshness *f, const char *made_of, char *changes, size_t size);

/* May a run go on with rows of another? The programs are of the same commit with nothing changed, or the same
 * file. `build` and `commit` are those of the rows. */
bool freshness_is_same_program(const char *build, const char *commit, const results_meta *now);

/* All rows of a file. One of validate counts as one row also if nothing was found. */
typedef struct {
    size_t rows, fresh, stale, unknown, dirty;
    char changes[200];
    char commits[120]; /* with a space between them; "..." stands for those that do not fit */
    size_t commit_count;
    char first[24], last[24]; /* dates; "" if the file has none */
} file_origin;

void freshness_judge_file(freshness *f, const csv_file *c, file_origin *out);
/* One sentence, such as "12 of 40 rows are stale (changed since: kernel rmsnorm); 40 are of uncommitted
 * changes"; "" if there is nothing to say. */
void file_origin_get_warning(const file_origin *o, char *text, size_t size);
/* Adds what another file has. */
void file_origin_add(file_origin *sum, const file_origin *more);
