/* metal: what the files of the Metal device share; no other file includes it, or Metal.
 *
 * device_metal.m opens a GPU and knows its facts, buffer_metal.m its memory and keeps it wired,
 * pipeline_metal.m turns text into pipelines, play_metal.m encodes and waits, sample_metal.m times each
 * launch with the GPU's counters. Objective-C with manual retain and release: what a struct here holds
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

/* buffer_metal.m */
bool metal_new_buffer(buffer *b, size_t allocation_bytes, const void *no_copy, err *e);
void metal_free_buffer(buffer *b);
bool metal_copy(buffer *b, size_t allocation_offset, void *host, size_t bytes, bool to_device,
                err *e);

/* pipeline_metal.m */
int metal_get_language(void); /* the newest that this system has, as msl.h has it */
bool metal_new_pipeline(pipeline *p, const msl_unit *unit, const constant_value *constants,
                        size_t count, err *e);
void metal_free_pipeline(pipeline *p);
/* Retained. */
id<MTLComputePipelineState> metal_new_state(metal_device *m, id<MTLFunction> function,
                                            const char *label, NSError **error);
id<MTLLibrary> metal_find_library(metal_device *m, const char *text, int language, math_mode math,
                                  const char *kernel, err *e);

/* play_metal.m */
/* Autoreleased. If it explains, a failure names the encoder: that costs time while it runs. */
id<MTLCommandBuffer> metal_new_command_buffer(metal_device *m, const char *label, bool explains,
                                              err *e);
/* held: the threadgroup memory that the encoder has been given so far, by index. */
void metal_encode(id<MTLComputeCommandEncoder> encoder, const launch *l, uint32_t *held);
bool metal_finish(metal_device *m, id<MTLCommandBuffer> commands, uint64_t commit_at_ns,
                  play_times *times, err *e);
/* The end of the launches from `first` that one command buffer may hold. */
size_t metal_find_end(const tape *t, size_t first, size_t end);
bool metal_submit(device *d, tape *t, size_t first, size_t count, ticket *out, err *e);
bool metal_wait(device *d, ticket *k, play_times *times, err *e);

/* buffer_metal.m: macOS takes memory away from a GPU that has been idle for a second, and the
 * next command buffer would be timed with the wiring of it. Nothing of this happens before macOS 15. */
#if __MAC_OS_X_VERSION_MAX_ALLOWED >= 150000
void metal_open_residency(metal_device *m);
void metal_close_residency(metal_device *m);
void metal_add_resident(metal_device *m, id<MTLBuffer> b);
void metal_remove_resident(metal_device *m, id<MTLBuffer> b);
void metal_keep_resident(metal_device *m); /* before something is submitted */
#else
#define metal_open_residency(m) ((void)(m))
#define metal_close_residency(m) ((void)(m))
#define metal_add_resident(m, b) ((void)(m), (void)(b))
#define metal_remove_resident(m, b) ((void)(m), (void)(b))
#define metal_keep_resident(m) ((void)(m))
#endif

/* sample_metal.m */
bool metal_can_sample(device *d);
bool metal_play_sampled(device *d, tape *t, play_times *total, play_times *each, err *e);
