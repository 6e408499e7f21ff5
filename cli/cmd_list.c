/* cmd_list: `assay list`. The ops and their kernels, for people and for the documentation. */
#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "axes.h"
#include "harness/base/record.h"
#include "kernels/ops.h"
#include "verb.h"

static struct {
    bool md, json;
    axes_query axes;
} settings;

static const option options[] = {
    AXES_KERNEL_OPTIONS(settings.axes),
    FLAG_OPTION("md", &settings.md, "as Markdown: a table of the ops, and one of variants per op"),
    FLAG_OPTION("json", &settings.json, "as a JSON array, one object per kernel"),
};

/* The selection: names of ops and kernels, or globs. */
typedef struct {
    const char *const *filters;
    size_t count;
    axes axes;
} selection;

static bool is_named(const char *filter, const op *o, const kernel *k) {
    return fnmatch(filter, o->name, 0) == 0 || fnmatch(filter, k->name, 0) == 0;
}

static bool has_kernel(const selection *s, const op *o, const kernel *k) {
    bool is_wanted = s->count == 0;
    for (size_t i = 0; i < s->count; i++)
        is_wanted = is_wanted || is_named(s->filters[i], o, k);
    return is_wanted && axes_take_kernel(&s->axes, k);
}

static bool check_filters(const selection *s, err *e) {
    for (size_t f = 0; f < s->count; f++) {
        bool is_known = false, is_left = false;
        for (size_t i = 0; i < registry_count; i++)
            for (size_t j = 0; j < registry[i]->kernel_count; j++)
                if (is_named(s->filters[f], registry[i], &registry[i]->kernels[j])) {
                    is_known = true;
                    is_left = is_left || axes_take_kernel(&s->axes, &registry[i]->kernels[j]);
                }
        if (!is_left)
            return axes_refuse_filter("op or kernel", s->filters[f], is_known, e);
    }
    return true;
}

/* Those of a user's description may have none. */
static const char *get_about(const char *text) {
    return text ? text : "";
}

typedef struct {
    const char *op, *kernel, *computes, *about, *shape, *file, *format, *variant, *sum, *tokens;
    bool accumulates;
    char line[128], lower[32]; /* the name and the format as the table has them */
} view;

static const field fields[] = {
    FIELD(view, line, FIELD_CHARS, NULL, "op, kernel"),
    FIELD(view, lower, FIELD_CHARS, NULL, "format"),
    FIELD(view, sum, FIELD_TEXT, NULL, "+=", .rank = 2),
    FIELD(view, tokens, FIELD_TEXT, NULL, "tokens", .rank = 1),
    FIELD(view, op, FIELD_TEXT, "op"),
    FIELD(view, kernel, FIELD_TEXT, "kernel"),
    FIELD(view, computes, FIELD_TEXT, "computes"),
    FIELD(view, about, FIELD_TEXT, "about", "about"),
    FIELD(view, shape, FIELD_TEXT, "shape"),
    FIELD(view, file, FIELD_TEXT, "file"),
    FIELD(view, format, FIELD_TEXT, "format"),
    FIELD(view, variant, FIELD_TEXT, "variant"),
    FIELD(view, accumulates, FIELD_FLAG, "accumulates"),
};

static void add_kernel(sink *to, const op *o, const kernel *k) {
    view v = {.op = o->name,
              .kernel = k->name,
              .computes = o->about,
              .about = k->about,
              .shape = o->dims,
              .file = k->file,
              .format = k->format ? k->format->name : "",
              .variant = k->variant,
              .sum = k->accumulates ? "+=" : "",
              .tokens = k->tokens ? "many" : "",
              .accumulates = k->accumulates};
    snprintf(v.line, sizeof v.line, "  %s", k->name);
    axes_get_format(k, v.lower, sizeof v.lower);
    sink_add(to, &v, PAINT_NONE);
}

/* One line per op, then one per kernel. */
static size_t list_kernels(const selection *s, sink *to) {
    size_t count = 0;
    const op *last = NULL;
    for (size_t i = 0; i < registry_count; i++)
        for (size_t j = 0; j < registry[i]->kernel_count; j++) {
            const op *o = registry[i];
            bool has_colour = to->out && table_wants_colour(to->out);
            char line[400];
            if (!has_kernel(s, o, &o->kernels[j]))
                continue;
            snprintf(line, sizeof line, "%s%s%s  %s%s%s", has_colour ? "\033[32m" : "", o->name,
                     has_colour ? "\033[0m" : "", o->dims, *get_about(o->about) ? ": " : "",
                     get_about(o->about));
            if (o != last)
                sink_note(to, 0, line);
            add_kernel(to, o, &o->kernels[j]);
            last = o;
            count++;
        }
    if (count > 0)
        sink_end(to);
    return count;
}

static size_t print_table(const selection *s) {
    sink to = {.record = RECORD(fields), .out = stdout};
    return list_kernels(s, &to);
}

static size_t print_json(const selection *s) {
    json j = json_start(stdout, '[');
    sink to = {.record = RECORD(fields), .json = &j};
    size_t count = list_kernels(s, &to);
    json_close(&j);
    return count;
}

static void print_markdown_cell(const char *text) {
    for (const char *p = text; *p; p++) {
        if (*p == '|')
            putchar('\\');
        putchar(*p);
    }
}

typedef struct {
    const op *op;
    const kernel *kernels[512];
    size_t count;
} op_kernels;

/* A row of the table of an op stands for all kernels of a variant that work in the same way. */
static bool is_alike(const kernel *a, const kernel *b) {
    return strcmp(get_about(a->variant), get_about(b->variant)) == 0 &&
           strcmp(get_about(a->about), get_about(b->about)) == 0;
}

/* Formats of the kernels that are like the first one, once each, in the order of the kernels. */
static void print_formats(const op_kernels *l, size_t first) {
    for (size_t i = first; i < l->count; i++) {
        size_t j = first;
        while (j < i && (!is_alike(l->kernels[j], l->kernels[first]) ||
                         l->kernels[j]->format != l->kernels[i]->format))
            j++;
        char format[32];
        axes_get_format(l->kernels[i], format, sizeof format);
        if (j == i && is_alike(l->kernels[i], l->kernels[first]))
            printf("%s%s", i > first ? " " : "", format);
    }
}

static const char *describe_outputs(const op_kernels *l, size_t first) {
    bool has_plain = false, has_sum = false;
    for (size_t i = first; i < l->count; i++)
        if (is_alike(l->kernels[i], l->kernels[first])) {
            has_sum = has_sum || l->kernels[i]->accumulates;
            has_plain = has_plain || !l->kernels[i]->accumulates;
        }
    return has_sum && has_plain ? "= and +=" : has_sum ? "+=" : "=";
}

/* Formats and `=` or `+=` are columns where they tell kernels of the op apart. */
static void print_variants(const op_kernels *l) {
    bool has_format = false, has_sum = false;
    for (size_t i = 0; i < l->count; i++) {
        has_format = has_format || l->kernels[i]->format;
        has_sum = has_sum || l->kernels[i]->accumulates != l->kernels[0]->accumulates;
    }
    printf("\n## %s\n\n| variant |%s%s how |\n|---|%s%s---|\n", l->op->name,
           has_format ? " formats |" : "", has_sum ? " y |" : "", has_format ? "---|" : "",
           has_sum ? "---|" : "");
    for (size_t i = 0; i < l->count; i++) {
        size_t j = 0;
        while (j < i && !is_alike(l->kernels[j], l->kernels[i]))
            j++;
        if (j < i)
            continue;
        printf("| %s | ", l->kernels[i]->variant ? l->kernels[i]->variant : "plain");
        if (has_format) {
            print_formats(l, i);
            fputs(" | ", stdout);
        }
        if (has_sum)
            printf("%s | ", describe_outputs(l, i));
        print_markdown_cell(get_about(l->kernels[i]->about));
        puts(" |");
    }
}

static void print_op(const op_kernels *l) {
    printf("| `%s` | ", l->op->name);
    print_markdown_cell(get_about(l->op->about));
    printf(" | %s | ", l->op->dims);
    if (l->count == 1)
        print_markdown_cell(get_about(l->kernels[0]->about));
    else
        printf("[%zu kernels](#%s)", l->count, l->op->name);
    puts(" |");
}

static op_kernels find_kernels(const selection *s, const op *o) {
    op_kernels l = {.op = o};
    for (size_t k = 0; k < o->kernel_count; k++)
        if (has_kernel(s, o, &o->kernels[k])) {
            assert(l.count < sizeof l.kernels / sizeof *l.kernels);
            l.kernels[l.count++] = &o->kernels[k];
        }
    return l;
}

/* A table of the ops, then one of variants for each op that has several kernels. */
static size_t print_markdown(const selection *s) {
    size_t count = 0;
    puts("| op | computes | shape | kernels |\n|---|---|---|---|");
    for (size_t i = 0; i < registry_count; i++) {
        op_kernels l = find_kernels(s, registry[i]);
        if (l.count > 0)
            print_op(&l);
        count += l.count;
    }
    for (size_t i = 0; i < registry_count; i++) {
        op_kernels l = find_kernels(s, registry[i]);
        if (l.count > 1)
            print_variants(&l);
    }
    return count;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    selection s = {.filters = names, .count = count};
    if (!axes_parse(&settings.axes, &s.axes, e) || !check_filters(&s, e))
        return e->code;
    if ((settings.json ? print_json(&s) : settings.md ? print_markdown(&s) : print_table(&s)) > 0)
        return EXIT_OK;
    return err_code(e, EXIT_USAGE, "no kernel has the given format, variant and accumulation");
}

VERB(verb_list, "list", .names = "[NAME...]", .about = "list the ops and their kernels",
     .notes = "NAME is an op, a kernel or a glob: 'matvec*'. Without one, all are listed.\n",
     VERB_OPTIONS(options), .runs_ops = true);
