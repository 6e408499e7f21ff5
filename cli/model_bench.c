/* model_bench: `assay model bench`. The tests and how they are timed are in runner/model/bench.h;
 * here they are asked for and their results written with llama-bench's names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/progress.h"
#include "model_bench_output.h"
#include "model_bench_store.h"
#include "model_verbs.h"
#include "open_model.h"
#include "runner/model/bench.h"
#include "runner/tokenizer/tokenizer.h"

static struct {
    const char *model, *device, *kv, *output, *csv, *baseline;
    option_numbers prompts, tokens, depths; /* none: not given */
    uint64_t repeats, seed, threads;        /* repeats 0: not given */
    double min_effect;
    bool waits;
} settings = {.output = "md", .seed = 1, .min_effect = 3};
enum { PROMPT = 512, TOKENS = 128, REPEATS = 5, STORED_REPEATS = 20 };

static const option options[] = {
    TEXT_OPTION("m|model", &settings.model, "FILE",
                "GGUF file (default: the model that comes with Assay)"),
    {"p|prompt", OPTION_NUMBERS, &settings.prompts, "N,N",
     "prompt lengths; 0 is none (default 512)", 0, 1u << 24},
    {"n|tokens", OPTION_NUMBERS, &settings.tokens, "N,N",
     "numbers of tokens to generate; 0 is none (default 128)", 0, 1u << 24},
    {"d|depth", OPTION_NUMBERS, &settings.depths, "N,N",
     "context depths: tokens already seen (default 0)", 0, 1u << 24},
    FLAG_OPTION("wait", &settings.waits,
                "generate as llama-bench does: wait for each token's logits (tests 'tg128 wait')"),
    {"r|repeats", OPTION_NUMBER, &settings.repeats, "N",
     "samples per test (default 5; 20 with --csv or --baseline)", 1, 100000},
    TEXT_OPTION("o|output", &settings.output, "FORMAT", "md, csv, json, jsonl or sql (default md)"),
    TEXT_OPTION("csv", &settings.csv, "FILE.csv",
                "keep the rows and samples; rows of other models stay in the file"),
    PLAIN_OPTION("baseline", OPTION_MAYBE, &settings.baseline, "[FILE.csv]",
                 "compare with a file of --csv (default results/<device>/model_bench.csv)"),
    PERCENT_OPTION("min-effect", &settings.min_effect, "PERCENT",
                   "with --baseline: smallest change worth a verdict (default 3)"),
    SEED_OPTION(&settings.seed, "the token ids"),
    KV_OPTION(&settings.kv),
    DEVICE_OPTION(&settings.device),
    THREADS_OPTION(&settings.threads),
    {"n-prompt", OPTION_NUMBERS, &settings.prompts, "N,N", NULL, 0, 1u << 24},
    {"n-gen", OPTION_NUMBERS, &settings.tokens, "N,N", NULL, 0, 1u << 24},
    {"n-depth", OPTION_NUMBERS, &settings.depths, "N,N", NULL, 0, 1u << 24},
    {"repetitions", OPTION_NUMBER, &settings.repeats, "N", NULL, 1, 100000},
    LLAMA_CPP_OPTIONS,
};

enum { MAX_TESTS = 2 * OPTION_LIST_MAX * OPTION_LIST_MAX };

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

static bool run_tests(open_model *s, bench_store *store, const bench_test *tests, size_t count,
                      bench_format format, err *e) {
    bench_output out;
    bench_output_begin(&out, stdout, format, s);
    uint32_t bos = find_bos(s->file);
    progress shown = progress_new(stderr, "tests", count);
    bool ok = true;
    progress_update(&shown, 0);
    for (size_t i = 0; ok && i < count; i++) {
        bench_result result;
        model_forget_tapes(s->model); /* a row names the kernels of its own tapes */
        library_forget_uses(s->lib);
        ok = model_bench(s->model, &tests[i], (uint32_t)settings.repeats, bos, settings.seed,
                         &result, e);
        progress_hide(&shown);
        if (ok) {
            bench_output_add(&out, &result);
            ok = bench_store_add(store, &result, e);
        }
        free(result.sample_ns);
        progress_update(&shown, i + 1);
    }
    progress_hide(&shown);
    bench_output_end(&out);
    return ok;
}

static bool is_given(void) {
    return settings.prompts.count + settings.tokens.count + settings.depths.count > 0;
}

static bench_sizes take_sizes(const option_numbers *given, const uint64_t *otherwise) {
    return given->count ? (bench_sizes){given->items, given->count} : (bench_sizes){otherwise, 1};
}

/* What was asked for, or what the baseline has, or the default. */
static bool list_tests(const bench_store *store, bench_test tests[MAX_TESTS], size_t *count,
                       err *e) {
    static const uint64_t prompt = PROMPT, generate = TOKENS, depth = 0;
    if (store->has_base && !is_given()) {
        *count = bench_store_list_tests(store, tests, MAX_TESTS);
        return *count > 0 || err_set(e, EXIT_INCONCLUSIVE,
                                     "the baseline has no rows %.180s*: -p, -n and -d say what to "
                                     "time",
                                     store->prefix);
    }
    *count = bench_list_tests(take_sizes(&settings.prompts, &prompt),
                              take_sizes(&settings.tokens, &generate),
                              take_sizes(&settings.depths, &depth), settings.waits, tests);
    return *count > 0 || err_set(e, EXIT_USAGE, "nothing to measure: -p and -n are both 0");
}

static exit_code run_verb(const char *const *names, size_t name_count, err *e) {
    (void)names;
    (void)name_count;
    bench_format format;
    static bench_test tests[MAX_TESTS];
    size_t count;
    if (!bench_format_find(settings.output, &format))
        return err_code(e, EXIT_USAGE, "--output takes md, csv, json, jsonl or sql, not '%.40s'",
                        settings.output);
    if (settings.repeats == 0)
        settings.repeats = settings.csv || settings.baseline ? STORED_REPEATS : REPEATS;
    open_model s = {.file = NULL};
    bench_store store = {.model = NULL};
    model_options how = {.context = 0};
    bool ok = open_model_find_cache(settings.kv, &how.cache, e) &&
              open_model_file(&s, settings.model, e) &&
              open_model_set_threads(settings.threads, e) &&
              open_model_device(&s, settings.device, e) &&
              bench_store_open(&store, &s, how.cache, settings.csv, settings.baseline,
                               settings.seed, e) &&
              list_tests(&store, tests, &count, e);
    how.context = ok ? bench_find_context(tests, count) : 0;
    ok = ok && open_model_on(&s, settings.device, &how, e) &&
         run_tests(&s, &store, tests, count, format, e);
    exit_code code = ok ? bench_store_finish(&store, settings.min_effect, settings.seed,
                                             format == BENCH_MD ? stdout : stderr)
                        : e->code;
    bench_store_close(&store);
    open_model_close(&s);
    return code;
}

VERB(model_bench_verb, "bench",
     .about = "tokens per second: prompts (pp) and generation (tg), with llama-bench's names",
     .notes =
         "pp512 is a prompt of 512 tokens, tg128 generates 128 tokens one at a time, '@ d4096' "
         "means\n"
         "at a context depth of 4096 tokens. A prompt's ids are random. Generation is greedy, as\n"
         "`run` at temperature 0: the device chooses each token, and two are in flight;\n"
         "llama-bench waits for each, as --wait does. One run warms up, then each repeat is a "
         "sample. Column names "
         "are llama-bench's: t/s is mean and\n"
         "standard deviation, followed by the median and the quartiles.\n"
         "From a depth of 4096 on the cache is filled with pseudo-random keys and values, and no\n"
         "prompt is run for it: attention takes as long.\n"
         "--csv keeps rows named model/NAME/FORMAT/tg32@d1900 for compare, report and --baseline.\n"
         "With --baseline alone the tests are those that the baseline has of this model; the exit\n"
         "status is 4 if one is slower, 5 if the samples cannot tell.\n",
     VERB_OPTIONS(options), .math = "fast", .reads_tuned = true);
