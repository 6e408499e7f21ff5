/* profile_print: see profile_print.h. */
#include "profile_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/csv.h"
#include "harness/base/format.h"
#include "harness/base/json.h"
#include "harness/base/path.h"
#include "harness/base/table.h"
#include "profile_gate.h"
#include "profile_source.h"

/* What there is to know about a line or a whole, by name: the columns of the CSV file. */
enum { NUMBERS = 35 };
static const char *const number_names[NUMBERS] = {
    "device_loads",       "device_stores",     "constant_loads", "threadgroup_loads",
    "threadgroup_stores", "private_loads",     "private_stores", "atomics",
    "contention",         "load_requests",     "store_requests", "bytes",
    "load_sectors",       "store_sectors",     "lines",          "used_bytes",
    "new_simdgroup",      "new_threadgroup",   "new_grid",       "miss_8k",
    "miss_64k",           "miss_8m",           "conflicts_load", "conflicts_store",
    "instructions",       "lane_instructions", "flops",          "integers",
    "conversions",        "specials",          "simd_functions", "matrices",
    "barriers",           "work_most",         "work_mean"};

static uint64_t sum_loads(const profile_line *l, count_field f) {
    return l->n[TRAFFIC_LOAD][SPACE_DEVICE][f] + l->n[TRAFFIC_LOAD][SPACE_CONSTANT][f];
}

static uint64_t sum_stores(const profile_line *l, count_field f) {
    return l->n[TRAFFIC_STORE][SPACE_DEVICE][f];
}

static void get_numbers(const profile_line *l, uint64_t out[NUMBERS]) {
    const uint64_t(*load)[COUNT_FIELDS] = l->n[TRAFFIC_LOAD],
          (*store)[COUNT_FIELDS] = l->n[TRAFFIC_STORE],
          (*atomic)[COUNT_FIELDS] = l->n[TRAFFIC_ATOMIC];
    const uint64_t all[NUMBERS] = {
        load[SPACE_DEVICE][COUNT_LANES],
        store[SPACE_DEVICE][COUNT_LANES],
        load[SPACE_CONSTANT][COUNT_LANES],
        load[SPACE_THREADGROUP][COUNT_LANES],
        store[SPACE_THREADGROUP][COUNT_LANES],
        load[SPACE_PRIVATE][COUNT_LANES],
        store[SPACE_PRIVATE][COUNT_LANES],
        atomic[SPACE_DEVICE][COUNT_LANES] + atomic[SPACE_THREADGROUP][COUNT_LANES],
        atomic[SPACE_DEVICE][COUNT_CONTENTION] + atomic[SPACE_THREADGROUP][COUNT_CONTENTION],
        sum_loads(l, COUNT_TIMES),
        sum_stores(l, COUNT_TIMES),
        profile_sum_device(l, COUNT_BYTES),
        sum_loads(l, COUNT_SECTORS),
        sum_stores(l, COUNT_SECTORS),
        profile_sum_device(l, COUNT_LINES),
        profile_sum_device(l, COUNT_USED),
        sum_loads(l, COUNT_NEW_SIMD),
        sum_loads(l, COUNT_NEW_GROUP),
        sum_loads(l, COUNT_NEW_GRID),
        sum_loads(l, COUNT_MISS_8K),
        sum_loads(l, COUNT_MISS_64K),
        sum_loads(l, COUNT_MISS_8M),
        load[SPACE_THREADGROUP][COUNT_CONFLICTS],
        store[SPACE_THREADGROUP][COUNT_CONFLICTS],
        l->instructions,
        l->work[WORK_ALL],
        l->work[WORK_FLOPS],
        l->work[WORK_INTEGERS],
        l->work[WORK_CONVERSIONS],
        l->work[WORK_SPECIALS],
        l->simd,
        l->matrices,
        l->barriers,
        l->work_most,
        l->work_mean};
    memcpy(out, all, sizeof all);
}

/* For people ----------------------------------------------------------------------------------- */

static void print_percent(char *text, size_t size, double share) {
    if (isnan(share))
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%.1f", 100 * share);
}

static double divide(uint64_t part, uint64_t whole) {
    return whole ? (double)part / (double)whole : NAN;
}

enum { COLUMNS = 9 };

static void print_line(table *rows, const profile *p, const profile_line *l, const char *source) {
    char cells[COLUMNS][256];
    const char *list[COLUMNS];
    snprintf(cells[0], sizeof cells[0], "%s:%d", path_get_name(l->file), l->line);
    const uint64_t sectors = profile_sum_device(l, COUNT_SECTORS);
    snprintf(cells[1], sizeof cells[1], "%llu", (unsigned long long)sectors);
    print_percent(cells[2], sizeof cells[2],
                  divide(sectors, profile_sum_device(&p->sum, COUNT_SECTORS)));
    print_percent(cells[3], sizeof cells[3], profile_get_coalescing(l));
    snprintf(cells[4], sizeof cells[4], "%llu",
             (unsigned long long)profile_sum_device(l, COUNT_TIMES));
    print_percent(cells[5], sizeof cells[5], divide(l->instructions, p->sum.instructions));
    print_percent(cells[6], sizeof cells[6], profile_get_active(l));
    snprintf(cells[7], sizeof cells[7], "%llu",
             (unsigned long long)profile_sum_shared(l, COUNT_CONFLICTS));
    snprintf(cells[8], sizeof cells[8], "%.255s", source);
    for (int i = 0; i < COLUMNS; i++)
        list[i] = cells[i];
    table_print_row(rows, list, 0, PAINT_NONE);
}

static table start_table(table_column columns[COLUMNS], const profile *p) {
    const table_column all[COLUMNS] = {{.title = "line", .width = 24},
                                       {.title = "sectors", .right = true, .width = 9},
                                       {.title = "%", .right = true, .width = 5},
                                       {.title = "used %", .right = true, .width = 6, .rank = 1},
                                       {.title = "requests", .right = true, .width = 8, .rank = 3},
                                       {.title = "instr %", .right = true, .width = 7, .rank = 2},
                                       {.title = "active %", .right = true, .width = 8, .rank = 2},
                                       {.title = "conflicts", .right = true, .width = 9, .rank = 3},
                                       {.title = "source", .width = 20}};
    memcpy(columns, all, sizeof all);
    for (size_t i = 0; i < p->count; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s:%d", path_get_name(p->lines[i].file), p->lines[i].line);
        table_fit(&columns[0], text);
    }
    return table_new(stdout, columns, COLUMNS);
}

/* Every line of each file that has a count. */
static void print_annotated(const profile *p, table *rows, source_list *sources, code_list *code) {
    for (size_t i = 0; i < p->count; i++) {
        const char *file = p->lines[i].file;
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = strcmp(p->lines[k].file, file) != 0;
        const char *text = is_first ? source_find(sources, file) : NULL;
        int n = 1;
        for (const char *at = text; at && *at; at += strcspn(at, "\n"), at += *at == '\n', n++) {
            const profile_line none = {.line = n}, *l = &none;
            for (size_t k = 0; k < p->count; k++)
                if (p->lines[k].line == n && strcmp(p->lines[k].file, file) == 0)
                    l = &p->lines[k];
            char source[256];
            snprintf(source, sizeof source, "%.*s", (int)strcspn(at, "\n"), at);
            if (l != &none)
                print_line(rows, p, l, source);
            else
                printf("%-24d %s\n", n, source);
            code_print(code, file, n);
        }
    }
}

/* The hottest lines, or all, with the machine code where it was asked for. */
static void print_lines(const profile *p, size_t top, bool annotate) {
    table_column columns[COLUMNS];
    source_list sources = {.items = NULL};
    code_list code = p->code ? code_read(p->code) : (code_list){.items = NULL};
    table rows = start_table(columns, p);
    table_print_header(&rows);
    if (annotate)
        print_annotated(p, &rows, &sources, &code);
    for (size_t i = 0; i < p->count && i < top && !annotate; i++) {
        const profile_line *l = &p->lines[i];
        char source[256];
        source_copy_line(&sources, l->file, l->line, source, sizeof source);
        print_line(&rows, p, l, source);
        code_print(&code, l->file, l->line);
    }
    if (p->code)
        printf("%zu of the kernel's %zu instructions stand above; the others come from lines that "
               "are not listed and from Metal's functions\n",
               code.printed, code.count);
    code_free(&code);
    source_free(&sources);
}

/* How wide the loads are, and what a GPU is known to need for a thread. */
static void print_facts(const profile *p, const profile_gpu *g) {
    uint64_t all = 0;
    for (int i = 0; i < PROFILE_WIDTHS; i++)
        all += p->sum.widths[i];
    const char *before = "Loads of ";
    for (int i = 0; i < PROFILE_WIDTHS; i++)
        if (p->sum.widths[i]) {
            printf("%s%d byte%s: %.3g %%", before, 1 << i, i ? "s" : "",
                   100 * (double)p->sum.widths[i] / (double)all);
            before = ", ";
        }
    if (all)
        puts(" of the lanes' loads.");
    const double stored = profile_find_registers(p->kernel);
    if (p->registers)
        printf("ptxas gives each thread %u registers for an %s%s", p->registers, g->name,
               p->spill_bytes ? "" : ", and spills none.\n");
    else if (stored > 0)
        printf("An %s gives each thread %.0f registers.\n", g->name, stored);
    if (p->registers && p->spill_bytes)
        printf(", and its code stores and loads %u bytes of spilled ones.\n", p->spill_bytes);
}

void profile_print(profile *p, const profile_gpu *g, size_t top, bool annotate) {
    char sentences[PROFILE_SENTENCES][PROFILE_SENTENCE], time[32];
    profile_sort(p);
    profile_say(p, g, sentences);
    printf("%s: %llu threadgroup%s of %u threads, %u bytes of threadgroup memory, %u of private "
           "arrays\n",
           p->name, (unsigned long long)p->groups, p->groups == 1 ? "" : "s", p->group_threads,
           p->threadgroup_bytes, p->private_bytes);
    if (p->groups_run < p->groups)
        printf("counted: %llu of them; counts are scaled\n", (unsigned long long)p->groups_run);
    for (int i = 0; i < PROFILE_SENTENCES; i++)
        table_print_text(stdout, table_find_limit(stdout), 0, sentences[i]);
    const double measured = profile_find_measured(p->name);
    if (!isnan(measured))
        printf("Measured on an %s: %s.\n", g->name, format_time(measured, time, sizeof time));
    print_facts(p, g);
    print_lines(p, top, annotate);
    putchar('\n');
}

void profile_print_pair(const profile *a, const profile *b, const profile_gpu *g) {
    uint64_t x[NUMBERS], y[NUMBERS];
    get_numbers(&a->sum, x);
    get_numbers(&b->sum, y);
    printf("A: %s\nB: %s\n", a->name, b->name);
    printf("%-20s %20s %20s %8s\n", "", "A", "B", "B / A");
    for (int i = 0; i < NUMBERS; i++)
        if (x[i] || y[i])
            printf("%-20s %20llu %20llu %8.3f\n", number_names[i], (unsigned long long)x[i],
                   (unsigned long long)y[i], divide(y[i], x[i]));
    const profile *both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        char sentences[PROFILE_SENTENCES][PROFILE_SENTENCE];
        profile_say(both[i], g, sentences);
        for (int k = 0; k < PROFILE_SENTENCES; k++) {
            printf("%c: ", 'A' + i);
            table_print_text(stdout, table_find_limit(stdout), 0, sentences[k]);
        }
    }
}

/* For programs --------------------------------------------------------------------------------- */

static void print_json_numbers(const profile_line *l) {
    uint64_t n[NUMBERS];
    get_numbers(l, n);
    for (int i = 0; i < NUMBERS; i++)
        printf(", \"%s\": %llu", number_names[i], (unsigned long long)n[i]);
}

void profile_print_json(const profile_set *s, const profile_gpu *g) {
    printf(", \"profiles\": [");
    for (size_t i = 0; i < s->count; i++) {
        const profile *p = &s->items[i];
        const profile_expectation x = profile_expect(p, g);
        char sentences[PROFILE_SENTENCES][PROFILE_SENTENCE];
        profile_say(p, g, sentences);
        printf("%s\n  {", i ? "," : "");
        json_print_field(stdout, "case", p->name);
        json_add_field(stdout, "kernel", p->kernel);
        json_add_field(stdout, "bound", profile_get_bound_name(x.bound));
        printf(", \"predicted_ns\": %.0f, \"measured_ns\": ", x.total_ns);
        json_print_number(stdout, profile_find_measured(p->name), false);
        printf(", \"memory_bytes\": %.0f, \"must_bytes\": %llu, \"threadgroup_bytes\": %u, "
               "\"private_bytes\": %u, \"threadgroups\": %llu, \"threadgroups_counted\": %llu, "
               "\"sentences\": [",
               x.memory_bytes, (unsigned long long)p->must_bytes, p->threadgroup_bytes,
               p->private_bytes, (unsigned long long)p->groups, (unsigned long long)p->groups_run);
        for (int k = 0; k < PROFILE_SENTENCES; k++) {
            fputs(k ? ", " : "", stdout);
            json_print_text(stdout, sentences[k], strlen(sentences[k]));
        }
        printf("]");
        print_json_numbers(&p->sum);
        printf(", \"lines\": [");
        for (size_t k = 0; k < p->count; k++) {
            printf("%s\n    {", k ? "," : "");
            json_print_field(stdout, "file", p->lines[k].file);
            printf(", \"line\": %d", p->lines[k].line);
            print_json_numbers(&p->lines[k]);
            printf("}");
        }
        printf("]}");
    }
    printf("]}\n");
}

/* The sentences, or the line of the source. */
static void add_words(csv *c, const profile *p, const profile_line *l, const profile_gpu *g,
                      source_list *sources) {
    char sentences[PROFILE_SENTENCES][PROFILE_SENTENCE], text[PROFILE_SENTENCES * PROFILE_SENTENCE];
    if (l == &p->sum) {
        profile_say(p, g, sentences);
        snprintf(text, sizeof text, "%s %s %s", sentences[0], sentences[1], sentences[2]);
    } else
        source_copy_line(sources, l->file, l->line, text, sizeof text);
    csv_add_text(c, text);
}

static void add_row(csv *c, const profile *p, const profile_line *l, const profile_gpu *g,
                    source_list *sources) {
    uint64_t n[NUMBERS];
    const profile_expectation x = profile_expect(p, g);
    const double measured = profile_find_measured(p->name);
    const bool is_sum = l == &p->sum;
    csv_add_text(c, p->name);
    csv_add_text(c, p->kernel);
    csv_add_text(c, is_sum ? "" : l->file);
    csv_add_u64(c, (uint64_t)l->line);
    get_numbers(l, n);
    for (int i = 0; i < NUMBERS; i++)
        csv_add_u64(c, n[i]);
    const uint64_t whole[] = {p->launches,      p->groups,
                              p->groups_run,    p->simdgroups,
                              p->group_threads, p->threadgroup_bytes,
                              p->private_bytes, is_sum ? p->must_bytes : 0};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        csv_add_u64(c, whole[i]);
    csv_add_double(c, is_sum ? x.memory_bytes : 0);
    for (int i = 0; i < 2; i++)
        if (is_sum && p->registers)
            csv_add_u64(c, i == 0 ? p->registers : p->spill_bytes);
        else
            csv_add_text(c, "");
    csv_add_text(c, is_sum ? profile_get_bound_name(x.bound) : "");
    csv_add_double(c, is_sum ? x.total_ns : 0);
    if (is_sum && !isnan(measured))
        csv_add_double(c, measured);
    else
        csv_add_text(c, "");
    csv_add_text(c, is_sum ? profile_get_cpu() : "");
    add_words(c, p, l, g, sources);
    csv_end_row(c);
}

bool profile_write_csv(const profile_set *s, const profile_gpu *g, const char *path, err *e) {
    csv *c = csv_new();
    source_list sources = {.items = NULL};
    static const char *const first[] = {"case", "kernel", "file", "line"};
    static const char *const last[] = {"launches",      "threadgroups", "threadgroups_counted",
                                       "simdgroups",    "threads",      "threadgroup_bytes",
                                       "private_bytes", "must_bytes",   "memory_bytes",
                                       "registers",     "spill_bytes",  "bound",
                                       "predicted_ns",  "measured_ns",  "cpu",
                                       "text"};
    for (int i = 0; i < 4; i++)
        csv_add_text(c, first[i]);
    for (int i = 0; i < NUMBERS; i++)
        csv_add_text(c, number_names[i]);
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        csv_add_text(c, last[i]);
    csv_end_row(c);
    for (size_t i = 0; i < s->count; i++) {
        const profile *p = &s->items[i];
        add_row(c, p, &p->sum, g, &sources);
        for (size_t k = 0; k < p->count; k++)
            add_row(c, p, &p->lines[k], g, &sources);
    }
    source_free(&sources);
    bool ok = csv_write(c, path, e);
    csv_free(c);
    return ok;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_times(csv *c, const profile *p, const profile_expectation *x, double measured) {
    csv_add_text(c, p->name);
    csv_add_u64(c, p->groups);
    csv_add_u64(c, p->groups_run);
    for (int i = 0; i < BOUNDS; i++)
        csv_add_double(c, round(x->ns[i]));
    csv_add_text(c, profile_get_bound_name(x->bound));
    csv_add_double(c, round(x->total_ns));
    csv_add_double(c, round(measured));
    csv_add_double(c, round(1000 * (x->total_ns / measured - 1)) / 10);
    csv_end_row(c);
}

bool profile_write_times(const profile_set *s, const profile_gpu *g, const char *path, err *e) {
    static const char *const titles[] = {"case",         "threadgroups", "threadgroups_counted",
                                         "memory_ns",    "cache_ns",     "threadgroup_memory_ns",
                                         "issue_ns",     "latency_ns",   "bound",
                                         "predicted_ns", "measured_ns",  "error_pct"};
    csv *c = csv_new();
    double *errors = array_new(s->count + 1, sizeof *errors);
    size_t n = 0;
    csv_add_meta(c, "device", g->name);
    csv_add_meta(c, "measured", profile_get_measured_commit());
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        csv_add_text(c, titles[i]);
    csv_end_row(c);
    for (size_t i = 0; i < s->count; i++) {
        const profile_expectation x = profile_expect(&s->items[i], g);
        const double measured = profile_find_measured(s->items[i].name);
        if (isnan(measured))
            continue;
        add_times(c, &s->items[i], &x, measured);
        errors[n++] = fabs(x.total_ns / measured - 1);
    }
    qsort(errors, n, sizeof *errors, compare_doubles);
    if (n > 0)
        printf("%zu cases: the prediction is off by %.0f %% at the median, by more than %.0f %% in "
               "a quarter "
               "of them\n",
               n, 100 * errors[n / 2], 100 * errors[n - 1 - n / 4]);
    bool ok = !path || csv_write(c, path, e);
    csv_free(c);
    free(errors);
    return ok;
}
