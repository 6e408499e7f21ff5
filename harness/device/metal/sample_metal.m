/* sample_metal: the time of each launch of a tape that is played as one command buffer.
 *
 * Apple GPUs sample their counters at the start and end of encoders, not of launches. So each
 * launch gets an encoder, which waits for the previous one by a fence: independent launches would
 * overlap, and so would their times. The cost of this falls between the encoders, not into the
 * times.
 *
 * Devices that offer this may still return zeros. It is tried with a kernel of our own before the
 * first play, and the samples of every play are verified again. The times of encoders may also sum
 * to more than the whole took, if one starts before the other is quite over: they are kept, and
 * marked. */
#include <assert.h>
#include <string.h>

#include "harness/base/os.h"
#include "metal.h"

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
    id<MTLLibrary> library = metal_find_library(m, probe_text, metal_get_language(), MATH_SAFE,
                                                "assay_probe", NULL);
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
    return metal_finish(m, commands, commit_at_ns, &times, NULL) &&
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
        metal_encode(encoder, l, held);
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
    if (!metal_finish(m, commands, commit_at_ns, &times, e))
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
        end = metal_find_end(t, first, end);
        @autoreleasepool {
            if (!play_part(d, t, first, end - first, total, each + first, e))
                return false;
        }
    }
    return true;
}
