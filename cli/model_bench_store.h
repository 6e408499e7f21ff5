/* model_bench_store: results of `model bench` as rows with samples (harness/measure/results.h), kept in
 * a file and compared with those of an earlier one. A case is "model/NAME/FORMAT/tg32@d1900". */
#pragma once

#include "harness/measure/comparison.h"
#include "open_model.h"
#include "runner/model/bench.h"

typedef struct {
    const open_model *model;
    char prefix[192]; /* "model/NAME/FORMAT/", "model/NAME/FORMAT-kv-f16/" */
    results_meta meta;
    result_row row; /* what all rows have */
    results *file;  /* NULL: nothing is kept */
    bool has_base;
    results_list base;
    comparison_list comparison;
} bench_store;

/* The file and the device of the model must be open. csv: the file for the rows; baseline: the file to
 * compare with, "" for results/<device>/model_bench.csv; NULL: none. A baseline of another device is
 * EXIT_USAGE. bench_store_close is needed after a failure too. */
bool bench_store_open(bench_store *b, const open_model *s, const weight_format *cache,
                      const char *csv, const char *baseline, uint64_t seed, err *e);
/* The tests that the baseline has of this model; returns how many. */
size_t bench_store_list_tests(const bench_store *b, bench_test *out, size_t most);
bool bench_store_add(bench_store *b, const bench_result *r, err *e);
/* Prints the comparison, if there is one: EXIT_REGRESSION, EXIT_INCONCLUSIVE or EXIT_OK. */
exit_code bench_store_finish(bench_store *b, double min_effect, uint64_t seed, FILE *out);
void bench_store_close(bench_store *b);
