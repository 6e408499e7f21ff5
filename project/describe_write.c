/* describe_write: a description as a C file. Everything that is not particular to it is in
 * described.h. Each expression stands after a #line with its place in the description. */
#include <string.h>

#include "describe_parts.h"

static const char *const type_names[ELEM_COUNT] = {
    [ELEM_U8] = "ELEM_U8",     [ELEM_I8] = "ELEM_I8",   [ELEM_U16] = "ELEM_U16",
    [ELEM_I16] = "ELEM_I16",   [ELEM_U32] = "ELEM_U32", [ELEM_I32] = "ELEM_I32",
    [ELEM_U64] = "ELEM_U64",   [ELEM_I64] = "ELEM_I64", [ELEM_F16] = "ELEM_F16",
    [ELEM_BF16] = "ELEM_BF16", [ELEM_F32] = "ELEM_F32",
};

static void write_string(const char *text, FILE *out) {
    fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', out);
}

static void write_line(const description *d, int line, FILE *out) {
    fprintf(out, "\n#line %d ", line);
    write_string(d->file, out);
    fputc('\n', out);
}

/* A whole-number expression of the shape. */
static bool write_size(const description *d, const char *text, int line, FILE *out, err *e) {
    write_line(d, line, out);
    fputs("(int64_t)(", out);
    bool ok = describe_write_expression(d, text, line, out, e);
    fputc(')', out);
    return ok;
}

/* source: where they are, `c->shape.dim` or `l->dims`. */
static void write_dims(const description *d, const char *source, FILE *out) {
    for (size_t i = 0; i < d->dim_count; i++)
        fprintf(out, "    const int64_t %s = %s[%zu]; (void)%s;\n", d->dims[i], source, i,
                d->dims[i]);
}

static bool is_dim(const description *d, const char *name) {
    for (size_t i = 0; i < d->dim_count; i++)
        if (strcmp(d->dims[i], name) == 0)
            return true;
    return false;
}

/* "x_{rows}.npy" as the arguments of snprintf: "x_%lld.npy", (long long)(rows). */
static bool write_path(const description *d, const described_argument *a, FILE *out, err *e) {
    char format[300] = "";
    size_t used = 0;
    for (const char *p = a->from; *p && used + 8 < sizeof format; p++)
        if (*p == '{') {
            used += (size_t)snprintf(format + used, sizeof format - used, "%%lld");
            p += strcspn(p, "}");
            if (!*p)
                return describe_refuse(d, a->line, e, "'%.80s' has no } for its {", a->from);
        } else if (*p == '%') {
            used += (size_t)snprintf(format + used, sizeof format - used, "%%%%");
        } else {
            format[used++] = *p;
        }
    format[used] = 0;
    write_string(format, out);
    for (const char *p = a->from; (p = strchr(p, '{')); p++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p + 1, "}"), p + 1);
        if (!is_dim(d, name))
            return describe_refuse(d, a->line, e,
                                   "'%.40s' in the name of a file is not one of dims", name);
        fprintf(out, ", (long long)(%s)", name);
    }
    return true;
}

/* The oracle ---------------------------------------------------------------------------------- */

/* Sizes, values and inputs under their names. In C lines, outputs too. */
static void write_names(const description *d, bool is_block, FILE *out) {
    write_dims(d, "l->dims", out);
    for (size_t i = 0; i < d->argument_count; i++) {
        const described_argument *a = &d->arguments[i];
        const char *type = type_names[a->type];
        if (a->kind == ARGUMENT_VALUE && is_dim(d, a->name))
            continue;
        if (a->kind == ARGUMENT_VALUE)
            fprintf(out, "    const %s %s = (%s)elem_read(%s, io->in[%d], 0);",
                    elem_is_float(a->type) ? "double" : "int64_t", a->name,
                    elem_is_float(a->type) ? "double" : "int64_t", type, a->index);
        else if (is_block && a->kind != ARGUMENT_IN)
            fprintf(out,
                    "    double *const %s = io->out[%d].value, *const %s_scale = "
                    "io->out[%d].scale; (void)%s_scale;",
                    a->name, a->index, a->name, a->index, a->name);
        else if (a->kind != ARGUMENT_OUT)
            fprintf(out, "    const double *const %s = described_read(io, %d, %s);", a->name,
                    a->index, type);
        else
            continue;
        fprintf(out, " (void)%s;\n", a->name);
    }
}

static void write_frees(const description *d, bool is_block, FILE *out) {
    for (size_t i = 0; i < d->argument_count; i++) {
        const described_argument *a = &d->arguments[i];
        if (a->kind == ARGUMENT_IN || (a->kind == ARGUMENT_BOTH && !is_block))
            fprintf(out, "    free((void *)(uintptr_t)%s);\n", a->name);
    }
}

/* Roundings of the arithmetic that is visible: functions add their own when they are called. */
static int count_operators(const char *text) {
    int count = 0, depth = 0;
    for (; *text; text++) {
        depth += (*text == '[') - (*text == ']');
        count += depth == 0 && strchr("+-*/", *text) != NULL;
    }
    return count;
}

static bool write_rule(const description *d, size_t at, FILE *out, err *e) {
    const described_rule *r = &d->rules[at];
    bool is_block = !r->output;
    fprintf(out, "static void rule_%zu(const launch *l, oracle_io *io) {\n", at);
    fputs("    (void)l;\n", out);
    write_names(d, is_block, out);
    if (is_block) {
        write_line(d, r->line, out);
        fputs(r->text, out);
        fputc('\n', out);
    } else {
        for (size_t i = 0; i < r->indices.count; i++) {
            const char *name = r->indices.items[i];
            fprintf(out, "    for (int64_t %s = 0; %s < ", name, name);
            if (!write_size(d, r->output->sizes.items[i], r->output->line, out, e))
                return false;
            fprintf(out, "; %s++)", name);
        }
        fputs(" {\n    described_begin(", out);
        fprintf(out, "l, %d);\n", count_operators(r->text));
        for (size_t i = 0; i < d->argument_count; i++)
            if (d->arguments[i].kind == ARGUMENT_VALUE && elem_is_float(d->arguments[i].type))
                fprintf(out, "    described_note_factor(%s);\n", d->arguments[i].name);
        fputs("    const double want_ = (", out);
        write_line(d, r->line, out);
        if (!describe_write_expression(d, r->text, r->line, out, e))
            return false;
        fprintf(out, ");\n    %s(&io->out[%d], (size_t)(",
                r->is_scale ? "described_set_scale" : "described_end", r->output->index);
        describe_write_index(&r->output->sizes, &r->indices, out);
        fputs("), want_);\n    }\n", out);
    }
    write_frees(d, is_block, out);
    fputs("}\n\n", out);
    return true;
}

static bool write_setting(const description *d, const char *field, const char *text, int line,
                          FILE *out, err *e) {
    if (!text)
        return true;
    for (size_t i = 0; i < d->argument_count; i++) {
        const described_argument *a = &d->arguments[i];
        if (a->kind != ARGUMENT_OUT && a->kind != ARGUMENT_BOTH)
            continue;
        fprintf(out, "    io->out[%d].%s = (double)", a->index, field);
        if (!write_size(d, text, line, out, e))
            return false;
        fputs(";\n", out);
    }
    return true;
}

static bool write_oracle(const description *d, FILE *out, err *e) {
    for (size_t i = 0; i < d->rule_count; i++)
        if (!write_rule(d, i, out, e))
            return false;
    fputs("static void oracle(const launch *l, oracle_io *io) {\n", out);
    write_dims(d, "l->dims", out);
    for (size_t i = 0; i < d->argument_count; i++) {
        const described_argument *a = &d->arguments[i];
        if (a->kind != ARGUMENT_OUT || !a->from)
            continue;
        fprintf(out, "    described_expect(&io->out[%d], %s, described_folder, ", a->index,
                type_names[a->type]);
        if (!write_path(d, a, out, e))
            return false;
        fputs(");\n", out);
    }
    for (int pass = 0; pass < 2; pass++) /* scales after values */
        for (size_t i = 0; i < d->rule_count; i++)
            if (d->rules[i].is_scale == (pass == 1))
                fprintf(out, "    rule_%zu(l, io);\n", i);
    if (!write_setting(d, "terms", d->terms, d->terms_line, out, e) ||
        !write_setting(d, "roundings", d->roundings, d->roundings_line, out, e))
        return false;
    for (size_t i = 0; i < d->argument_count && d->exact; i++)
        if (d->arguments[i].kind == ARGUMENT_OUT || d->arguments[i].kind == ARGUMENT_BOTH)
            fprintf(out, "    io->out[%d].exact = true;\n", d->arguments[i].index);
    fputs("}\n\n", out);
    return true;
}

/* Building a case ----------------------------------------------------------------------------- */

static bool write_buffer(const description *d, const described_argument *a, FILE *out, err *e) {
    static const char *const access[] = {"ACCESS_READ", "ACCESS_WRITE", "ACCESS_BOTH"};
    fprintf(out,
            "    if (!described_buffer(c, &(described_spec){.name = \"%s\", .type = %s, .access "
            "= %s, .axes = %zu, .sizes = {",
            a->name, type_names[a->type], access[a->kind], a->sizes.count);
    for (size_t i = 0; i < a->sizes.count; i++) {
        if (!write_size(d, a->sizes.items[i], a->line, out, e))
            return false;
        fputc(',', out);
    }
    fputs("}, .below = ", out);
    if (!write_size(d, a->below ? a->below : "0", a->line, out, e))
        return false;
    fprintf(out, "}, &at[%d], e", a->index);
    if (a->from) {
        fputs(", described_folder, ", out);
        if (!write_path(d, a, out, e))
            return false;
    } else {
        fputs(", NULL, \"\"", out);
    }
    fputs("))\n        return false;\n", out);
    return true;
}

static bool write_size3(const description *d, const expressions *x, int line, FILE *out, err *e) {
    fputs("(const int64_t[3]){", out);
    for (size_t i = 0; i < 3; i++) {
        if (!write_size(d, i < x->count ? x->items[i] : "1", line, out, e))
            return false;
        fputs(i < 2 ? "," : "}", out);
    }
    return true;
}

static bool write_grids(const description *d, FILE *out, err *e) {
    fputs("    switch (c->kernel - kernels) {\n", out);
    for (size_t i = 0; i < d->kernel_count; i++) {
        const described_kernel *k = &d->kernels[i];
        fprintf(out, "    case %zu:\n        if (!described_set_grid(l, '%c', ", i,
                k->grid_kind[0]);
        if (!write_size3(d, &k->grid, k->line, out, e))
            return false;
        fputs(", ", out);
        if (!write_size3(d, &k->group, k->line, out, e))
            return false;
        fputs(", ", out);
        if (!write_size(d, k->threadgroup ? k->threadgroup : "0", k->line, out, e))
            return false;
        fputs(", e))\n            return false;\n        break;\n", out);
    }
    fputs("    }\n", out);
    return true;
}

static bool write_build(const description *d, FILE *out, err *e) {
    fputs("static bool build(kernel_case *c, err *e) {\n"
          "    slice at[LAUNCH_BUFFERS] = {{.bytes = 0}};\n",
          out);
    write_dims(d, "c->shape.dim", out);
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].kind != ARGUMENT_VALUE && !write_buffer(d, &d->arguments[i], out, e))
            return false;
    fputs("    launch *l = record_launch(c->tape, c->kernel, e);\n    if (!l)\n        return "
          "false;\n",
          out);
    for (size_t i = 0; i < d->argument_count; i++) {
        const described_argument *a = &d->arguments[i];
        static const char *const access[] = {"ACCESS_READ", "ACCESS_WRITE", "ACCESS_BOTH"};
        if (a->kind != ARGUMENT_VALUE) {
            fprintf(out, "    described_bind(l, %d, at[%d], %s, %s);\n", a->index, a->index,
                    access[a->kind], type_names[a->type]);
            continue;
        }
        fprintf(out, "    described_set_value(l, %d, %s, (double)(", a->index, type_names[a->type]);
        write_line(d, a->line, out);
        if (!describe_write_expression(d, a->value, a->line, out, e))
            return false;
        fputs("));\n", out);
    }
    if (!write_grids(d, out, e))
        return false;
    fputs("    for (int i = 0; i < LAUNCH_DIMS; i++)\n        l->dims[i] = c->shape.dim[i];\n"
          "    l->flops = (uint64_t)",
          out);
    if (!write_size(d, d->flops ? d->flops : "0", d->flops_line, out, e))
        return false;
    fputs(";\n    l->oracle = oracle;\n    return true;\n}\n\n", out);
    return true;
}

/* Tables -------------------------------------------------------------------------------------- */

static void write_shape(const shape *s, FILE *out) {
    fprintf(out, "{{%u, %u, %u, %u, %u}}", s->dim[0], s->dim[1], s->dim[2], s->dim[3], s->dim[4]);
}

static bool write_accepts(const description *d, FILE *out, err *e) {
    if (!d->needs)
        return true;
    fputs("static bool accepts(const kernel *k, const shape *s, err *e) {\n", out);
    write_dims(d, "s->dim", out);
    fputs("    return (", out);
    write_line(d, d->needs_line, out);
    if (!describe_write_expression(d, d->needs, d->needs_line, out, e))
        return false;
    fputs(") ||\n        err_set(e, EXIT_CANNOT, \"%s needs %s\", k->name, ", out);
    write_string(d->needs, out);
    fputs(");\n}\n\n", out);
    return true;
}

static bool write_tables(const description *d, FILE *out, err *e) {
    fputs("static const shape shapes[] = {", out);
    for (size_t i = 0; i < d->shape_count; i++) {
        write_shape(&d->shapes[i], out);
        fputs(", ", out);
    }
    fputs("};\n\nstatic const kernel kernels[] = {\n", out);
    for (size_t i = 0; i < d->kernel_count; i++) {
        const described_kernel *k = &d->kernels[i];
        fprintf(out, "    {.name = \"%s\", .about = ", k->name);
        write_string(k->about, out);
        fputs(", .file = ", out);
        write_string(k->file, out);
        if (d->kernel_count > 1)
            fprintf(out, ", .variant = \"%s\"", k->name);
        fputs(", .group = (uint32_t)(1", out);
        for (size_t g = 0; g < k->group.count; g++) {
            if (strspn(k->group.items[g], "0123456789") != strlen(k->group.items[g]))
                return describe_refuse(d, k->line, e,
                                       "the threads of a group are numbers, not "
                                       "'%.40s'",
                                       k->group.items[g]);
            fprintf(out, " * %s", k->group.items[g]);
        }
        fputs(")},\n", out);
    }
    fputs("};\n\n", out);
    return true;
}

static void write_op(const description *d, FILE *out) {
    fprintf(out, "static const op described_op = {.name = \"%s\", .about = ", d->name);
    write_string(d->about, out);
    fputs(", .dims = \"", out);
    for (size_t i = 0; i < d->dim_count; i++)
        fprintf(out, "%s%s", i ? " x " : "", d->dims[i]);
    fputs("\", .kernels = kernels, .kernel_count = COUNT_OF(kernels), .shapes = {shapes, "
          "COUNT_OF(shapes), ",
          out);
    write_shape(&d->inputs, out);
    fprintf(out, "}, .build = build%s};\n\nASSAY_OPS(&described_op);\n",
            d->needs ? ", .accepts = accepts" : "");
}

bool describe_write(const description *d, FILE *out, err *e) {
    const char *slash = strrchr(d->path, '/');
    char folder[1024];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - d->path) : 1,
             slash ? d->path : ".");
    fputs("#include <assay.h>\n\n#include \"project/described.h\"\n\n"
          "static const char described_folder[] = ",
          out);
    write_string(folder, out);
    fputs(";\n\n", out);
    if (!write_oracle(d, out, e) || !write_accepts(d, out, e) || !write_tables(d, out, e) ||
        !write_build(d, out, e))
        return false;
    write_op(d, out);
    return true;
}
