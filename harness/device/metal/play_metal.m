/* play_metal: plays a part of a tape as one command buffer, or as several if it is long, and reports
 * the outcome.
 *
 * A serial tape is one serial encoder; a concurrent one is one concurrent encoder, with a memory
 * barrier where the tape has one. Marks become debug groups.
 *
 * Samples are the time of each launch of a tape that is played as one command buffer. Apple GPUs sample
 * their counters at the start and end of encoders, not of launches. So each launch gets an encoder, which
 * waits for the previous one by a fence: independent launches would overlap, and so would their times. The
 * cost of this falls between the encoders, not into the times.
 *
 * Devices that offer this may still return zeros. It is tried with a kernel of our own before the
 * first play, and the samples of every play are verified again. The times of encoders may also sum
 * to more than the whole took, if one starts before the other is quite over: they are kept, and
 * marked. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "metal.h"

enum { THREADGROUP_UNIT = 16 }; /* threadgroup memory is allocated in multiples of this */

/* Describing work ---------------------------------------------------------------------------- */

/* It keeps what it uses alive. */
id<MTLCommandBuffer> metal_new_command_buffer(metal_device *m, const char *label, bool explains,
                                              err *e) {
    MTLCommandBufferDescriptor *what = [[[MTLCommandBufferDescriptor alloc] init] autorelease];
    if (explains)
        [what setErrorOptions:MTLCommandBufferErrorOptionEncoderExecutionStatus];
    id<MTLCommandBuffer> made = [m->queue commandBufferWithDescriptor:what];
    [made setLabel:[NSString stringWithUTF8String:label]];
    if (!made)
        err_set(e, EXIT_CANNOT, "Metal returned no command buffer");
    return made;
}

static void bind_argument(id<MTLComputeCommandEncoder> encoder, const launch *l, NSUInteger index) {
    const binding *b = &l->args[index];
    if (b->kind == BIND_BUFFER)
        [encoder setBuffer:(id<MTLBuffer>)b->at.buffer->impl
                    offset:b->at.buffer->base + b->at.offset
                   atIndex:index];
    else if (b->kind == BIND_BYTES)
        [encoder setBytes:l->inline_bytes + b->inline_at length:b->inline_bytes atIndex:index];
}

/* Lengths stay set in an encoder and count towards the limit, and Metal rejects a length of 0: what
 * the previous launch needed and this one does not is set back to the minimum. */
static uint32_t find_length(const launch *l, NSUInteger i, uint32_t held) {
    uint32_t bytes = l->threadgroup_bytes[i];
    if (bytes == 0)
        return held > 0 ? THREADGROUP_UNIT : 0;
    return (bytes + THREADGROUP_UNIT - 1) / THREADGROUP_UNIT * THREADGROUP_UNIT;
}

static void set_threadgroup_memory(id<MTLComputeCommandEncoder> encoder, const launch *l,
                                   uint32_t *held) {
    for (NSUInteger i = 0; i < LAUNCH_THREADGROUPS; i++) {
        uint32_t bytes = find_length(l, i, held[i]);
        if (bytes == held[i])
            continue;
        [encoder setThreadgroupMemoryLength:bytes atIndex:i];
        held[i] = bytes;
    }
}

/* With the minimum lengths left from other launches, is there room for this one's own? */
static bool has_room(const launch *l, const uint32_t *held) {
    uint64_t bytes = l->pipeline->threadgroup_bytes;
    for (NSUInteger i = 0; i < LAUNCH_THREADGROUPS; i++)
        bytes += find_length(l, i, held[i]);
    return bytes <= l->pipeline->device->facts.max_threadgroup_bytes;
}

/* held: the threadgroup memory that the encoder has been given so far, by index. */
static void encode(id<MTLComputeCommandEncoder> encoder, const launch *l, uint32_t *held) {
    [encoder setComputePipelineState:(id<MTLComputePipelineState>)l->pipeline->impl];
    for (NSUInteger i = 0; i < LAUNCH_BUFFERS; i++)
        bind_argument(encoder, l, i);
    set_threadgroup_memory(encoder, l, held);
    MTLSize grid = MTLSizeMake(l->grid.x, l->grid.y, l->grid.z);
    MTLSize group = MTLSizeMake(l->group.x, l->group.y, l->group.z);
    if (l->grid_is_threads)
        [encoder dispatchThreads:grid threadsPerThreadgroup:group];
    else
        [encoder dispatchThreadgroups:grid threadsPerThreadgroup:group];
}

/* Autoreleased. */
static id<MTLComputeCommandEncoder> open_encoder(id<MTLCommandBuffer> commands, const tape *t,
                                                 const char *name, err *e) {
    id<MTLComputeCommandEncoder> encoder =
        t->order == ORDER_CONCURRENT
            ? [commands computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent]
            : [commands computeCommandEncoder];
    [encoder setLabel:[NSString stringWithUTF8String:name]];
    if (!encoder)
        err_set(e, EXIT_CANNOT, "Metal returned no encoder for %.100s", name);
    return encoder;
}

static void open_group(id<MTLComputeCommandEncoder> encoder, const mark *m) {
    if (m)
        [encoder pushDebugGroup:[NSString stringWithUTF8String:m->name]];
}

static void close_group(id<MTLComputeCommandEncoder> encoder, const mark *m) {
    if (m)
        [encoder popDebugGroup];
}

static bool encode_part(id<MTLCommandBuffer> commands, const tape *t, size_t first, size_t count,
                        const char *name, err *e) {
    id<MTLComputeCommandEncoder> encoder = open_encoder(commands, t, name, e);
    uint32_t held[LAUNCH_THREADGROUPS] = {0};
    const mark *open = NULL;
    size_t next = 0; /* mark */
    while (next < t->mark_count && t->marks[next].at < first)
        open = &t->marks[next++];
    open_group(encoder, open);
    for (size_t i = first; encoder && i < first + count; i++) {
        for (; next < t->mark_count && t->marks[next].at == i; next++) {
            close_group(encoder, open);
            open = &t->marks[next];
            open_group(encoder, open);
        }
        const launch *l = &t->launches[i];
        if (!has_room(l, held)) { /* a new encoder starts with none, and after the previous one */
            close_group(encoder, open);
            [encoder endEncoding];
            memset(held, 0, sizeof held);
            encoder = open_encoder(commands, t, name, e);
            open_group(encoder, open);
        } else if (l->barrier_before && t->order == ORDER_CONCURRENT && i > first) {
            [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
        }
        encode(encoder, l, held);
    }
    close_group(encoder, open);
    [encoder endEncoding];
    return encoder != nil;
}

/* The outcome -------------------------------------------------------------------------------- */

static uint64_t count_ns(double seconds) {
    return seconds > 0 && seconds < 1e6 ? (uint64_t)(seconds * 1e9 + 0.5) : 0;
}

/* From the start of the first to the end of the last. Virtual GPUs report zeros. */
static void read_times(const id<MTLCommandBuffer> *parts, size_t count, uint64_t wall_ns,
                       play_times *times) {
    double start = [parts[0] GPUStartTime], end = [parts[count - 1] GPUEndTime];
    uint64_t gpu_ns = start > 0 ? count_ns(end - start) : 0;
    play_times_set(times, gpu_ns, wall_ns);
    for (size_t i = 0; i < count; i++)
        if ([parts[i] kernelStartTime] > 0)
            times->driver_ns += count_ns([parts[i] kernelEndTime] - [parts[i] kernelStartTime]);
}

/* The label of the encoder that failed, or of the first that did not finish. */
static NSString *find_failed(NSError *error) {
    NSArray *encoders = [[error userInfo] objectForKey:MTLCommandBufferEncoderInfoErrorKey];
    NSString *affected = nil;
    for (id<MTLCommandBufferEncoderInfo> info in encoders) {
        if ([info errorState] == MTLCommandEncoderErrorStateFaulted)
            return [info label];
        if ([info errorState] == MTLCommandEncoderErrorStateAffected && !affected)
            affected = [info label];
    }
    return affected;
}

/* Some failures have a name in their description alone. */
static bool is_called(NSError *error, const char *name) {
    return strstr(metal_describe(error), name) != NULL;
}

/* After a fault a process may be refused for good. */
static bool report_failure(metal_device *m, id<MTLCommandBuffer> commands, err *e) {
    NSError *error = [commands error];
    NSString *failed = find_failed(error);
    const char *label = [failed ? failed : [commands label] UTF8String];
    MTLCommandBufferError code = (MTLCommandBufferError)[error code];
    if (is_called(error, "ImpactingInteractivity"))
        return err_set(e, EXIT_CANNOT,
                       "macOS ended %.90s, because it kept the GPU from the screen for too long; "
                       "try a smaller size, or with the display asleep",
                       label);
    if (is_called(error, "InnocentVictim"))
        return err_set(e, EXIT_CANNOT, "%.90s was lost in a fault of other work: %.120s", label,
                       metal_describe(error));
    bool is_refused = is_called(error, "SubmissionsIgnored");
    m->owner->is_lost |= is_refused || code == MTLCommandBufferErrorTimeout ||
                         code == MTLCommandBufferErrorPageFault;
    if (is_refused)
        return err_set(e, EXIT_CANNOT,
                       "Metal ignores %.90s: it takes no more work of this process after a fault",
                       label);
    if (code == MTLCommandBufferErrorTimeout)
        return err_set(e, EXIT_WRONG, "%.90s ran too long and the GPU aborted it: %.120s", label,
                       metal_describe(error));
    if (code == MTLCommandBufferErrorPageFault)
        return err_set(e, EXIT_WRONG, "%.90s accessed invalid memory: %.120s", label,
                       metal_describe(error));
    return err_set(e, EXIT_CANNOT, "the GPU did not finish %.90s: %.120s", label,
                   metal_describe(error));
}

/* Waits for all of them; the first failure is reported. */
bool metal_finish(metal_device *m, const id<MTLCommandBuffer> *parts, size_t count,
                  uint64_t commit_at_ns, play_times *times, err *e) {
    bool ok = true;
    for (size_t i = 0; i < count; i++)
        [parts[i] waitUntilCompleted];
    m->used_ns = os_now_ns();
    read_times(parts, count, m->used_ns - commit_at_ns, times);
    for (size_t i = 0; ok && i < count; i++)
        ok = [parts[i] status] == MTLCommandBufferStatusCompleted || report_failure(m, parts[i], e);
    return ok;
}

/* Submitting --------------------------------------------------------------------------------- */

/* What a ticket stands for: command buffers in order, retained. */
typedef struct {
    id<MTLCommandBuffer> *parts;
    size_t count, room;
} flight;

static bool land(metal_device *m, flight *f, uint64_t commit_at_ns, play_times *times, err *e) {
    play_times ignored = {0};
    bool ok = f->count == 0 ||
              metal_finish(m, f->parts, f->count, commit_at_ns, times ? times : &ignored, e);
    for (size_t i = 0; i < f->count; i++)
        [f->parts[i] release];
    free(f->parts);
    free(f);
    return ok;
}

/* macOS ends a command buffer that keeps the GPU from the screen for some seconds. So what would
 * take long at the rates that a poor kernel has on the slowest GPU is split; a GPU runs the parts one
 * after another, with some 20 us between them. */
static size_t find_end(const tape *t, size_t first, size_t end) {
    static const double long_s = 0.25, slow_bytes_s = 20e9, slow_flops_s = 200e9;
    double seconds = 0;
    for (size_t i = first; i < end; i++) {
        const launch *l = &t->launches[i];
        seconds += (double)l->bytes / slow_bytes_s + (double)l->flops / slow_flops_s;
        if (seconds > long_s && i > first)
            return i;
    }
    return end;
}

/* One command buffer, committed; nil with e set. */
static id<MTLCommandBuffer> commit_part(device *d, const tape *t, size_t first, size_t count,
                                        uint64_t *commit_at_ns, err *e) {
    char name[128];
    tape_name_part(t, first, count, name, sizeof name);
    bool explains = t->explains || d->facts.validates;
    id<MTLCommandBuffer> commands = metal_new_command_buffer(metal_get(d), name, explains, e);
    if (!commands || !encode_part(commands, t, first, count, name, e))
        return nil;
    *commit_at_ns = *commit_at_ns ? *commit_at_ns : os_now_ns();
    [commands commit];
    return commands;
}

bool metal_submit(device *d, tape *t, size_t first, size_t count, ticket *out, err *e) {
    if (d->is_lost)
        return err_set(e, EXIT_CANNOT,
                       "Metal may ignore all work of this process, because some of it failed: "
                       "start another one");
    flight *f = array_new(1, sizeof *f);
    bool ok = true;
    @autoreleasepool {
        metal_keep_resident(metal_get(d));
        for (size_t at = first, next; ok && (at < first + count || f->count == 0); at = next) {
            next = find_end(t, at, first + count);
            id<MTLCommandBuffer> commands = commit_part(d, t, at, next - at, &out->commit_at_ns, e);
            if ((ok = commands != nil))
                *ARRAY_ADD(f->parts, f->count, f->room) = [commands retain];
        }
        if (!ok)
            land(metal_get(d), f, 0, NULL, NULL);
    }
    out->id = (uint64_t)(uintptr_t)f;
    return ok;
}

bool metal_wait(device *d, ticket *k, play_times *times, err *e) {
    flight *f = (flight *)(uintptr_t)k->id;
    assert(f && "a ticket is waited for once");
    k->id = 0;
    @autoreleasepool {
        return land(metal_get(d), f, k->commit_at_ns, times, e);
    }
}

/* Sampling ------------------------------------------------------------------------------------- */

enum {
    MOST_SAMPLES = 4096, /* 32 KB, the most that Apple GPUs take; two per launch */
    CLOCK_STEP_NS = 42,  /* of the 24 MHz at which Apple GPUs count */
};

static const char probe_text[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "kernel void assay_probe(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
    "    x[i] = x[i] * 2 + 1;\n"
    "}\n";

/* Samples ------------------------------------------------------------------------------------ */

/* The counter set with only the timestamp; nil if it cannot be sampled between encoders. */
static id<MTLCounterSet> find_timestamps(id<MTLDevice> d) {
    if (![d supportsCounterSampling:MTLCounterSamplingPointAtStageBoundary])
        return nil;
    for (id<MTLCounterSet> set in [d counterSets])
        if ([[set name] isEqualToString:MTLCommonCounterSetTimestamp])
            return set;
    return nil;
}

static bool make_samples(metal_device *m) {
    id<MTLCounterSet> set = find_timestamps(m->device);
    if (!set)
        return false;
    MTLCounterSampleBufferDescriptor *what =
        [[[MTLCounterSampleBufferDescriptor alloc] init] autorelease];
    [what setCounterSet:set];
    [what setStorageMode:MTLStorageModeShared];
    [what setSampleCount:MOST_SAMPLES];
    [what setLabel:@"launch times"];
    NSError *error = nil;
    m->samples = [m->device newCounterSampleBufferWithDescriptor:what error:&error];
    m->fence = [m->device newFence];
    return m->samples && m->fence;
}

/* An encoder whose ends are samples 2i and 2i + 1. */
static id<MTLComputeCommandEncoder> make_encoder(metal_device *m, id<MTLCommandBuffer> commands,
                                                 NSUInteger i) {
    MTLComputePassDescriptor *what = [MTLComputePassDescriptor computePassDescriptor];
    MTLComputePassSampleBufferAttachmentDescriptor *ends =
        [[what sampleBufferAttachments] objectAtIndexedSubscript:0];
    [ends setSampleBuffer:m->samples];
    [ends setStartOfEncoderSampleIndex:2 * i];
    [ends setEndOfEncoderSampleIndex:2 * i + 1];
    id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoderWithDescriptor:what];
    if (i > 0)
        [encoder waitForFence:m->fence];
    return encoder;
}

/* Nanoseconds in a tick of the GPU's clock, which on Apple GPUs is 1; others are compared with the
 * CPU's clock since sampling was tried. */
static double measure_tick(metal_device *m) {
    MTLTimestamp cpu = 0, gpu = 0;
    [m->device sampleTimestamps:&cpu gpuTimestamp:&gpu];
    if (cpu <= m->cpu_start || gpu <= m->gpu_start)
        return 1;
    double tick = (double)(cpu - m->cpu_start) / (double)(gpu - m->gpu_start);
    return tick > 0.98 && tick < 1.02 ? 1 : tick;
}

/* Reads the samples of `count` encoders. False if any is missing, or earlier than the one before
 * it. *overlap: their sum is longer than the whole took, by more than the clocks differ. */
static bool read_samples(metal_device *m, size_t count, uint64_t all_ns, uint64_t *ns,
                         bool *overlap) {
    NSData *data = [m->samples resolveCounterRange:NSMakeRange(0, 2 * count)];
    const MTLCounterResultTimestamp *at = [data bytes];
    if (!at || [data length] < 2 * count * sizeof *at)
        return false;
    double tick = measure_tick(m), sum = 0;
    uint64_t last = 1; /* a zero is not a time */
    for (size_t i = 0; i < count; i++) {
        uint64_t start = at[2 * i].timestamp, end = at[2 * i + 1].timestamp;
        if (start < last || end < start || end == MTLCounterErrorValue)
            return false;
        last = start;
        double took = (double)(end - start) * tick;
        ns[i] = took > 1 ? (uint64_t)(took + 0.5) : 1; /* less than a step of the clock */
        sum += took;
    }
    *overlap = sum > (double)all_ns * 1.01 + 1e3 + (double)(CLOCK_STEP_NS * count);
    return true;
}

/* Trying it ---------------------------------------------------------------------------------- */

enum { PROBES = 2, PROBE_THREADS = 1024 };

static id<MTLComputePipelineState> make_probe(metal_device *m) {
    id<MTLLibrary> library =
        metal_find_library(m, probe_text, metal_get_language(), MATH_SAFE, "assay_probe", NULL);
    id<MTLFunction> function = [[library newFunctionWithName:@"assay_probe"] autorelease];
    NSError *error = nil;
    return function ? [metal_new_state(m, function, "assay_probe", &error) autorelease] : nil;
}

static bool try_samples(metal_device *m) {
    id<MTLComputePipelineState> probe = make_samples(m) ? make_probe(m) : nil;
    id<MTLCommandBuffer> commands =
        probe ? metal_new_command_buffer(m, "probe of counters", false, NULL) : nil;
    id<MTLBuffer> room = [[m->device newBufferWithLength:PROBE_THREADS * sizeof(uint32_t)
                                                 options:MTLResourceStorageModeShared] autorelease];
    if (!commands || !room)
        return false;
    [room setLabel:@"probe of counters"];
    [m->device sampleTimestamps:&m->cpu_start gpuTimestamp:&m->gpu_start];
    NSUInteger width = [probe threadExecutionWidth];
    for (NSUInteger i = 0; i < PROBES; i++) {
        id<MTLComputeCommandEncoder> encoder = make_encoder(m, commands, i);
        [encoder setLabel:@"probe of counters"];
        [encoder setComputePipelineState:probe];
        [encoder setBuffer:room offset:0 atIndex:0];
        [encoder dispatchThreadgroups:MTLSizeMake(PROBE_THREADS / width, 1, 1)
                threadsPerThreadgroup:MTLSizeMake(width, 1, 1)];
        [encoder updateFence:m->fence];
        [encoder endEncoding];
    }
    uint64_t commit_at_ns = os_now_ns(), ns[PROBES];
    play_times times = {0};
    bool overlap;
    [commands commit];
    return metal_finish(m, &commands, 1, commit_at_ns, &times, NULL) &&
           read_samples(m, PROBES, times.gpu_ns, ns, &overlap);
}

bool metal_can_sample(device *d) {
    metal_device *m = metal_get(d);
    if (m->sampling == SAMPLING_UNTRIED) {
        @autoreleasepool {
            m->sampling = try_samples(m) ? SAMPLING_WORKS : SAMPLING_BROKEN;
        }
    }
    return m->sampling == SAMPLING_WORKS;
}

/* Playing ------------------------------------------------------------------------------------ */

static bool encode_sampled(metal_device *m, id<MTLCommandBuffer> commands, const tape *t,
                           size_t first, size_t count, err *e) {
    for (size_t i = 0; i < count; i++) {
        const launch *l = &t->launches[first + i];
        uint32_t held[LAUNCH_THREADGROUPS] = {0};
        id<MTLComputeCommandEncoder> encoder = make_encoder(m, commands, i);
        if (!encoder)
            return err_set(e, EXIT_CANNOT, "Metal returned no encoder for %.100s", l->label);
        [encoder setLabel:[NSString stringWithUTF8String:l->label]];
        encode(encoder, l, held);
        [encoder updateFence:m->fence];
        [encoder endEncoding];
    }
    return true;
}

/* One command buffer of at most MOST_SAMPLES / 2 launches. */
static bool play_part(device *d, tape *t, size_t first, size_t count, play_times *total,
                      play_times *each, err *e) {
    metal_device *m = metal_get(d);
    metal_keep_resident(m);
    uint64_t start = os_now_ns(), ns[MOST_SAMPLES / 2];
    id<MTLCommandBuffer> commands = metal_new_command_buffer(m, "sampled launches", false, e);
    if (!commands || !encode_sampled(m, commands, t, first, count, e))
        return false;
    uint64_t commit_at_ns = os_now_ns();
    play_times times = {.encode_ns = commit_at_ns - start};
    [commands commit];
    if (!metal_finish(m, &commands, 1, commit_at_ns, &times, e))
        return false;
    bool is_good = read_samples(m, count, times.gpu_ns, ns, &times.samples_overlap);
    times.samples_overlap &= is_good;
    for (size_t i = 0; i < count; i++)
        each[i] = (play_times){.gpu_ns = is_good ? ns[i] : 0,
                               .gpu_is_sampled = true,
                               .samples_overlap = times.samples_overlap};
    play_times_add(total, &times);
    return true;
}

bool metal_play_sampled(device *d, tape *t, play_times *total, play_times *each, err *e) {
    *total = (play_times){0};
    for (size_t first = 0, end; first < t->count; first = end) {
        end = t->count - first < MOST_SAMPLES / 2 ? t->count : first + MOST_SAMPLES / 2;
        end = find_end(t, first, end);
        @autoreleasepool {
            if (!play_part(d, t, first, end - first, total, each + first, e))
                return false;
        }
    }
    return true;
}
