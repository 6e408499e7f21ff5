/* model_bench: `assay model bench`. The tests and how they are timed are in runner/model_bench.h;
 * here they are asked for and their results written with llama-bench's names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/progress.h"
#include "model_bench_output.h"
#include "model_verbs.h"
#include "open_model.h"
#include "runner/model_bench.h"
#include "runner/tokenizer.h"

static struct {
    const char *model, *device, *output;
    option_numbers prompts, tokens, depths;
    uint64_t repeats, seed, threads;
    math_mode math;
} settings = {.output = "md",
              .prompts = {.items = {512}, .count = 1},
              .tokens = {.items = {128}, .count = 1},
              .depths = {.items = {0}, .count = 1},
              .repeats = 5,
              .seed = 1,
              .math = MATH_DEFAULT};

static const option options[] = {
    TEXT_OPTION("m|model", &settings.model, "FILE",
                "GGUF file (default: the model that comes with Assay)"),
    {"p|prompt", OPTION_NUMBERS, &settings.prompts, "N,N",
     "prompt lengths; 0 is none (default 512)", 0, 1u << 24},
    {"n|tokens", OPTION_NUMBERS, &settings.tokens, "N,N",
     "numbers of tokens to generate; 0 is none (default 128)", 0, 1u << 24},
    {"d|depth", OPTION_NUMBERS, &settings.depths, "N,N",
     "context depths: tokens already seen (default 0)", 0, 1u << 24},
    {"r|repeats", OPTION_NUMBER, &settings.repeats, "N", "samples per test (default 5)", 1, 100000},
    TEXT_OPTION("o|output", &settings.output, "FORMAT", "md, csv, json, jsonl or sql (default md)"),
    SEED_OPTION(&settings.seed, "the token ids"),
    DEVICE_OPTION(&settings.device),
    THREADS_OPTION(&settings.threads),
    {"n-prompt", OPTION_NUMBERS, &settings.prompts, "N,N", NULL, 0, 1u << 24},
    {"n-gen", OPTION_NUMBERS, &settings.tokens, "N,N", NULL, 0, 1u << 24},
    {"n-depth", OPTION_NUMBERS, &settings.depths, "N,N", NULL, 0, 1u << 24},
    {"repetitions", OPTION_NUMBER, &settings.repeats, "N", NULL, 1, 100000},
    LLAMA_CPP_OPTIONS,
    MATH_OPTION(&settings.math, "fast, as Metal's"),
};

enum { MAX_TESTS = 2 * OPTION_LIST_MAX * OPTION_LIST_MAX };

/* In llama-bench's order: for each depth the prompts, then the generations. */
static size_t list_tests(bench_test *tests) {
    size_t count = 0;
    for (size_t d = 0; d < settings.depths.count; d++) {
        uint32_t depth = (uint32_t)settings.depths.items[d];
        for (size_t i = 0; i < settings.prompts.count; i++)
            if (settings.prompts.items[i] > 0)
                tests[count++] =
                    (bench_test){.prompt = (uint32_t)settings.prompts.items[i], .depth = depth};
        for (size_t i = 0; i < settings.tokens.count; i++)
            if (settings.tokens.items[i] > 0)
                tests[count++] =
                    (bench_test){.generate = (uint32_t)settings.tokens.items[i], .depth = depth};
    }
    return count;
}

static uint32_t find_context(const bench_test *tests, size_t count) {
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t needed = tests[i].depth + tests[i].prompt + tests[i].generate;
        if (needed > most)
            most = needed;
    }
    return most;
}

/* BOS is the first token where the file asks for it; TOKEN_NONE where the vocabulary is unreadable. */
static uint32_t find_bos(const gguf *g) {
    err ignored;
    tokenizer *t = tokenizer_new(g, &ignored);
    token_list empty = {0};
    if (t)
        tokenizer_encode(t, "a", 1, TOKENIZE_ADD_SPECIAL, &empty);
    uint32_t bos = t ? tokenizer_get_bos(t) : TOKEN_NONE;
    if (empty.count == 0 || empty.items[0] != bos)
        bos = TOKEN_NONE;
    token_list_free(&empty);
    tokenizer_free(t);
    return bos;
}

static bool run_tests(open_model *s, const bench_test *tests, size_t count, bench_format format,
                      err *e) {
    bench_output out;
    bench_output_begin(&out, stdout, format, s);
    uint32_t bos = find_bos(s->file);
    progress shown = progress_new(stderr, "tests", count);
    bool ok = true;
    progress_update(&shown, 0);
    for (size_t i = 0; ok && i < count; i++) {
        bench_result result;
        ok = model_bench(s->model, &tests[i], (uint32_t)settings.repeats, bos, settings.seed,
                         &result, e);
        progress_hide(&shown);
        if (ok)
            bench_output_add(&out, &result);
        free(result.sample_ns);
        progress_update(&shown, i + 1);
    }
    progress_hide(&shown);
    bench_output_end(&out);
    return ok;
}

static exit_code run_verb(const char *const *names, size_t name_count, err *e) {
    (void)names;
    (void)name_count;
    bench_format format;
    static bench_test tests[MAX_TESTS];
    size_t count = list_tests(tests);
    if (!bench_format_find(settings.output, &format))
        return err_code(e, EXIT_USAGE, "--output takes md, csv, json, jsonl or sql, not '%.40s'",
                        settings.output);
    if (count == 0)
        return err_code(e, EXIT_USAGE, "nothing to measure: -p and -n are both 0");
    open_model s;
    model_options how = {.context = find_context(tests, count)};
    bool ok = open_model_file(&s, settings.model, e) &&
              open_model_set_threads(settings.threads, e) &&
              open_model_on(&s, settings.device, settings.math, &how, e) &&
              run_tests(&s, tests, count, format, e);
    open_model_close(&s);
    return ok ? EXIT_OK : e->code;
}

VERB(model_bench_verb, "bench",
     .about = "tokens per second: prompts (pp) and generation (tg), with llama-bench's names",
     .notes =
         "pp512 is a prompt of 512 tokens, tg128 generates 128 tokens one at a time, '@ d4096' "
         "means\n"
         "at a context depth of 4096 tokens. A prompt's ids are random. Generation is greedy, as\n"
         "`run` at temperature 0: the device chooses each token, and two are in flight;\n"
         "llama-bench waits for each. One run warms up, then each repeat is a sample. Column names "
         "are llama-bench's: t/s is mean and\n"
         "standard deviation, followed by the median and the quartiles.\n",
     VERB_OPTIONS(options), .reads_tuned = true);
