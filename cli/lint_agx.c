#include "lint_agx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/progress.h"
#include "harness/base/record.h"
#include "profile_print.h"
#include "verb.h"

typedef struct {
    char *kernel;
    const char *path;
    int line;
    agx_facts facts;
    char *code; /* NULL: it was not asked for */
} agx_row;

typedef struct {
    agx_row *items;
    size_t count, room;
} row_list;

static const field fields[] = {
    FIELD(agx_row, kernel, FIELD_TEXT, "kernel", "kernel"),
    FIELD(agx_row, path, FIELD_TEXT, "file"),
    FIELD(agx_row, facts.instructions, FIELD_COUNT, "instructions", "instructions"),
    FIELD(agx_row, facts.registers, FIELD_COUNT, "half_registers", "registers"),
    FIELD(agx_row, facts.threads, FIELD_COUNT, "threads", "threads"),
    FIELD(agx_row, facts.scratch, FIELD_COUNT, "scratch_bytes", "scratch"),
    FIELD(agx_row, facts.spills, FIELD_COUNT, "spills", "spills"),
    FIELD(agx_row, facts.fills, FIELD_COUNT, "fills", "fills"),
    FIELD(agx_row, facts.loops, FIELD_COUNT, "loops", "loops"),
    FIELD(agx_row, facts.bytes, FIELD_COUNT, "code_bytes", "code bytes"),
    FIELD(agx_row, facts.refusal, FIELD_CHARS, "refused"),
};
static const record numbers = {fields + 2, 8};
/* Of the numbers, those that must not grow. */
static const size_t gated[] = {0, 1, 3, 4, 5};

constant_value *lint_make_ones(const msl_unit *u) {
    size_t count = msl_count_constants(u);
    constant_value *ones = array_new(count + 1, sizeof *ones);
    for (size_t i = 0; i < count; i++) {
        const msl_constant *c = msl_get_constant(u, i);
        elem type;
        if (!elem_find_msl(c->type, &type))
            type = ELEM_U8; /* bool */
        ones[i] = (constant_value){.index = (uint32_t)c->index, .type = type};
        elem_write(type, &ones[i].bits, 0, 1);
    }
    return ones;
}

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

/* Rows that were refused come last, with the reason. */
static void print_rows(const agx_row *rows, size_t count) {
    sink s = {.record = RECORD(fields), .out = stdout};
    for (size_t i = 0; i < count; i++)
        if (!rows[i].facts.refusal[0])
            sink_add(&s, &rows[i], PAINT_NONE);
    if (s.held_count > 0)
        sink_end(&s);
    for (size_t i = 0; i < count; i++)
        if (rows[i].facts.refusal[0])
            printf("%s: not compiled: %s\n", rows[i].kernel, rows[i].facts.refusal);
}

/* For the report (report/part_agx.c), which warns of each that uses scratch memory. */
static bool write_csv(const agx_compiler *c, const row_list *rows, const char *path, err *e) {
    csv *file = csv_new();
    csv_add_meta(file, "agx compiler", agx_compiler_get_name(c));
    return record_write_csv(&(record)RECORD(fields), rows->items, rows->count, sizeof *rows->items,
                            file, path, e);
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

/* The row of a kernel in a file that write_csv wrote; the count of rows if it is not there. */
static size_t find_earlier(const csv_file *f, size_t column, const char *name) {
    size_t r = 0;
    while (r < csv_count_rows(f) && strcmp(csv_get_text(f, r, column), name) != 0)
        r++;
    return r;
}

static bool compare_row(const csv_file *f, size_t row, const agx_row *now, gate *g, err *e) {
    agx_row was;
    if (!record_read(&numbers, f, row, &was, e))
        return false;
    for (size_t i = 0; i < sizeof gated / sizeof *gated; i++) {
        const field *x = &numbers.fields[gated[i]];
        gate_compare(g, now->kernel, x->title, field_get_number(x, &was), field_get_number(x, now));
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

typedef struct {
    counted_line head;
    size_t first; /* instruction, which orders lines with as many */
    size_t instructions, spills, fills;
    double percent;
} line_view;

typedef struct {
    line_view *items;
    size_t count, room;
} line_list;

static const field line_fields[] = {
    FIELD(line_view, head.place, FIELD_CHARS, NULL, "line", .width = 24),
    FIELD(line_view, instructions, FIELD_COUNT, NULL, "instructions", .width = 12),
    FIELD(line_view, percent, FIELD_REAL, NULL, "%", .width = 5, .format = "%.1f"),
    FIELD(line_view, spills, FIELD_COUNT, NULL, "spills", .width = 6, .rank = 1),
    FIELD(line_view, fills, FIELD_COUNT, NULL, "fills", .width = 5, .rank = 1),
    FIELD(line_view, head.source, FIELD_CHARS, NULL, "source", .width = 20),
};

static line_view *find_line(line_list *l, const code_line *c, size_t first) {
    for (size_t i = 0; i < l->count; i++) {
        const counted_line *h = &l->items[i].head;
        if (h->line == c->line && (int)strlen(h->file) == c->file_length &&
            strncmp(h->file, c->file, (size_t)c->file_length) == 0)
            return &l->items[i];
    }
    line_view *new = ARRAY_ADD(l->items, l->count, l->room);
    *new = (line_view){.head.line = c->line, .first = first};
    snprintf(new->head.file, sizeof new->head.file, "%.*s", c->file_length, c->file);
    return new;
}

static bool has_word(const code_line *c, const char *word) {
    const char *found = strstr(c->text, word);
    return found && found < c->text + c->text_length;
}

static int compare_counts(const void *a, const void *b) {
    const line_view *x = a, *y = b;
    int order = (x->instructions < y->instructions) - (x->instructions > y->instructions);
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

/* Those with most instructions first. */
static line_list count_lines(const code_list *code) {
    line_list l = {.items = NULL};
    for (size_t i = 0; i < code->count; i++) {
        const code_line *c = &code->items[i];
        if (c->file_length == 0)
            continue;
        line_view *at = find_line(&l, c, i);
        at->instructions++;
        at->percent = 100 * (double)at->instructions / (double)code->count;
        at->spills += has_word(c, " stack_store ");
        at->fills += has_word(c, " stack_load ");
    }
    if (l.count > 0)
        qsort(l.items, l.count, sizeof *l.items, compare_counts);
    return l;
}

/* code: the disassembly that agx_compile gives. */
static void print_code_lines(const char *name, const char *text, const agx_case_settings *s) {
    code_list code = code_read_agx(text);
    line_list l = count_lines(&code);
    size_t exact = 0, near = 0;
    for (size_t i = 0; i < code.count; i++) {
        exact += code.items[i].file_length > 0 && !code.items[i].is_near;
        near += code.items[i].is_near;
    }
    if (exact + near == 0)
        printf("\n%s, %s: Mesa does not say the lines of this kernel: see docs/agx.md\n", name,
               AGX_LABEL);
    else
        printf("\n%s, %s: of %zu instructions %zu have their own line, %zu that of an instruction "
               "that they serve, and %zu none\n",
               name, AGX_LABEL, code.count, exact, near, code.count - exact - near);
    if (l.count > 0)
        counted_lines_print((record)RECORD(line_fields), l.items, l.count, sizeof *l.items,
                            s->annotate, s->top, s->code ? &code : NULL);
    free(l.items);
    code_free(&code);
}

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
    bool ok = c && add_cases(&rows, c, cases, s->annotate || s->code, e);
    if (ok) {
        printf("# compiler: %s; not Apple's: see docs/agx.md\n", agx_compiler_get_name(c));
        print_rows(rows.items, rows.count);
        for (size_t i = 0; i < rows.count; i++)
            if (rows.items[i].code)
                print_code_lines(rows.items[i].kernel, rows.items[i].code, s);
        ok = verb_flush(e) && (!s->csv || write_csv(c, &rows, s->csv, e));
    }
    exit_code code = !ok ? e->code : s->baseline ? compare_rows(&rows, s, e) : EXIT_OK;
    free_rows(&rows);
    agx_compiler_free(c);
    return code;
}

static void add_json(json *j, const agx_row *r) {
    json_open(j, NULL, '{');
    json_add_text(j, "file", r->path);
    json_add_text(j, "kernel", r->kernel);
    json_add_integer(j, "line", r->line);
    if (r->facts.refusal[0])
        json_add_text(j, "refused", r->facts.refusal);
    else
        record_add_json(&numbers, r, j);
    json_close(j);
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
        print_rows(rows, count);
    printf("%s: %zu kernel%s, %zu compiled, %zu of them with scratch memory\n", path, count,
           count == 1 ? "" : "s", count - refused, spilling);
}

static bool run_files(const lint_agx_settings *s, agx_compiler *c, const msl_unit *other,
                      const char *const *paths, size_t count, const msl_extras *extras, err *e) {
    row_list rows = {.count = 0};
    progress p = progress_new(stderr, "files", count);
    bool ok = true;
    json j = {.out = NULL};
    if (s->json) {
        j = json_start(stdout, '{');
        json_add_text(&j, "assay", ASSAY_VERSION);
        json_add_text(&j, "compiler", agx_compiler_get_name(c));
        json_open(&j, "kernels", '[');
    } else
        printf("# compiler: %s; not Apple's: see docs/agx.md\n", agx_compiler_get_name(c));
    for (size_t i = 0; i < count && ok; i++) {
        size_t before = rows.count;
        ok = add_file(&rows, c, paths[i], extras, s->compare, other, e);
        progress_hide(&p);
        for (size_t k = before; ok && s->json && k < rows.count; k++)
            add_json(&j, &rows.items[k]);
        if (ok && !s->json)
            print_file(s, paths[i], rows.items + before, rows.count - before);
        ok = ok && verb_flush(e);
        progress_update(&p, i + 1);
    }
    progress_hide(&p);
    if (ok && s->json) {
        json_close(&j);
        json_close(&j);
    }
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
