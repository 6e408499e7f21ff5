/* device_metal: finds a Metal GPU, reports its facts, and captures what it plays.
 *
 * MTLCreateSystemDefaultDevice returns nil in processes that are not linked with CoreGraphics; the
 * Makefile links it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/device/validation.h"
#include "metal.h"

metal_device *metal_get(const device *d) {
    return d->impl;
}

const char *metal_describe(NSError *error) {
    const char *text = error ? [[error localizedDescription] UTF8String] : NULL;
    return text ? text : "Metal gives no reason";
}

/* Finding one -------------------------------------------------------------------------------- */

/* Retained, or nil with the names of all devices in e. */
static id<MTLDevice> pick_device(const char *wanted, err *e) {
    NSArray *all = MTLCopyAllDevices();
    NSString *part = [NSString stringWithUTF8String:wanted];
    id<MTLDevice> found = nil;
    char names[160] = "";
    for (id<MTLDevice> d in all) {
        NSRange at = [[d name] rangeOfString:part options:NSCaseInsensitiveSearch];
        if (!found && at.location != NSNotFound)
            found = [d retain];
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                 [[d name] UTF8String]);
    }
    [all release];
    if (!found)
        err_set(e, EXIT_USAGE, "no Metal device has '%.60s' in its name; there are: %s", wanted,
                *names ? names : "none");
    return found;
}

static id<MTLDevice> find_device(const char *wanted, err *e) {
    if (*wanted)
        return pick_device(wanted, e);
    id<MTLDevice> found = MTLCreateSystemDefaultDevice();
    if (!found) {
        NSArray *all = MTLCopyAllDevices();
        if ([all count] > 0)
            found = [[all objectAtIndex:0] retain];
        [all release];
    }
    if (!found)
        err_set(e, EXIT_CANNOT,
                "the device 'metal' cannot be used: macOS gives this process no GPU; is it a "
                "virtual machine without one, or a session without graphics?");
    return found;
}

/* What it is --------------------------------------------------------------------------------- */

/* The highest of each family. Metal answers NO for numbers that are newer than itself. */
static void describe_families(id<MTLDevice> d, char *text, size_t size) {
    static const struct {
        const char *name;
        int base, newest;
    } families[] = {{"Apple", 1000, 12}, {"Mac", 2000, 2}, {"Common", 3000, 3}, {"Metal", 5000, 5}};
    *text = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        int n = families[i].newest;
        while (n > 0 && ![d supportsFamily:(MTLGPUFamily)(families[i].base + n)])
            n--;
        /* The numbers of the Metal family start at 3, which is 5001. */
        int shown = families[i].base == 5000 ? n + 2 : n;
        size_t used = strlen(text);
        if (n > 0)
            snprintf(text + used, size - used, "%s%s%d", used ? ", " : "", families[i].name, shown);
    }
}

/* What was asked for, or the newest. */
static bool choose_language(device *d, err *e) {
    char newest[MSL_LANGUAGE_TEXT];
    int most = metal_get_language();
    msl_spell_language(most, newest);
    d->facts.language = d->options.language ? d->options.language : most;
    return d->facts.language <= most ||
           err_set(e, EXIT_CANNOT, "the newest version of MSL that this system compiles is %s",
                   newest);
}

static void fill_facts(device_facts *f, id<MTLDevice> d, math_mode math) {
    char language[MSL_LANGUAGE_TEXT];
    msl_spell_language(f->language, language);
    snprintf(f->name, sizeof f->name, "%s", [[d name] UTF8String]);
    snprintf(f->compiler, sizeof f->compiler,
             "Metal's own, system %s, language %s, %s math, %s functions",
             [[[NSProcessInfo processInfo] operatingSystemVersionString] UTF8String], language,
             math_mode_get_name(math), math == MATH_SAFE ? "precise" : "fast");
    describe_families(d, f->family, sizeof f->family);
    f->unified = [d hasUnifiedMemory];
    f->working_set_bytes = [d recommendedMaxWorkingSetSize];
    f->memory_bytes =
        f->unified ? [[NSProcessInfo processInfo] physicalMemory] : f->working_set_bytes;
    f->max_buffer_bytes = [d maxBufferLength];
    f->allocated_bytes = [d currentAllocatedSize];
    /* GPUs of Intel and AMD choose 8 to 64 for each pipeline. */
    f->simd_width = [d supportsFamily:MTLGPUFamilyApple1] ? MSL_LANES : 0;
    f->max_group_threads = (uint32_t)[d maxThreadsPerThreadgroup].width;
    f->max_threadgroup_bytes = (uint32_t)[d maxThreadgroupMemoryLength];
    /* By Apple's table of features. */
    f->constant_alignment = [d supportsFamily:MTLGPUFamilyApple1] ? 4 : 32;
    f->offers = [d supportsFamily:MTLGPUFamilyApple7] ? FEATURE_MATRICES : 0;
    /* Every Metal device is a GPU, except the stand-in of the tests, which says what it is. */
    f->emulated = strstr(f->name, "software Metal device") != NULL;
    f->is_virtual = strstr(f->name, "Paravirtual") != NULL;
    f->flushes_denormals = true;
    f->validates = f->exact_buffers = validation_is_on();
}

static void close_device(device *d) {
    metal_device *m = metal_get(d);
    @autoreleasepool {
        metal_close_residency(m);
        [m->fence release];
        [m->samples release];
        [m->libraries release];
        [m->staging release];
        [m->queue release];
        [m->device release];
    }
    finding_free(&m->findings);
    free(m);
}

/* macOS 26 ends command buffers of some length while something draws on the screen. With this in the
 * environment when the device is made, its driver gives them more time; llama.cpp sets it too. */
static void ask_for_time(void) {
    setenv("AGX_RELAX_CDM_CTXSTORE_TIMEOUT", "1", 0);
}

static bool open_device(device *d, err *e) {
    metal_device *m = calloc(1, sizeof *m);
    assert(m);
    d->impl = m;
    m->owner = d;
    ask_for_time();
    @autoreleasepool {
        if (choose_language(d, e))
            m->device = find_device(d->wanted, e);
        if (m->device)
            m->queue = [m->device newCommandQueue];
        if (m->device && !m->queue)
            err_set(e, EXIT_CANNOT, "%.80s returned no command queue",
                    [[m->device name] UTF8String]);
        if (m->queue) {
            [m->queue setLabel:@"assay"];
            m->libraries = [[NSMutableDictionary alloc] init];
            metal_open_residency(m);
            fill_facts(&d->facts, m->device, d->options.math);
            return true;
        }
    }
    close_device(d);
    return false;
}

/* They are in what this process wrote to stderr. */
static finding_list *get_findings(const device *d) {
    metal_device *m = metal_get(d);
    if (d->facts.validates)
        validation_read_log(&m->findings);
    return &m->findings;
}

/* Captures ----------------------------------------------------------------------------------- */

static bool start_capture(device *d, const char *path, err *e) {
    size_t length = strlen(path);
    if (length < 10 || strcmp(path + length - 9, ".gputrace") != 0)
        return err_set(e, EXIT_USAGE, "a capture is a .gputrace document, not '%.120s'", path);
    if (access(path, F_OK) == 0)
        return err_set(e, EXIT_USAGE, "%.160s already exists: Metal captures only to new files",
                       path);
    @autoreleasepool {
        MTLCaptureManager *manager = [MTLCaptureManager sharedCaptureManager];
        if (![manager supportsDestination:MTLCaptureDestinationGPUTraceDocument])
            return err_set(e, EXIT_CANNOT,
                           "Metal cannot capture in this process: start it with "
                           "METAL_CAPTURE_ENABLED=1 in the environment");
        MTLCaptureDescriptor *what = [[[MTLCaptureDescriptor alloc] init] autorelease];
        [what setCaptureObject:metal_get(d)->device];
        [what setDestination:MTLCaptureDestinationGPUTraceDocument];
        [what setOutputURL:[NSURL fileURLWithPath:[NSString stringWithUTF8String:path]]];
        NSError *error = nil;
        return [manager startCaptureWithDescriptor:what error:&error] ||
               err_set(e, EXIT_CANNOT, "the capture to %.100s did not start: %.100s", path,
                       metal_describe(error));
    }
}

static void stop_capture(device *d) {
    (void)d;
    @autoreleasepool {
        [[MTLCaptureManager sharedCaptureManager] stopCapture];
    }
}

const device_ops metal_device_ops = {
    .name = "metal",
    .open = open_device,
    .close = close_device,
    .new_buffer = metal_new_buffer,
    .free_buffer = metal_free_buffer,
    .copy = metal_copy,
    .new_pipeline = metal_new_pipeline,
    .free_pipeline = metal_free_pipeline,
    .submit = metal_submit,
    .wait = metal_wait,
    .get_findings = get_findings,
    .can_sample = metal_can_sample,
    .play_sampled = metal_play_sampled,
    .start_capture = start_capture,
    .stop_capture = stop_capture,
    .has_many = true,
};
