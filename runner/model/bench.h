/* model/bench: tokens per second of a model, with the tests of llama-bench.
 *
 * A test is a prompt (pp512: 512 tokens) or generation one token at a time (tg128: 128 tokens), at a
 * context depth: the number of tokens already seen. A prompt's tokens are random ids. Generation
 * starts with one and goes on as greedy decoding does: the device chooses each token and feeds it to
 * itself, and BENCH_IN_FLIGHT steps are handed to it ahead. Where a test waits, each token is random
 * and its logits are waited for and read before the next one, as llama-bench does. One run warms up,
 * then each repeat is a sample.
 *
 * To a depth below BENCH_FILLED_DEPTH a prompt of random ids is run. From there on a cache is filled with
 * pseudo-random keys and values instead, which take as long to attend to and no time to make. */
#pragma once

#include "harness/base/stats.h"
#include "harness/check/fill.h"
#include "model.h"

enum { BENCH_IN_FLIGHT = 2, BENCH_FILLED_DEPTH = 4096 };

typedef struct {
    uint32_t prompt, generate; /* one of them is 0 */
    uint32_t depth;
    bool waits; /* generation only */
} bench_test;

typedef struct {
    bench_test test;
    uint32_t repeats;
    uint64_t *sample_ns;              /* (repeats); the caller frees it */
    double mean_ns, deviation_ns;     /* the deviation is that of a sample: 0 for one */
    double mean_rate, deviation_rate; /* tokens per second */
    stats rates;                      /* tokens per second */
    bool is_filled;                   /* no prompt was run to get to the depth */
    int64_t time;                     /* when the test began, in seconds since 1970 */
} bench_result;

/* "pp512", "tg128 @ d4096", "tg128 wait @ d4096" */
void bench_test_get_name(const bench_test *t, char *text, size_t size);
/* In llama-bench's order: for each depth the prompts, then the generations; 0 is none. */
typedef struct {
    const uint64_t *items;
    size_t count;
} bench_sizes;
size_t bench_list_tests(bench_sizes prompts, bench_sizes tokens, bench_sizes depths, bool waits,
                        bench_test *out);
/* The context that all of them fit into. */
uint32_t bench_find_context(const bench_test *tests, size_t count);

/* A model made ready for a test, which can be played any number of times. bos is the first token
 * where the file asks for one, else TOKEN_NONE. */
typedef struct {
    model *model;
    bench_test test;
    rng random;
    bool is_filled;
    uint32_t bos;
    uint32_t *tokens; /* room for the longest prompt of the test */
    float *logits;
} bench_player;

/* Fills the context to the depth and plays once, so that nothing is left to record. */
bool bench_player_open(bench_player *p, model *m, const bench_test *t, uint32_t bos, uint64_t seed,
                       err *e);
bool bench_player_play(bench_player *p, uint64_t *ns, err *e);
void bench_player_close(bench_player *p);

bool model_bench(model *m, const bench_test *t, uint32_t repeats, uint32_t bos, uint64_t seed,
                 bench_result *out, err *e);
