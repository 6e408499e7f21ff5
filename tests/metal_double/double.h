/* double: a Metal.framework for Linux, made of the software device.
 *
 * The headers of include/Metal declare; these files behave. A device of the double owns a software
 * device; a library is a parsed text; a pipeline is a pipeline of the software device; a command
 * buffer is a tape that is filled by its encoders and submitted by commit. What Metal's API
 * validation would stop, and what a GPU might silently survive, is one line on stderr and abort().
 *
 * It answers as an Apple GPU does: denormals are flushed, its clocks count at 24 MHz, encoders
 * overlap a little, a text is compiled as a whole and with a warning, long kernels get smaller
 * threadgroups, memory is unwired after a second without work. After a fault it ignores all that the
 * process commits.
 *
 * For tests, METAL_DOUBLE in the environment is a comma list of faults to show: see double_has.
 *
 * Released objects stay as zombies for a while, so that a message to one of them is found. */
#ifndef ASSAY_METAL_DOUBLE_H
#define ASSAY_METAL_DOUBLE_H

#import <Metal/Metal.h>

#include <stdbool.h>

#include "harness/device/tape.h"

enum { DOUBLE_INDICES = 31, DOUBLE_BYTES = 4096, DOUBLE_IN_FLIGHT = 64 };

/* A use of the API that Metal would not let pass: says so and aborts. */
_Noreturn void double_refuse(id object, SEL what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Is this fault asked for?
 * no-device: there is no GPU. no-times: GPU times are zero. long-times: they are longer than the
 * wall's. no-counters: counters are not offered. zero-counters: all samples are zero. no-copy:
 * memory of the caller is never taken in place; empty-no-copy: or gives a buffer of length 0. no-room:
 * the working set is 2 MB. fault: every kernel faults; fault:NAME: this one. paravirtual: it is the GPU of a virtual Mac.
 * It is of family Apple5, without matrices. simd-64: simdgroups have 64 lanes, and it is of no Apple
 * family. overlap: encoders start when the one before is half done. no-default: the GPU is not the
 * system's own choice. no-frames: reports of validation have no lines. busy-screen: a command buffer
 * of more than 4 dispatches keeps the GPU from the screen for too long. victim: other work faults.
 * no-residency: there are no residency sets. */
bool double_has(const char *fault);
/* Forgets faults, as a new process would. */
void double_start_over(void);

NSError *double_make_error(NSErrorDomain domain, NSUInteger code, const err *e);

@class DoubleDevice;

/* Everything that Metal gives out: of a device, which it keeps, and with a label. */
@interface DoubleObject : NSObject {
  @package
    DoubleDevice *owner;
    NSString *_label;
}
@property(copy) NSString *label;
@property(readonly) id<MTLDevice> device;
- (id)initWithDevice:(DoubleDevice *)device;
@end
size_t double_count_objects(void);   /* that live */
size_t double_count_commits(void);   /* command buffers, so far */
size_t double_count_wired(void);     /* buffers, so far, that a command buffer had to wire first */
size_t double_count_explained(void); /* command buffers, so far, that can name a failed encoder */

/* Would Metal make a library of this text? It compiles all kernels at once. */
bool double_compile_whole(const msl_unit *unit, err *e);
/* May memory of the caller be taken in place? It must be mapped, and a file's pages shared. */
bool double_is_mapped(const void *memory, size_t bytes, bool *is_private_file);
/* What the GPU's clock shows at this time. */
uint64_t double_step_clock(uint64_t ns);

@class DoubleBuffer;

/* What may be wired. */
@interface DoubleResidencySet : DoubleObject <MTLResidencySet> {
  @package
    NSMutableSet *members, *wanted; /* now, and after the next commit */
    uint64_t lasts_until_ns;        /* what was asked for, unless there is work before */
}
- (id)initWithDevice:(DoubleDevice *)device descriptor:(MTLResidencySetDescriptor *)descriptor;
- (bool)holds:(DoubleBuffer *)buffer;
- (void)keep; /* there was work */
@end

@interface DoubleDevice : DoubleObject <MTLDevice> {
  @package
    device *soft;
    NSUInteger allocated;
    NSString *_name;
}
@end

@interface DoubleQueue : DoubleObject <MTLCommandQueue> {
  @package
    NSMutableArray *running; /* committed and not finished, oldest first */
    NSMutableArray *sets;    /* of residency */
}
@end

@interface DoubleBuffer : DoubleObject <MTLBuffer> {
  @package
    buffer *soft;
    MTLStorageMode mode;
    NSUInteger bytes;
}
- (id)initWithDevice:(DoubleDevice *)device
              length:(NSUInteger)length
                mode:(MTLStorageMode)storage
              memory:(void *)memory;
@end

@interface DoubleFence : DoubleObject <MTLFence> {
  @package
    bool is_updated;
}
@end

@interface DoubleLibrary : DoubleObject <MTLLibrary> {
  @package
    msl_unit *unit;
    math_mode math;
}
- (id)initWithDevice:(DoubleDevice *)device unit:(msl_unit *)parsed;
@end

@interface DoubleFunction : DoubleObject <MTLFunction> {
  @package
    DoubleLibrary *home;
    NSString *_name;
    NSData *constants; /* constant_value */
}
@end

@interface DoublePipeline : DoubleObject <MTLComputePipelineState> {
  @package
    DoubleFunction *function;
    pipeline *soft;
}
- (id)initWithFunction:(DoubleFunction *)given
                 label:(NSString *)label
                 error:(__autoreleasing NSError **)error;
@end

@interface DoubleSamples : DoubleObject <MTLCounterSampleBuffer> {
  @package
    NSUInteger count;
    uint64_t *times;
}
- (id)initWithDevice:(DoubleDevice *)device
          descriptor:(MTLCounterSampleBufferDescriptor *)descriptor;
@end

@interface DoubleCounterSet : DoubleObject <MTLCounterSet>
@end

/* What one encoder recorded. */
typedef struct {
    bool is_blit, is_submitted, is_concurrent;
    size_t first, count; /* launches of the command buffer's tape */
    NSString *label;
    DoubleBuffer *from, *to; /* a blit; retained by the command buffer */
    size_t from_offset, to_offset, bytes;
    DoubleSamples *samples;
    NSUInteger start_sample, end_sample;
    ticket ticket;
    play_times times;
    MTLCommandEncoderErrorState state;
} segment;

@class DoubleEncoder;

@interface DoubleCommands : DoubleObject <MTLCommandBuffer> {
  @package
    DoubleQueue *queue;
    DoubleEncoder *open;  /* the encoder that has not ended; not retained */
    NSMutableArray *used; /* what the commands need while they run */
    tape *recorded;
    segment *segments;
    size_t segment_count;
    MTLCommandBufferStatus _status;
    MTLCommandBufferErrorOption options;
    NSError *_error;
    double start, end, kernel_start, kernel_end;
    bool keeps; /* what it uses */
}
- (id)initWithQueue:(DoubleQueue *)given descriptor:(MTLCommandBufferDescriptor *)descriptor;
- (segment *)addSegment;
- (void)finish; /* waits, without any right to */
- (void)finishOthers;
@end

@interface DoubleEncoder : DoubleObject <MTLCommandEncoder> {
  @package
    DoubleCommands *commands;
    size_t part; /* segment */
    int groups;
    bool has_ended;
}
- (id)initWithCommands:(DoubleCommands *)given;
- (void)checkOpen:(SEL)what;
@end

@interface DoubleBlitEncoder : DoubleEncoder <MTLBlitCommandEncoder>
@end

typedef struct {
    DoubleBuffer *buffer;
    NSUInteger offset;
    NSData *bytes;
} binding_slot;

@interface DoubleComputeEncoder : DoubleEncoder <MTLComputeCommandEncoder> {
  @package
    MTLDispatchType order;
    DoublePipeline *state;
    binding_slot slots[DOUBLE_INDICES];
    NSUInteger threadgroup[DOUBLE_INDICES];
    NSMutableArray *updated; /* fences */
}
- (id)initWithCommands:(DoubleCommands *)given
                 order:(MTLDispatchType)dispatch
                  pass:(MTLComputePassDescriptor *)pass;
@end

/* The constants that were set, as the software device takes them. */
@interface MTLFunctionConstantValues (Double)
- (NSData *)doubleValues;
@end

/* Plays the launches of a concurrent encoder on trial, one by one, forwards and backwards between
 * barriers, and puts everything back. Refuses two that write the same bytes, or whose order matters. */
void double_check_order(DoubleCommands *commands, const segment *s);

#endif
