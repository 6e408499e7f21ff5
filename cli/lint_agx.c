#include "lint_agx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"
#include "harness/base/array.h"
#include "harness/base/csv.h"
#include "harness/base/csv_read.h"
#include "harness/base/json.h"
#include "harness/base/progress.h"
#include "harness/base/table.h"
#include "lint_device.h"
#include "output.h"
#include "verb.h"

typedef struct {
    agx_row *items;
    size_t count, room;
} row_list;

static const struct {
    const char *title, *key;
    size_t at;
    bool is_gated; /* it must not grow */
} numbers[] = {
    {"instructions", "instructions", offsetof(agx_facts, instructions), true},
    {"registers", "half_registers", offsetof(agx_facts, registers), true},
    {"threads", "threads", offsetof(agx_facts, threads), false},
    {"scratch", "scratch_bytes", offsetof(agx_facts, scratch), true},
    {"spills", "spills", offsetof(agx_facts, spills), true},
    {"fills", "fills", offsetof(agx_facts, fills), true},
    {"loops", "loops", offsetof(agx_facts, loops), false},
    {"code bytes", "code_bytes", offsetof(agx_facts, bytes), false},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static uint32_t get_number(const agx_facts *f, size_t i) {
    uint32_t value;
    memcpy(&value, (const char *)f + numbers[i].at, sizeof value);
    return value;
}

/* Compiling ---------------------------------------------------------------------------------- */

/* name: "kernel", or "kernel (file)" where two versions are compared. */
static bool add_row(row_list *rows, agx_compiler *c, const msl_unit *u, const msl_signature *s,
                    const char *path, bool is_other, bool with_code, err *e) {
    size_t size = strlen(s->host_name) + strlen(path) + 4;
    agx_row *r = ARRAY_ADD(rows->items, rows->count, rows->room);
    *r = (agx_row){.kernel = array_new(size, 1), .path = path, .line = s->line};
    snprintf(r->kernel, size, is_other ? "%s (%s)" : "%s", s->host_name, path);
    constant_value *ones = lint_make_ones(u);
    bool ok = agx_compile(c, u, s->host_name, ones, msl_count_constants(u), AGX_COMPILE, &r->facts,
                          with_code ? &r->code : NULL, e);
    free(ones);
    return ok;
}

static const msl_signature *find_kernel(const msl_unit *u, const char *name) {
    for (size_t i = 0; u && i < msl_count_kernels(u); i++)
        if (!msl_get_problem(u, i) && strcmp(msl_get_kernel(u, i)->host_name, name) == 0)
            return msl_get_kernel(u, i);
    return NULL;
}

/* Each kernel of a file, followed by its other version if there is one. */
static bool add_file(row_list *rows, agx_compiler *c, const char *path, const msl_extras *extras,
                     const char *other_path, const msl_unit *other, err *e) {
    msl_unit *u = msl_load_with(path, extras, e);
    bool ok = u != NULL;
    for (size_t i = 0; ok && i < msl_count_kernels(u); i++) {
        const msl_signature *s = msl_get_kernel(u, i), *old = find_kernel(other, s->host_name);
        if (msl_get_problem(u, i) || (other && !old))
            continue;
        ok = add_row(rows, c, u, s, path, false, false, e) &&
             (!old || add_row(rows, c, other, old, other_path, true, false, e));
    }
    msl_free(u);
    return ok;
}

/* Output ------------------------------------------------------------------------------------- */

/* Rows that were refused come last, with the reason. */
static void print_rows(FILE *out, const agx_row *rows, size_t count) {
    table_column columns[1 + NUMBERS] = {{.title = "kernel"}};
    char texts[NUMBERS][16];
    const char *cells[1 + NUMBERS];
    size_t compiled = 0;
    for (size_t k = 0; k < NUMBERS; k++)
        columns[1 + k] = (table_column){.title = numbers[k].title, .right = true};
    for (size_t i = 0; i < count; i++) {
        table_fit(&columns[0], rows[i].kernel);
        compiled += !rows[i].facts.refusal[0];
    }
    for (size_t k = 0; k < NUMBERS; k++)
        table_fit(&columns[1 + k], "");
    table t = table_new(out, columns, 1 + NUMBERS);
    if (compiled > 0)
        table_print_header(&t);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].facts.refusal[0])
            continue;
        cells[0] = rows[i].kernel;
        for (size_t k = 0; k < NUMBERS; k++) {
            snprintf(texts[k], sizeof texts[k], "%" PRIu32, get_number(&rows[i].facts, k));
            cells[1 + k] = texts[k];
        }
        table_print_row(&t, cells, 0, PAINT_NONE);
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].facts.refusal[0])
            fprintf(out, "%s: not compiled: %s\n", rows[i].kernel, rows[i].facts.refusal);
}

/* For the report (report/part_agx.c), which warns of each that uses scratch memory. */
static bool write_csv(const agx_compiler *c, const row_list *rows, const char *path, err *e) {
    csv *out = csv_new();
    csv_add_meta(out, "agx compiler", agx_compiler_get_name(c));
    csv_add_text(out, "kernel");
    csv_add_text(out, "file");
    for (size_t k = 0; k < NUMBERS; k++)
        csv_add_text(out, numbers[k].key);
    csv_add_text(out, "refused");
    csv_end_row(out);
    for (size_t i = 0; i < rows->count; i++) {
        const agx_row *r = &rows->items[i];
        csv_add_text(out, r->kernel);
        csv_add_text(out, r->path);
        for (size_t k = 0; k < NUMBERS; k++)
            csv_add_u64(out, get_number(&r->facts, k));
        csv_add_text(out, r->facts.refusal);
        csv_end_row(out);
    }
    bool ok = csv_write(out, path, e);
    csv_free(out);
    return ok;
}

/* Does an earlier case have the same kernel? */
static bool is_repeated(const case_list *cases, size_t at) {
    size_t i = 0;
    while (i < at && cases->items[i].kernel != cases->items[at].kernel)
        i++;
    return i < at;
}

static void free_rows(row_list *rows) {
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->items[i].kernel);
        free(rows->items[i].code);
    }
    free(rows->items);
}

/* The gate ------------------------------------------------------------------------------------ */

/* The row of a kernel in a file that write_csv wrote; the count of rows if it is not there. */
static size_t find_earlier(const csv_file *f, size_t column, const char *name) {
    size_t r = 0;
    while (r < csv_count_rows(f) && strcmp(csv_get_text(f, r, column), name) != 0)
        r++;
    return r;
}

static bool compare_row(const csv_file *f, size_t row, const agx_row *now, gate *g, err *e) {
    for (size_t k = 0; k < NUMBERS; k++) {
        size_t column;
        double was;
        if (!numbers[k].is_gated)
            continue;
        if (!csv_find_column(f, numbers[k].key, &column, e) ||
            !csv_get_double(f, row, column, &was, e))
            return false;
        gate_compare(g, now->kernel, numbers[k].title, was, get_number(&now->facts, k));
    }
    return true;
}

static exit_code compare_rows(const row_list *rows, const agx_case_settings *s, err *e) {
    gate g = {.baseline = s->baseline, .threshold = s->threshold};
    size_t column;
    csv_file *f = csv_read(s->baseline, e);
    bool ok = f && csv_find_column(f, "kernel", &column, e);
    for (size_t i = 0; ok && i < rows->count; i++) {
        const agx_row *now = &rows->items[i];
        size_t row = find_earlier(f, column, now->kernel);
        if (now->facts.refusal[0] || row == csv_count_rows(f))
            continue;
        ok = compare_row(f, row, now, &g, e);
        g.compared++;
    }
    csv_file_free(f);
    return ok ? gate_end(&g, "kernels", e) : e->code;
}

/* Cases --------------------------------------------------------------------------------------- */

static bool add_cases(row_list *rows, agx_compiler *c, const case_list *cases, bool with_code,
                      err *e) {
    device *d = device_open("soft", e);
    library *lib = d ? library_new(d, NULL, e) : NULL;
    bool ok = lib != NULL;
    for (size_t i = 0; ok && i < cases->count; i++) {
        const kernel *k = cases->items[i].kernel;
        if (is_repeated(cases, i))
            continue;
        const msl_unit *u = library_find_unit(lib, k->file, e);
        const msl_signature *s = find_kernel(u, k->name);
        ok = u && (s || err_set(e, EXIT_CANNOT, "%.80s has no kernel %.80s", k->file, k->name)) &&
             add_row(rows, c, u, s, k->file, false, with_code, e);
    }
    library_free(lib);
    device_close(d);
    return ok;
}

exit_code agx_print_cases(const case_list *cases, const agx_case_settings *s, err *e) {
    row_list rows = {.count = 0};
    agx_compiler *c = agx_compiler_new(e);
    bool ok = c && add_cases(&rows, c, cases, s->lines, e);
    if (ok) {
        printf("# compiler: %s; not Apple's: see docs/agx.md\n", agx_compiler_get_name(c));
        print_rows(stdout, rows.items, rows.count);
        for (size_t i = 0; i < rows.count; i++)
            if (rows.items[i].code)
                agx_print_lines(rows.items[i].kernel, rows.items[i].code, s->lines);
        ok = output_flush(e) && (!s->csv || write_csv(c, &rows, s->csv, e));
    }
    exit_code code = !ok ? e->code : s->baseline ? compare_rows(&rows, s, e) : EXIT_OK;
    free_rows(&rows);
    agx_compiler_free(c);
    return code;
}

static void print_json_rows(const row_list *rows, size_t from) {
    for (size_t i = from; i < rows->count; i++) {
        const agx_row *r = &rows->items[i];
        printf("%s\n    {\"file\": ", i ? "," : "");
        json_print_text(stdout, r->path, strlen(r->path));
        fputs(", \"kernel\": ", stdout);
        json_print_text(stdout, r->kernel, strlen(r->kernel));
        printf(", \"line\": %d", r->line);
        for (size_t k = 0; k < NUMBERS && !r->facts.refusal[0]; k++)
            printf(", \"%s\": %" PRIu32, numbers[k].key, get_number(&r->facts, k));
        if (r->facts.refusal[0]) {
            fputs(", \"refused\": ", stdout);
            json_print_text(stdout, r->facts.refusal, strlen(r->facts.refusal));
        }
        putchar('}');
    }
}

/* Warnings as compilers print them, the table, and a line for the file. */
static void print_file(const lint_agx_settings *s, const char *path, const agx_row *rows,
                       size_t count) {
    size_t refused = 0, spilling = 0;
    for (size_t i = 0; i < count; i++) {
        const agx_row *r = &rows[i];
        refused += r->facts.refusal[0] != 0;
        spilling += r->facts.scratch > 0;
        if (r->facts.scratch > 0)
            printf("%s:%d:1: warning: kernel '%s' uses %" PRIu32
                   " bytes of scratch memory per thread (%s): %" PRIu32 " spills, %" PRIu32
                   " fills [agx-scratch]\n",
                   r->path, r->line, r->kernel, r->facts.scratch, AGX_LABEL, r->facts.spills,
                   r->facts.fills);
    }
    if (!s->brief)
        print_rows(stdout, rows, count);
    printf("%s: %zu kernel%s, %zu compiled, %zu of them with scratch memory\n", path, count,
           count == 1 ? "" : "s", count - refused, spilling);
}

static bool run_files(const lint_agx_settings *s, agx_compiler *c, const msl_unit *other,
                      const char *const *paths, size_t count, const msl_extras *extras, err *e) {
    row_list rows = {.count = 0};
    progress p = progress_new(stderr, "files", count);
    bool ok = true;
    if (s->json)
        printf("{\n  \"assay\": \"%s\",\n  \"compiler\": \"%s\",\n  \"kernels\": [", ASSAY_VERSION,
               agx_compiler_get_name(c));
    else
        printf("# compiler: %s; not Apple's: see docs/agx.md\n", agx_compiler_get_name(c));
    for (size_t i = 0; i < count && ok; i++) {
        size_t before = rows.count;
        ok = add_file(&rows, c, paths[i], extras, s->compare, other, e);
        progress_hide(&p);
        if (ok && s->json)
            print_json_rows(&rows, before);
        else if (ok)
            print_file(s, paths[i], rows.items + before, rows.count - before);
        ok = ok && output_flush(e);
        progress_update(&p, i + 1);
    }
    progress_hide(&p);
    if (ok && s->json)
        puts("\n  ]\n}");
    ok = ok && (!s->csv || write_csv(c, &rows, s->csv, e));
    free_rows(&rows);
    return ok;
}

static bool print_code(const lint_agx_settings *s, agx_compiler *c, const char *const *paths,
                       size_t count, const msl_extras *extras, err *e) {
    for (size_t i = 0; i < count; i++) {
        agx_facts f;
        char *code = NULL;
        msl_unit *u = msl_load_with(paths[i], extras, e);
        const msl_signature *k = find_kernel(u, s->code);
        constant_value *ones = k ? lint_make_ones(u) : NULL;
        bool ok = u && (!k || agx_compile(c, u, s->code, ones, msl_count_constants(u), AGX_COMPILE,
                                          &f, &code, e));
        if (ok && code)
            printf("; %s, %s: %" PRIu32 " instructions, %" PRIu32 " registers, %" PRIu32
                   " threads, %" PRIu32 " bytes of scratch memory\n%s",
                   s->code, AGX_LABEL, f.instructions, f.registers, f.threads, f.scratch, code);
        else if (ok && k)
            ok = err_set(e, EXIT_CANNOT, "%.80s is not compiled: %.150s", s->code, f.refusal);
        free(ones);
        free(code);
        msl_free(u);
        if (!ok || k)
            return ok;
    }
    return err_set(e, EXIT_USAGE, "none of the files has a kernel '%.120s'", s->code);
}

bool lint_agx_run(const lint_agx_settings *s, const char *const *paths, size_t count,
                  const msl_extras *extras, err *e) {
    agx_compiler *c = agx_compiler_new(e);
    msl_unit *other = c && s->compare ? msl_load_with(s->compare, extras, e) : NULL;
    bool ok = c && (other || !s->compare);
    if (ok)
        ok = s->code ? print_code(s, c, paths, count, extras, e)
                     : run_files(s, c, other, paths, count, extras, e);
    msl_free(other);
    agx_compiler_free(c);
    return ok;
}
