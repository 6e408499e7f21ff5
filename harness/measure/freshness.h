/* freshness: what a number was made of, and whether it is still that of the code as it is now.
 *
 * A row keeps what it was made of as a text: parts, each with a sum, and a space between them:
 *
 *   kernel:rmsnorm=1a2b3c4d     .metal files with all that they include
 *   description:norms=...       kernels/norms.c with what it includes of kernels/, or the file of a project
 *   device:cuda=...             the code of the device
 *   experiment:decode=...       experiments/decode.c with what it includes, and the lab
 *   runner:model=...            how a model becomes tapes
 *
 * Several names are joined by +, * is all there are. A name that another machine could not find (an
 * absolute path) is ?: such a part is never called stale. Kernels and descriptions of projects are read;
 * the sums of C files are those of the build (source_hash.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/csv.h"

struct library;
struct op;
struct results_meta;
struct tape;

enum { MADE_OF = 1024 };

/* Adds a part. Kernels are files of the library ("rmsnorm.metal"), descriptions are op.source. */
bool made_of_add(char text[MADE_OF], const struct library *lib, const char *part,
                 const char *const *names, size_t count, err *e);
bool made_of_add_one(char text[MADE_OF], const struct library *lib, const char *part,
                     const char *name, err *e);
/* Kernels of a tape, the description of its op (NULL: not known), and the library's device. */
bool made_of_add_tape(char text[MADE_OF], const struct tape *t, const struct op *o, err *e);

/* A part of a text as it is written: "kernel", "rmsnorm", "1a2b3c4d". */
typedef struct {
    char part[16], names[MADE_OF], sum[16];
} made_of_part;
/* The next one from *at on; false after the last, or where the text is malformed. */
bool made_of_read(const char **at, made_of_part *out);
/* The one called `part`; false if the text has none. */
bool made_of_find(const char *text, const char *part, made_of_part *out);

#define MADE_OF_SAME "same source"
/* How two rows differ: MADE_OF_SAME, "kernel and device changed"; "" if one does not say. */
void made_of_compare(const char *base, const char *now, char *text, size_t size);

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
bool freshness_is_same_program(const char *build, const char *commit,
                               const struct results_meta *now);

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
