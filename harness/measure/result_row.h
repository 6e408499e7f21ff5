/* result_row: one measured time with all that is known about it, and the head of the files that have
 * such rows (results.h). */
#pragma once

#include "harness/base/csv.h"
#include "made_of.h"
#include "timing.h"

enum { RESULTS_SCHEMA = 2, RESULTS_META = 24 };

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

/* Numbers are NaN where they are not known. */
typedef struct {
    char name[320]; /* column `case`: names it in both files, and in other runs */
    char device[96], api[16], model[128];
    char op[160], kernel[96], format[16], shape[48], input[16], math[16], regime[16], cache[8];
    char variant[96];    /* what is compared: a kernel of an op, or a variant of an experiment */
    double batch;        /* tokens */
    stats gpu, wall;     /* ns per play; count 0: no time */
    double encode_ns;    /* median */
    double repeats;      /* plays in a sample */
    double copies;       /* sets of buffers */
    double bytes, flops; /* of a play: what it must move and do */
    double gb_s, gflop_s, roof_gb_s;
    double pct_roof; /* of the roof that is nearer: that of bytes or that of arithmetic */
    double launch_ns, submit_ns; /* of an empty launch, in the same window */
    char stop[8], labels[128];
    char samples[128]; /* the file of samples, beside this one; set by the writer */
    char message[256]; /* why there is no time; "" if there is one */
    /* When, and with which program: a file may have rows of several runs. */
    char date[24], commit[32], build[20];
    double roof_gflop_s;   /* of the same window as roof_gb_s */
    char made_of[MADE_OF]; /* see made_of.h */
} result_row;

/* A row about which nothing is known yet. */
result_row result_row_new(void);

/* Date, commit and build, as the head has them. */
void result_row_sign(result_row *r, const results_meta *m);

/* Columns of every row, by number, for writing a row in another form. */
enum { RESULT_COLUMNS = 45 };
const char *result_get_title(int i);
/* Column i as text, "" for what is not known; *is_number says which kind it is. */
void result_get_column(const result_row *r, int i, char *text, size_t size, bool *is_number);
/* A number as written to a file. */
void result_format_number(double value, char *text, size_t size);

/* Does a file have the columns of timed rows? Files of check and validate have others. */
bool results_has_rows(const csv_file *f);
bool result_read_row(const csv_file *f, size_t row, result_row *out, err *e);
