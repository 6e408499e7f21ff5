/* signature: the .metal file of a kernel and the options of its launch.
 *
 * The signature is the one that MLX makes: a buffer per input, in the constant address space if it has
 * fewer than 8 elements, a reference if it has no axes; after it its shape, strides and number of axes
 * if the source mentions them; a buffer per output; the attributes that the source mentions; template
 * parameters, instantiated once. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/path.h"
#include "harness/device/elem.h"
#include "harness/device/msl/msl.h"
#include "internal.h"

enum { FEW_ELEMENTS = 8, MOST_ELEMENTS = 1 << 24 };

static const struct {
    const char *python, *msl, *assay;
} types[] = {
    {"float32", "float", "f32"},         {"float16", "float16_t", "f16"},
    {"bfloat16", "bfloat16_t", "bf16"},  {"int8", "int8_t", "i8"},
    {"uint8", "uint8_t", "u8"},          {"int16", "int16_t", "i16"},
    {"uint16", "uint16_t", "u16"},       {"int32", "int32_t", "i32"},
    {"uint32", "uint32_t", "u32"},       {"int64", "int64_t", "i64"},
    {"uint64", "uint64_t", "u64"},       {"bool_", "bool", "u8"},
    {"complex64", "complex64_t", "u64"},
};

static size_t find_type(const char *python) {
    size_t i = 0;
    while (i + 1 < sizeof types / sizeof *types && strcmp(types[i].python, python) != 0)
        i++;
    return i;
}

/* What a kernel is given in one place. */
typedef struct {
    const char *name, *type;
    int64_t dims[ARRAY_AXES], size;
    int ndim;
    value *from; /* NULL: nothing says */
} operand;

/* Texts ---------------------------------------------------------------------------------------- */

/* The text with #line marks wherever the next line is not the next line of the Python file. */
static void write_text(importer *im, const chars *t, FILE *out) {
    int expected = -1;
    bool is_continued = false;
    for (size_t i = 0; i < t->bytes;) {
        size_t n = strcspn(t->text + i, "\n"), first = i + strspn(t->text + i, " \t");
        int place = t->places[first < i + n ? first : i];
        if (place != expected && place > 0 && !is_continued)
            fprintf(out, "#line %d \"%s\"\n", place & ((1 << PLACE_BITS) - 1),
                    im->files[place >> PLACE_BITS].path);
        is_continued = n > 0 && t->text[i + n - 1] == '\\';
        expected = place + 1;
        fprintf(out, "%.*s\n", (int)n, t->text + i);
        i += n + 1;
    }
}

static bool has(const kernel_site *k, const char *name, const char *suffix) {
    char wanted[256];
    snprintf(wanted, sizeof wanted, "%s%s", name, suffix);
    return strstr(k->source.text, wanted) != NULL;
}

/* Operands ------------------------------------------------------------------------------------- */

static void take_dims(operand *o, const array_facts *a) {
    o->ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++)
        o->dims[i] = a->dims[i]->i > 0 ? a->dims[i]->i : 1;
}

static void read_operand(importer *im, const kernel_site *k, operand *o, value *v) {
    const char *says = assume_find(im, o->name);
    o->from = v;
    o->ndim = 1;
    o->dims[0] = 1024;
    double number;
    bool is_int;
    if (v && v->kind == V_UNKNOWN && source_is_scalar(im, k, o->name))
        value_number(im, v, &number, &is_int);
    if (v && (v->kind == V_INT || v->kind == V_BOOL || v->kind == V_FLOAT)) {
        o->type = v->kind == V_INT ? "int32" : v->kind == V_BOOL ? "bool_" : "float32";
        o->ndim = 0;
    } else if (v && array_of(im, v)) {
        o->type = array_of(im, v)->type;
        take_dims(o, v->array);
    }
    if (says && type_find(says))
        o->type = type_find(says);
    if (!o->type)
        o->type = source_find_type(im, k, o->name);
    if (!o->type)
        o->type = "float32";
}

/* Inputs that nothing tells the shape of are as large as the largest that something does. */
static void share_sizes(operand *inputs, size_t count) {
    const operand *largest = NULL;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++) {
            operand *o = &inputs[i];
            bool is_open = !o->from || (o->from->kind == V_ARRAY && !o->from->array->is_touched);
            o->size = 1;
            for (int d = 0; d < o->ndim; d++)
                o->size *= o->size > MOST_ELEMENTS ? 1 : o->dims[d];
            if (pass == 0 && !is_open && (!largest || o->size > largest->size))
                largest = o;
            if (pass == 1 && is_open && largest && o->ndim > 0) {
                memcpy(o->dims, largest->dims, sizeof o->dims);
                o->ndim = largest->ndim;
                o->size = largest->size;
            }
        }
}

/* Template arguments: typename, int or bool, and what they are here. */
static void write_templates(importer *im, value *list, FILE *params, FILE *args) {
    for (size_t i = 0; list && list->kind == V_LIST && i < list->list.count; i++) {
        value *pair = list->list.items[i];
        if (pair->kind != V_LIST || pair->list.count != 2 || pair->list.items[0]->kind != V_STRING)
            continue;
        const char *name = pair->list.items[0]->s.text, *says = assume_find(im, name);
        value *v = pair->list.items[1];
        size_t n = strlen(name);
        bool is_short = name[n - 1] == 'T' && (n == 1 || islower((unsigned char)name[n - 2]));
        bool looks_typed = v->kind == V_UNKNOWN && (is_short || strstr(name, "ype") ||
                                                    (v->name && strstr(v->name, "type")));
        const char *type = says && type_find(says) ? type_find(says)
                           : v->kind == V_TYPE     ? v->name
                           : looks_typed           ? "float32"
                                                   : NULL;
        fprintf(params, "%s%s %s", i ? ", " : "",
                type                ? "typename"
                : v->kind == V_BOOL ? "bool"
                                    : "int",
                name);
        if (type)
            fprintf(args, "%s%s", i ? ", " : "", types[find_type(type)].msl);
        else
            fprintf(args, "%s%" PRId64, i ? ", " : "", value_whole(im, v, 0));
    }
}

/* The signature -------------------------------------------------------------------------------- */

typedef struct {
    FILE *metal, *args;
    int index;
} writer;

static void write_argument(writer *w, const operand *o, bool is_output, const char *fill) {
    const char *type = types[find_type(o->type)].assay;
    if (o->ndim == 0 && !is_output && o->from && o->from->kind != V_ARRAY) {
        fprintf(w->args, "--arg %d=%s:%.9g    # %s\n", w->index, type,
                o->from->kind == V_FLOAT ? o->from->f : (double)o->from->i, o->name);
    } else {
        fprintf(w->args, "--arg %d=%s[%" PRId64 "]%s    # %s %s (", w->index, type, o->size, fill,
                o->name, o->type);
        for (int i = 0; i < o->ndim; i++)
            fprintf(w->args, "%s%" PRId64, i ? ", " : "", o->dims[i]);
        fputs(")\n", w->args);
    }
    w->index++;
}

/* Shape and strides, where the source asks for them. */
static void write_shape(writer *w, const kernel_site *k, const operand *o) {
    int64_t strides[ARRAY_AXES], stride = 1;
    for (int i = o->ndim; i-- > 0; stride *= o->dims[i])
        strides[i] = stride;
    for (int is_strides = 0; is_strides < 2; is_strides++) {
        const char *suffix = is_strides ? "_strides" : "_shape";
        if (!has(k, o->name, suffix))
            continue;
        fprintf(w->metal, "  const constant %s* %s%s [[buffer(%d)]],\n",
                is_strides ? "int64_t" : "int", o->name, suffix, w->index);
        fprintf(w->args, "--arg %d=%s[]:value:", w->index, is_strides ? "i64" : "i32");
        for (int i = 0; i < o->ndim; i++)
            fprintf(w->args, "%s%" PRId64, i ? "," : "", is_strides ? strides[i] : o->dims[i]);
        fprintf(w->args, "    # %s%s\n", o->name, suffix);
        w->index++;
    }
    if (has(k, o->name, "_ndim")) {
        fprintf(w->metal, "  const constant int& %s_ndim [[buffer(%d)]],\n", o->name, w->index);
        fprintf(w->args, "--arg %d=i32:%d    # %s_ndim\n", w->index++, o->ndim, o->name);
    }
}

/* ":value:1,2,3" where the file lists the elements; floats are random otherwise, and integers 0,
 * because they may be indices. */
static const char *choose_contents(importer *im, const operand *o) {
    const array_facts *a = o->from && o->from->kind == V_ARRAY ? o->from->array : NULL;
    bool is_float = strstr(o->type, "float") != NULL;
    if (!a || !a->given || (int64_t)a->given->count != o->size || o->size > 16)
        return is_float ? ":random" : ":zero";
    char text[400] = ":value:";
    size_t used = strlen(text);
    for (size_t i = 0; i < a->given->count && used < sizeof text - 40; i++) {
        double x = 0;
        bool is_int;
        value_number(im, a->given->items[i], &x, &is_int);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.9g", i ? "," : "", x);
    }
    return keep_print(im, "%s", text);
}

static void write_inputs(importer *im, writer *w, const kernel_site *k, const operand *inputs) {
    for (size_t i = 0; i < k->inputs.count; i++) {
        const operand *o = &inputs[i];
        fprintf(w->metal, "  const %s %s%s %s [[buffer(%d)]],\n",
                o->size < FEW_ELEMENTS ? "constant" : "device", types[find_type(o->type)].msl,
                o->ndim == 0 ? "&" : "*", o->name, w->index);
        write_argument(w, o, false, choose_contents(im, o));
        if (o->ndim > 0)
            write_shape(w, k, o);
    }
}

static void write_outputs(importer *im, writer *w, const kernel_site *k) {
    value *shapes = dict_find(k->launch, "output_shapes"),
          *init = dict_find(k->launch, "init_value");
    value *kinds = dict_find(k->launch, "output_dtypes");
    double start = 0;
    bool is_int,
        has_start = init && init->kind != V_NONE && value_number(im, init, &start, &is_int);
    for (size_t i = 0; i < k->outputs.count; i++) {
        operand o = {.name = k->outputs.items[i]->s.text, .size = 1, .ndim = 1, .dims = {1024}};
        value *shape = shapes && i < shapes->list.count ? shapes->list.items[i] : NULL;
        value *type = kinds && i < kinds->list.count ? kinds->list.items[i] : NULL;
        const char *says = assume_find(im, o.name);
        if (shape && shape->kind == V_SHAPE)
            shape = array_shape_list(im, shape, -1);
        if (shape && shape->kind == V_LIST)
            take_dims(&o, array_value(im, &shape->list, NULL)->array);
        for (int d = 0; d < o.ndim; d++)
            o.size *= o.size > MOST_ELEMENTS ? 1 : o.dims[d];
        o.type = says && type_find(says)        ? type_find(says)
                 : type && type->kind == V_TYPE ? type->name
                                                : "float32";
        const char *msl = types[find_type(o.type)].msl;
        fprintf(w->metal, "  device %s%s%s* %s [[buffer(%d)]]", k->is_atomic ? "atomic<" : "", msl,
                k->is_atomic ? ">" : "", o.name, w->index);
        write_argument(w, &o, true, has_start ? keep_print(im, ":value:%.9g", start) : "");
        fputs(i + 1 < k->outputs.count ? ",\n" : "", w->metal);
    }
}

static void write_attributes(const kernel_site *k, FILE *out) {
    static const struct {
        const char *name, *type;
    } attributes[] = {
        {"dispatch_quadgroups_per_threadgroup", "uint"},
        {"dispatch_simdgroups_per_threadgroup", "uint"},
        {"dispatch_threads_per_threadgroup", "uint3"},
        {"grid_origin", "uint3"},
        {"grid_size", "uint3"},
        {"quadgroup_index_in_threadgroup", "uint"},
        {"quadgroups_per_threadgroup", "uint"},
        {"simdgroup_index_in_threadgroup", "uint"},
        {"simdgroups_per_threadgroup", "uint"},
        {"thread_execution_width", "uint"},
        {"thread_index_in_quadgroup", "uint"},
        {"thread_index_in_simdgroup", "uint"},
        {"thread_index_in_threadgroup", "uint"},
        {"thread_position_in_grid", "uint3"},
        {"thread_position_in_threadgroup", "uint3"},
        {"threadgroup_position_in_grid", "uint3"},
        {"threadgroups_per_grid", "uint3"},
        {"threads_per_grid", "uint3"},
        {"threads_per_simdgroup", "uint"},
        {"threads_per_threadgroup", "uint3"},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (has(k, attributes[i].name, ""))
            fprintf(out, ",\n  %s %s [[%s]]", attributes[i].type, attributes[i].name,
                    attributes[i].name);
}

/* MLX dispatches threads, and a threadgroup is not larger than the grid. */
static void write_geometry(importer *im, const kernel_site *k, FILE *out) {
    int64_t sizes[2][3] = {{32, 1, 1}, {32, 1, 1}};
    for (int g = 0; g < 2 && k->launch; g++) {
        value *v = dict_find(k->launch, g ? "threadgroup" : "grid");
        for (size_t i = 0; v && v->kind == V_LIST && i < 3 && i < v->list.count; i++)
            sizes[g][i] = value_whole(im, v->list.items[i], 1);
    }
    for (int g = 0; g < 2; g++) {
        fprintf(out, g ? " --group " : "--threads ");
        for (int i = 0; i < 3; i++) {
            int64_t n = g && sizes[1][i] > sizes[0][i] ? sizes[0][i] : sizes[g][i];
            fprintf(out, "%s%" PRId64, i ? "," : "", n > 0 ? n : 1);
        }
    }
    fputc('\n', out);
}

static void write_function(importer *im, kernel_site *k, const char *name, FILE *metal,
                           FILE *args) {
    operand *inputs = keep(im, (k->inputs.count + 1) * sizeof *inputs);
    value *given = dict_find(k->launch, "inputs");
    writer w = {metal, args, 0};
    char *params = NULL, *values = NULL;
    size_t bytes;
    for (size_t i = 0; i < k->inputs.count; i++) {
        inputs[i].name = k->inputs.items[i]->s.text;
        bool has_value = given && given->kind == V_LIST && i < given->list.count;
        read_operand(im, k, &inputs[i], has_value ? given->list.items[i] : NULL);
    }
    share_sizes(inputs, k->inputs.count);
    FILE *p = open_memstream(&params, &bytes), *v = open_memstream(&values, &bytes);
    write_templates(im, dict_find(k->launch, "template"), p, v);
    if (!k->launch && source_has_word(im, k, "T")) { /* what most kernels call their type */
        fputs("typename T", p);
        fputs("float", v);
    }
    fclose(p);
    fclose(v);
    if (*params)
        fprintf(metal, "template <%s>\n", params);
    fprintf(metal, "[[kernel]] void %s(\n", name);
    write_inputs(im, &w, k, inputs);
    write_outputs(im, &w, k);
    write_attributes(k, metal);
    fputs(") {\n", metal);
    write_text(im, &k->source, metal);
    fputs("}\n", metal);
    if (*params)
        fprintf(metal, "template [[host_name(\"%s\")]] [[kernel]] decltype(%s<%s>) %s<%s>;\n", name,
                name, values, name, values);
    free(params);
    free(values);
}

/* PyTorch dispatches threads, by default one per element of the first tensor, in threadgroups of at
 * most 1024. */
static void write_threads(importer *im, const library_launch *l, FILE *out) {
    int64_t sizes[2][3] = {{1, 1, 1}, {0, 1, 1}};
    static const char *const names[] = {"threads", "group_size"};
    value *first = l->args.count ? l->args.items[0] : NULL;
    if (first && first->kind == V_UNKNOWN)
        array_of(im, first);
    if (first && first->kind == V_ARRAY)
        sizes[0][0] = array_size(first->array);
    for (int g = 0; g < 2; g++) {
        value *v = dict_find(l->named, names[g]);
        if (v && v->kind == V_SHAPE)
            v = array_shape_list(im, v, -1);
        for (size_t i = 0; v && v->kind == V_LIST && i < 3 && i < v->list.count; i++)
            sizes[g][i] = value_whole(im, v->list.items[i], 1);
        if (v && v->kind != V_LIST && v->kind != V_NONE)
            sizes[g][0] = value_whole(im, v, 1);
    }
    if (sizes[1][0] <= 0)
        sizes[1][0] = sizes[0][0] < 1024 ? sizes[0][0] : 1024;
    for (int g = 0; g < 2; g++) {
        fprintf(out, g ? " --group " : "--threads ");
        for (int i = 0; i < 3; i++)
            fprintf(out, "%s%" PRId64, i ? "," : "", sizes[g][i] > 0 ? sizes[g][i] : 1);
    }
    fputc('\n', out);
}

/* The type that the kernel declares: numbers are passed as wide as it takes them. */
static const char *find_declared(const msl_param *p) {
    elem declared;
    for (size_t i = 0; elem_find_msl(p->type, &declared) && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].assay, elem_get_name(declared)) == 0)
            return types[i].python;
    return NULL;
}

bool signature_write_launch(importer *im, const kernel_site *k, const library_launch *l,
                            const char *file, const char *metal, FILE *args) {
    err ignored;
    const msl_extras extras = {.folders = &im->settings.torch,
                               .folder_count = im->settings.torch ? 1 : 0};
    msl_unit *u = msl_from_text_with(file, metal, &extras, &ignored);
    const msl_signature *s = u ? msl_find_kernel(u, l->kernel, &ignored) : NULL;
    writer w = {NULL, args, 0};
    if (s) {
        fprintf(args, "# %s:%d, launched at line %d\n%s.metal %s\n", im->files[k->file].path,
                k->line, l->line, file, l->kernel);
        write_threads(im, l, args);
    }
    operand *given = keep(im, (l->args.count + 1) * sizeof *given);
    size_t count = 0;
    for (size_t i = 0; s && i < s->count; i++) {
        const msl_param *p = &s->params[i];
        if (p->kind != MSL_BUFFER || (size_t)p->index >= l->args.count || count == l->args.count)
            continue;
        operand *o = &given[count++];
        o->name = keep_print(im, "%s", p->name);
        read_operand(im, k, o, l->args.items[p->index]);
        const char *declared = find_declared(p);
        o->type = declared ? declared : o->type;
    }
    share_sizes(given, count);
    for (size_t i = 0; i < count; i++)
        write_argument(&w, &given[i], false, choose_contents(im, &given[i]));
    msl_free(u);
    return s != NULL;
}

void signature_write(importer *im, kernel_site *k, const char *file, FILE *metal, FILE *args) {
    const char *path = im->files[k->file].path;
    if (k->is_torch) {
        fputs("#include <metal_stdlib>\nusing namespace metal;\n", metal);
        write_text(im, &k->source, metal);
        return;
    }
    char name[300];
    snprintf(name, sizeof name, "custom_kernel_%s", file);
    fprintf(args, "# %s: %s:%d", k->name, path, k->line);
    if (k->launch)
        fprintf(args, ", launched at line %d", k->launch_line);
    fprintf(args, "\n%s.metal %s\n", file, name);
    write_geometry(im, k, args);
    fprintf(metal, "#include \"%s\"\n",
            im->settings.mlx ? "mlx/backend/metal/kernels/utils.h" : "mlx.h");
    write_text(im, &k->header, metal);
    fprintf(metal, "#line %d \"%s\"\n", k->line, path);
    write_function(im, k, name, metal, args);
}
