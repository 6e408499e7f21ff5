/* model_bench: `assay model bench`. The tests and how they are timed are in runner/model/bench.h; here they
 * are asked for, printed in the forms and with the names of llama-bench, so that the same programs can read
 * both, kept as rows with samples (harness/measure/results.h) and compared with those of an earlier file. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench_report.h"
#include "harness/base/array.h"
#include "harness/base/host.h"
#include "harness/base/progress.h"
#include "kernels/ops.h"
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
    MODEL_OPTION(&settings.model),
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
                "keep rows and samples, beside those of other models"),
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

typedef enum { BENCH_MD, BENCH_CSV, BENCH_JSON, BENCH_JSONL, BENCH_SQL, BENCH_FORMS } bench_form;
static const char *const form_names[BENCH_FORMS] = {"md", "csv", "json", "jsonl", "sql"};

/* What all rows have. */
typedef struct {
    bench_form form;
    const open_model *model;
    json list;  /* of BENCH_JSON */
    sink table; /* of BENCH_MD */
    size_t rows;
    bool has_filled; /* a row of a depth that no prompt was run for */
    uint64_t parameters, model_bytes;
    char type[96]; /* "llama 256M Q4_0" */
    char cpu[128], backend[48], commit[80];
} output;

/* The fields of llama-bench, in its order, and ours. Those that describe what this project does not have
 * (layers on the GPU, splits) hold what llama-bench says where they are not used. */
/* clang-format off */
#define LLAMA_BENCH(X) \
    X(const char *, FIELD_TEXT, build_commit, o->commit) \
    X(uint64_t, FIELD_COUNT, build_number, 0) \
    X(const char *, FIELD_TEXT, cpu_info, o->cpu) \
    X(const char *, FIELD_TEXT, gpu_info, d->name) \
    X(const char *, FIELD_TEXT, backends, o->backend) \
    X(const char *, FIELD_TEXT, model_filename, o->model->path) \
    X(const char *, FIELD_TEXT, model_type, o->type) \
    X(uint64_t, FIELD_COUNT, model_size, o->model_bytes) \
    X(uint64_t, FIELD_COUNT, model_n_params, o->parameters) \
    X(uint32_t, FIELD_COUNT, n_batch, model_get_tile(m)) \
    X(uint32_t, FIELD_COUNT, n_ubatch, model_get_tile(m)) \
    X(uint32_t, FIELD_COUNT, n_threads, d->threads) \
    X(const char *, FIELD_TEXT, cpu_mask, "0x0") \
    X(bool, FIELD_FLAG, cpu_strict, false) \
    X(uint32_t, FIELD_COUNT, poll, 0) \
    X(const char *, FIELD_TEXT, type_k, model_get_cache_name(m)) \
    X(const char *, FIELD_TEXT, type_v, model_get_cache_name(m)) \
    X(uint32_t, FIELD_COUNT, n_gpu_layers, model_get_shape(m)->layers + 1) \
    X(uint32_t, FIELD_COUNT, n_cpu_moe, 0) \
    X(const char *, FIELD_TEXT, split_mode, "none") \
    X(uint32_t, FIELD_COUNT, main_gpu, 0) \
    X(bool, FIELD_FLAG, no_kv_offload, false) \
    X(uint32_t, FIELD_COUNT, flash_attn, 1) \
    X(const char *, FIELD_TEXT, devices, "auto") \
    X(const char *, FIELD_TEXT, tensor_split, "0.00") \
    X(const char *, FIELD_TEXT, tensor_buft_overrides, "none") \
    X(const char *, FIELD_TEXT, load_mode, "mmap") \
    X(bool, FIELD_FLAG, embeddings, false) \
    X(uint32_t, FIELD_COUNT, no_op_offload, 0) \
    X(bool, FIELD_FLAG, no_host, false) \
    X(uint32_t, FIELD_COUNT, fit_target, 0) \
    X(uint32_t, FIELD_COUNT, fit_min_ctx, 0) \
    X(uint32_t, FIELD_COUNT, n_prompt, r->test.prompt) \
    X(uint32_t, FIELD_COUNT, n_gen, r->test.generate) \
    X(uint32_t, FIELD_COUNT, n_depth, r->test.depth) \
    X(const char *, FIELD_TEXT, test_time, when) \
    X(uint64_t, FIELD_COUNT, avg_ns, (uint64_t)r->mean_ns) \
    X(uint64_t, FIELD_COUNT, stddev_ns, (uint64_t)r->deviation_ns) \
    X(double, FIELD_REAL, avg_ts, r->mean_rate) \
    X(double, FIELD_REAL, stddev_ts, r->deviation_rate) \
    X(const char *, FIELD_TEXT, math, math_mode_get_name(d->math)) \
    X(double, FIELD_REAL, median_ts, r->rates.median) \
    X(double, FIELD_REAL, q1_ts, r->rates.q1) \
    X(double, FIELD_REAL, q3_ts, r->rates.q3) \
    X(bool, FIELD_FLAG, waits, r->test.waits) \
    X(bool, FIELD_FLAG, is_filled, r->is_filled)
/* clang-format on */

#define MEMBER(type, kind, name, value) type name;
#define AS_FIELD(type, kind, name, value) FIELD(llama_row, name, kind, #name, .format = "%.6f"),
#define VALUE(type, kind, name, value) .name = value,
typedef struct {
    LLAMA_BENCH(MEMBER)
} llama_row;
static const field llama_fields[] = {LLAMA_BENCH(AS_FIELD)};
/* The last six are ours. */
enum { LLAMA_FIELDS = sizeof llama_fields / sizeof *llama_fields, THEIRS = LLAMA_FIELDS - 6 };

static const char *name_file_type(const gguf *g) {
    static const struct {
        uint32_t id;
        const char *name;
    } known[] = {{0, "all F32"},        {1, "F16"},   {2, "Q4_0"}, {3, "Q4_1"},
                 {7, "Q8_0"},           {8, "Q5_0"},  {9, "Q5_1"}, {15, "Q4_K - Medium"},
                 {17, "Q5_K - Medium"}, {18, "Q6_K"}, {32, "BF16"}};
    uint32_t id = 0;
    bool found = false;
    if (gguf_get_u32(g, "general.file_type", &id, &found, NULL) && found)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (known[i].id == id)
                return known[i].name;
    return "unknown type";
}

static output start_output(bench_form form, const open_model *s) {
    output o = {.form = form, .model = s};
    const device_facts *d = device_get_facts(s->device);
    const model_shape *sizes = model_get_shape(s->model);
    char size[32];
    for (size_t i = 0; i < s->file->tensor_count; i++) {
        o.parameters += s->file->tensors[i].elements;
        o.model_bytes += s->file->tensors[i].bytes;
    }
    if (sizes->size_name[0])
        snprintf(size, sizeof size, "%s", sizes->size_name);
    else if (o.parameters < 1000000000)
        snprintf(size, sizeof size, "%.1fM", (double)o.parameters / 1e6);
    else
        snprintf(size, sizeof size, "%.1fB", (double)o.parameters / 1e9);
    snprintf(o.type, sizeof o.type, "%s %s %s", sizes->family, size, name_file_type(s->file));
    if (!host_find_cpu(o.cpu, sizeof o.cpu))
        snprintf(o.cpu, sizeof o.cpu, "unnamed CPU");
    snprintf(o.backend, sizeof o.backend, "%s%s", d->api, d->emulated ? " (emulated)" : "");
    host_get_commit(o.commit, sizeof o.commit); /* by which scripts tell runs apart */
    if (strcmp(o.commit, "unknown") == 0)
        snprintf(o.commit, sizeof o.commit, "assay " ASSAY_VERSION);
    if (form == BENCH_JSON)
        o.list = json_start(stdout, '[');
    return o;
}

static void print_json(json *j, const llama_row *row, const bench_result *r) {
    const record all = RECORD(llama_fields);
    double tokens = r->test.prompt + r->test.generate;
    record_add_json(&all, row, j);
    json_open(j, "samples_ns", '[');
    for (uint32_t i = 0; i < r->repeats; i++)
        json_add_count(j, NULL, r->sample_ns[i]);
    json_close(j);
    json_open(j, "samples_ts", '[');
    for (uint32_t i = 0; i < r->repeats; i++)
        fprintf(json_add_key(j, NULL), "%.6g", 1e9 * tokens / (double)r->sample_ns[i]);
    json_close(j);
    json_close(j);
}

/* The names of the first `count` fields or, given a row, their values in quotes; a quote in a value is doubled. */
static void print_list(const llama_row *row, size_t count, const char *separator, char quote) {
    char text[600];
    for (const field *f = llama_fields; f < llama_fields + count; f++) {
        printf(row ? "%s%c" : "%s", f > llama_fields ? separator : "", quote);
        for (const char *p = row ? field_print(f, row, text, sizeof text) : f->name; *p; p++)
            printf(row && *p == quote ? "%c%c" : "%c", *p, quote);
        if (row)
            putchar(quote);
    }
}

/* llama-bench quotes every field. */
static void print_csv(const output *o, const llama_row *row) {
    for (int line = o->rows ? 1 : 0; line < 2; line++) {
        print_list(line ? row : NULL, LLAMA_FIELDS, ",", '"');
        putchar('\n');
    }
}

/* Only llama-bench's fields: the rows may go into a database that it made. */
static void print_sql(const output *o, const llama_row *row) {
    for (const field *f = llama_fields; !o->rows && f < llama_fields + THEIRS; f++)
        printf("%s  %s %s", f > llama_fields ? ",\n" : "CREATE TABLE IF NOT EXISTS llama_bench (\n",
               f->name,
               f->kind == FIELD_TEXT   ? "TEXT"
               : f->kind == FIELD_REAL ? "REAL"
                                       : "INTEGER");
    printf("%sINSERT INTO llama_bench (", o->rows ? "" : "\n);\n\n");
    print_list(NULL, THEIRS, ", ", 0);
    fputs(") VALUES (", stdout);
    print_list(row, THEIRS, ", ", '\'');
    puts(");");
}

/* What people read: Markdown in a pipe, else a table that fits the terminal. */
typedef struct {
    const char *model, *backend;
    char size[24], parameters[24], test[32], rate[48], median[64];
    uint32_t threads;
} people_row;

static const field people_fields[] = {
    FIELD(people_row, model, FIELD_TEXT, NULL, "model", .lifts = true),
    FIELD(people_row, size, FIELD_CHARS, NULL, "size", .lifts = true),
    FIELD(people_row, parameters, FIELD_CHARS, NULL, "params", .lifts = true),
    FIELD(people_row, backend, FIELD_TEXT, NULL, "backend", .lifts = true),
    FIELD(people_row, threads, FIELD_COUNT, NULL, "threads", .lifts = true),
    FIELD(people_row, test, FIELD_CHARS, NULL, "test"),
    FIELD(people_row, rate, FIELD_CHARS, NULL, "t/s", .width = 18),
    FIELD(people_row, median, FIELD_CHARS, NULL, "median [q1, q3]"),
};

static void print_for_people(output *o, const bench_test *test, const bench_result *r) {
    const double mib = (double)o->model_bytes / 1048576, count = (double)o->parameters;
    people_row row = {.model = o->type, .backend = o->backend};
    snprintf(row.size, sizeof row.size, mib < 1024 ? "%.2f MiB" : "%.2f GiB",
             mib < 1024 ? mib : mib / 1024);
    snprintf(row.parameters, sizeof row.parameters, count < 1e9 ? "%.2f M" : "%.2f B",
             count < 1e9 ? count / 1e6 : count / 1e9);
    row.threads = device_get_facts(o->model->device)->threads;
    bench_test_get_name(test, row.test, sizeof row.test);
    if (!r) { /* how wide it is going to be */
        sink_fit(&o->table, &row);
        return;
    }
    snprintf(row.rate, sizeof row.rate, "%.2f ± %.2f", r->mean_rate, r->deviation_rate);
    snprintf(row.median, sizeof row.median, "%.2f [%.2f, %.2f]", r->rates.median, r->rates.q1,
             r->rates.q3);
    sink_add(&o->table, &row, PAINT_NONE);
}

static void print_result(output *o, const bench_result *r) {
    const device_facts *d = device_get_facts(o->model->device);
    const model *m = o->model->model;
    char when[32];
    time_t at = (time_t)r->time;
    struct tm utc;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &utc));
    const llama_row row = {LLAMA_BENCH(VALUE)};
    if (o->form == BENCH_MD)
        print_for_people(o, &r->test, r);
    else if (o->form == BENCH_CSV)
        print_csv(o, &row);
    else if (o->form == BENCH_SQL)
        print_sql(o, &row);
    else if (o->form == BENCH_JSON) {
        json_open(&o->list, NULL, '{');
        print_json(&o->list, &row, r);
    } else {
        json line = json_start_line(stdout);
        print_json(&line, &row, r);
    }
    o->rows++;
    o->has_filled |= r->is_filled;
    fflush(stdout);
}

static void end_output(output *o) {
    if (o->form == BENCH_JSON)
        json_close(&o->list);
    if (o->form != BENCH_MD)
        return;
    printf("\nbuild: assay " ASSAY_VERSION "\ncache: %s\n", model_get_cache_name(o->model->model));
    if (o->has_filled)
        printf("depth: from %d tokens on the cache holds pseudo-random keys and values; no prompt "
               "was run\n",
               BENCH_FILLED_DEPTH);
    if (o->model->tuned)
        printf("kernels: %s\n", o->model->tuned->path);
}

/* Keeping and comparing ----------------------------------------------------------------------- */

/* A case is "model/NAME/FORMAT/tg32@d1900". */
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

/* "SmolLM2 135M Instruct, Q4_0" to "model/SmolLM2-135M-Instruct/Q4_0/", or Q4_0-kv-f16. */
static void name_model(bench_store *b, bool has_halves) {
    char title[160], *format;
    open_model_get_title(b->model, title, sizeof title);
    format = strrchr(title, ',');
    snprintf(b->row.format, sizeof b->row.format, "%.15s", format + 2);
    *format = 0;
    snprintf(b->row.model, sizeof b->row.model, "%.127s", title);
    snprintf(b->row.kernel, sizeof b->row.kernel, "%.95s", title); /* what tables show */
    for (char *p = title; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
            *p = '-';
    snprintf(b->prefix, sizeof b->prefix, "model/%s/%s%s/", title, b->row.format,
             has_halves ? "-kv-f16" : "");
}

/* "tg32@d1900", "tg32wait@d1900" */
static void name_test(const bench_test *t, char *text, size_t size) {
    bench_test_get_name(t, text, size);
    char *to = text;
    for (const char *p = text; *p; p++)
        if (*p != ' ')
            *to++ = *p;
    *to = 0;
}

static bool parse_test(const char *text, bench_test *out) {
    unsigned count, depth = 0;
    char kind[3], again[48];
    int used = 0;
    if (sscanf(text, "%2[pgt]%u%n", kind, &count, &used) < 2)
        return false;
    bool waits = strncmp(text + used, "wait", 4) == 0;
    sscanf(text + used + (waits ? 4 : 0), "@d%u", &depth);
    *out = (bench_test){.depth = depth, .waits = waits};
    *(strcmp(kind, "pp") == 0 ? &out->prompt : &out->generate) = count;
    name_test(out, again, sizeof again);
    return count > 0 && strcmp(text, again) == 0;
}

/* The tests of the baseline; "" is results/<device>/model_bench.csv. */
static bool open_base(bench_store *b, const device_facts *f, err *e) {
    char path[PATH_MAX];
    bool is_own = !*settings.baseline;
    if (!bench_files_find_rows(is_own ? NULL : settings.baseline, "model_bench", f, path,
                               sizeof path, e))
        return false;
    if (is_own && access(path, F_OK) != 0)
        return err_set(e, EXIT_INCONCLUSIVE, "there is no %.160s yet: --csv makes one", path);
    return b->has_base = bench_files_read_baseline(path, path, f, &b->base, e);
}

/* close_store is needed after a failure too. */
static bool open_store(bench_store *b, const open_model *s, const weight_format *cache, err *e) {
    const device_facts *f = device_get_facts(s->device);
    *b = (bench_store){.model = s,
                       .row = result_row_new(),
                       .meta = results_meta_new(ASSAY_VERSION, f, settings.seed)};
    result_row *r = &b->row;
    name_model(b, cache != NULL);
    snprintf(r->device, sizeof r->device, "%s", f->name);
    snprintf(r->api, sizeof r->api, "%s", f->api);
    snprintf(r->math, sizeof r->math, "%s", math_mode_get_name(f->math));
    snprintf(r->op, sizeof r->op, "model");
    r->repeats = 1;
    timing_get_labels(timing_find_labels(f) | LABEL_GPU_IS_WALL, r->labels, sizeof r->labels);
    result_row_sign(r, &b->meta);
    if (settings.csv && settings.baseline && strcmp(settings.csv, settings.baseline) == 0)
        return err_set(e, EXIT_USAGE, "--csv would replace the baseline %.120s", settings.csv);
    return (!settings.baseline || open_base(b, f, e)) &&
           (!settings.csv || (b->file = bench_files_open(settings.csv, &b->meta, e)));
}

static void close_store(bench_store *b) {
    results_close(b->file);
    results_list_free(&b->base);
    comparison_free(&b->comparison);
}

/* The tests that the baseline has of this model; returns how many. */
static size_t list_base_tests(const bench_store *b, bench_test *out) {
    size_t count = 0, length = strlen(b->prefix);
    for (size_t i = 0; i < b->base.count; i++) {
        const char *name = b->base.cases[i].row.name;
        count += strncmp(name, b->prefix, length) == 0 && parse_test(name + length, &out[count]);
    }
    return count;
}

/* The clock is the caller's. */
static timing_sample *list_samples(const bench_result *r) {
    timing_sample *all = array_new(r->repeats, sizeof *all);
    for (uint32_t i = 0; i < r->repeats; i++) {
        double ns = (double)r->sample_ns[i];
        all[i] = (timing_sample){.gpu_ns = ns, .wall_ns = ns, .gpu_is_wall = true};
    }
    return all;
}

static void compare(bench_store *b, const result_row *row, const timing_sample *samples,
                    size_t count) {
    comparison_row *c = comparison_add(&b->comparison, row->name);
    const result_case *base = results_list_find(&b->base, row->name);
    if (base) {
        comparison_add_run(c, &c->base, base->samples, base->count, CLOCK_WALL, base->row.labels);
        made_of_compare(base->row.made_of, row->made_of, c->note, sizeof c->note);
    }
    comparison_add_run(c, &c->now, samples, count, CLOCK_WALL, row->labels);
}

static bool store_result(bench_store *b, const bench_result *r, err *e) {
    result_row row = b->row;
    char test[48];
    timing_result all = {.samples = list_samples(r), .count = r->repeats};
    name_test(&r->test, test, sizeof test);
    snprintf(row.name, sizeof row.name, "%s%s", b->prefix, test);
    snprintf(row.variant, sizeof row.variant, "%s", test);
    snprintf(row.shape, sizeof row.shape, "%s", test);
    row.batch = r->test.prompt ? r->test.prompt : 1;
    row.gpu = timing_compute_stats(&all, CLOCK_GPU);
    row.wall = timing_compute_stats(&all, CLOCK_WALL);
    bool ok = registry_add_used(row.made_of, b->model->lib, e) &&
              made_of_add_one(row.made_of, b->model->lib, "runner", "model", e);
    if (ok && b->has_base)
        compare(b, &row, all.samples, all.count);
    ok = ok && (!b->file || results_add(b->file, &row, all.samples, all.count, e));
    free(all.samples);
    return ok;
}

/* The verb ------------------------------------------------------------------------------------ */

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
                      bench_form form, err *e) {
    output out = start_output(form, s);
    uint32_t bos = find_bos(s->file);
    progress shown = progress_new(stderr, "tests", count);
    bool ok = true;
    out.table = (sink){.record = RECORD(people_fields),
                       .out = form == BENCH_MD ? stdout : NULL,
                       .is_markdown = table_find_limit(stdout) == 0,
                       .streams = true};
    for (size_t i = 0; i < count; i++)
        print_for_people(&out, &tests[i], NULL);
    progress_update(&shown, 0);
    for (size_t i = 0; ok && i < count; i++) {
        bench_result result;
        model_forget_tapes(s->model); /* a row names the kernels of its own tapes */
        library_forget_uses(s->lib);
        ok = model_bench(s->model, &tests[i], (uint32_t)settings.repeats, bos, settings.seed,
                         &result, e);
        progress_hide(&shown);
        if (ok) {
            print_result(&out, &result);
            ok = store_result(store, &result, e);
        }
        free(result.sample_ns);
        progress_update(&shown, i + 1);
    }
    progress_hide(&shown);
    end_output(&out);
    return ok;
}

static bool is_given(void) {
    return settings.prompts.count + settings.tokens.count + settings.depths.count > 0;
}

static bench_sizes take_sizes(const option_numbers *given, const uint64_t *otherwise) {
    return given->count ? (bench_sizes){given->items, given->count} : (bench_sizes){otherwise, 1};
}

/* What was asked for, or what the baseline has, or the default. */
static bool list_tests(const bench_store *store, bench_test *tests, size_t *count, err *e) {
    static const uint64_t prompt = PROMPT, generate = TOKENS, depth = 0;
    if (store->has_base && !is_given()) {
        *count = list_base_tests(store, tests);
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

static exit_code run_verb(err *e) {
    bench_form form = BENCH_MD;
    bench_test *tests = NULL;
    size_t count;
    while (form < BENCH_FORMS && strcmp(form_names[form], settings.output) != 0)
        form++;
    if (form == BENCH_FORMS)
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
              open_model_device(&s, settings.device, e) && open_store(&store, &s, how.cache, e) &&
              (tests = array_new(MAX_TESTS + store.base.count, sizeof *tests)) &&
              list_tests(&store, tests, &count, e);
    how.context = ok ? bench_find_context(tests, count) : 0;
    ok = ok && open_model_on(&s, settings.device, &how, e) &&
         run_tests(&s, &store, tests, count, form, e);
    const comparison_options o = {.min_effect = settings.min_effect / 100, .seed = settings.seed};
    exit_code code = !ok              ? e->code
                     : store.has_base ? comparison_print(&store.comparison, &o,
                                                         form == BENCH_MD ? stdout : stderr)
                                      : EXIT_OK;
    free(tests);
    close_store(&store);
    open_model_close(&s);
    return code;
}

VERB_ALONE(
    model_bench_verb, "bench", run_verb,
    .about = "tokens per second: prompts (pp) and generation (tg), with llama-bench's names",
    .notes =
        "pp512 is a prompt of 512 random tokens, tg128 generates 128 tokens one at a time, '@\n"
        "d4096' means at a context depth of 4096 tokens. Generation is greedy, as `run` at\n"
        "temperature 0: the device chooses each token, and two are in flight; llama-bench\n"
        "waits for each, as --wait does. One run warms up, then each repeat is a sample.\n"
        "Column names are llama-bench's: t/s is mean and standard deviation, followed by the\n"
        "median and the quartiles. From a depth of 4096 on the cache is filled with\n"
        "pseudo-random keys and values, and no prompt is run for it: attention takes as long.\n"
        "--csv keeps rows named model/NAME/FORMAT/tg32@d1900 for compare, report and\n"
        "--baseline. With --baseline alone the tests are those that the baseline has of this\n"
        "model; the exit status is 4 if one is slower, 5 if the samples cannot tell.\n",
    VERB_OPTIONS(options), .math = "fast", .reads_tuned = true);
