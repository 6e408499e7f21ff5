/* machine: see machine.h. Linux tells in /proc, macOS through sysctl. */
#include "machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "os.h"

#if defined(__APPLE__)
static bool find_cpu_name(char *name, size_t size) {
    return sysctlbyname("machdep.cpu.brand_string", name, &size, NULL, 0) == 0;
}

uint64_t machine_count_memory(void) {
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

uint64_t machine_count_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}
#endif

void machine_get_cpu(char *name, size_t size) {
    if (!find_cpu_name(name, size))
        snprintf(name, size, "unnamed CPU");
}
