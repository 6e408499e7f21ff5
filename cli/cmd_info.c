/* cmd_info: `assay info`. What this machine has, what is missing, and what needs it. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "harness/base/host.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/device/device.h"
#include "harness/measure/results.h"
#include "runner/choice/tuned.h"
#include "runner/gguf/gguf.h"
#include "verb.h"

static struct {
    const char *device, *field;
    bool json, is_found; /* found: the field */
} settings;

static const option options[] = {
    DEVICE_OPTION(&settings.device),
    TEXT_OPTION(
        "field", &settings.field, "NAME",
        "print only the value of this line, such as results, device or cache (for scripts)"),
    FLAG_OPTION("json", &settings.json, "print one JSON object instead of the lines"),
};

static json object; /* of --json: a list per key */

/* An empty key continues the line before it. */
static void print_line(const char *key, const char *value) {
    static const char *last = "";
    if (settings.json) {
        if (*key && *last)
            json_close(&object);
        if (*key)
            json_open(&object, key, '[');
        json_add_text(&object, NULL, value);
    }
    last = *key ? key : last;
    if (settings.json)
        return;
    if (!settings.field)
        printf("%-10s %s\n", key, value);
    else if (strcmp(settings.field, last) == 0) {
        printf("%s\n", value);
        settings.is_found = true;
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
    char home[PATH_MAX - 64], path[PATH_MAX];
    err e = {.code = EXIT_OK};
    gguf *file = NULL;
    if (os_find_home(home, sizeof home, &e)) {
        snprintf(path, sizeof path, "%s/models/assay-tiny.gguf", home);
        file = gguf_open(path, &e);
    }
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

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    (void)names;
    assert(count == 0);
    if (settings.json)
        object = json_start(stdout, '{');
    print_line("assay", ASSAY_VERSION);
    print_machine();
    print_kinds();
    print_tools();
    if (settings.is_found)
        return EXIT_OK;
    device *d = device_open(settings.device, e);
    if (d)
        print_device(d);
    device_close(d);
    if (settings.json) {
        json_close(&object);
        json_close(&object);
    }
    if (!d)
        return e->code;
    if (settings.field && !settings.is_found)
        return err_code(e, EXIT_USAGE, "info has no line '%.40s'; `assay info` shows all of them",
                        settings.field);
    return EXIT_OK;
}

VERB(verb_info, "info",
     .about =
         "describe this machine: devices, and why any is unavailable; compiler, CPU, caches, tools",
     VERB_OPTIONS(options));
