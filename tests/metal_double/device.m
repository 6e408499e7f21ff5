/* device: the GPU of the double, its queue, its memory and what of it is wired, its counters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "double.h"
#include "harness/base/os.h"

NSString *const MTLCommonCounterSetTimestamp = @"timestamp";
NSErrorDomain const MTLCounterErrorDomain = @"MTLCounterErrorDomain";
NSErrorDomain const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";

enum { SMALL_SET = 2 << 20 };

/* The one device of the process while something holds it. Devices are opened by one thread. */
static DoubleDevice *only;

@implementation DoubleDevice
@synthesize name = _name;

- (id)init {
    self = [super init];
    err e = {.code = EXIT_OK};
    soft = device_open_with("soft", &(device_options){.flush_denormals = true}, &e);
    if (!soft) {
        [self release];
        return nil;
    }
    const char *api = getenv("MTL_DEBUG_LAYER"), *gpu = getenv("MTL_SHADER_VALIDATION");
    if (api && strcmp(api, "1") == 0)
        fprintf(stderr, "Metal API Validation Enabled\n");
    if (gpu && strcmp(gpu, "1") == 0 && !double_has("no-banner"))
        fprintf(stderr, "Metal GPU Validation Enabled\n");
    _name =
        double_has("paravirtual")
            ? @"Apple Paravirtual device"
            : [[NSString alloc] initWithFormat:@"Metal double on %s", device_get_facts(soft)->name];
    return self;
}

- (void)dealloc {
    if (only == self)
        only = nil;
    if (soft)
        device_close(soft);
    [_name release];
    [super dealloc];
}

- (MTLSize)maxThreadsPerThreadgroup {
    NSUInteger n = device_get_facts(soft)->max_group_threads;
    return MTLSizeMake(n, n, n);
}
- (BOOL)hasUnifiedMemory {
    return YES;
}
- (uint64_t)recommendedMaxWorkingSetSize {
    return double_has("no-room") ? SMALL_SET : device_get_facts(soft)->memory_bytes / 4 * 3;
}
- (NSUInteger)currentAllocatedSize {
    return allocated;
}
- (NSUInteger)maxThreadgroupMemoryLength {
    return device_get_facts(soft)->max_threadgroup_bytes;
}
- (NSUInteger)maxBufferLength {
    return device_get_facts(soft)->memory_bytes / 2;
}
/* Those of an M1, of the GPU of a virtual Mac, or of one of AMD. */
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily {
    long family = (long)gpuFamily, apple = double_has("simd-64")       ? 1000
                                           : double_has("paravirtual") ? 1005
                                                                       : 1007;
    bool is_newer = family == 2002 || family == 5001;
    return (family > 1000 && family <= apple) || (family > 3000 && family <= 3003) ||
           (is_newer && !double_has("paravirtual"));
}

- (id<MTLCommandQueue>)newCommandQueue {
    return [[DoubleQueue alloc] initWithDevice:self];
}

- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
    MTLStorageMode mode = (MTLStorageMode)(options >> MTLResourceStorageModeShift & 15);
    if (length == 0)
        double_refuse(self, _cmd, "length is 0");
    if (mode != MTLStorageModeShared && mode != MTLStorageModePrivate)
        double_refuse(self, _cmd, "storage mode %lu is not one of this GPU", (unsigned long)mode);
    if (length > [self maxBufferLength])
        return nil;
    return [[DoubleBuffer alloc] initWithDevice:self length:length mode:mode memory:NULL];
}

- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void *)pointer
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void *pointer, NSUInteger length))deallocator {
    NSUInteger page = (NSUInteger)sysconf(_SC_PAGESIZE);
    if (deallocator)
        double_refuse(self, _cmd, "the double calls no deallocators");
    if (options != MTLResourceStorageModeShared)
        double_refuse(self, _cmd, "memory of the caller is shared");
    if ((uintptr_t)pointer % page || length % page || length == 0)
        double_refuse(self, _cmd, "pointer %p and length %lu are not whole pages of %lu", pointer,
                      (unsigned long)length, (unsigned long)page);
    bool is_private_file;
    if (!double_is_mapped(pointer, length, &is_private_file))
        double_refuse(self, _cmd, "not all of %lu bytes at %p are mapped", (unsigned long)length,
                      pointer);
    if (double_has("no-copy") || is_private_file)
        return nil;
    return [[DoubleBuffer alloc] initWithDevice:self
                                         length:length
                                           mode:MTLStorageModeShared
                                         memory:pointer];
}

- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                               options:(MTLCompileOptions *)options
                                 error:(__autoreleasing NSError **)error {
    err e = {.code = EXIT_OK};
    if (!source)
        double_refuse(self, _cmd, "source is nil");
    if (!options || [options languageVersion] == 0)
        double_refuse(self, _cmd, "the language version is left to chance");
    if (([options mathMode] == MTLMathModeSafe) !=
        ([options mathFloatingPointFunctions] == MTLMathFloatingPointFunctionsPrecise))
        double_refuse(self, _cmd, "the functions do not fit the math mode");
    int version = (int)[options languageVersion];
    const msl_extras extras = {.language = (version >> 16) * 100 + (version & 0xFFFF) * 10,
                               .is_apple = true};
    msl_unit *unit = msl_from_text_with("program_source", [source UTF8String], &extras, &e);
    if (unit && !double_compile_whole(unit, &e)) {
        msl_free(unit);
        unit = NULL;
    }
    /* Metal gives an error with a library, too, when there are warnings: here there always are. */
    if (unit)
        err_set(&e, EXIT_OK, "program_source:1:1: warning: this may not be what you mean");
    if (error)
        *error = double_make_error(
            MTLLibraryErrorDomain,
            unit ? MTLLibraryErrorCompileWarning : MTLLibraryErrorCompileFailure, &e);
    DoubleLibrary *made = unit ? [[DoubleLibrary alloc] initWithDevice:self unit:unit] : nil;
    if (made)
        made->math = (math_mode)[options mathMode]; /* the numbers are the same */
    return made;
}

- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(MTLAutoreleasedComputePipelineReflection *)reflection
                                    error:(__autoreleasing NSError **)error {
    DoubleFunction *function = (DoubleFunction *)[descriptor computeFunction];
    if (!function)
        double_refuse(self, _cmd, "the descriptor has no function");
    if (options != MTLPipelineOptionNone || reflection)
        double_refuse(self, _cmd, "the double has no reflection");
    if (function->home->owner != self)
        double_refuse(self, _cmd, "function '%s' is of another device",
                      [[function name] UTF8String]);
    return [[DoublePipeline alloc] initWithFunction:function label:[descriptor label] error:error];
}

- (id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor *)desc
                                               error:(__autoreleasing NSError **)error {
    if (!double_has("no-residency"))
        return [[DoubleResidencySet alloc] initWithDevice:self descriptor:desc];
    err e;
    err_set(&e, EXIT_CANNOT, "residency sets are not supported");
    *error = double_make_error(MTLLibraryErrorDomain, MTLLibraryErrorUnsupported, &e);
    return nil;
}

- (id<MTLFence>)newFence {
    return [[DoubleFence alloc] initWithDevice:self];
}

- (NSArray *)counterSets {
    if (double_has("no-counters"))
        return nil;
    return [NSArray arrayWithObject:[[[DoubleCounterSet alloc] init] autorelease]];
}

- (BOOL)supportsCounterSampling:(MTLCounterSamplingPoint)samplingPoint {
    return samplingPoint == MTLCounterSamplingPointAtStageBoundary && !double_has("no-counters");
}

- (id<MTLCounterSampleBuffer>)newCounterSampleBufferWithDescriptor:
                                  (MTLCounterSampleBufferDescriptor *)descriptor
                                                             error:(NSError **)error {
    if ([descriptor sampleCount] == 0 || [descriptor sampleCount] > 4096 ||
        ![descriptor counterSet] || [descriptor storageMode] != MTLStorageModeShared) {
        err e;
        err_set(&e, EXIT_CANNOT, "the descriptor asks for %lu samples",
                (unsigned long)[descriptor sampleCount]);
        if (error)
            *error = double_make_error(MTLCounterErrorDomain, 1, &e);
        return nil;
    }
    return [[DoubleSamples alloc] initWithDevice:self descriptor:descriptor];
}

- (void)sampleTimestamps:(MTLTimestamp *)cpuTimestamp gpuTimestamp:(MTLTimestamp *)gpuTimestamp {
    *cpuTimestamp = os_now_ns();
    *gpuTimestamp = double_step_clock(*cpuTimestamp);
}
@end

static id<MTLDevice> find_device(void) {
    if (double_has("no-device"))
        return nil;
    if (only)
        return [only retain];
    only = [[DoubleDevice alloc] init];
    return only;
}

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
    id<MTLDevice> found = find_device();
    if (found && double_has("no-default"))
        double_refuse(found, @selector(name), "this GPU was to be asked for by its name");
    return found;
}

NSArray *MTLCopyAllDevices(void) {
    id<MTLDevice> first = find_device();
    NSArray *all = first ? [[NSArray alloc] initWithObjects:first, nil] : [[NSArray alloc] init];
    [first release];
    return all;
}

/* Queues ------------------------------------------------------------------------------------- */

@implementation DoubleQueue
- (id)initWithDevice:(DoubleDevice *)device {
    self = [super initWithDevice:device];
    running = [[NSMutableArray alloc] init];
    sets = [[NSMutableArray alloc] init];
    return self;
}

- (void)dealloc {
    for (DoubleCommands *c in running)
        [c finish];
    [running release];
    [sets release];
    [super dealloc];
}

- (void)addResidencySet:(id<MTLResidencySet>)residencySet {
    if (!residencySet || [residencySet device] != owner)
        double_refuse(self, _cmd, "the residency set is nil, or of another device");
    [sets addObject:residencySet];
}

- (void)removeResidencySet:(id<MTLResidencySet>)residencySet {
    if (![sets containsObject:residencySet])
        double_refuse(self, _cmd, "the queue does not have this residency set");
    [sets removeObject:residencySet];
}

/* Waits, as Metal does, while too many are on their way. */
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor *)descriptor {
    if (!descriptor)
        double_refuse(self, _cmd, "the descriptor is nil");
    while ([running count] >= DOUBLE_IN_FLIGHT) {
        DoubleCommands *oldest = [[[running objectAtIndex:0] retain] autorelease];
        [oldest finish];
    }
    return [[[DoubleCommands alloc] initWithQueue:self descriptor:descriptor] autorelease];
}
@end

/* Memory ------------------------------------------------------------------------------------- */

@implementation DoubleBuffer
/* Metal gives memory with zeros in it. */
- (id)initWithDevice:(DoubleDevice *)device
              length:(NSUInteger)length
                mode:(MTLStorageMode)storage
              memory:(void *)memory {
    self = [super initWithDevice:device];
    err e = {.code = EXIT_OK};
    bytes = length;
    mode = storage;
    soft = memory ? device_wrap_memory(owner->soft, memory, length, "buffer", &e)
                  : device_new_buffer(owner->soft, length, STORAGE_SHARED, "buffer", &e);
    if (!soft) {
        [self release];
        return nil;
    }
    if (!memory)
        memset(soft->contents, 0, length);
    owner->allocated += length; /* memory of the caller counts too */
    return self;
}

- (void)dealloc {
    if (soft)
        owner->allocated -= bytes;
    buffer_free(soft);
    [super dealloc];
}

- (void)setLabel:(NSString *)label {
    [_label autorelease];
    _label = [label copy];
    snprintf(soft->label, sizeof soft->label, "%s", label ? [label UTF8String] : "buffer");
}

- (NSUInteger)length {
    return soft->storage == STORAGE_NO_COPY && double_has("empty-no-copy") ? 0 : bytes;
}
- (NSUInteger)allocatedSize {
    return bytes;
}
- (MTLStorageMode)storageMode {
    return mode;
}
- (void *)contents {
    return mode == MTLStorageModePrivate ? NULL : soft->contents;
}
@end

@implementation DoubleFence
@end

/* A residency set takes effect when it is committed, and its memory is wired from a request for it until a second
 * without work. */
enum { LASTS_NS = 1000000000 };

@implementation DoubleResidencySet
- (id)initWithDevice:(DoubleDevice *)device descriptor:(MTLResidencySetDescriptor *)descriptor {
    self = [super init];
    owner = device; /* not retained, as Metal's: the queue that has the set keeps it */
    _label = [[descriptor label] copy];
    members = [[NSMutableSet alloc] init];
    wanted = [[NSMutableSet alloc] init];
    return self;
}

- (void)dealloc {
    [members release];
    [wanted release];
    owner = nil;
    [super dealloc];
}

- (void)addAllocation:(id<MTLAllocation>)allocation {
    if (!allocation || [wanted containsObject:allocation])
        double_refuse(self, _cmd, "the allocation is nil, or in the set already");
    [wanted addObject:allocation];
}

- (void)removeAllocation:(id<MTLAllocation>)allocation {
    if (!allocation || ![wanted containsObject:allocation])
        double_refuse(self, _cmd, "the allocation is not in the set");
    [wanted removeObject:allocation];
}

- (void)commit {
    [members setSet:wanted];
}

- (void)requestResidency {
    lasts_until_ns = os_now_ns() + LASTS_NS;
}

- (void)endResidency {
    lasts_until_ns = 0;
}

- (bool)holds:(DoubleBuffer *)buffer {
    return os_now_ns() < lasts_until_ns && [members containsObject:buffer];
}

- (void)keep {
    if (os_now_ns() < lasts_until_ns)
        [self requestResidency];
}
@end

/* Counters ----------------------------------------------------------------------------------- */

@implementation DoubleCounterSet
- (NSString *)name {
    return MTLCommonCounterSetTimestamp;
}
@end

@implementation DoubleSamples
- (id)initWithDevice:(DoubleDevice *)device
          descriptor:(MTLCounterSampleBufferDescriptor *)descriptor {
    self = [super initWithDevice:device];
    _label = [[descriptor label] copy];
    count = [descriptor sampleCount];
    times = calloc(count, sizeof *times);
    return self;
}
- (void)dealloc {
    free(times);
    [super dealloc];
}
- (NSUInteger)sampleCount {
    return count;
}
- (NSData *)resolveCounterRange:(NSRange)range {
    if (range.location > count || range.length > count - range.location)
        double_refuse(self, _cmd, "samples %lu to %lu of %lu", (unsigned long)range.location,
                      (unsigned long)(range.location + range.length), (unsigned long)count);
    return [NSData dataWithBytes:times + range.location length:range.length * sizeof *times];
}
@end
