/* model_bench_output: see model_bench_output.h.
 *
 * One list of fields, in llama-bench's order, is written as CSV and as JSON. Fields that describe
 * what this project does not have (layers on the GPU, splits) hold what llama-bench says where they
 * are not used. */
#include "model_bench_output.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "harness/base/host.h"
#include "harness/base/json.h"
#include "verb.h"

bool bench_format_find(const char *name, bench_format *out) {
    static const char *const names[] = {[BENCH_MD] = "md",
                                        [BENCH_CSV] = "csv",
                                        [BENCH_JSON] = "json",
                                        [BENCH_JSONL] = "jsonl",
                                        [BENCH_SQL] = "sql"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (bench_format)i;
            return true;
        }
    return false;
}

/* --- the model's type, as llama-bench has it --- */

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

static void describe_model(bench_output *o) {
    const gguf *g = o->model->file;
    char size[32];
    for (size_t i = 0; i < g->tensor_count; i++) {
        o->parameters += g->tensors[i].elements;
        o->model_bytes += g->tensors[i].bytes;
    }
    const model_shape *s = model_get_shape(o->model->model);
    if (s->size_name[0])
        snprintf(size, sizeof size, "%s", s->size_name);
    else if (o->parameters < 1000000000)
        snprintf(size, sizeof size, "%.1fM", (double)o->parameters / 1e6);
    else
        snprintf(size, sizeof size, "%.1fB", (double)o->parameters / 1e9);
    snprintf(o->model_type, sizeof o->model_type, "%s %s %s", s->family, size, name_file_type(g));
}

/* --- fields --- */

typedef enum { FIELD_TEXT, FIELD_INTEGER, FIELD_BOOL, FIELD_REAL } field_kind;

typedef struct {
    const char *name;
    field_kind kind;
    bool is_ours;   /* llama-bench does not have it */
    char text[600]; /* texts and reals, ready */
    int64_t number;
} field;

enum { MAX_FIELDS = 64 };

typedef struct {
    field items[MAX_FIELDS];
    size_t count;
} field_list;

static field *add(field_list *l, const char *name, field_kind kind) {
    assert(l->count < MAX_FIELDS);
    field *f = &l->items[l->count++];
    *f = (field){.name = name, .kind = kind};
    return f;
}

static void add_text(field_list *l, const char *name, const char *text) {
    field *f = add(l, name, FIELD_TEXT);
    snprintf(f->text, sizeof f->text, "%s", text);
}

static void add_integer(field_list *l, const char *name, int64_t value) {
    add(l, name, FIELD_INTEGER)->number = value;
}

static void add_bool(field_list *l, const char *name, bool value) {
    add(l, name, FIELD_BOOL)->number = value;
}

static void add_real(field_list *l, const char *name, double value) {
    field *f = add(l, name, FIELD_REAL);
    snprintf(f->text, sizeof f->text, "%.6f", value);
}

static void add_machine(field_list *l, const bench_output *o) {
    const device_facts *d = device_get_facts(o->model->device);
    char cpu[128], backend[48], commit[80];
    if (!host_find_cpu(cpu, sizeof cpu))
        snprintf(cpu, sizeof cpu, "unnamed CPU");
    snprintf(backend, sizeof backend, "%s%s", d->api, d->emulated ? " (emulated)" : "");
    host_get_commit(commit, sizeof commit); /* by which scripts tell runs apart */
    add_text(l, "build_commit", strcmp(commit, "unknown") == 0 ? "assay " ASSAY_VERSION : commit);
    add_integer(l, "build_number", 0);
    add_text(l, "cpu_info", cpu);
    add_text(l, "gpu_info", d->name);
    add_text(l, "backends", backend);
    add_text(l, "model_filename", o->model->path);
    add_text(l, "model_type", o->model_type);
    add_integer(l, "model_size", (int64_t)o->model_bytes);
    add_integer(l, "model_n_params", (int64_t)o->parameters);
}

static void add_settings(field_list *l, const bench_output *o) {
    uint32_t tile = model_get_tile(o->model->model);
    add_integer(l, "n_batch", tile);
    add_integer(l, "n_ubatch", tile);
    add_integer(l, "n_threads", device_get_facts(o->model->device)->threads);
    add_text(l, "cpu_mask", "0x0");
    add_bool(l, "cpu_strict", false);
    add_integer(l, "poll", 0);
    add_text(l, "type_k", model_get_cache_name(o->model->model));
    add_text(l, "type_v", model_get_cache_name(o->model->model));
    add_integer(l, "n_gpu_layers", (int64_t)model_get_shape(o->model->model)->layers + 1);
    add_integer(l, "n_cpu_moe", 0);
    add_text(l, "split_mode", "none");
    add_integer(l, "main_gpu", 0);
    add_bool(l, "no_kv_offload", false);
    add_integer(l, "flash_attn", 1);
    add_text(l, "devices", "auto");
    add_text(l, "tensor_split", "0.00");
    add_text(l, "tensor_buft_overrides", "none");
    add_text(l, "load_mode", "mmap");
    add_bool(l, "embeddings", false);
    add_integer(l, "no_op_offload", 0);
    add_bool(l, "no_host", false);
    add_integer(l, "fit_target", 0);
    add_integer(l, "fit_min_ctx", 0);
    add_text(l, "math", math_mode_get_name(device_get_facts(o->model->device)->math));
    l->items[l->count - 1].is_ours = true;
}

static void add_result(field_list *l, const bench_result *r) {
    char when[32];
    time_t at = (time_t)r->time;
    struct tm utc;
    gmtime_r(&at, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    add_integer(l, "n_prompt", r->test.prompt);
    add_integer(l, "n_gen", r->test.generate);
    add_integer(l, "n_depth", r->test.depth);
    add_text(l, "test_time", when);
    add_integer(l, "avg_ns", (int64_t)r->mean_ns);
    add_integer(l, "stddev_ns", (int64_t)r->deviation_ns);
    add_real(l, "avg_ts", r->mean_rate);
    add_real(l, "stddev_ts", r->deviation_rate);
}

static void add_spread(field_list *l, const bench_result *r) {
    add_real(l, "median_ts", r->rates.median);
    add_real(l, "q1_ts", r->rates.q1);
    add_real(l, "q3_ts", r->rates.q3);
    add_bool(l, "waits", r->test.waits);
    add_bool(l, "is_filled", r->is_filled);
    for (size_t i = l->count - 5; i < l->count; i++)
        l->items[i].is_ours = true;
}

/* --- forms --- */

static void print_json_field(FILE *out, const field *f) {
    json_print_text(out, f->name, strlen(f->name));
    fputs(": ", out);
    if (f->kind == FIELD_TEXT)
        json_print_text(out, f->text, strlen(f->text));
    else if (f->kind == FIELD_REAL)
        fputs(f->text, out);
    else if (f->kind == FIELD_BOOL)
        fputs(f->number ? "true" : "false", out);
    else
        fprintf(out, "%" PRId64, f->number);
}

static void print_json(bench_output *o, const field_list *l, const bench_result *r) {
    bool lines = o->format == BENCH_JSON;
    const char *gap = lines ? ",\n    " : ", ";
    fprintf(o->out, lines ? "%s  {\n    " : "%s{", lines && o->rows ? ",\n" : "");
    for (size_t i = 0; i < l->count; i++) {
        if (i)
            fputs(gap, o->out);
        print_json_field(o->out, &l->items[i]);
    }
    fprintf(o->out, "%s\"samples_ns\": [", gap);
    for (uint32_t i = 0; i < r->repeats; i++)
        fprintf(o->out, "%s%" PRIu64, i ? ", " : "", r->sample_ns[i]);
    fprintf(o->out, "]%s\"samples_ts\": [", gap);
    double tokens = r->test.prompt + r->test.generate;
    for (uint32_t i = 0; i < r->repeats; i++)
        fprintf(o->out, "%s%.6g", i ? ", " : "", 1e9 * tokens / (double)r->sample_ns[i]);
    fputs(lines ? "]\n  }" : "]}\n", o->out);
}

static void print_quoted(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_csv(bench_output *o, const field_list *l) {
    for (size_t i = 0; !o->rows && i < l->count; i++)
        fprintf(o->out, "%s%s", i ? "," : "", l->items[i].name);
    if (!o->rows)
        fputc('\n', o->out);
    for (size_t i = 0; i < l->count; i++) {
        const field *f = &l->items[i];
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, f->number);
        if (i)
            fputc(',', o->out);
        print_quoted(o->out, f->kind == FIELD_TEXT || f->kind == FIELD_REAL ? f->text : number);
    }
    fputc('\n', o->out);
}

/* Only llama-bench's columns: the rows may go into a database that it made. */
static void print_sql(bench_output *o, const field_list *l) {
    static const char *const types[] = {[FIELD_TEXT] = "TEXT",
                                        [FIELD_INTEGER] = "INTEGER",
                                        [FIELD_BOOL] = "INTEGER",
                                        [FIELD_REAL] = "REAL"};
    if (!o->rows)
        fputs("CREATE TABLE IF NOT EXISTS llama_bench (\n", o->out);
    for (size_t i = 0; !o->rows && i < l->count; i++)
        if (!l->items[i].is_ours)
            fprintf(o->out, "%s  %s %s", i ? ",\n" : "", l->items[i].name, types[l->items[i].kind]);
    fputs(o->rows ? "INSERT INTO llama_bench (" : "\n);\n\nINSERT INTO llama_bench (", o->out);
    for (size_t i = 0; i < l->count; i++)
        if (!l->items[i].is_ours)
            fprintf(o->out, "%s%s", i ? ", " : "", l->items[i].name);
    fputs(") VALUES (", o->out);
    for (size_t i = 0; i < l->count; i++) {
        const field *f = &l->items[i];
        if (f->is_ours)
            continue;
        fputs(i ? ", '" : "'", o->out);
        if (f->kind == FIELD_INTEGER || f->kind == FIELD_BOOL)
            fprintf(o->out, "%" PRId64, f->number);
        else
            for (const char *p = f->text; *p; p++)
                fprintf(o->out, *p == '\'' ? "'%c" : "%c", *p);
        fputc('\'', o->out);
    }
    fputs(");\n", o->out);
}

static void print_markdown(bench_output *o, const bench_result *r) {
    const device_facts *d = device_get_facts(o->model->device);
    char size[24], parameters[24], backend[32], test[32], rate[48], median[64];
    double mib = (double)o->model_bytes / 1048576;
    if (mib < 1024)
        snprintf(size, sizeof size, "%.2f MiB", mib);
    else
        snprintf(size, sizeof size, "%.2f GiB", mib / 1024);
    if (o->parameters < 1000000000)
        snprintf(parameters, sizeof parameters, "%.2f M", (double)o->parameters / 1e6);
    else
        snprintf(parameters, sizeof parameters, "%.2f B", (double)o->parameters / 1e9);
    snprintf(backend, sizeof backend, "%s%s", d->api, d->emulated ? " (emulated)" : "");
    bench_test_get_name(&r->test, test, sizeof test);
    snprintf(rate, sizeof rate, "%.2f ± %.2f", r->mean_rate, r->deviation_rate);
    snprintf(median, sizeof median, "%.2f [%.2f, %.2f]", r->rates.median, r->rates.q1, r->rates.q3);
    if (!o->rows)
        fprintf(o->out,
                "| %-30s | %10s | %10s | %-16s | %7s | %15s | %20s | %26s |\n"
                "| %-30s | %10s | %10s | %-16s | %7s | %15s | %20s | %26s |\n",
                "model", "size", "params", "backend", "threads", "test", "t/s", "median [q1, q3]",
                "------------------------------", "---------:", "---------:", "----------------",
                "------:", "--------------:", "-------------------:", "-------------------------:");
    /* "±" takes two bytes and one column */
    fprintf(o->out, "| %-30s | %10s | %10s | %-16s | %7u | %15s | %21s | %26s |\n", o->model_type,
            size, parameters, backend, d->threads, test, rate, median);
}

void bench_output_begin(bench_output *o, FILE *out, bench_format format, const open_model *s) {
    *o = (bench_output){.out = out, .format = format, .model = s};
    describe_model(o);
    if (format == BENCH_JSON)
        fputs("[\n", out);
}

void bench_output_add(bench_output *o, const bench_result *r) {
    static field_list l;
    l.count = 0;
    add_machine(&l, o);
    add_settings(&l, o);
    add_result(&l, r);
    add_spread(&l, r);
    if (o->format == BENCH_MD)
        print_markdown(o, r);
    else if (o->format == BENCH_CSV)
        print_csv(o, &l);
    else if (o->format == BENCH_SQL)
        print_sql(o, &l);
    else
        print_json(o, &l, r);
    o->rows++;
    o->has_filled |= r->is_filled;
    fflush(o->out);
}

void bench_output_end(bench_output *o) {
    if (o->format == BENCH_JSON)
        fputs("\n]\n", o->out);
    if (o->format == BENCH_MD)
        fprintf(o->out, "\nbuild: assay " ASSAY_VERSION "\ncache: %s\n",
                model_get_cache_name(o->model->model));
    if (o->format == BENCH_MD && o->has_filled)
        fprintf(o->out,
                "depth: from %d tokens on the cache holds pseudo-random keys and values; no prompt "
                "was run\n",
                BENCH_FILLED_DEPTH);
    if (o->format == BENCH_MD && o->model->tuned)
        fprintf(o->out, "kernels: %s\n", o->model->tuned->path);
}
