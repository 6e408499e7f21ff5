/* model_check: `assay model check`: options and output. The checking is in runner/model/check.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/progress.h"
#include "harness/base/record.h"
#include "harness/check/fill.h"
#include "model_verbs.h"
#include "open_model.h"
#include "runner/model/check.h"
#include "runner/tokenizer/tokenizer.h"

static struct {
    const char *model, *device, *kv;
    uint64_t prompt, tokens, reference, depth, seed;
    bool launches;
} settings = {.prompt = 20, .tokens = 8, .reference = 4, .depth = 257, .seed = 1};

static const option options[] = {
    TEXT_OPTION("m|model", &settings.model, "FILE",
                "GGUF file (default: the model that comes with Assay)"),
    {"p|prompt", OPTION_NUMBER, &settings.prompt, "N", "prompt length in tokens (default 20)", 1,
     1u << 20},
    {"n|tokens", OPTION_NUMBER, &settings.tokens, "N", "tokens to decode (default 8)", 1, 1u << 20},
    {"reference", OPTION_NUMBER, &settings.reference, "N",
     "tokens also run through the double-precision pass (default 4)", 0, 1u << 20},
    {"depth", OPTION_NUMBER, &settings.depth, "N",
     "last of the positions around powers of two (default 257; 0: none)", 0, 1u << 20},
    FLAG_OPTION("launches", &settings.launches,
                "print one row per launch: smallest, largest and mean value, NaNs, error"),
    SEED_OPTION(&settings.seed, "the token ids, for files whose vocabulary cannot be read"),
    KV_OPTION(&settings.kv),
    DEVICE_OPTION(&settings.device),
};

/* --- the prompt --- */

/* English where the vocabulary can be read, else random ids. */
static const char passage[] =
    "The assayer weighed a little of the ore, wrapped it in a sheet of lead and set it in the "
    "furnace. When the lead had gone into the bone ash, a bright bead of silver was left. He "
    "weighed the bead and wrote the number down: 3.25 parts in 100. \"Is it enough?\" asked the "
    "miner, who had come a long way. \"That depends on how much of it there is,\" he said. ";

static uint32_t *make_prompt(const gguf *g, const model_shape *s, size_t count) {
    token_list words = {0};
    err why;
    tokenizer *t = tokenizer_new(g, &why);
    if (t)
        tokenizer_encode(t, passage, strlen(passage), TOKENIZE_ADD_SPECIAL, &words);
    else
        fprintf(stderr, "random token ids, and `assay run` refuses the file: %s\n", why.text);
    rng random = rng_new(settings.seed, "model check");
    uint32_t *ids = array_new(count, sizeof *ids);
    for (size_t i = 0; i < count; i++)
        ids[i] = words.count ? words.items[i % words.count] : rng_below(&random, s->vocab);
    token_list_free(&words);
    tokenizer_free(t);
    return ids;
}

/* --- what is shown --- */

typedef struct {
    sink launches;
    progress progress;
    size_t done;
} view;

static const field launch_fields[] = {
    FIELD(launch_report, part, FIELD_TEXT, NULL, "part", .width = 10),
    FIELD(launch_report, kernel, FIELD_TEXT, NULL, "kernel", .width = 40),
    FIELD(launch_report, output, FIELD_TEXT, NULL, "output", .width = 14, .rank = 1),
    FIELD(launch_report, values.min, FIELD_REAL, NULL, "smallest", .width = 12, .rank = 3,
          .format = "%.5g"),
    FIELD(launch_report, values.max, FIELD_REAL, NULL, "largest", .width = 12, .rank = 2,
          .format = "%.5g"),
    FIELD(launch_report, values.mean, FIELD_REAL, NULL, "mean", .width = 12, .rank = 4,
          .format = "%.5g"),
    FIELD(launch_report, values.bad, FIELD_COUNT, NULL, "NaN", .width = 6),
    FIELD(launch_report, margin, FIELD_REAL, NULL, "error", .width = 6, .format = "%.2f",
          .is_painted = true),
};

static void show_launch(void *context, const launch_report *l) {
    view *v = context;
    v->done++;
    if (settings.launches)
        sink_add(&v->launches, l, l->passed ? PAINT_GOOD : PAINT_BAD);
    else
        progress_update(&v->progress, v->done);
}

typedef struct {
    const char *what, *verdict, *found;
} check_view;

static const field check_fields[] = {
    FIELD(check_view, what, FIELD_TEXT, NULL, "check"),
    FIELD(check_view, verdict, FIELD_TEXT, NULL, "verdict", .is_painted = true),
    FIELD(check_view, found, FIELD_TEXT, NULL, "found"),
};

static void print_report(const model_report *r) {
    sink s = {.record = RECORD(check_fields), .out = stdout};
    for (size_t i = 0; i < r->count; i++) {
        const check_row *row = &r->rows[i];
        const check_view v = {row->what, row->passed ? "ok" : "wrong", row->found};
        sink_add(&s, &v, row->passed ? PAINT_GOOD : PAINT_BAD);
    }
    sink_end(&s);
}

/* A prompt takes as many launches as a token if it fits one tile. */
static size_t count_launches(model *m) {
    err ignored;
    const tape *t = model_get_token_tape(m, false, &ignored);
    return t ? 2 * t->count : 0;
}

static bool check(open_model *s, const uint32_t *prompt, bool *passed, err *e) {
    view v = {.launches = {.record = RECORD(launch_fields), .out = stdout, .streams = true}};
    v.progress = progress_new(stderr, "launches", count_launches(s->model));
    model_check_options how = {.prompt = prompt,
                               .prompt_tokens = (size_t)settings.prompt,
                               .tokens = (size_t)settings.tokens,
                               .reference_tokens = (size_t)settings.reference,
                               .depth = (size_t)settings.depth,
                               .observe = show_launch,
                               .context = &v};
    model_report report;
    bool ok = model_check(s->model, &how, &report, e);
    progress_hide(&v.progress);
    if (!ok)
        return false;
    if (settings.launches)
        putchar('\n');
    print_report(&report);
    *passed = open_model_print_findings(s, stdout) && report.passed;
    return true;
}

/* Tokens of the longest prompt: a model that was made for less is checked as far as it goes. */
static uint64_t limit_depth(const model_shape *s) {
    if (s->context > 0 && settings.depth >= s->context)
        settings.depth = s->context - 1;
    return settings.depth + 1 > settings.prompt ? settings.depth + 1 : settings.prompt;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    (void)names;
    (void)count;
    open_model s;
    model_shape about;
    bool passed = false;
    uint64_t context = settings.prompt + settings.tokens + 1, longest = 0;
    bool ok = open_model_file(&s, settings.model, e) && model_read_shape(s.file, &about, e);
    if (ok)
        longest = limit_depth(&about);
    model_options how = {.context = (uint32_t)(longest > context ? longest : context)};
    ok = ok && open_model_find_cache(settings.kv, &how.cache, e) &&
         open_model_on(&s, settings.device, &how, e);
    if (ok) {
        uint32_t *prompt = make_prompt(s.file, &about, (size_t)longest);
        ok = check(&s, prompt, &passed, e);
        free(prompt);
    }
    open_model_close(&s);
    if (!ok)
        return e->code;
    return passed ? EXIT_OK : EXIT_WRONG;
}

VERB(model_check_verb, "check",
     .about = "check a model on this device: every launch against its oracle, and the whole pass",
     .notes =
         "Each launch of a prompt and of the next token is compared with its oracle on real\n"
         "activations. Then the whole: against a forward pass in double precision, the prompt\n"
         "against the same tokens one by one, and the ways to play a tape against each other;\n"
         "and positions around 64, 128 and 256 after a long prompt: one by one, launch by launch\n"
         "and as a prompt.\n"
         "`error` is the largest error divided by the allowed error: above 1 is wrong.\n",
     VERB_OPTIONS(options), .math = "safe", .reads_tuned = true);
