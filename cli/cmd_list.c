/* cmd_list: `assay list`, the ops and their kernels, for people and for the documentation; and `assay info`. */
#include <assert.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cases.h"
#include "harness/base/array.h"
#include "harness/base/host.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/record.h"
#include "harness/device/device.h"
#include "harness/measure/results.h"
#include "kernels/ops.h"
#include "report/html.h"
#include "runner/choice/tuned.h"
#include "runner/gguf/gguf.h"
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

static const field op_fields[] = {
    FIELD(op, name, FIELD_TEXT, NULL, "op"),
    FIELD(op, about, FIELD_TEXT, NULL, "computes"),
    FIELD(op, dims, FIELD_TEXT, NULL, "shape", .rank = 1),
    FIELD(op, kernel_count, FIELD_COUNT, NULL, "kernels"),
};

static exit_code print_ops(void) {
    sink to = {.record = RECORD(op_fields), .out = stdout};
    for (size_t i = 0; i < registry_count; i++)
        sink_add(&to, registry[i], PAINT_NONE);
    sink_end(&to);
    return EXIT_OK;
}

static size_t print_rows(const selection *s) {
    sink to = {.record = RECORD(fields), .out = settings.json ? NULL : stdout};
    json j;
    if (settings.json)
        j = json_start(stdout, '[');
    to.json = settings.json ? &j : NULL;
    size_t count = list_kernels(s, &to);
    if (settings.json)
        json_close(&j);
    return count;
}

static void escape_cell(FILE *out, const char *text) {
    for (const char *p = text; *p; p++)
        fprintf(out, *p == '|' ? "\\%c" : "%c", *p);
}
#define MARKDOWN(...) print_escaped(stdout, escape_cell, __VA_ARGS__)

/* The kernels of an op that work in the same way: a row of its table. */
typedef struct {
    const kernel *kernels[32]; /* the first of each weight format */
    size_t formats;
    bool has_plain, has_sum;
} variant;

static bool is_alike(const kernel *a, const kernel *b) {
    return strcmp(get_about(a->variant), get_about(b->variant)) == 0 &&
           strcmp(get_about(a->about), get_about(b->about)) == 0;
}

/* In the order of the kernels, of which there are *kernels; the caller frees them. */
static variant *find_variants(const selection *s, const op *o, size_t *variants, size_t *kernels) {
    variant *out = array_new(o->kernel_count, sizeof *out);
    size_t count = 0;
    *kernels = 0;
    for (const kernel *k = o->kernels; k < o->kernels + o->kernel_count; k++) {
        size_t i = 0, f = 0;
        if (!has_kernel(s, o, k))
            continue;
        ++*kernels;
        while (i < count && !is_alike(out[i].kernels[0], k))
            i++;
        count += i == count;
        variant *v = &out[i];
        while (f < v->formats && v->kernels[f]->format != k->format)
            f++;
        assert(f < sizeof v->kernels / sizeof *v->kernels);
        if (f == v->formats)
            v->kernels[v->formats++] = k;
        v->has_sum |= k->accumulates;
        v->has_plain |= !k->accumulates;
    }
    *variants = count;
    return out;
}

/* Formats and `=` or `+=` are columns where they tell kernels of the op apart. */
static void print_variants(const op *o, const variant *variants, size_t count) {
    bool has_format = false, has_sum = false, has_plain = false;
    for (const variant *v = variants; v < variants + count; v++) {
        has_format |= v->formats > 1 || v->kernels[0]->format;
        has_sum |= v->has_sum;
        has_plain |= v->has_plain;
    }
    has_sum &= has_plain;
    printf("\n## %s\n\n| variant |%s%s how |\n|---|%s%s---|\n", o->name,
           has_format ? " formats |" : "", has_sum ? " y |" : "", has_format ? "---|" : "",
           has_sum ? "---|" : "");
    for (const variant *v = variants; v < variants + count; v++) {
        const kernel *first = v->kernels[0];
        printf("| %s | ", first->variant ? first->variant : "plain");
        for (size_t f = 0; has_format && f < v->formats; f++) {
            char format[32];
            axes_get_format(v->kernels[f], format, sizeof format);
            printf("%s%s", f ? " " : "", format);
        }
        fputs(has_format ? " | " : "", stdout);
        if (has_sum)
            printf("%s | ", !v->has_sum ? "=" : v->has_plain ? "= and +=" : "+=");
        MARKDOWN("%s |\n", get_about(first->about));
    }
}

/* A table of the ops, then one of variants for each op that has several kernels. */
static size_t print_markdown(const selection *s) {
    size_t all = 0, count, kernels;
    puts("| op | computes | shape | kernels |\n|---|---|---|---|");
    for (size_t i = 0; i < registry_count; i++) {
        const op *o = registry[i];
        variant *variants = find_variants(s, o, &count, &kernels);
        all += kernels;
        if (kernels > 0)
            MARKDOWN("| `%s` | %s | %s | ", o->name, get_about(o->about), o->dims);
        if (kernels > 1)
            printf("[%zu kernels](#%s) |\n", kernels, o->name);
        else if (kernels > 0)
            MARKDOWN("%s |\n", get_about(variants[0].kernels[0]->about));
        free(variants);
    }
    for (size_t i = 0; i < registry_count; i++) {
        variant *variants = find_variants(s, registry[i], &count, &kernels);
        if (kernels > 1)
            print_variants(registry[i], variants, count);
        free(variants);
    }
    return all;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    static const axes_query any;
    selection s = {.filters = names, .count = count};
    if (count == 0 && !settings.md && !settings.json &&
        memcmp(&settings.axes, &any, sizeof any) == 0)
        return print_ops();
    if (!axes_parse(&settings.axes, &s.axes, e) || !check_filters(&s, e))
        return e->code;
    if ((settings.md && !settings.json ? print_markdown(&s) : print_rows(&s)) > 0)
        return EXIT_OK;
    return err_code(e, EXIT_USAGE, "no kernel has the given format, variant and accumulation");
}

VERB(verb_list, "list", run_verb, .names = "[NAME...]",
     .about = "list the ops, or the kernels of those that are named",
     .notes = "NAME is an op, a kernel or a glob: 'matvec*', or '*' for every kernel. --md and\n"
              "--json without a NAME have every op and kernel.\n",
     VERB_OPTIONS(options), .runs_ops = true);

/* info: what this machine has, what is missing, and what needs it -------------------------------- */

static struct {
    const char *device, *field;
    bool json, is_found; /* found: the field */
} info_settings;

static const option info_option_list[] = {
    DEVICE_OPTION(&info_settings.device),
    TEXT_OPTION("field", &info_settings.field, "NAME",
                "print only the value of this line, such as results or device"),
    FLAG_OPTION("json", &info_settings.json, "print one JSON object instead of the lines"),
};

static json object; /* of --json: a list per key */

/* An empty key continues the line before it. */
static void print_line(const char *key, const char *value) {
    static const char *last = "";
    if (info_settings.json) {
        if (*key && *last)
            json_close(&object);
        if (*key)
            json_open(&object, key, '[');
        json_add_text(&object, NULL, value);
    }
    last = *key ? key : last;
    if (info_settings.json)
        return;
    if (!info_settings.field)
        printf("%-10s %s\n", key, value);
    else if (strcmp(info_settings.field, last) == 0) {
        printf("%s\n", value);
        info_settings.is_found = true;
    }
}

static void print_machine(void) {
    char name[128], text[320];
    struct utsname system;
    if (uname(&system) != 0)
        strcpy(system.machine, "unknown machine");
    if (!host_find_cpu(name, sizeof name))
        snprintf(name, sizeof name, "unnamed CPU");
    snprintf(text, sizeof text, "%s, %.60s, %d cores", name, system.machine, os_count_cpus());
    print_line("cpu", text);
    snprintf(text, sizeof text, "%.1f GB", (double)host_count_memory() * 1e-9);
    print_line("memory", text);
    power_state power = power_get_state();
    snprintf(text, sizeof text, "%s%s%s",
             power.on_battery ? "on battery" : "mains, or not reported",
             power.low_power ? ", low-power mode" : "", power.is_hot ? ", hot" : "");
    print_line("power", text);
}

static void print_kinds(void) {
    const char *name;
    bool is_available;
    for (int i = 0;; i++) {
        err why = {.code = EXIT_OK};
        if (!device_describe(i, &name, &is_available, &why))
            return;
        char line[320];
        snprintf(line, sizeof line, "%-5s %s", name, is_available ? "available" : why.text);
        print_line(i ? "" : "devices", line);
    }
}

static void print_tools(void) {
    char path[PATH_MAX];
    err e = {.code = EXIT_OK};
    print_line("files", os_find_home(path, sizeof path, &e) ? path : e.text);
    print_line("cache", os_find_cache(path, sizeof path, &e) ? path : e.text);
    print_line("gnuplot", os_find_program("gnuplot", path, sizeof path)
                              ? path
                              : "not found: plots need the package gnuplot");
}

static void print_tuned(device *d) {
    char text[PATH_MAX + 96];
    tuned *t = NULL;
    err e = {.code = EXIT_OK};
    library *lib = library_new(d, NULL, &e);
    if (!lib || !tuned_open(lib, &t, &e))
        snprintf(text, sizeof text, "%s", e.text);
    else if (!t)
        snprintf(text, sizeof text, "no table: kernels by rules (assay tune makes one)");
    else
        snprintf(text, sizeof text, "%s, %zu choices, %zu more of kernels that changed since",
                 t->path, t->count, t->stale);
    print_line("tuned", text);
    tuned_free(t);
    library_free(lib);
}

/* Weights are bound as the pages of their file, if the device takes those in place. */
static void print_mapping(device *d) {
    char path[PATH_MAX];
    err e = {.code = EXIT_OK};
    bool is_found = os_join_home(path, sizeof path, &e, "models/assay-tiny.gguf");
    gguf *file = is_found ? gguf_open(path, &e) : NULL;
    buffer *b = file ? device_wrap_memory(d, file->map, file->bytes, "weights", &e) : NULL;
    print_line("weights", !b ? e.text
                          : b->is_copy
                              ? "copied: this device takes no memory of the caller in place"
                              : "used in place, from the mapped file");
    buffer_free(b);
    gguf_free(file);
}

static void print_device(device *d) {
    const device_facts *f = device_get_facts(d);
    char text[200];
    print_line("device", f->name);
    char folder[96], path[128];
    results_get_folder(f->name, folder, sizeof folder);
    snprintf(path, sizeof path, "results/%s", folder);
    print_line("results", path);
    print_tuned(d);
    if (f->family[0])
        print_line("families", f->family);
    print_line("compiler", f->compiler);
    if (f->sandbox[0])
        print_line("sandbox", f->sandbox);
    char lanes[40] = "8 to 64, by kernel";
    if (f->simd_width)
        snprintf(lanes, sizeof lanes, "%u", f->simd_width);
    snprintf(text, sizeof text, "simdgroups of %s, threadgroups of up to %u threads and %u bytes",
             lanes, f->max_group_threads, f->max_threadgroup_bytes);
    print_line("limits", text);
    print_line("denormals", f->flushes_denormals ? "flushed to 0 in f32" : "kept");
    if (f->working_set_bytes) {
        snprintf(text, sizeof text,
                 "%s memory, %.1f GB in total, %.1f GB per buffer, %.1f MB allocated",
                 f->unified ? "unified" : "its own", (double)f->working_set_bytes * 1e-9,
                 (double)f->max_buffer_bytes * 1e-9, (double)f->allocated_bytes * 1e-6);
        print_line("room", text);
    }
    print_mapping(d);
    print_line("launches", device_can_sample(d)
                               ? "timed by counters, many per command buffer"
                               : "timed one by one, each in a command buffer of its own");
}

static exit_code run_info(err *e) {
    if (info_settings.json)
        object = json_start(stdout, '{');
    print_line("assay", ASSAY_VERSION);
    print_machine();
    print_kinds();
    print_tools();
    if (info_settings.is_found)
        return EXIT_OK;
    device *d = device_open(info_settings.device, e);
    if (d)
        print_device(d);
    device_close(d);
    if (info_settings.json) {
        json_close(&object);
        json_close(&object);
    }
    if (!d)
        return e->code;
    if (info_settings.field && !info_settings.is_found)
        return err_code(e, EXIT_USAGE, "info has no line '%.40s'; `assay info` shows all of them",
                        info_settings.field);
    return EXIT_OK;
}

VERB_ALONE(
    verb_info, "info", run_info,
    .about =
        "describe this machine: devices, and why any is unavailable; compiler, CPU, caches, tools",
    VERB_OPTIONS(info_option_list));
