/* device_metal: finds a Metal GPU, reports its facts, and captures what it plays; its memory; and pipelines, from
 * the text of a .metal file.
 *
 * MTLCreateSystemDefaultDevice returns nil in processes that are not linked with CoreGraphics; the
 * Makefile links it.
 *
 * Guard zones are device.c's business: a buffer here is one allocation with the contents at `base`. Memory
 * of the caller need not be page-aligned, as Metal requires. The buffer then begins at the page boundary
 * before it, and `base` is the offset of the contents. All buffers of a device are kept wired, so that
 * times after a pause do not include wiring them again.
 *
 * Metal compiles the text itself: local includes are already in it (msl_get_text), and its messages
 * name .metal files and lines by the line marks in it. The device keeps one library per text; a
 * pipeline is a function of it, specialised by function constants. Safe math alone leaves sin, exp and the
 * rest in their fast variants, so the precise ones are requested as well. Before macOS 15 one switch did
 * both, and relaxed math was fast. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/device/validation.h"
#include "metal.h"

metal_device *metal_get(const device *d) {
    return d->impl;
}

const char *metal_describe(NSError *error) {
    const char *text = error ? [[error localizedDescription] UTF8String] : NULL;
    return text ? text : "Metal gives no reason";
}

/* Residency ------------------------------------------------------------------------------------- */

/* macOS takes memory away from a GPU that has been idle for a second, and the next command buffer would be
 * timed with the wiring of it. Nothing of this happens before macOS 15. */
#if __MAC_OS_X_VERSION_MAX_ALLOWED >= 150000

enum { PAUSE_NS = 500000000 }; /* half of the time that macOS leaves to idle memory */

static void metal_open_residency(metal_device *m) {
    if (@available(macOS 15.0, *)) {
        MTLResidencySetDescriptor *what = [[[MTLResidencySetDescriptor alloc] init] autorelease];
        [what setLabel:@"buffers"];
        NSError *error = nil;
        m->residency = [m->device newResidencySetWithDescriptor:what error:&error];
        if (m->residency)
            [m->queue addResidencySet:m->residency];
    }
}

static void metal_close_residency(metal_device *m) {
    if (@available(macOS 15.0, *)) {
        id<MTLResidencySet> set = m->residency;
        if (set)
            [m->queue removeResidencySet:set];
        [set endResidency];
        [set release];
        m->residency = nil;
    }
}

static void metal_add_resident(metal_device *m, id<MTLBuffer> b) {
    if (@available(macOS 15.0, *)) {
        [(id<MTLResidencySet>)m->residency addAllocation:b];
        m->residency_changed = true;
    }
}

/* At once: until then the set holds the memory. */
static void metal_remove_resident(metal_device *m, id<MTLBuffer> b) {
    if (@available(macOS 15.0, *)) {
        id<MTLResidencySet> set = m->residency;
        [set removeAllocation:b];
        [set commit];
    }
}

void metal_keep_resident(metal_device *m) {
    uint64_t now = os_now_ns();
    bool is_due = m->residency_changed || now - m->used_ns > PAUSE_NS;
    m->used_ns = now;
    if (@available(macOS 15.0, *)) {
        id<MTLResidencySet> set = m->residency;
        if (!set || !is_due)
            return;
        if (m->residency_changed)
            [set commit];
        m->residency_changed = false;
        [set requestResidency];
    }
}
#else
#define metal_open_residency(m) ((void)(m))
#define metal_close_residency(m) ((void)(m))
#define metal_add_resident(m, b) ((void)(m), (void)(b))
#define metal_remove_resident(m, b) ((void)(m), (void)(b))
void metal_keep_resident(metal_device *m) {
    (void)m;
}
#endif

/* Memory ------------------------------------------------------------------------------------- */

enum { STAGING_BYTES = 4 << 20, SMALL_BYTES = 1 << 20, BLIT_UNIT = 4 };

static id<MTLBuffer> get_buffer(const buffer *b) {
    return (id<MTLBuffer>)b->impl;
}

/* Refuses impossible sizes, with the numbers: Metal would return nil, or swap for minutes. */
static bool check_room(const buffer *b, size_t bytes, err *e) {
    id<MTLDevice> d = metal_get(b->device)->device;
    const device_facts *f = &b->device->facts;
    if (bytes > f->max_buffer_bytes)
        return err_set(e, EXIT_CANNOT,
                       "the buffer '%s' of %.2f GB is larger than the %.2f GB that this GPU allows "
                       "per buffer",
                       b->label, (double)bytes * 1e-9, (double)f->max_buffer_bytes * 1e-9);
    if (bytes < SMALL_BYTES || !f->working_set_bytes)
        return true;
    uint64_t held = [d currentAllocatedSize];
    return held + bytes <= f->working_set_bytes ||
           err_set(e, EXIT_CANNOT,
                   "the buffer '%s' of %.2f GB does not fit: %.2f of the %.2f GB that this GPU can "
                   "use are taken",
                   b->label, (double)bytes * 1e-9, (double)held * 1e-9,
                   (double)f->working_set_bytes * 1e-9);
}

static bool allocate(buffer *b, size_t bytes, MTLResourceOptions options, err *e) {
    size_t whole = (bytes + BLIT_UNIT - 1) / BLIT_UNIT * BLIT_UNIT;
    id<MTLBuffer> made = [metal_get(b->device)->device newBufferWithLength:whole options:options];
    b->impl = made;
    return made || err_set(e, EXIT_CANNOT, "no memory for the buffer '%s' of %zu bytes", b->label,
                           b->bytes);
}

/* In place if Metal accepts the pages as they are, otherwise a copy: it may return nil, or a buffer
 * of length 0. */
static bool wrap(buffer *b, const void *memory, size_t bytes, err *e) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)memory % page;
    size_t whole = (before + bytes + page - 1) / page * page;
    void *start = (char *)(uintptr_t)memory - before;
    id<MTLBuffer> made =
        [metal_get(b->device)->device newBufferWithBytesNoCopy:start
                                                        length:whole
                                                       options:MTLResourceStorageModeShared
                                                   deallocator:nil];
    if ([made length] < whole) {
        [made release];
        made = nil;
    }
    b->impl = made;
    if (made) {
        b->base = before;
        b->contents = (void *)(uintptr_t)memory;
        return true;
    }
    if (!allocate(b, bytes, MTLResourceStorageModeShared, e))
        return false;
    b->base = 0;
    b->is_copy = true;
    b->contents = [get_buffer(b) contents];
    memcpy(b->contents, memory, bytes);
    return true;
}

static bool metal_new_buffer(buffer *b, size_t allocation_bytes, const void *no_copy, err *e) {
    @autoreleasepool {
        if (!check_room(b, allocation_bytes, e))
            return false;
        bool ok = no_copy ? wrap(b, no_copy, allocation_bytes, e)
                  : b->storage == STORAGE_PRIVATE
                      ? allocate(b, allocation_bytes, MTLResourceStorageModePrivate, e)
                      : allocate(b, allocation_bytes, MTLResourceStorageModeShared, e);
        if (!ok)
            return false;
        if (b->storage == STORAGE_SHARED)
            b->contents = (char *)[get_buffer(b) contents] + b->base;
        [get_buffer(b) setLabel:[NSString stringWithUTF8String:b->label]];
        metal_add_resident(metal_get(b->device), get_buffer(b));
        return true;
    }
}

static void metal_free_buffer(buffer *b) {
    @autoreleasepool {
        metal_remove_resident(metal_get(b->device), get_buffer(b));
        [get_buffer(b) release];
    }
}

/* Private memory is reached by a blit from or to the staging buffer. */
static bool blit(buffer *b, size_t at, size_t bytes, bool to_device, err *e) {
    metal_device *m = metal_get(b->device);
    id<MTLCommandBuffer> commands = metal_new_command_buffer(m, "copy", false, e);
    id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
    if (!encoder)
        return err_set(e, EXIT_CANNOT, "Metal returned no encoder to copy buffer '%s'", b->label);
    [encoder setLabel:[NSString stringWithUTF8String:b->label]];
    [encoder copyFromBuffer:to_device ? m->staging : get_buffer(b)
               sourceOffset:to_device ? 0 : at
                   toBuffer:to_device ? get_buffer(b) : m->staging
          destinationOffset:to_device ? at : 0
                       size:bytes];
    [encoder endEncoding];
    [commands commit];
    play_times times = {0};
    return metal_finish(m, &commands, 1, 0, &times, e);
}

/* One piece. Blits on macOS copy whole words: the bytes around the piece are fetched first and put
 * back. */
static bool copy_piece(buffer *b, size_t at, char *host, size_t bytes, bool to_device, err *e) {
    char *room = [metal_get(b->device)->staging contents];
    size_t before = at % BLIT_UNIT;
    size_t whole = (before + bytes + BLIT_UNIT - 1) / BLIT_UNIT * BLIT_UNIT;
    if ((!to_device || whole != bytes) && !blit(b, at - before, whole, false, e))
        return false;
    memcpy(to_device ? room + before : host, to_device ? host : room + before, bytes);
    return !to_device || blit(b, at - before, whole, true, e);
}

static bool copy_private(buffer *b, size_t at, char *host, size_t bytes, bool to_device, err *e) {
    metal_device *m = metal_get(b->device);
    if (!m->staging) {
        m->staging = [m->device newBufferWithLength:STAGING_BYTES
                                            options:MTLResourceStorageModeShared];
        if (!m->staging)
            return err_set(e, EXIT_CANNOT, "no memory to copy buffer '%s' through", b->label);
        [m->staging setLabel:@"staging"];
    }
    const size_t most = STAGING_BYTES - 2 * BLIT_UNIT;
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < most ? bytes - done : most;
        if (!copy_piece(b, at + done, host + done, n, to_device, e))
            return false;
    }
    return true;
}

static bool metal_copy(buffer *b, size_t allocation_offset, void *host, size_t bytes,
                       bool to_device, err *e) {
    @autoreleasepool {
        if (b->storage == STORAGE_PRIVATE)
            return copy_private(b, allocation_offset, host, bytes, to_device, e);
        char *at = (char *)[get_buffer(b) contents] + allocation_offset;
        memcpy(to_device ? (void *)at : host, to_device ? host : (void *)at, bytes);
        return true;
    }
}

/* Compiling ------------------------------------------------------------------------------------ */

int metal_get_language(void) {
    if (@available(macOS 26.0, *))
        return 400;
    if (@available(macOS 15.0, *))
        return 320;
    if (@available(macOS 14.0, *))
        return 310;
    if (@available(macOS 13.0, *))
        return 300;
    return 240;
}

/* The version is a number, 310, as the text was read in: the headers of older systems lack the
 * names. */
static MTLCompileOptions *make_options(int language, math_mode math) {
    MTLCompileOptions *o = [[[MTLCompileOptions alloc] init] autorelease];
    [o setLanguageVersion:(MTLLanguageVersion)(language / 100 << 16 | language / 10 % 10)];
#if __MAC_OS_X_VERSION_MAX_ALLOWED >= 150000
    if (@available(macOS 15.0, *)) {
        static const MTLMathMode modes[] = {[MATH_SAFE] = MTLMathModeSafe,
                                            [MATH_RELAXED] = MTLMathModeRelaxed,
                                            [MATH_FAST] = MTLMathModeFast};
        [o setMathMode:modes[math]];
        [o setMathFloatingPointFunctions:math == MATH_SAFE ? MTLMathFloatingPointFunctionsPrecise
                                                           : MTLMathFloatingPointFunctionsFast];
        return o;
    }
#endif
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations" /* since macOS 15 */
    [o setFastMathEnabled:math != MATH_SAFE];
#pragma clang diagnostic pop
    return o;
}

static bool refuse(const char *kernel, NSError *error, err *e) {
    err_set(e, EXIT_WRONG, "kernel '%.100s' does not compile", kernel);
    return err_set_detail(e, metal_describe(error));
}

/* Owned by the device; nil with e set. A text that compiles with warnings gives a library and an
 * error: only the library knows. */
id<MTLLibrary> metal_find_library(metal_device *m, const char *text, int language, math_mode math,
                                  const char *kernel, err *e) {
    NSString *source = [NSString stringWithUTF8String:text];
    if (!source) {
        err_set(e, EXIT_USAGE, "the file of kernel '%.100s' is not UTF-8 text", kernel);
        return nil;
    }
    NSString *key =
        [[[NSString alloc] initWithFormat:@"%d %d %@", language, math, source] autorelease];
    id<MTLLibrary> found = [m->libraries objectForKey:key];
    if (found)
        return found;
    NSError *error = nil;
    id<MTLLibrary> made = [m->device newLibraryWithSource:source
                                                  options:make_options(language, math)
                                                    error:&error];
    if (!made) {
        refuse(kernel, error, e);
        return nil;
    }
    [made setLabel:[NSString stringWithUTF8String:kernel]];
    [m->libraries setObject:made forKey:key];
    [made release];
    return made;
}

/* Function constants ------------------------------------------------------------------------- */

/* A constant of another width would be read beyond its end. */
static bool set_constant(MTLFunctionConstantValues *values, const msl_constant *c,
                         const constant_value *v, err *e) {
    static const MTLDataType types[ELEM_COUNT] = {
        [ELEM_U8] = MTLDataTypeUChar,  [ELEM_I8] = MTLDataTypeChar,  [ELEM_U16] = MTLDataTypeUShort,
        [ELEM_I16] = MTLDataTypeShort, [ELEM_U32] = MTLDataTypeUInt, [ELEM_I32] = MTLDataTypeInt,
        [ELEM_U64] = MTLDataTypeULong, [ELEM_I64] = MTLDataTypeLong, [ELEM_F16] = MTLDataTypeHalf,
        [ELEM_F32] = MTLDataTypeFloat,
    };
    elem type;
    const bool is_bool = strcmp(c->type, "bool") == 0;
    const bool is_vector = isdigit((unsigned char)c->type[strlen(c->type) - 1]);
    if (is_vector || !elem_find_msl(c->type, &type) || types[type] == MTLDataTypeNone)
        return err_set(e, EXIT_USAGE,
                       "function constant %.60s (index %d) is %.30s, which is not supported here",
                       c->name, c->index, c->type);
    if (elem_get_bytes(v->type) != elem_get_bytes(type))
        return err_set(e, EXIT_USAGE, "function constant %.60s (index %d) is %.30s: give it as %s",
                       c->name, c->index, c->type, elem_get_name(type));
    uint64_t bits = is_bool ? (v->bits & 0xFF) != 0 : v->bits;
    [values setConstantValue:&bits
                        type:is_bool ? MTLDataTypeBool : types[type]
                     atIndex:(NSUInteger)c->index]; /* little endian */
    return true;
}

/* Those that the file declares: Metal rejects others. */
static MTLFunctionConstantValues *make_constants(const msl_unit *unit, const constant_value *given,
                                                 size_t count, err *e) {
    MTLFunctionConstantValues *values = [[[MTLFunctionConstantValues alloc] init] autorelease];
    for (size_t i = 0; i < msl_count_constants(unit); i++) {
        const msl_constant *c = msl_get_constant(unit, i);
        for (size_t k = 0; k < count; k++)
            if ((int)given[k].index == c->index && !set_constant(values, c, &given[k], e))
                return nil;
    }
    return values;
}

/* Pipelines ---------------------------------------------------------------------------------- */

/* Autoreleased. */
static id<MTLFunction> find_function(pipeline *p, const msl_unit *unit,
                                     const constant_value *constants, size_t count, err *e) {
    id<MTLLibrary> library = metal_find_library(metal_get(p->device), msl_get_text(unit),
                                                msl_get_language(unit), p->math, p->kernel, e);
    NSString *name = [NSString stringWithUTF8String:p->kernel];
    NSError *error = nil;
    id<MTLFunction> function = nil;
    if (!library)
        return nil;
    if (msl_count_constants(unit) > 0) {
        MTLFunctionConstantValues *values = make_constants(unit, constants, count, e);
        if (!values)
            return nil;
        function = [library newFunctionWithName:name constantValues:values error:&error];
    } else {
        function = [library newFunctionWithName:name];
    }
    if (!function) {
        err_set(e, EXIT_WRONG, "Metal finds no kernel '%.100s' in %.120s", p->kernel,
                msl_get_name(unit));
        err_set_detail(e, metal_describe(error));
    }
    return [function autorelease];
}

id<MTLComputePipelineState> metal_new_state(metal_device *m, id<MTLFunction> function,
                                            const char *label, NSError **error) {
    MTLComputePipelineDescriptor *what = [[[MTLComputePipelineDescriptor alloc] init] autorelease];
    [what setLabel:[NSString stringWithUTF8String:label]];
    [what setComputeFunction:function];
    return [m->device newComputePipelineStateWithDescriptor:what
                                                    options:MTLPipelineOptionNone
                                                 reflection:NULL
                                                      error:error];
}

static bool metal_new_pipeline(pipeline *p, const msl_unit *unit, const constant_value *constants,
                               const msl_constant_text *texts, size_t count, err *e) {
    @autoreleasepool {
        if (!msl_check_constants(unit, p->kernel, texts, count, e))
            return false;
        id<MTLFunction> function = find_function(p, unit, constants, count, e);
        if (!function)
            return false;
        NSError *error = nil;
        id<MTLComputePipelineState> state =
            metal_new_state(metal_get(p->device), function, p->kernel, &error);
        /* Metal compiles the text on every GPU; without the units only the pipeline fails. */
        p->needs_matrices = !state && !device_offers(&p->device->facts, FEATURE_MATRICES, NULL) &&
                            msl_uses_matrices(unit, p->kernel);
        if (p->needs_matrices)
            return true;
        if (!state)
            return refuse(p->kernel, error, e);
        p->impl = state;
        p->max_group_threads = (uint32_t)[state maxTotalThreadsPerThreadgroup];
        p->simd_width = (uint32_t)[state threadExecutionWidth];
        p->threadgroup_bytes = (uint32_t)[state staticThreadgroupMemoryLength];
        return true;
    }
}

static void metal_free_pipeline(pipeline *p) {
    @autoreleasepool {
        [(id<MTLComputePipelineState>)p->impl release];
    }
}

/* The device ----------------------------------------------------------------------------------- */

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
