/* profile_print: see profile_print.h. */
#include "profile_print.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/root.h"
#include "verb.h"

/* #line may name any file. Files are named as they were given, from the project's folder, or from where the program's own are. The caller
 * frees the text; NULL: it is not found. */
static char *read_source(const char *file) {
    char folder[PATH_MAX], path[PATH_MAX];
    enum { LONGEST = 16 << 20 };
    const bool may_read = path_is_source(file) || os_is_below(file, ".");
    char *text = may_read ? os_read_source(file, LONGEST, NULL, NULL) : NULL;
    if (!text && *file != '/' && root_find_project(folder, sizeof folder) &&
        path_join(path, sizeof path, NULL, folder, file))
        text = os_read_source(path, LONGEST, NULL, NULL);
    if (!text && *file != '/' && os_join_home(path, sizeof path, NULL, file))
        text = os_read_source(path, LONGEST, NULL, NULL);
    return text;
}

/* Line n, without what is before its first word; "" if there is none. */
static void copy_line(const char *file, int n, char *out, size_t size) {
    char *all = read_source(file);
    const char *text = all;
    for (int i = 1; i < n && text; i++) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    text = text ? text + strspn(text, " \t") : "";
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
    free(all);
}

/* A line such as //## File "/a/b.metal", line 44 comes before its instructions, each of which begins with its
 * address as a comment. */
static code_list code_read(const char *disassembly) {
    static const char place[] = "//## File \"", middle[] = "\", line ";
    code_list c = {.items = NULL};
    code_line at = {.file = ""};
    for (const char *line = disassembly, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *p = line + strspn(line, " \t");
        if (strncmp(p, place, strlen(place)) == 0) {
            const char *file = p + strlen(place), *quote = strstr(file, middle);
            if (!quote || quote > end)
                continue;
            at.file = file;
            at.file_length = (int)(quote - file);
            at.line = (int)strtol(quote + strlen(middle), NULL, 10);
        } else if (p[0] == '/' && p[1] == '*') {
            at.text = p;
            at.text_length = (int)(end - p);
            *ARRAY_ADD(c.items, c.count, c.room) = at;
        }
    }
    return c;
}

/* "   4: fe0990098000           mov      $r2, u8 ; kernels/softmax.metal:34", or ";~" and a line that is near. */
code_list code_read_agx(const char *disassembly) {
    static const char place[] = " ;", part[] = "; once per launch";
    code_list c = {.items = NULL};
    for (const char *line = disassembly, *end; *line && strncmp(line, part, strlen(part)) != 0;
         line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *found = strstr(line, place), *colon = end;
        code_line at = {.file = "", .text = line, .text_length = (int)(end - line)};
        while (found && colon > found && *colon != ':')
            colon--;
        if (found && found < end && colon > found) {
            at.is_near = found[strlen(place)] == '~';
            at.file = found + strlen(place) + at.is_near + 1;
            at.file_length = (int)(colon - at.file);
            at.line = (int)strtol(colon + 1, NULL, 10);
            at.text_length = (int)(found - line);
        }
        *ARRAY_ADD(c.items, c.count, c.room) = at;
    }
    return c;
}

/* nvdisasm puts the current folder before a path that is not absolute. */
static bool is_of_file(const code_line *l, const char *file) {
    const int length = (int)strlen(file), before = l->file_length - length;
    return before >= 0 && memcmp(l->file + before, file, (size_t)length) == 0 &&
           (before == 0 || l->file[before - 1] == '/');
}

/* Prints the instructions of a line of a file. */
static void code_print(code_list *c, const char *file, int line) {
    for (size_t i = 0; i < c->count; i++) {
        const code_line *l = &c->items[i];
        if (l->line != line || !is_of_file(l, file))
            continue;
        printf("    %.*s\n", l->text_length, l->text);
        c->printed++;
    }
}

void code_free(code_list *c) {
    free(c->items);
    *c = (code_list){.items = NULL};
}

static counted_line *get_line(void *rows, size_t size, size_t i) {
    return (counted_line *)((char *)rows + i * size);
}

/* The row of a line, or NULL. */
static counted_line *find_row(void *rows, size_t count, size_t size, const char *file, int line) {
    for (size_t i = 0; i < count; i++) {
        counted_line *l = get_line(rows, size, i);
        if (l->line == line && strcmp(l->file, file) == 0)
            return l;
    }
    return NULL;
}

static void print_row(sink *s, counted_line *l, code_list *code) {
    sink_add(s, l, PAINT_NONE);
    if (code)
        code_print(code, l->file, l->line);
}

/* Every line of each file that has a count. */
static void print_annotated(sink *s, void *rows, size_t count, size_t size, code_list *code) {
    for (size_t i = 0; i < count; i++) {
        const char *file = get_line(rows, size, i)->file;
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = strcmp(get_line(rows, size, k)->file, file) != 0;
        char *text = is_first ? read_source(file) : NULL;
        int n = 1;
        for (const char *at = text; at && *at; at += strcspn(at, "\n"), at += *at == '\n', n++) {
            counted_line *l = find_row(rows, count, size, file, n);
            if (!l) {
                printf("%-24d %.*s\n", n, (int)strcspn(at, "\n"), at);
                continue;
            }
            snprintf(l->source, sizeof l->source, "%.*s", (int)strcspn(at, "\n"), at);
            print_row(s, l, code);
        }
        free(text);
    }
}

void counted_lines_print(record r, void *rows, size_t count, size_t size, bool annotate, size_t top,
                         code_list *code) {
    sink s = {.record = r, .out = stdout, .streams = true};
    for (size_t i = 0; i < count; i++) {
        counted_line *l = get_line(rows, size, i);
        snprintf(l->place, sizeof l->place, "%.200s:%d", path_get_name(l->file), l->line);
        sink_fit(&s, l);
    }
    sink_end(&s); /* the header */
    if (annotate)
        print_annotated(&s, rows, count, size, code);
    for (size_t i = 0; i < count && i < top && !annotate; i++) {
        counted_line *l = get_line(rows, size, i);
        copy_line(l->file, l->line, l->source, sizeof l->source);
        print_row(&s, l, code);
    }
}

/* Numbers --------------------------------------------------------------------------------------- */

/* What there is to know about a line or a whole, by name: the columns of the CSV file. */
/* clang-format off */
#define NUMBERS(X) \
    X(device_loads, load[SPACE_DEVICE][COUNT_LANES]) \
    X(device_stores, store[SPACE_DEVICE][COUNT_LANES]) \
    X(constant_loads, load[SPACE_CONSTANT][COUNT_LANES]) \
    X(threadgroup_loads, load[SPACE_THREADGROUP][COUNT_LANES]) \
    X(threadgroup_stores, store[SPACE_THREADGROUP][COUNT_LANES]) \
    X(private_loads, load[SPACE_PRIVATE][COUNT_LANES]) \
    X(private_stores, store[SPACE_PRIVATE][COUNT_LANES]) \
    X(atomics, atomic[SPACE_DEVICE][COUNT_LANES] + atomic[SPACE_THREADGROUP][COUNT_LANES]) \
    X(contention, atomic[SPACE_DEVICE][COUNT_CONTENTION] + atomic[SPACE_THREADGROUP][COUNT_CONTENTION]) \
    X(load_requests, sum_loads(l, COUNT_TIMES)) \
    X(store_requests, store[SPACE_DEVICE][COUNT_TIMES]) \
    X(bytes, profile_sum_device(l, COUNT_BYTES)) \
    X(load_sectors, sum_loads(l, COUNT_SECTORS)) \
    X(store_sectors, store[SPACE_DEVICE][COUNT_SECTORS]) \
    X(lines, profile_sum_device(l, COUNT_LINES)) \
    X(used_bytes, profile_sum_device(l, COUNT_USED)) \
    X(new_simdgroup, sum_loads(l, COUNT_NEW_SIMD)) \
    X(new_threadgroup, sum_loads(l, COUNT_NEW_GROUP)) \
    X(new_grid, sum_loads(l, COUNT_NEW_GRID)) \
    X(miss_8k, sum_loads(l, COUNT_MISS_8K)) \
    X(miss_64k, sum_loads(l, COUNT_MISS_64K)) \
    X(miss_8m, sum_loads(l, COUNT_MISS_8M)) \
    X(conflicts_load, load[SPACE_THREADGROUP][COUNT_CONFLICTS]) \
    X(conflicts_store, store[SPACE_THREADGROUP][COUNT_CONFLICTS]) \
    X(instructions, l->instructions) \
    X(lane_instructions, l->work[WORK_ALL]) \
    X(flops, l->work[WORK_FLOPS]) \
    X(integers, l->work[WORK_INTEGERS]) \
    X(conversions, l->work[WORK_CONVERSIONS]) \
    X(specials, l->work[WORK_SPECIALS]) \
    X(simd_functions, l->simd) \
    X(matrices, l->matrices) \
    X(barriers, l->barriers) \
    X(work_most, l->work_most) \
    X(work_mean, l->work_mean)
/* clang-format on */

#define MEMBER(name, value) uint64_t name;
#define AS_FIELD(name, value) FIELD(profile_row, n.name, FIELD_COUNT, #name),
#define VALUE(name, value) .name = value,
typedef struct {
    NUMBERS(MEMBER)
} numbers;

/* A line of a case, or all of it (line 0). */
typedef struct {
    const char *name, *kernel, *file, *bound, *cpu, *text;
    int line;
    uint64_t launches, groups, groups_run, simdgroups, must_bytes;
    uint32_t threads, threadgroup_bytes, private_bytes;
    double memory_bytes, registers, spill_bytes, predicted_ns, measured_ns; /* NaN: not known */
    numbers n;
} profile_row;

static const field row_fields[] = {
    FIELD(profile_row, name, FIELD_TEXT, "case"),
    FIELD(profile_row, kernel, FIELD_TEXT, "kernel"),
    FIELD(profile_row, file, FIELD_TEXT, "file"),
    FIELD(profile_row, line, FIELD_INTEGER, "line"),
    NUMBERS(AS_FIELD) FIELD(profile_row, launches, FIELD_COUNT, "launches"),
    FIELD(profile_row, groups, FIELD_COUNT, "threadgroups"),
    FIELD(profile_row, groups_run, FIELD_COUNT, "threadgroups_counted"),
    FIELD(profile_row, simdgroups, FIELD_COUNT, "simdgroups"),
    FIELD(profile_row, threads, FIELD_COUNT, "threads"),
    FIELD(profile_row, threadgroup_bytes, FIELD_COUNT, "threadgroup_bytes"),
    FIELD(profile_row, private_bytes, FIELD_COUNT, "private_bytes"),
    FIELD(profile_row, must_bytes, FIELD_COUNT, "must_bytes"),
    FIELD(profile_row, memory_bytes, FIELD_REAL, "memory_bytes"),
    FIELD(profile_row, registers, FIELD_REAL, "registers", .is_optional = true,
          .may_be_empty = true),
    FIELD(profile_row, spill_bytes, FIELD_REAL, "spill_bytes", .is_optional = true,
          .may_be_empty = true),
    FIELD(profile_row, bound, FIELD_TEXT, "bound"),
    FIELD(profile_row, predicted_ns, FIELD_REAL, "predicted_ns"),
    FIELD(profile_row, measured_ns, FIELD_REAL, "measured_ns", .may_be_empty = true),
    FIELD(profile_row, cpu, FIELD_TEXT, "cpu", .is_optional = true),
    FIELD(profile_row, text, FIELD_TEXT, "text"),
};
enum { NUMBER_COUNT = sizeof(numbers) / sizeof(uint64_t) };
static const record rows = RECORD(row_fields), all_numbers = {row_fields + 4, NUMBER_COUNT},
                    line_numbers = {row_fields + 2, NUMBER_COUNT + 2}, case_names = {row_fields, 2},
                    case_numbers = {row_fields + 4,
                                    sizeof row_fields / sizeof *row_fields - 5}; /* all but text */

static uint64_t sum_loads(const profile_line *l, count_field f) {
    return l->n[TRAFFIC_LOAD][SPACE_DEVICE][f] + l->n[TRAFFIC_LOAD][SPACE_CONSTANT][f];
}

/* Without what is expected of a GPU. */
static profile_row start_row(const profile *p, const profile_line *l) {
    const uint64_t(*load)[COUNT_FIELDS] = l->n[TRAFFIC_LOAD],
          (*store)[COUNT_FIELDS] = l->n[TRAFFIC_STORE],
          (*atomic)[COUNT_FIELDS] = l->n[TRAFFIC_ATOMIC];
    const bool is_sum = l == &p->sum, has_registers = is_sum && p->registers;
    return (profile_row){.name = p->name,
                         .kernel = p->kernel,
                         .file = is_sum ? "" : l->file,
                         .line = l->line,
                         .launches = p->launches,
                         .groups = p->groups,
                         .groups_run = p->groups_run,
                         .simdgroups = p->simdgroups,
                         .must_bytes = is_sum ? p->must_bytes : 0,
                         .threads = p->group_threads,
                         .threadgroup_bytes = p->threadgroup_bytes,
                         .private_bytes = p->private_bytes,
                         .registers = has_registers ? p->registers : (double)NAN,
                         .spill_bytes = has_registers ? p->spill_bytes : (double)NAN,
                         .measured_ns = NAN,
                         .n = {NUMBERS(VALUE)}};
}

static profile_row make_row(const profile *p, const profile_line *l, const profile_gpu *g) {
    profile_row r = start_row(p, l);
    if (l != &p->sum)
        return r;
    const profile_expectation x = profile_expect(p, g);
    r.memory_bytes = x.memory_bytes;
    r.bound = profile_get_bound_name(x.bound);
    r.predicted_ns = x.total_ns;
    r.measured_ns = profile_find_measured(p->name);
    r.cpu = profile_get_cpu();
    return r;
}

/* For people ----------------------------------------------------------------------------------- */

static double divide(double part, double whole) {
    return whole != 0 ? part / whole : NAN;
}

typedef struct {
    counted_line head;
    uint64_t sectors, requests, conflicts;
    double share, used, instructions, active; /* percent */
} line_view;

static const field line_fields[] = {
    FIELD(line_view, head.place, FIELD_CHARS, NULL, "line", .width = 24),
    FIELD(line_view, sectors, FIELD_COUNT, NULL, "sectors", .width = 9),
    FIELD(line_view, share, FIELD_REAL, NULL, "%", .width = 5, .format = "%.1f"),
    FIELD(line_view, used, FIELD_REAL, NULL, "used %", .width = 6, .rank = 1, .format = "%.1f"),
    FIELD(line_view, requests, FIELD_COUNT, NULL, "requests", .width = 8, .rank = 3),
    FIELD(line_view, instructions, FIELD_REAL, NULL, "instr %", .width = 7, .rank = 2,
          .format = "%.1f"),
    FIELD(line_view, active, FIELD_REAL, NULL, "active %", .width = 8, .rank = 2, .format = "%.1f"),
    FIELD(line_view, conflicts, FIELD_COUNT, NULL, "conflicts", .width = 9, .rank = 3),
    FIELD(line_view, head.source, FIELD_CHARS, NULL, "source", .width = 20),
};

/* The hottest lines, or all, with the machine code where it was asked for. */
static void print_lines(const profile *p, size_t top, bool annotate) {
    const double sectors = (double)profile_sum_device(&p->sum, COUNT_SECTORS);
    code_list code = p->code ? code_read(p->code) : (code_list){.items = NULL};
    line_view *views = array_new(p->count + 1, sizeof *views);
    for (size_t i = 0; i < p->count; i++) {
        const profile_line *l = &p->lines[i];
        line_view *v = &views[i];
        snprintf(v->head.file, sizeof v->head.file, "%s", l->file);
        v->head.line = l->line;
        v->sectors = profile_sum_device(l, COUNT_SECTORS);
        v->requests = profile_sum_device(l, COUNT_TIMES);
        v->conflicts = profile_sum_shared(l, COUNT_CONFLICTS);
        v->share = 100 * divide((double)v->sectors, sectors);
        v->used = 100 * profile_get_coalescing(l);
        v->instructions = 100 * divide((double)l->instructions, (double)p->sum.instructions);
        v->active = 100 * profile_get_active(l);
    }
    counted_lines_print((record)RECORD(line_fields), views, p->count, sizeof *views, annotate, top,
                        &code);
    if (p->code)
        printf("%zu of the kernel's %zu instructions stand above; the others come from lines that "
               "are not listed and from Metal's functions\n",
               code.printed, code.count);
    code_free(&code);
    free(views);
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
    const double measured = profile_find_measured(p->name), x = profile_expect(p, g).total_ns;
    const char *const doubt = " (more than 1.5 times off: the prediction is wrong here)";
    if (!isnan(measured))
        printf("Measured on an %s: %s%s.\n", g->name, format_time(measured, time, sizeof time),
               measured > 1.5 * x || x > 1.5 * measured ? doubt : "");
    print_facts(p, g);
    print_lines(p, top, annotate);
    putchar('\n');
}

void profile_print_pair(const profile *a, const profile *b, const profile_gpu *g) {
    const profile *both[] = {a, b};
    const profile_row x = start_row(a, &a->sum), y = start_row(b, &b->sum);
    printf("A: %s\nB: %s\n", a->name, b->name);
    printf("%-20s %20s %20s %8s\n", "", "A", "B", "B / A");
    for (const field *f = all_numbers.fields; f < all_numbers.fields + NUMBER_COUNT; f++) {
        const double n = field_get_number(f, &x), m = field_get_number(f, &y);
        char left[32], right[32];
        if (n > 0 || m > 0)
            printf("%-20s %20s %20s %8.3f\n", f->name, field_print(f, &x, left, sizeof left),
                   field_print(f, &y, right, sizeof right), divide(m, n));
    }
    for (int i = 0; i < 2; i++) {
        char sentences[PROFILE_SENTENCES][PROFILE_SENTENCE];
        profile_say(both[i], g, sentences);
        for (int k = 0; k < PROFILE_SENTENCES; k++) {
            printf("%c: ", 'A' + i);
            table_print_text(stdout, table_find_limit(stdout), 0, sentences[k]);
        }
    }
}

static void add_profile(json *j, const profile *p, const profile_gpu *g) {
    const profile_row r = make_row(p, &p->sum, g);
    char sentences[PROFILE_SENTENCES][PROFILE_SENTENCE];
    profile_say(p, g, sentences);
    json_open(j, NULL, '{');
    record_add_json(&case_names, &r, j);
    json_open(j, "sentences", '[');
    for (int k = 0; k < PROFILE_SENTENCES; k++)
        json_add_text(j, NULL, sentences[k]);
    json_close(j);
    record_add_json(&case_numbers, &r, j);
    json_open(j, "lines", '[');
    for (size_t k = 0; k < p->count; k++) {
        const profile_row line = start_row(p, &p->lines[k]);
        json_open(j, NULL, '{');
        record_add_json(&line_numbers, &line, j);
        json_close(j);
    }
    json_close(j);
    json_close(j);
}

void profile_set_free(profile_set *s) {
    for (size_t i = 0; i < s->count; i++)
        profile_free(&s->items[i]);
    free(s->items);
}

void profile_print_json(const profile_set *s, const profile_gpu *g, uint64_t seed) {
    json j = verb_open_json(stdout, "profile", NULL, seed);
    json_open(&j, "profiles", '[');
    for (size_t i = 0; i < s->count; i++)
        add_profile(&j, &s->items[i], g);
    json_close(&j);
    json_close(&j);
}

static void add_row(sink *to, const profile *p, const profile_line *l, const profile_gpu *g) {
    char sentences[PROFILE_SENTENCES][PROFILE_SENTENCE], text[PROFILE_SENTENCES * PROFILE_SENTENCE];
    profile_row r = make_row(p, l, g);
    if (l == &p->sum) {
        profile_say(p, g, sentences);
        snprintf(text, sizeof text, "%s %s %s", sentences[0], sentences[1], sentences[2]);
    } else
        copy_line(l->file, l->line, text, sizeof text);
    r.text = text;
    sink_add(to, &r, PAINT_NONE);
}

bool profile_write_csv(const profile_set *s, const profile_gpu *g, const char *path, err *e) {
    sink to = {.record = rows, .csv = csv_new()};
    record_add_titles(&rows, to.csv);
    for (size_t i = 0; i < s->count; i++) {
        const profile *p = &s->items[i];
        add_row(&to, p, &p->sum, g);
        for (size_t k = 0; k < p->count; k++)
            add_row(&to, p, &p->lines[k], g);
    }
    bool ok = csv_write(to.csv, path, e);
    csv_free(to.csv);
    return ok;
}

const char *const profile_gated[PROFILE_GATED] = {"sectors",   "atomics",      "instructions",
                                                  "conflicts", "idle lanes",   "private bytes",
                                                  "registers", "spilled bytes"};
enum { GATED_INSTRUCTIONS = 2, GATED_IDLE = 4 };

static void set_gated(double out[PROFILE_GATED], const profile_row *r) {
    const numbers *n = &r->n;
    const double all[PROFILE_GATED] = {(double)(n->load_sectors + n->store_sectors),
                                       (double)n->atomics,
                                       (double)n->instructions,
                                       (double)(n->conflicts_load + n->conflicts_store),
                                       (double)(n->instructions * MSL_LANES) -
                                           (double)n->lane_instructions,
                                       r->private_bytes,
                                       r->registers,
                                       r->spill_bytes};
    memcpy(out, all, sizeof all);
}

void profile_get_gated(const profile *p, double out[PROFILE_GATED]) {
    const profile_row r = start_row(p, &p->sum);
    set_gated(out, &r);
}

const char *profile_get_cpu(void) {
    static struct utsname name;
    return uname(&name) == 0 ? name.machine : "unknown";
}

bool profile_read_gated(const csv_file *f, const char *name, double out[PROFILE_GATED], bool *found,
                        bool *is_other_cpu, err *e) {
    *found = false;
    for (size_t i = 0; i < csv_count_rows(f) && !*found; i++) {
        profile_row r = {.registers = NAN, .spill_bytes = NAN, .cpu = profile_get_cpu()};
        if (!record_read(&rows, f, i, &r, e))
            return false;
        if (strcmp(r.name, name) != 0 || r.line != 0)
            continue;
        *found = true;
        set_gated(out, &r);
        if (strcmp(r.cpu, profile_get_cpu()) == 0)
            continue;
        out[GATED_INSTRUCTIONS] = out[GATED_IDLE] = NAN;
        *is_other_cpu = true;
    }
    return true;
}

void gate_compare(gate *g, const char *name, const char *what, double was, double now) {
    if (isnan(was) || isnan(now) || now <= was * (1 + g->threshold / 100))
        return;
    printf("%s: %s grew from %.0f to %.0f (%+.1f %%)\n", name, what, was, now,
           was > 0 ? 100 * (now / was - 1) : INFINITY);
    g->grown++;
}

exit_code gate_end(const gate *g, const char *things, err *e) {
    if (g->compared == 0)
        return err_code(e, EXIT_INCONCLUSIVE, "%.160s has none of these %s", g->baseline, things);
    fprintf(stderr, "%zu compared with %s, %zu number%s grew by more than %g %%\n", g->compared,
            g->baseline, g->grown, g->grown == 1 ? "" : "s", g->threshold);
    return g->grown ? EXIT_REGRESSION : EXIT_OK;
}
