/* describe_compile: the lines of C of a description, `oracle {` to `}`, as a function.
 *
 * Sizes, values and inputs go by their names, inputs as arrays of double; outputs are the arrays to
 * be filled in, and NAME_scale those of magnitudes. Names of our own begin with assay_. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe_parts.h"
#include "load.h"

static const char reader[] =
    "#include <assay.h>\n\n"
    "static double *assay_read(const oracle_io *assay_io, int index, elem type) {\n"
    "    size_t count = assay_io->bytes[index] / elem_get_bytes(type);\n"
    "    double *values = malloc(size_multiply(count + 1, sizeof *values));\n"
    "    for (size_t i = 0; i < count; i++)\n"
    "        values[i] = elem_read(type, assay_io->in[index], i);\n"
    "    return values;\n"
    "}\n\n";

static bool is_dim(const description *d, const char *name) {
    for (size_t i = 0; i < d->dim_count; i++)
        if (strcmp(d->dims[i], name) == 0)
            return true;
    return false;
}

static void write_name(const description *d, const described_argument *a, FILE *out) {
    const char *type = elem_is_float(a->type) ? "double" : "int64_t";
    if (a->kind == ARGUMENT_VALUE && !is_dim(d, a->name))
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
    fprintf(out, "    {\n#line %d \"%s\"\n%s\n    }\n", r->line, d->file, r->block);
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].kind == ARGUMENT_IN)
            fprintf(out, "    free(%s);\n", d->arguments[i].name);
    fputs("}\n\nextern const oracle_fn assay_oracle;\nconst oracle_fn assay_oracle = assay_fill;\n",
          out);
}

bool describe_compile(description *d, described_rule *r, err *e) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return err_set(e, EXIT_CANNOT, "no memory for the C of %.80s", d->file);
    write_function(d, r, out);
    fclose(out);
    load_source s = {.path = d->path, .text = text, .key = "", .is_made = true};
    bool ok = load_oracle(&s, &r->compiled, e);
    free(text);
    return ok;
}
