/* made_of: what a result was made of, as a text that its row keeps. Parts, each with a sum, and a space
 * between them:
 *
 *   kernel:rmsnorm=1a2b3c4d     .metal files with all that they include
 *   description:rmsnorm=...     kernels/rmsnorm.c with what it includes of kernels/, or the file of a project
 *   device:cuda=...             the code of the device
 *   experiment:decode=...       experiments/decode.c with what it includes, and the lab
 *   runner:model=...            how a model becomes tapes
 *
 * Several names are joined by +, * is all there are. A name that another machine could not find (an
 * absolute path) is ?: such a part is never called stale. Kernels and descriptions of projects are read;
 * the sums of C files are those of the build (sources.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

struct library;
struct tape;
struct op;

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

/* The sum that a part with these names has now; false where it cannot be found any more. */
bool made_of_find_sum(const struct library *lib, const made_of_part *p, char sum[16], err *e);
