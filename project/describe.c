/* describe: see describe.h. Owns the ops of descriptions, their cases (buffers with their contents, and the
 * launch), and what their outputs should be, and how exactly.
 *
 * An expression gives each element a value and a bound of its error (expression.h). Two more
 * roundings are allowed for, because a kernel may compute the same in another form. What is known
 * of expected values from a file is only their size, so their tolerance is a guess: see
 * set_guess. */
#include "describe.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/root.h"
#include "harness/base/size.h"
#include "harness/device/device.h"
#include "harness/device/source_hash.h"
#include "load.h"

static description *all;

static description *find_owner(const kernel *k) {
    description *d = all;
    while (d && !(k >= d->kernels && k < d->kernels + DESCRIBE_KERNELS))
        d = d->before;
    assert(d);
    return d;
}

static void set_dims(description *d, const uint32_t *sizes) {
    for (size_t i = 0; i < d->dim_count; i++)
        d->symbols[i].value.whole = sizes[i];
}

/* Which of dims has this name; as many as there are if none has. */
static size_t find_dim(const description *d, const char *name, size_t length) {
    size_t i = 0;
    while (i < d->dim_count &&
           (strlen(d->dims[i]) != length || strncmp(d->dims[i], name, length) != 0))
        i++;
    return i;
}

/* The file of an argument: "x_{rows}.npy" with the size for its name, below the description's folder. */
static bool find_file(const description *d, const described_argument *a, char *path, size_t size,
                      err *e) {
    int folder = a->text[0] == '/' ? 0 : (int)(d->file - d->path);
    size_t used = (size_t)snprintf(path, size, "%.*s", folder, d->path);
    for (const char *p = a->text; *p && used + 24 < size; p++) {
        if (*p != '{') {
            path[used++] = *p;
            continue;
        }
        const size_t length = strcspn(p + 1, "}"), i = find_dim(d, p + 1, length);
        if (i == d->dim_count || p[1 + length] != '}')
            return describe_refuse(d, a->line, e, "'%.*s' in the name of a file is not one of dims",
                                   length < 40 ? (int)length : 40, p + 1);
        used += (size_t)snprintf(path + used, size - used, "%lld",
                                 (long long)d->symbols[i].value.whole);
        p += length + 1;
    }
    path[used < size ? used : 0] = 0;
    if (used + 24 >= size)
        return describe_refuse(d, a->line, e, "the path of the file of '%.40s' is too long",
                               a->name);
    /* Whoever wrote the description may be a stranger, and any file is elements. */
    return path_ends_with(path, ".npy") || access(path, F_OK) != 0 || root_keeps(path, d->path) ||
           describe_refuse(d, a->line, e,
                           "'%.80s' is not in the project: only .npy files are read from elsewhere",
                           a->text);
}

#define U 0x1p-24 /* one rounding of f32 */
#define SPARE 2.0
#define FILE_ROUNDINGS 16.0
#define FILE_MOST 4096.0

typedef struct {
    description *d;
    oracle_io *io;
    arithmetic how;
    err e;
} run;

/* Expected values: names --------------------------------------------------------------------- */

/* Fills in how many elements there are. */
static bool set_sizes(run *r, const expressions *sizes, symbol *s) {
    bool ok = describe_compute_sizes(r->d, sizes, 0, (int64_t)1 << 36, s->sizes, &r->e);
    s->count = 1;
    for (size_t i = 0; ok && i < sizes->count; i++)
        if (__builtin_mul_overflow(s->count, s->sizes[i], &s->count))
            ok = describe_refuse(r->d, sizes->items[i].line, &r->e, "too many elements");
    return ok;
}

static bool set_names(run *r) {
    description *d = r->d;
    for (size_t i = 0; i < d->argument_count; i++) {
        described_argument *a = &d->arguments[i];
        const uint8_t *in = r->io->in[a->index];
        if (a->kind == ARGUMENT_VALUE)
            a->symbol->value = number_read(a->type, in, 0);
        for (size_t f = a->first_field; f < a->first_field + a->field_count; f++)
            d->fields[f].symbol->value =
                number_read(d->fields[f].type, in + d->fields[f].offset, 0);
        if (!a->symbol || !a->symbol->is_array)
            continue;
        a->symbol->data = in;
        if (!set_sizes(r, &a->sizes, a->symbol))
            return false;
    }
    return true;
}

/* Expected values: expressions --------------------------------------------------------------- */

/* An integer output holds the value cut off; one close to a step may be on its other side. */
static double cut_off(elem type, const number *v, double *error) {
    const double value = number_get_stored(type, v->real);
    const double least = number_get_stored(type, v->real - v->error);
    const double most = number_get_stored(type, v->real + v->error);
    *error = fmax(value - least, most - value);
    return value;
}

static void take_output(run *r, const described_rule *rule, size_t i, const number *v) {
    const described_argument *a = rule->output;
    expected *out = &r->io->out[a->index];
    double value = v->real, error = v->error + SPARE * U * fabs(v->real);
    if (!elem_is_float(a->type))
        value = cut_off(a->type, v, &error);
    out->value[i] = value;
    if (out->scale) /* in roundings; anything finite is right where nothing is known */
        out->scale[i] = isfinite(error) ? error / U : (double)FLT_MAX;
}

/* Every element, the last index running fastest. Of intermediate values they go to `computed`. */
static bool compute_all(run *r, const described_rule *rule, const symbol *sizes,
                        bounded *computed) {
    int64_t at[EXPRESSION_AXES] = {0};
    expression_start(rule->value, r->how);
    for (int64_t i = 0; i < sizes->count; i++) {
        number value;
        err why;
        if (!expression_compute(rule->value, at, &value, &why))
            return describe_refuse(r->d, rule->line, &r->e, "%s", why.text);
        if (computed)
            computed[i] = (bounded){.value = value.real, .error = value.error};
        else
            take_output(r, rule, (size_t)i, &value);
        for (size_t axis = rule->index_count; axis-- > 0;) {
            if (++at[axis] < sizes->sizes[axis])
                break;
            at[axis] = 0;
        }
    }
    return true;
}

static bool apply_rule(run *r, described_rule *rule) {
    symbol sizes = {.name = ""};
    if (rule->output) {
        expected *out = &r->io->out[rule->output->index];
        out->terms = 0;
        out->roundings = 1;
        out->exact = rule->output->exact;
        return set_sizes(r, &rule->sizes, &sizes) && compute_all(r, rule, &sizes, NULL);
    }
    if (!set_sizes(r, &rule->sizes, rule->symbol))
        return false;
    bounded *computed = malloc(size_multiply((size_t)rule->symbol->count + 1, sizeof *computed));
    rule->symbol->computed = computed;
    return computed ? compute_all(r, rule, rule->symbol, computed)
                    : describe_refuse(r->d, rule->line, &r->e, "no memory for %lld values",
                                      (long long)rule->symbol->count);
}

/* Expected values: files --------------------------------------------------------------------- */

/* Nothing says how values in a file are computed. They may be sums of as many terms as the largest
 * input has elements, of which cancellation has left what a row (the last axis) has on average: the
 * tolerance is relative to the larger of an element and the root mean square of its row, and at
 * most 2.4e-4 of it, so that an error of 0.1 % is seen. */
static bool set_guess(run *r, const described_argument *a, expected *out) {
    symbol sizes = {.name = ""};
    double most = 1;
    if (!set_sizes(r, &a->sizes, &sizes))
        return false;
    for (size_t i = 0; i < r->d->argument_count; i++) {
        const described_argument *b = &r->d->arguments[i];
        if (b->kind == ARGUMENT_IN || b->kind == ARGUMENT_BOTH)
            most = fmax(most, (double)(r->io->bytes[b->index] / elem_get_bytes(b->type)));
    }
    out->roundings = FILE_ROUNDINGS;
    double operations = fmin(2 * sqrt(most), FILE_MOST - FILE_ROUNDINGS);
    out->terms = operations * operations / 4;
    size_t row = (size_t)sizes.sizes[a->sizes.count - 1];
    for (size_t i = 0; out->scale && i < out->count; i += row) {
        double squares = 0;
        for (size_t k = i; k < i + row; k++)
            squares += out->value[k] * out->value[k];
        for (size_t k = i; k < i + row; k++)
            out->scale[k] = fmax(fabs(out->value[k]), sqrt(squares / (double)row));
    }
    return true;
}

static bool expect_file(run *r, const described_argument *a) {
    char path[PATH_MAX];
    expected *out = &r->io->out[a->index];
    return find_file(r->d, a, path, sizeof path, &r->e) &&
           contents_read_doubles(path, a->type, out->value, out->count, &r->e) &&
           set_guess(r, a, out);
}

/* Tolerances ---------------------------------------------------------------------------------- */

/* rtol and atol in place of what was derived. */
static bool set_tolerance(run *r, const described_argument *a, expected *out) {
    number relative = {.real = 0}, absolute = {.real = 0};
    if ((a->rtol.text && !describe_compute(r->d, &a->rtol, &relative, &r->e)) ||
        (a->atol.text && !describe_compute(r->d, &a->atol, &absolute, &r->e)))
        return false;
    out->exact = false;
    out->terms = 0;
    out->roundings = 1;
    for (size_t i = 0; out->scale && i < out->count; i++)
        out->scale[i] = (relative.real * fabs(out->value[i]) + absolute.real) / U;
    return true;
}

static bool set_tolerances(run *r) {
    number count;
    for (size_t i = 0; i < r->d->argument_count; i++) {
        const described_argument *a = &r->d->arguments[i];
        expected *out = &r->io->out[a->index];
        if (!describe_is_output(a) || !out->value)
            continue;
        out->why = a->why;
        out->exact = out->exact || a->exact;
        if (r->d->terms.text) {
            if (!describe_compute(r->d, &r->d->terms, &count, &r->e))
                return false;
            out->terms = count.real;
        }
        if (r->d->roundings.text) {
            if (!describe_compute(r->d, &r->d->roundings, &count, &r->e))
                return false;
            out->roundings = count.real;
        }
        if ((a->rtol.text || a->atol.text) && !set_tolerance(r, a, out))
            return false;
    }
    return true;
}

static bool fill_outputs(run *r, const launch *l) {
    description *d = r->d;
    bool ok = set_names(r);
    for (size_t i = 0; ok && i < d->argument_count; i++)
        if (d->arguments[i].kind == ARGUMENT_OUT && d->arguments[i].text)
            ok = expect_file(r, &d->arguments[i]);
    for (size_t i = 0; ok && i < d->rule_count; i++)
        if (d->rules[i].block)
            d->rules[i].compiled(l, r->io);
        else
            ok = apply_rule(r, &d->rules[i]);
    return ok && set_tolerances(r);
}

static void compute_outputs(const launch *l, oracle_io *io) {
    description *d = (description *)(uintptr_t)l->context;
    run r = {.d = d, .io = io};
    if (l->pipeline)
        r.how = (arithmetic){l->pipeline->math != MATH_SAFE, l->pipeline->flushes_denormals};
    set_dims(d, l->dims);
    if (!fill_outputs(&r, l))
        snprintf(io->failure, sizeof io->failure, "%s", r.e.text);
    for (size_t i = 0; i < d->rule_count; i++)
        if (d->rules[i].symbol) {
            free((void *)(uintptr_t)d->rules[i].symbol->computed);
            d->rules[i].symbol->computed = NULL;
        }
}

/* Expected values: lines of C ---------------------------------------------------------------- */

/* `oracle {` to `}` as a function. Sizes, values and inputs go by their names, inputs as arrays of
 * double; outputs are the arrays to be filled in, and NAME_scale those of magnitudes. Names of our own
 * begin with assay_. */
static const char reader[] =
    "#include <assay.h>\n\n"
    "static double *assay_read(const oracle_io *assay_io, int index, elem type) {\n"
    "    size_t count = assay_io->bytes[index] / elem_get_bytes(type);\n"
    "    double *values = malloc(size_multiply(count + 1, sizeof *values));\n"
    "    for (size_t i = 0; i < count; i++)\n"
    "        values[i] = elem_read(type, assay_io->in[index], i);\n"
    "    return values;\n"
    "}\n\n";

static void write_name(const description *d, const described_argument *a, FILE *out) {
    const char *type = elem_is_float(a->type) ? "double" : "int64_t";
    if (a->kind == ARGUMENT_VALUE && find_dim(d, a->name, strlen(a->name)) == d->dim_count)
        fprintf(out, "    const %s %s = (%s)elem_read((elem)%d, assay_io->in[%d], 0); (void)%s;\n",
                type, a->name, type, (int)a->type, a->index, a->name);
    else if (a->kind == ARGUMENT_IN)
        fprintf(out, "    double *const %s = assay_read(assay_io, %d, (elem)%d);\n", a->name,
                a->index, (int)a->type);
    else if (describe_is_output(a))
        fprintf(out,
                "    double *const %s = assay_io->out[%d].value, *const %s_scale = "
                "assay_io->out[%d].scale; (void)%s; (void)%s_scale;\n",
                a->name, a->index, a->name, a->index, a->name, a->name);
}

static void write_function(const description *d, const described_rule *r, FILE *out) {
    fputs(reader, out);
    fputs("static void assay_fill(const launch *assay_launch, oracle_io *assay_io) {\n"
          "    (void)assay_launch;\n",
          out);
    for (size_t i = 0; i < d->dim_count; i++)
        fprintf(out, "    const int64_t %s = assay_launch->dims[%zu]; (void)%s;\n", d->dims[i], i,
                d->dims[i]);
    for (size_t i = 0; i < d->argument_count; i++)
        write_name(d, &d->arguments[i], out);
    fprintf(out, "    {\n#line %d \"", r->line);
    for (const char *p = d->file; *p; p++)
        fputc(*p == '"' || *p == '\\' ? '?' : path_get_mark(*p), out);
    fprintf(out, "\"\n%s\n    }\n", r->block);
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].kind == ARGUMENT_IN)
            fprintf(out, "    free(%s);\n", d->arguments[i].name);
    fputs("}\n\nextern const oracle_fn assay_oracle;\nconst oracle_fn assay_oracle = assay_fill;\n",
          out);
}

static bool compile_block(const description *d, described_rule *r, err *e) {
    memory_file *text = memory_file_new();
    write_function(d, r, text->out);
    fflush(text->out);
    char key[SOURCE_HASH_SIZE] = "";
    source_hash_find(d->path, NULL, key, NULL);
    load_source s = {.path = d->path, .text = text->text, .key = key, .is_made = true};
    bool ok = load_oracle(&s, &r->compiled, e);
    memory_file_free(text);
    return ok;
}

/* A case -------------------------------------------------------------------------------------- */

/* Floats from the distribution of the case, or whole numbers; of a range the ends more often. */
static void *draw(kernel_case *c, const described_argument *a, int64_t least, int64_t most,
                  size_t count) {
    const bool is_whole = a->below.text, has_ends = a->least.text;
    unsigned char *data = malloc(size_multiply(count, elem_get_bytes(a->type)));
    float *floats = is_whole ? NULL : malloc(size_multiply(count, sizeof *floats));
    assert(data && (floats || is_whole));
    if (floats)
        fill_f32(&c->random, c->inputs, floats, count);
    for (size_t i = 0; i < count; i++) {
        const bool is_end = has_ends && rng_below(&c->random, 8) == 0;
        const uint32_t above = is_whole ? rng_below(&c->random, (uint32_t)(most - least + 1)) : 0;
        const int64_t whole = is_end ? (above % 2 ? most : least) : least + above;
        elem_write(a->type, data, i, floats ? (double)floats[i] : (double)whole);
    }
    free(floats);
    return data;
}

static void *make_contents(const description *d, kernel_case *c, const described_argument *a,
                           size_t count, err *e) {
    char path[PATH_MAX];
    int64_t least = 0, most = 0;
    if (a->contents == CONTENTS_FILE && !find_file(d, a, path, sizeof path, e))
        return NULL;
    if (a->contents != CONTENTS_DRAWN)
        return contents_make(a->contents, a->type, a->contents == CONTENTS_FILE ? path : a->text,
                             c->seed, a->name, &count, e);
    if (a->below.text && !describe_compute_range(d, a, &least, &most, e))
        return NULL;
    return draw(c, a, least, most, count);
}

static bool make_buffer(const description *d, kernel_case *c, const described_argument *a,
                        slice *out, err *e) {
    size_t count;
    if (!describe_count_elements(d, a, &count, e))
        return false;
    const size_t bytes = count * elem_get_bytes(a->type);
    if (a->kind == ARGUMENT_OUT || a->contents == CONTENTS_UNWRITTEN)
        return case_output(c, a->name, bytes, out, e);
    void *data = make_contents(d, c, a, count, e);
    bool ok = data && case_input_bytes(c, a->name, data, bytes, out, e);
    free(data);
    return ok;
}

static bool bind_argument(description *d, launch *l, const described_argument *a, slice at,
                          err *e) {
    if (a->kind > ARGUMENT_BOTH)
        return describe_set_value(d, l, a, e);
    launch_bind(l, a->index, at, (access_mode)a->kind, a->type);
    l->may_overread |= a->may_overread ? 1u << a->index : 0;
    l->bytes += (a->kind == ARGUMENT_BOTH ? 2 : 1) * at.bytes;
    return true;
}

static bool build(kernel_case *c, err *e) {
    const kernel *k = c->kernel;
    description *d = find_owner(k);
    slice at[DESCRIBE_ARGUMENTS] = {{.bytes = 0}};
    number flops = number_whole(0);
    set_dims(d, c->shape.dim);
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].kind <= ARGUMENT_BOTH &&
            !make_buffer(d, c, &d->arguments[i], &at[i], e))
            return false;
    launch *l = describe_add_launch(d, c->tape, k->file, k->name, e);
    if (!l)
        return false;
    for (size_t i = 0; i < d->argument_count; i++)
        if (!bind_argument(d, l, &d->arguments[i], at[i], e))
            return false;
    if (!describe_set_grid(d, &d->grids[k - d->kernels], l, e) ||
        (d->flops.text && !describe_compute(d, &d->flops, &flops, e)))
        return false;
    l->kernel = k;
    memcpy(l->dims, c->shape.dim, sizeof l->dims);
    l->flops = (uint64_t)fmax(flops.real, 0);
    l->oracle = compute_outputs;
    l->context = d;
    return true;
}

static bool accepts(const kernel *k, const shape *s, err *e) {
    description *d = find_owner(k);
    number value;
    set_dims(d, s->dim);
    return describe_compute(d, &d->needs, &value, e) &&
           (value.whole != 0 ||
            err_set(e, EXIT_CANNOT, "%.80s needs %.120s", k->name, d->needs.text));
}

/* Loading ------------------------------------------------------------------------------------- */

static void fill_op(description *d) {
    d->op.dims = d->dim_text;
    d->op.kernels = d->kernels;
    for (size_t i = 0; i < d->op.kernel_count && d->op.kernel_count > 1; i++)
        d->kernels[i].variant = d->kernels[i].name;
    d->op.shapes.items = d->shapes;
    d->op.build = build;
    d->op.accepts = d->needs.text ? accepts : NULL;
}

const op *describe_load(const char *path, const char *text, err *e) {
    description *d = array_new(1, sizeof *d);
    char *copy = strdup(text), sample[PATH_MAX];
    assert(copy);
    d->before = all;
    all = d; /* also what is refused stays */
    if (!describe_read(d, DESCRIBES_OP, strdup(path), copy, e))
        return NULL;
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].contents == CONTENTS_FILE &&
            !find_file(d, &d->arguments[i], sample, sizeof sample, e))
            return NULL;
    for (size_t i = 0; i < d->rule_count; i++)
        if (d->rules[i].block && !compile_block(d, &d->rules[i], e))
            return NULL;
    fill_op(d);
    return &d->op;
}
