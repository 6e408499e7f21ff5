/* misuse: every mistake with the API that the double must stop is made, each in a process of its
 * own, which must abort with a line that says so. A double that lets mistakes pass proves nothing
 * about the code that runs on it. */
#include <greatest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/metal_double/double.h"

SUITE_EXTERN(misuse_suite);

static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "kernel void add(device float *x [[buffer(0)]], constant float &step [[buffer(1)]],\n"
    "                uint i [[thread_position_in_grid]]) { x[i] += step; }\n"
    "kernel void shared_sum(device float *x [[buffer(0)]],\n"
    "                       threadgroup float *tile [[threadgroup(0)]],\n"
    "                       uint i [[thread_position_in_threadgroup]]) {\n"
    "    tile[i] = x[i];\n"
    "    x[i] = tile[i];\n"
    "}\n";

/* What every mistake starts from: everything set up as it should be. */
static id<MTLDevice> gpu;
static id<MTLCommandQueue> queue;
static id<MTLComputePipelineState> add, shared_sum;
static id<MTLBuffer> x;
static id<MTLCommandBuffer> commands;
static id<MTLComputeCommandEncoder> encoder;

static MTLCompileOptions *make_options(void) {
    MTLCompileOptions *o = [[[MTLCompileOptions alloc] init] autorelease];
    [o setLanguageVersion:MTLLanguageVersion3_0];
    [o setMathMode:MTLMathModeSafe];
    [o setMathFloatingPointFunctions:MTLMathFloatingPointFunctionsPrecise];
    return o;
}

static id<MTLComputePipelineState> make_pipeline(id<MTLLibrary> library, NSString *name) {
    MTLComputePipelineDescriptor *d = [[[MTLComputePipelineDescriptor alloc] init] autorelease];
    [d setLabel:name];
    [d setComputeFunction:[[library newFunctionWithName:name] autorelease]];
    return [gpu newComputePipelineStateWithDescriptor:d
                                              options:MTLPipelineOptionNone
                                           reflection:NULL
                                                error:NULL];
}

static id<MTLCommandBuffer> make_commands(void) {
    return
        [queue commandBufferWithDescriptor:[[[MTLCommandBufferDescriptor alloc] init] autorelease]];
}

static void set_up(void) {
    gpu = MTLCreateSystemDefaultDevice();
    queue = [gpu newCommandQueue];
    id<MTLLibrary> library = [gpu newLibraryWithSource:[NSString stringWithUTF8String:source]
                                               options:make_options()
                                                 error:NULL];
    add = make_pipeline(library, @"add");
    shared_sum = make_pipeline(library, @"shared_sum");
    x = [gpu newBufferWithLength:256 options:MTLResourceStorageModeShared];
    commands = make_commands();
    encoder = [commands computeCommandEncoder];
    const float step = 2;
    [encoder setComputePipelineState:add];
    [encoder setBuffer:x offset:0 atIndex:0];
    [encoder setBytes:&step length:sizeof step atIndex:1];
}

static void dispatch(NSUInteger groups, NSUInteger threads) {
    [encoder dispatchThreadgroups:MTLSizeMake(groups, 1, 1)
            threadsPerThreadgroup:MTLSizeMake(threads, 1, 1)];
}

static void finish(void) {
    [encoder endEncoding];
    [commands commit];
    [commands waitUntilCompleted];
}

/* The mistakes ------------------------------------------------------------------------------- */

static void do_it_right(void) {
    dispatch(2, 32);
    finish();
    const float *got = [x contents];
    if (got[0] != 2 || got[63] != 2 || [commands status] != MTLCommandBufferStatusCompleted)
        _exit(3);
    _exit(0);
}

/* Launches that run at the same time, of which the first adds 2 to the first 32 floats. */
static void start_concurrent(void) {
    const float step = 2;
    [encoder endEncoding];
    encoder = [commands computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
    [encoder setComputePipelineState:add];
    [encoder setBuffer:x offset:0 atIndex:0];
    [encoder setBytes:&step length:sizeof step atIndex:1];
    dispatch(1, 32);
}
static void do_apart(void) {
    start_concurrent();
    [encoder setBuffer:x offset:128 atIndex:0];
    dispatch(1, 32);
    [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
    [encoder setBuffer:x offset:0 atIndex:1];
    dispatch(1, 32);
    finish();
    const float *got = [x contents];
    _exit(got[0] == 2 && got[31] == 2 && got[32] == 4 && got[63] == 4 ? 0 : 3);
}

/* What is wrong, what the double must say, and how it is made. */
#define MISTAKES(X) \
    X(index_of_buffer, "a buffer at index 31", "index 31", [encoder setBuffer:x offset:0 atIndex:31]) \
    X(index_of_bytes, "bytes at index 31", "index 31", [encoder setBytes:"1234" length:4 atIndex:31]) \
    X(encode_after_end, "encoding after endEncoding", "the encoder has ended", dispatch(1, 32); \
      [encoder endEncoding]; dispatch(1, 32)) \
    X(end_twice, "endEncoding twice", "the encoder has ended", [encoder endEncoding]; [encoder endEncoding]) \
    X(commit_twice, "commit twice", "committed twice", finish(); [commands commit]) \
    X(commit_with_open_encoder, "commit with an open encoder", "has not ended", [commands commit]) \
    X(two_open_encoders, "two open encoders", "has not ended", [commands blitCommandEncoder]) \
    X(encoder_after_commit, "an encoder after commit", "is committed", finish(); \
      [commands computeCommandEncoder]) \
    X(wait_before_commit, "wait before commit", "not committed", [encoder endEncoding]; \
      [commands waitUntilCompleted]) \
    X(dispatch_without_pipeline, "dispatch without a pipeline", "no pipeline", [encoder endEncoding]; \
      encoder = [commands computeCommandEncoder]; dispatch(1, 32)) \
    X(zero_grid, "a grid of nothing", "zero", dispatch(0, 32)) \
    X(zero_group, "a threadgroup of nothing", "zero", dispatch(1, 0)) \
    X(large_group, "a threadgroup that is too large", "2048", dispatch(1, 2048)) \
    X(large_grid, "a grid that is too large", "8589934592", dispatch((NSUInteger)1 << 33, 32)) \
    X(buffer_of_another_device, "a buffer of another device", "another device", \
      DoubleDevice *other = [[DoubleDevice alloc] init]; \
      [encoder setBuffer:[other newBufferWithLength:64 options:MTLResourceStorageModeShared] offset:0 atIndex:0]) \
    X(missing_binding, "a missing binding", "missing buffer binding at index 0", \
      [encoder setBuffer:nil offset:0 atIndex:0]; dispatch(1, 32)) \
    X(offset_beyond_buffer, "an offset beyond the buffer", "offset 256", \
      [encoder setBuffer:x offset:256 atIndex:0]) \
    X(too_little_for_argument, "a buffer with no room for one element", "space for 2 bytes", \
      [encoder setBuffer:x offset:254 atIndex:0]; dispatch(1, 1)) \
    X(large_bytes, "more than 4 KB of bytes", "4097 bytes", static const char many[4097]; \
      [encoder setBytes:many length:sizeof many atIndex:1]) \
    X(bytes_that_are_written, "bytes for an argument that is written", "write access", \
      [encoder setBytes:"1234" length:4 atIndex:0]; dispatch(1, 1)) \
    X(over_release, "a release too many", "released too often", [x release]; [encoder endEncoding]; \
      [commands commit]; [commands waitUntilCompleted]; [x release]; @autoreleasepool { [x release]; }) \
    X(message_to_the_dead, "a message to a dead object", "the object is gone", \
      id<MTLBuffer> y = [gpu newBufferWithLength:64 options:MTLResourceStorageModeShared]; [y release]; \
      printf("%lu\n", (unsigned long)[y length])) \
    X(encoder_left_open, "an encoder that is never ended", "has not ended", \
      id<MTLCommandBuffer> other = make_commands(); @autoreleasepool { [other computeCommandEncoder]; }) \
    X(threadgroup_memory_missing, "threadgroup memory without a length", "has no length", \
      [encoder setComputePipelineState:shared_sum]; dispatch(1, 32)) \
    X(threadgroup_memory_in_pieces, "threadgroup memory not in units of 16", "multiple of 16", \
      [encoder setThreadgroupMemoryLength:20 atIndex:0]) \
    X(threadgroup_memory_of_nothing, "threadgroup memory of length 0", "above 0", \
      [encoder setThreadgroupMemoryLength:0 atIndex:0]) \
    X(threadgroup_memory_too_much, "too much threadgroup memory", "32784 bytes", \
      [encoder setThreadgroupMemoryLength:32768 + 16 atIndex:0]; dispatch(1, 32)) \
    X(debug_group_left_open, "a debug group left open", "debug groups", [encoder pushDebugGroup:@"layer"]; \
      [encoder endEncoding]) \
    X(debug_group_never_opened, "a debug group that was never opened", "no debug group", \
      [encoder popDebugGroup]) \
    X(blit_outside, "a copy outside of a buffer", "outside of a buffer", [encoder endEncoding]; \
      [[commands blitCommandEncoder] copyFromBuffer:x sourceOffset:200 toBuffer:x destinationOffset:0 size:64]) \
    X(blit_of_odd_bytes, "a copy of odd bytes", "whole words", [encoder endEncoding]; \
      [[commands blitCommandEncoder] copyFromBuffer:x sourceOffset:0 toBuffer:x destinationOffset:128 size:3]) \
    X(empty_buffer, "a buffer of nothing", "length is 0", \
      [gpu newBufferWithLength:0 options:MTLResourceStorageModeShared]) \
    X(no_copy_off_the_page, "memory of the caller off the page", "whole pages", static char memory[65536 * 2]; \
      [gpu newBufferWithBytesNoCopy:memory + 1 length:65536 options:MTLResourceStorageModeShared deallocator:nil]) \
    X(no_copy_of_nothing, "no memory of the caller", "length 0", static char memory[65536 * 2]; \
      uintptr_t page = ((uintptr_t)memory + 65535) / 65536 * 65536; \
      [gpu newBufferWithBytesNoCopy:(void *)page length:0 options:MTLResourceStorageModeShared deallocator:nil]) \
    X(no_copy_of_no_memory, "memory of the caller that is not there", "are mapped", \
      [gpu newBufferWithBytesNoCopy:(void *)65536 length:65536 options:MTLResourceStorageModeShared deallocator:nil]) \
    X(precise_functions_with_fast_math, "fast math", "do not fit", MTLCompileOptions *o = make_options(); \
      [o setMathMode:MTLMathModeFast]; [gpu newLibraryWithSource:@"" options:o error:NULL]) \
    X(fence_never_updated, "a fence that nothing updates", "nothing updates", \
      [encoder waitForFence:[gpu newFence]]) \
    X(no_barrier, "dependent launches at the same time", "no barrier between", start_concurrent(); \
      [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers]; dispatch(1, 32); dispatch(1, 32); finish()) \
    X(overlapping_writes, "launches that write some of the same bytes", "no barrier between", \
      start_concurrent(); [encoder setBuffer:x offset:64 atIndex:0]; dispatch(1, 32); finish()) \
    X(overlapping_read, "a launch that reads what another writes", "no barrier between", start_concurrent(); \
      [encoder setBuffer:x offset:128 atIndex:0]; [encoder setBuffer:x offset:124 atIndex:1]; dispatch(1, 32); \
      finish()) \
    X(sample_beyond_the_last, "a sample beyond the last", "of 2", \
      MTLCounterSampleBufferDescriptor *d = [[[MTLCounterSampleBufferDescriptor alloc] init] autorelease]; \
      [d setCounterSet:[[gpu counterSets] objectAtIndex:0]]; [d setSampleCount:2]; \
      MTLComputePassDescriptor *pass = [MTLComputePassDescriptor computePassDescriptor]; \
      MTLComputePassSampleBufferAttachmentDescriptor *ends = [[pass sampleBufferAttachments] objectAtIndexedSubscript:0]; \
      [ends setSampleBuffer:[gpu newCounterSampleBufferWithDescriptor:d error:NULL]]; \
      [ends setEndOfEncoderSampleIndex:2]; [encoder endEncoding]; \
      [commands computeCommandEncoderWithDescriptor:pass])
#define MAKE(function, name, said, ...) static void function(void) { __VA_ARGS__; }
#define ROW(function, name, said, ...) {function, name, said},
MISTAKES(MAKE)
static const struct {
    void (*make)(void);
    const char *name, *said;
} mistakes[] = {MISTAKES(ROW)};

/* Runs it in a child. Returns its wait status, and what it said on stderr. */
static int run_apart(void (*make)(void), char *said, size_t size) {
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        @autoreleasepool {
            set_up();
            make();
        }
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while (used + 1 < size && (n = read(ends[0], said + used, size - 1 - used)) > 0)
        used += (size_t)n;
    said[used] = 0;
    close(ends[0]);
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

TEST right_use_works(void (*use)(void)) {
    static char said[4096]; /* a message outlives the test */
    int status = run_apart(use, said, sizeof said);
    ASSERTm(said, WIFEXITED(status) && WEXITSTATUS(status) == 0);
    PASS();
}

TEST a_mistake_is_stopped(size_t i) {
    static char said[4096]; /* a message outlives the test */
    int status = run_apart(mistakes[i].make, said, sizeof said);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, mistakes[i].said)) {
        printf("%s: %s\n", mistakes[i].name, said);
        FAILm(mistakes[i].name);
    }
    PASSm(mistakes[i].name);
}

TEST contents_of_private_memory_are_out_of_reach(void) {
    @autoreleasepool {
        id<MTLDevice> d = MTLCreateSystemDefaultDevice();
        id<MTLBuffer> b = [d newBufferWithLength:64 options:MTLResourceStorageModePrivate];
        ASSERT_EQ(NULL, [b contents]);
        ASSERT_EQ(64u, [d currentAllocatedSize]);
        [b release];
        ASSERT_EQ(0u, [d currentAllocatedSize]);
        [d release];
    }
    PASS();
}

/* What GNUstep keeps of its own is made here, where leaks.supp knows it. */
static void warm_up_gnustep(void) {
    @autoreleasepool {
        [[NSProcessInfo processInfo] operatingSystemVersionString];
    }
}

SUITE(misuse_suite) {
    warm_up_gnustep();
    RUN_TESTp(right_use_works, do_it_right);
    RUN_TESTp(right_use_works, do_apart); /* parts of one buffer that do not overlap */
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        RUN_TESTp(a_mistake_is_stopped, i);
    RUN_TEST(contents_of_private_memory_are_out_of_reach);
}
