#include "host.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "child.h"
#include "os.h"
#include "root.h"
#include "sha256.h"

/* The value of the first line `key : value` of a file, or `key value`, as Linux has them. */
static bool read_value(const char *path, const char *key, char *value, size_t size) {
    char *text = os_read_file(path, NULL, NULL);
    const char *at = text;
    value[0] = 0;
    while (at && (strncmp(at, key, strlen(key)) != 0 || !strchr(" \t:", at[strlen(key)])))
        at = (at = strchr(at, '\n')) ? at + 1 : NULL;
    if (at) {
        at += strlen(key);
        at += strspn(at, " \t:");
        snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
    }
    free(text);
    return value[0] != 0;
}

#if defined(__APPLE__)
static uint64_t ask_number(const char *name) {
    uint64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

bool host_find_cpu(char *name, size_t size) {
    return sysctlbyname("machdep.cpu.brand_string", name, &size, NULL, 0) == 0;
}

uint64_t host_count_memory(void) {
    return ask_number("hw.memsize");
}

size_t host_find_cache(void) {
    static const char *const names[] = {"hw.l3cachesize", "hw.perflevel0.l2cachesize",
                                        "hw.l2cachesize"};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ask_number(names[i]) > most)
            most = ask_number(names[i]);
    return (size_t)most;
}
#else
/* On Arm, Linux gives numbers where other CPUs have a name. */
bool host_find_cpu(char *name, size_t size) {
    static const char info[] = "/proc/cpuinfo";
    char maker[32], part[32];
    return read_value(info, "model name", name, size) ||
           (read_value(info, "CPU implementer", maker, sizeof maker) &&
            read_value(info, "CPU part", part, sizeof part) &&
            snprintf(name, size, "Arm implementer %s part %s", maker, part) > 0);
}

uint64_t host_count_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}

/* From /sys, because sysconf does not report it on Arm. */
size_t host_find_cache(void) {
    size_t most = 0;
    for (int i = 0; i < 8; i++) {
        char path[80];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        char *text = os_read_file(path, NULL, NULL), *end;
        if (!text)
            continue;
        unsigned long long size = strtoull(text, &end, 10);
        size_t bytes = (size_t)size << (*end == 'K' ? 10 : *end == 'M' ? 20 : 0);
        most = bytes > most ? bytes : most;
        free(text);
    }
    return most;
}
#endif

uint64_t host_count_free_memory(void) {
    char kb[32];
    return read_value("/proc/meminfo", "MemAvailable", kb, sizeof kb) ? strtoull(kb, NULL, 10) << 10
                                                                      : host_count_memory();
}

static double find_steal(void) {
    char times[256];
    double steal = 0;
    const long ticks = sysconf(_SC_CLK_TCK);
    bool is_known = read_value("/proc/stat", "cpu", times, sizeof times) && ticks > 0 &&
                    sscanf(times, "%*f %*f %*f %*f %*f %*f %*f %lf", &steal) == 1;
    return is_known ? steal / (double)ticks : 0;
}

/* Linux keeps it per thread: "ns on a core, ns waiting for one, time slices". process: "self" or its
 * number. */
static void add_times(const char *process, double *ran_s, double *wait_s) {
    char folder[40];
    snprintf(folder, sizeof folder, "/proc/%.20s/task", process);
    DIR *threads = opendir(folder);
    double ran, wait;
    for (struct dirent *d; threads && (d = readdir(threads));) {
        char path[340];
        snprintf(path, sizeof path, "%s/%s/schedstat", folder, d->d_name);
        char *text = d->d_name[0] == '.' ? NULL : os_read_file(path, NULL, NULL);
        if (text && sscanf(text, "%lf %lf", &ran, &wait) == 2) {
            *ran_s += ran * 1e-9;
            *wait_s += wait * 1e-9;
        }
        free(text);
    }
    if (threads)
        closedir(threads);
}

/* Preempted threads, as "nonvoluntary_ctxt_switches" of the process's first thread says: the one that
 * leads. */
static double find_switches(int process) {
    char path[40], switches[32];
    snprintf(path, sizeof path, "/proc/%d/status", process);
    read_value(path, "nonvoluntary_ctxt_switches", switches, sizeof switches);
    return strtod(switches, NULL);
}

enum { MOST_PROCESSES = 16 };
static int processes[MOST_PROCESSES]; /* 0: free */

void host_add_process(int process) {
    for (int i = 0; i < MOST_PROCESSES && process > 0; i++)
        if (processes[i] == 0) {
            processes[i] = process;
            return;
        }
}

void host_remove_process(int process) {
    for (int i = 0; i < MOST_PROCESSES; i++)
        if (processes[i] == process)
            processes[i] = 0;
}

host_usage host_get_usage(void) {
    struct rusage r;
    double unused = 0;
    host_usage u = {.steal_s = find_steal()};
    add_times("self", &unused, &u.wait_s);
    for (int i = 0; i < MOST_PROCESSES; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", processes[i]);
        if (processes[i])
            add_times(number, &u.cpu_s, &u.wait_s);
        if (processes[i])
            u.switches += find_switches(processes[i]);
    }
    if (getrusage(RUSAGE_SELF, &r) != 0)
        return u;
    u.cpu_s += (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
               1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
    u.switches += (double)r.ru_nivcsw;
    return u;
}

void host_get_os(char *text, size_t size) {
    struct utsname system;
    if (uname(&system) == 0)
        snprintf(text, size, "%s %s %s", system.sysname, system.release, system.machine);
    else
        snprintf(text, size, "unknown");
}

void host_get_date(char *text, size_t size) {
    time_t seconds = time(NULL);
    struct tm utc;
    if (!gmtime_r(&seconds, &utc) || strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        snprintf(text, size, "unknown");
}

static bool ask_git(const char *root, const char *const *words, char *line, size_t size) {
    const char *argv[8] = {"git", "-C", root};
    for (size_t i = 0; words[i]; i++)
        argv[i + 3] = words[i];
    char *output = NULL;
    int status = -1;
    bool ok = child_run(argv, &output, &status, NULL) && status == 0 && output;
    if (ok)
        snprintf(line, size, "%.*s", (int)strcspn(output, "\n"), output);
    free(output);
    return ok;
}

void host_get_commit(char *text, size_t size) {
    static const char *const head[] = {"rev-parse", "--short=12", "HEAD", NULL};
    static const char *const changes[] = {"status", "--porcelain", "-uno", NULL};
    char root[PATH_MAX], commit[64], changed[64];
    const char *given = getenv("ASSAY_COMMIT"); /* of a copy that is no working tree of git */
    if (given && *given) {
        snprintf(text, size, "%s", given);
        return;
    }
    if (!root_find(root, sizeof root, NULL) || !ask_git(root, head, commit, sizeof commit)) {
        snprintf(text, size, "unknown");
        return;
    }
    bool is_dirty = ask_git(root, changes, changed, sizeof changed) && changed[0];
    snprintf(text, size, "%s%s", commit, is_dirty ? "-dirty" : "");
}

void host_get_build(char *text, size_t size) {
    char path[PATH_MAX], hex[65];
    size_t bytes;
    char *program = os_find_self(path, sizeof path, NULL) ? os_read_file(path, &bytes, NULL) : NULL;
    snprintf(text, size, "unknown");
    if (!program)
        return;
    sha256_of(program, bytes, hex);
    snprintf(text, size, "%.12s", hex);
    free(program);
}

/* Power on Linux ------------------------------------------------------------------------------ */

/* The first line of FOLDER/NAME/FILE; "" if there is none. */
static void read_line(const char *folder, const char *name, const char *file, char *line,
                      size_t size) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    char *text = n > 0 && n < (int)sizeof path ? os_read_file(path, NULL, NULL) : NULL;
    snprintf(line, size, "%.*s", text ? (int)strcspn(text, "\n") : 0, text ? text : "");
    free(text);
}

void host_get_nvidia_driver(char *text, size_t size) {
    read_line("/proc/driver", "nvidia", "version", text, size);
    if (!text[0])
        snprintf(text, size, "unknown");
}

typedef void entry_visitor(power_state *s, const char *folder, const char *name);

static void visit_folder(power_state *s, const char *sys, const char *inside,
                         entry_visitor *visit) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", sys, inside) >= (int)sizeof path)
        return;
    DIR *folder = opendir(path);
    for (struct dirent *d; folder && (d = readdir(folder));)
        if (d->d_name[0] != '.')
            visit(s, path, d->d_name);
    if (folder)
        closedir(folder);
}

/* A mouse has a battery too; its scope is "Device". */
static void look_at_supply(power_state *s, const char *folder, const char *name) {
    char type[32], status[32], scope[32];
    read_line(folder, name, "type", type, sizeof type);
    read_line(folder, name, "status", status, sizeof status);
    read_line(folder, name, "scope", scope, sizeof scope);
    s->on_battery |= strcmp(type, "Battery") == 0 && strcmp(status, "Discharging") == 0 &&
                     strcmp(scope, "Device") != 0;
}

/* What cools by slowing a processor down, and does. */
static void look_at_cooling(power_state *s, const char *folder, const char *name) {
    char type[64], state[32];
    read_line(folder, name, "type", type, sizeof type);
    read_line(folder, name, "cur_state", state, sizeof state);
    s->is_hot |= (strstr(type, "Processor") || strstr(type, "cpufreq")) && atoi(state) > 0;
}

power_state power_read_files(const char *sys) {
    power_state s = {false, false, false};
    char profile[32];
    visit_folder(&s, sys, "class/power_supply", look_at_supply);
    visit_folder(&s, sys, "class/thermal", look_at_cooling);
    read_line(sys, "firmware/acpi", "platform_profile", profile, sizeof profile);
    s.low_power = strcmp(profile, "low-power") == 0;
    return s;
}

/* Power on macOS ------------------------------------------------------------------------------
 *
 * Foundation and IOKit are asked without their headers: Foundation through the Objective-C runtime, because
 * this file is C, and IOKit through dlopen, because it is needed for nothing else. */

#if defined(__APPLE__)
#include <dlfcn.h>
#include <objc/message.h>
#include <objc/objc.h>
#include <objc/runtime.h>

/* objc_msgSend is called as what it calls. */
static void *send(void *to, const char *what) {
    return ((void *(*)(void *, SEL))(void (*)(void))objc_msgSend)(to, sel_registerName(what));
}

static long send_for_number(void *to, const char *what) {
    return ((long (*)(void *, SEL))(void (*)(void))objc_msgSend)(to, sel_registerName(what));
}

static bool send_for_bool(void *to, const char *what) {
    return ((BOOL(*)(void *, SEL))(void (*)(void))objc_msgSend)(to, sel_registerName(what));
}

/* IOPSGetProvidingPowerSourceType says "AC Power", "Battery Power" or "UPS Power". */
static bool is_on_battery(void) {
    static const char framework[] = "/System/Library/Frameworks/IOKit.framework/IOKit";
    void *kit = dlopen(framework, RTLD_LAZY);
    void *(*copy_info)(void) = NULL, *(*get_type)(void *) = NULL;
    if (kit) {
        *(void **)&copy_info = dlsym(kit, "IOPSCopyPowerSourcesInfo");
        *(void **)&get_type = dlsym(kit, "IOPSGetProvidingPowerSourceType");
    }
    void *info = copy_info && get_type ? copy_info() : NULL;
    void *type = info ? get_type(info) : NULL;
    const char *name = type ? send(type, "UTF8String") : NULL; /* a CFString is an NSString */
    bool is_battery = name && strcmp(name, "Battery Power") == 0;
    if (info)
        send(info, "release");
    return is_battery;
}

/* NSProcessInfoThermalState: 0 is nominal, 1 fair, 2 serious, 3 critical. */
power_state power_get_state(void) {
    void *pool = send(send((void *)objc_getClass("NSAutoreleasePool"), "alloc"), "init");
    void *process = send((void *)objc_getClass("NSProcessInfo"), "processInfo");
    power_state s = {.on_battery = is_on_battery(),
                     .low_power = process && send_for_bool(process, "isLowPowerModeEnabled"),
                     .is_hot = process && send_for_number(process, "thermalState") > 0};
    send(pool, "drain");
    return s;
}
#else
power_state power_get_state(void) {
    return power_read_files("/sys");
}
#endif
