/* results: files of measured times.
 *
 * NAME.csv has a head of `# key: value` lines that say where the numbers come from, and one row a
 * case; NAME.samples.csv beside it has every sample of every case, in the order they were taken.
 * A finished case is appended at once, its samples first: whenever the program is killed, every row
 * that is there is whole and has its samples. A row of a case that has no time says why.
 *
 * The one surprise: a row's times are those of the GPU clock; the medians of the other two clocks
 * have columns of their own. */
#ifndef ASSAY_RESULTS_H
#define ASSAY_RESULTS_H

#include "timing.h"

enum { RESULTS_SCHEMA = 1, RESULTS_META = 24 };

/* The head: where the numbers come from. */
typedef struct {
    char key[32], value[320];
} results_fact;

typedef struct {
    results_fact facts[RESULTS_META];
    size_t count;
} results_meta;

void results_meta_add(results_meta *m, const char *key, const char *value);
const char *results_meta_find(const results_meta *m, const char *key); /* "" if there is none */
/* Schema, version, device, driver, system, CPU, compilers, commit, seed, date. */
results_meta results_meta_new(const char *version, const device_facts *f, uint64_t seed);

typedef struct {
    char op[64], variant[96], shape[48], input[16], regime[16], cache[8];
    char math[8];              /* mode the kernel was compiled with; "": an older file */
    stats gpu;                 /* ns a case; count 0: no time */
    double encode_ns, wall_ns; /* medians */
    uint64_t repeats, copies;  /* plays in a sample; sets of buffers */
    uint64_t bytes, flops;     /* of a case */
    double gb_s, gflop_s, roof_gb_s, pct_roof;
    double launch_ns, submit_ns; /* of an empty launch, in the same window */
    char stop[8], label[128];
    char hash[20];     /* of the kernel's source */
    char message[256]; /* why there is no time; "" if there is one */
} result_row;

/* "variant/shape/input/regime/cache": what names a case in both files. */
void result_get_key(const result_row *r, char *text, size_t size);

/* Titles and texts of a row, for whoever writes it in another form. */
enum { RESULT_COLUMNS = 31 };
const char *result_get_title(int i);
/* Column i as text; *is_number says whether it is one (a NaN is the text "nan"). */
void result_get_column(const result_row *r, int i, char *text, size_t size, bool *is_number);

/* Writing ----------------------------------------------------------------------------------- */

typedef struct results results;

/* Starts both files anew, or goes on with those there are. To go on, heads must agree in all but
 * the date. Folders are made. */
results *results_create(const char *path, const results_meta *m, err *e);
results *results_resume(const char *path, const results_meta *m, err *e);
void results_close(results *r);
bool results_has(const results *r, const char *key);
bool results_add(results *r, const result_row *row, const timing_sample *samples, size_t count,
                 err *e);

/* Reading ----------------------------------------------------------------------------------- */

typedef struct {
    result_row row;
    char key[320];
    timing_sample *samples;
    size_t count;
} result_case;

typedef struct {
    results_meta meta;
    result_case *cases;
    size_t count;
} results_list;

/* Malformed files are one sentence with file and line, EXIT_USAGE; so is another schema. A last
 * line without an end is of a writer that was killed: it is left out. */
bool results_read(const char *path, results_list *out, err *e);
void results_list_free(results_list *l);
result_case *results_list_find(const results_list *l, const char *key);

/* The folder of a device below results/: "Apple M4" is apple-m4. */
void results_get_folder(const char *name, char *folder, size_t size);

/* NAME.csv to NAME.samples.csv. */
bool results_find_samples_path(const char *path, char *out, size_t size, err *e);

#endif
