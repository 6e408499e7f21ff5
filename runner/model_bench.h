/* model_bench: tokens per second of a model, with the tests of llama-bench.
 *
 * A test is a prompt (pp512: 512 tokens) or generation one token at a time (tg128: 128 tokens), at a
 * context depth: the number of tokens already seen. A prompt's tokens are random ids. Generation
 * starts with one and goes on as greedy decoding does: the device chooses each token and feeds it to
 * itself, and BENCH_IN_FLIGHT steps are handed to it ahead, where llama-bench waits for each. One
 * run warms up, then each repeat is a sample. */
#pragma once

#include "harness/base/stats.h"
#include "model.h"

enum { BENCH_IN_FLIGHT = 2 };

typedef struct {
    uint32_t prompt, generate; /* one of them is 0 */
    uint32_t depth;
} bench_test;

typedef struct {
    bench_test test;
    uint32_t repeats;
    uint64_t *sample_ns;              /* (repeats); the caller frees it */
    double mean_ns, deviation_ns;     /* the deviation is that of a sample: 0 for one */
    double mean_rate, deviation_rate; /* tokens per second */
    stats rates;                      /* tokens per second */
    int64_t time;                     /* when the test began, in seconds since 1970 */
} bench_result;

/* "pp512", "tg128 @ d4096" */
void bench_test_get_name(const bench_test *t, char *text, size_t size);

/* bos is the first token where the file asks for one, else TOKEN_NONE. */
bool model_bench(model *m, const bench_test *t, uint32_t repeats, uint32_t bos, uint64_t seed,
                 bench_result *out, err *e);
