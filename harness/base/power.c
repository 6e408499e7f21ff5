/* power: see power.h.
 *
 * macOS tells through Foundation and IOKit. Both are asked without their headers: Foundation through
 * the Objective-C runtime, because this file is C, and IOKit through dlopen, because it is needed for
 * nothing else. */
#include "power.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os.h"

/* Linux --------------------------------------------------------------------------------------- */

/* The first line of FOLDER/NAME/FILE; "" if there is none. */
static void read_line(const char *folder, const char *name, const char *file, char *line,
                      size_t size) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    char *text = n > 0 && n < (int)sizeof path ? os_read_file(path, NULL, NULL) : NULL;
    snprintf(line, size, "%.*s", text ? (int)strcspn(text, "\n") : 0, text ? text : "");
    free(text);
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

/* macOS --------------------------------------------------------------------------------------- */

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
