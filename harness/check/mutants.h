/* mutants: the kernels of a folder, each with one small mistake in it.
 *
 * harness/device/msl/mutate.h says what the mistakes are. Here they are numbered, assigned to the
 * kernels of the given cases that contain them, and tried. */
#pragma once

#include "harness/device/msl/mutate.h"
#include "op.h"

/* One .metal file, or a header that such files include. */
typedef struct {
    char name[64];
    char *source;
    mutation_list edits;
} mutant_file;

typedef struct {
    const mutant_file *file;
    const mutation *edit;
    const kernel **kernels; /* that contain it, in the order in which to try them */
    size_t kernel_count;
} mutant;

typedef struct {
    mutant *items;
    size_t count, room;
    size_t all; /* how many there were before a sample was taken */
    mutant_file *files;
    size_t file_count, file_room;
} mutant_list;

/* All mutants of a folder that any kernel of the cases contains, in the order of files and their
 * text. */
bool mutants_find(const char *folder, const case_list *cases, mutant_list *out, err *e);
/* Keeps n of them, in order. The same seed keeps the same ones. */
void mutants_sample(mutant_list *l, size_t n, uint64_t seed);
void mutants_free(mutant_list *l);

/* To be called first, in workers too: the project's include folders are found from copies of its
 * kernels. Those that are among the kernels are in the copies, with their mutations. */
bool mutants_prepare(err *e);
/* Copies the .metal files and headers of a folder. */
bool mutants_copy(const char *from, const char *to, err *e);

/* The fate of one. */
typedef enum {
    MUTANT_UNCOMPILED,
    MUTANT_CHECKED,   /* check caught it */
    MUTANT_VALIDATED, /* check passed it, validation did not */
    MUTANT_CRASHED,
    MUTANT_TIMED_OUT,
    MUTANT_EQUIVALENT, /* the same machine code, and nothing that validation could find */
    MUTANT_KNOWN,      /* not caught, and on the list of those that change nothing */
    MUTANT_SURVIVED,
    MUTANT_FATES
} mutant_fate;

typedef struct {
    mutant_fate fate;
    char class[32]; /* of what validation found; "" if nothing */
    char by[192];   /* the case that caught it, and why; the reason for a known one */
} mutant_outcome;

/* Trials run in workers. A scratch folder holds the original kernels, in "original". The text of a task, a
 * mutant or an unmutated kernel (then m is NULL), is the caller's to free. */
enum { MUTANT_KERNELS = 4 }; /* at most this many different kernels of one mutant are tried */
char *mutant_get_task(size_t number, const mutant *m, const kernel *plain);
/* The cases of the kernel with this name, in a list that the caller frees. */
typedef bool mutant_finder(const char *name, case_list *out, err *e);
exit_code mutant_serve(const char *scratch, uint64_t seed, double limit_s, mutant_finder *find,
                       err *e);
