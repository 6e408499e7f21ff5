/* metal: what the files of the Metal device share; no other file includes it, or Metal.
 *
 * device_metal.m opens a GPU, knows its facts and its memory and turns text into pipelines, play_metal.m encodes,
 * waits, and times each launch with the GPU's counters. Objective-C with manual retain and release: what a struct here holds
 * is retained.
 *
 * The same files run on Linux against the Metal of tests/metal_double. */
#pragma once

#import <Metal/Metal.h>

#include "harness/device/tape.h"

typedef enum { SAMPLING_UNTRIED, SAMPLING_WORKS, SAMPLING_BROKEN } sampling_state;

typedef struct {
    device *owner; /* not retained: it holds this */
    id<MTLDevice> device;
    id<MTLCommandQueue> queue;
    id<MTLBuffer> staging;          /* between private buffers and the CPU; nil until needed */
    NSMutableDictionary *libraries; /* MTLLibrary by math mode and source text */
    finding_list findings;
    id<MTLCounterSampleBuffer> samples; /* nil until needed */
    id<MTLFence> fence;                 /* from encoder to encoder of a sampled play */
    sampling_state sampling;
    MTLTimestamp cpu_start, gpu_start; /* both clocks when sampling was tried */
    id residency; /* an MTLResidencySet with all buffers; nil before macOS 15 */
    bool residency_changed;
    uint64_t used_ns; /* when something was last submitted or ended */
} metal_device;

/* device_metal.m */
metal_device *metal_get(const device *d);
/* The sentence of an NSError, good until the pool drains. */
const char *metal_describe(NSError *error);

int metal_get_language(void); /* the newest that this system has, as msl.h has it */
/* Retained. */
id<MTLComputePipelineState> metal_new_state(metal_device *m, id<MTLFunction> function,
                                            const char *label, NSError **error);
id<MTLLibrary> metal_find_library(metal_device *m, const char *text, int language, math_mode math,
                                  const char *kernel, err *e);
void metal_keep_resident(metal_device *m); /* before something is submitted */

/* play_metal.m */
/* Autoreleased. If it explains, a failure names the encoder: that costs time while it runs. */
id<MTLCommandBuffer> metal_new_command_buffer(metal_device *m, const char *label, bool explains,
                                              err *e);
/* Waits for all of them; the first failure is reported. */
bool metal_finish(metal_device *m, const id<MTLCommandBuffer> *parts, size_t count,
                  uint64_t commit_at_ns, play_times *times, err *e);
bool metal_submit(device *d, tape *t, size_t first, size_t count, ticket *out, err *e);
bool metal_wait(device *d, ticket *k, play_times *times, err *e);
bool metal_can_sample(device *d);
bool metal_play_sampled(device *d, tape *t, play_times *total, play_times *each, err *e);
