/* cmd_info: `assay info`. What this machine has, and what it lacks for what. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "harness/device.h"
#include "harness/os.h"
#include "verb.h"

static struct { const char *device; } settings;

static const option options[] = {
    {"device", OPTION_TEXT, &settings.device, "D",
     "soft, metal, cuda or auto (default ASSAY_DEVICE, else auto)", 0, 0},
};

static void print_line(const char *key, const char *value) {
    printf("%-10s %s\n", key, value);
}

#if defined(__APPLE__)
static bool find_cpu_name(char *name, size_t size) {
    return sysctlbyname("machdep.cpu.brand_string", name, &size, NULL, 0) == 0;
}

static uint64_t count_memory(void) {
    uint64_t bytes = 0;
    size_t size = sizeof bytes;
    return sysctlbyname("hw.memsize", &bytes, &size, NULL, 0) == 0 ? bytes : 0;
}
#else
/* The value of the first line `key : value` of /proc/cpuinfo. */
static bool find_cpu_field(const char *text, const char *key, char *value, size_t size) {
    size_t length = strlen(key);
    for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
        if (strncmp(p, key, length) != 0)
            continue;
        p += length;
        p += strspn(p, " \t");
        if (*p != ':')
            continue;
        p++;
        p += strspn(p, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(p, "\n"), p);
        return *value != 0;
    }
    return false;
}

/* Arm kernels give numbers where others give a name. */
static bool find_cpu_name(char *name, size_t size) {
    char *text = os_read_file("/proc/cpuinfo", NULL, NULL), maker[32], part[32];
    if (!text)
        return false;
    bool is_found = find_cpu_field(text, "model name", name, size);
    if (!is_found && find_cpu_field(text, "CPU implementer", maker, sizeof maker) &&
        find_cpu_field(text, "CPU part", part, sizeof part))
        is_found = snprintf(name, size, "Arm implementer %s part %s", maker, part) > 0;
    free(text);
    return is_found;
}

static uint64_t count_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}
#endif

static void print_machine(void) {
    char name[128], text[320];
    struct utsname system;
    if (uname(&system) != 0)
        strcpy(system.machine, "unknown machine");
    if (!find_cpu_name(name, sizeof name))
        snprintf(name, sizeof name, "unnamed CPU");
    snprintf(text, sizeof text, "%s, %.60s, %d cores", name, system.machine, os_count_cpus());
    print_line("cpu", text);
    snprintf(text, sizeof text, "%.1f GB", (double)count_memory() * 1e-9);
    print_line("memory", text);
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
    print_line("cache", os_find_cache(path, sizeof path, &e) ? path : e.text);
    print_line("gnuplot", os_find_program("gnuplot", path, sizeof path)
                              ? path
                              : "not found: plots need the package gnuplot");
}

static exit_code run(const char *const *names, size_t count, err *e) {
    (void)names;
    assert(count == 0);
    print_line("assay", ASSAY_VERSION);
    print_machine();
    print_kinds();
    print_tools();
    device *d = device_open(settings.device, e);
    if (!d)
        return e->code;
    *e = (err){.code = EXIT_OK}; /* what `auto` tried before is not an error */
    const device_facts *f = device_get_facts(d);
    print_line("device", f->name);
    print_line("compiler", f->compiler);
    char text[160];
    snprintf(text, sizeof text, "simdgroups of %u, threadgroups of up to %u threads and %u bytes",
             f->simd_width, f->max_group_threads, f->max_threadgroup_bytes);
    print_line("limits", text);
    device_close(d);
    return EXIT_OK;
}

const verb verb_info = {
    .name = "info",
    .about = "this machine: devices and why one cannot be had, compiler, CPU, cache folder, tools",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = run,
};
