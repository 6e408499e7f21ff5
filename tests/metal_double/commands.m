/* commands: command buffers of the double, and what becomes of them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "double.h"
#include "harness/base/os.h"

NSErrorDomain const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";
NSErrorUserInfoKey const MTLCommandBufferEncoderInfoErrorKey =
    @"MTLCommandBufferEncoderInfoErrorKey";

/* How one encoder ended. */
@interface DoubleEncoderInfo : DoubleObject <MTLCommandBufferEncoderInfo> {
  @package
    MTLCommandEncoderErrorState _errorState;
}
@end

@implementation DoubleEncoderInfo
@synthesize errorState = _errorState;
- (NSArray *)debugSignposts {
    return [NSArray array];
}
@end

static double now_s(void) {
    return (double)os_now_ns() * 1e-9;
}

/* 24 MHz, shown in nanoseconds. */
uint64_t double_step_clock(uint64_t ns) {
    return ns * 24 / 1000 * 1000 / 24;
}

static size_t explained, committed, wired;
static bool is_refused; /* the process, for good */

size_t double_count_explained(void) {
    return explained;
}
size_t double_count_commits(void) {
    return committed;
}
size_t double_count_wired(void) {
    return wired;
}
void double_start_over(void) {
    is_refused = false;
}

/* Captures: GPU trace documents of the double are lists of the command buffers' labels ---------- */

NSErrorDomain const MTLCaptureErrorDomain = @"MTLCaptureErrorDomain";

static FILE *document;

static void note_commit(DoubleCommands *commands) {
    NSString *label = [commands label];
    if (document)
        fprintf(document, "%s\n", label ? [label UTF8String] : "");
}

@implementation MTLCaptureManager
+ (MTLCaptureManager *)sharedCaptureManager {
    static MTLCaptureManager *shared;
    if (!shared)
        shared = [[MTLCaptureManager alloc] init];
    return shared;
}

- (BOOL)supportsDestination:(MTLCaptureDestination)destination {
    const char *on = getenv("METAL_CAPTURE_ENABLED");
    return destination == MTLCaptureDestinationGPUTraceDocument && on && strcmp(on, "1") == 0;
}

- (BOOL)startCaptureWithDescriptor:(MTLCaptureDescriptor *)descriptor
                             error:(__autoreleasing NSError **)error {
    err e = {.code = EXIT_OK};
    const char *path = [[[descriptor outputURL] path] UTF8String];
    if (document)
        double_refuse(self, _cmd, "a capture is under way");
    if (![self supportsDestination:[descriptor destination]])
        err_set(&e, EXIT_CANNOT, "Capturing is not supported");
    else if (![descriptor captureObject] || !path)
        err_set(&e, EXIT_CANNOT, "The descriptor is not whole");
    else if (!(document = fopen(path, "wx")))
        err_set(&e, EXIT_CANNOT, "The document cannot be made");
    if (!document && error)
        *error = double_make_error(MTLCaptureErrorDomain, MTLCaptureErrorNotSupported, &e);
    return document != NULL;
}

- (void)stopCapture {
    if (!document)
        double_refuse(self, _cmd, "there is no capture");
    fclose(document);
    document = NULL;
}

- (BOOL)isCapturing {
    return document != NULL;
}
@end

/* Command buffers ---------------------------------------------------------------------------- */

@implementation DoubleCommands
@synthesize status = _status, error = _error;

- (id)initWithQueue:(DoubleQueue *)given descriptor:(MTLCommandBufferDescriptor *)descriptor {
    self = [super initWithDevice:given->owner];
    queue = [given retain];
    used = [[NSMutableArray alloc] init];
    recorded = tape_new(NULL);
    options = [descriptor errorOptions];
    explained += (options & MTLCommandBufferErrorOptionEncoderExecutionStatus) != 0;
    keeps = [descriptor retainedReferences];
    return self;
}

- (void)dealloc {
    if (_status == MTLCommandBufferStatusCommitted)
        [self finish];
    for (size_t i = 0; i < segment_count; i++)
        [segments[i].label release];
    free(segments);
    tape_free(recorded);
    [used release];
    [_error release];
    [queue release];
    [super dealloc];
}

- (id<MTLCommandQueue>)commandQueue {
    return queue;
}
- (BOOL)retainedReferences {
    return keeps;
}

/* Encoders ----------------------------------------------------------------------------------- */

- (segment *)addSegment {
    segments = realloc(segments, (segment_count + 1) * sizeof *segments);
    segment *s = &segments[segment_count++];
    *s = (segment){.first = recorded->count};
    return s;
}

- (void)checkFree:(SEL)what {
    if (_status != MTLCommandBufferStatusNotEnqueued)
        double_refuse(self, what, "the command buffer is committed");
    if (open)
        double_refuse(self, what, "the encoder before has not ended");
}

- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
    [self checkFree:_cmd];
    return [[[DoubleBlitEncoder alloc] initWithCommands:self] autorelease];
}

- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
    [self checkFree:_cmd];
    return [[[DoubleComputeEncoder alloc] initWithCommands:self
                                                     order:MTLDispatchTypeSerial
                                                      pass:nil] autorelease];
}

- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:
    (MTLDispatchType)dispatchType {
    [self checkFree:_cmd];
    return [[[DoubleComputeEncoder alloc] initWithCommands:self order:dispatchType
                                                      pass:nil] autorelease];
}

- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDescriptor:
    (MTLComputePassDescriptor *)computePassDescriptor {
    [self checkFree:_cmd];
    return [[[DoubleComputeEncoder alloc] initWithCommands:self
                                                     order:[computePassDescriptor dispatchType]
                                                      pass:computePassDescriptor] autorelease];
}

/* Running ------------------------------------------------------------------------------------ */

static void copy_memory(const segment *s) {
    memmove((char *)s->to->soft->contents + s->to_offset,
            (char *)s->from->soft->contents + s->from_offset, s->bytes);
}

- (void)finishOthers {
    NSArray *before = [[queue->running copy] autorelease];
    for (DoubleCommands *c in before)
        if (c != self)
            [c finish];
}

/* Copies are done by this CPU: after everything that was committed before. */
- (void)runSegment:(segment *)s {
    err e = {.code = EXIT_OK};
    if (s->is_blit) {
        [self finishOthers];
        copy_memory(s);
        return;
    }
    if (s->count == 0)
        return;
    if (s->is_concurrent && s->count > 1)
        double_check_order(self, s);
    if (!device_submit(owner->soft, recorded, s->first, s->count, &s->ticket, &e))
        double_refuse(self, @selector(commit), "%s", e.text);
    s->is_submitted = true;
}

/* What no residency set of the queue has wired is wired before the work starts. */
- (void)wire {
    for (id object in used) {
        /* Bytes of an encoder are in buffers of Metal's own, without a label. */
        bool is_held = ![object isKindOfClass:[DoubleBuffer class]] || ![object label];
        for (DoubleResidencySet *set in queue->sets)
            is_held |= [set holds:object];
        wired += !is_held;
    }
    for (DoubleResidencySet *set in queue->sets)
        [set keep];
}

- (void)commit {
    if (_status != MTLCommandBufferStatusNotEnqueued)
        double_refuse(self, _cmd, "the command buffer is committed twice");
    if (open)
        double_refuse(self, _cmd, "an encoder has not ended");
    _status = MTLCommandBufferStatusCommitted;
    committed++;
    note_commit(self);
    [self wire];
    kernel_start = now_s();
    [queue->running addObject:self];
    for (size_t i = 0; i < segment_count && !is_refused; i++)
        [self runSegment:&segments[i]];
    kernel_end = now_s();
}

/* Why this command buffer fails although its own work is right; NULL if it does not. */
- (const char *)findOutside {
    if (is_refused)
        return "Ignored (for causing prior/excessive GPU errors) "
               "(00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)";
    if (recorded->count > 4 && double_has("busy-screen"))
        return "Impacting Interactivity "
               "(0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)";
    if (recorded->count > 0 && double_has("victim"))
        return "Discarded (victim of GPU error/recovery) "
               "(00000005:kIOGPUCommandBufferCallbackErrorInnocentVictim)";
    return NULL;
}

- (void)failWith:(const err *)e {
    /* Metal would have made no pipeline that has too much threadgroup memory: that is not a fault. */
    bool is_fault = e->code != EXIT_CANNOT && !strstr(e->text, "bytes of threadgroup memory");
    NSUInteger code = !is_fault ? MTLCommandBufferErrorInternal
                      : strstr(e->text, "endless") || strstr(e->text, "long")
                          ? MTLCommandBufferErrorTimeout
                          : MTLCommandBufferErrorPageFault;
    is_refused |= is_fault;
    NSMutableDictionary *info = [NSMutableDictionary dictionary];
    [info setObject:[NSString stringWithUTF8String:e->text] forKey:NSLocalizedDescriptionKey];
    if (options & MTLCommandBufferErrorOptionEncoderExecutionStatus) {
        NSMutableArray *all = [NSMutableArray array];
        for (size_t i = 0; i < segment_count; i++) {
            DoubleEncoderInfo *one = [[[DoubleEncoderInfo alloc] init] autorelease];
            one->_label = [segments[i].label ? segments[i].label : @"" copy];
            one->_errorState = segments[i].state;
            [all addObject:one];
        }
        [info setObject:all forKey:MTLCommandBufferEncoderInfoErrorKey];
    }
    _error = [[NSError errorWithDomain:MTLCommandBufferErrorDomain
                                  code:(NSInteger)code
                              userInfo:info] retain];
}

/* Shader validation ---------------------------------------------------------------------------- */

/* The launch of this kernel that has a buffer at the index, or just a launch of it. */
static const launch *find_launch(const tape *t, const char *kernel, int index) {
    const launch *found = NULL;
    for (size_t i = 0; i < t->count; i++) {
        const launch *l = &t->launches[i];
        if (strcmp(l->pipeline->kernel, kernel) != 0)
            continue;
        if (index >= 0 && l->args[index].kind == BIND_BUFFER)
            return l;
        found = found ? found : l;
    }
    return found;
}

/* Reports may also come from another thread, after a while, or when the process ends. */
static char late[65536];
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;

static void say_late(void) {
    pthread_mutex_lock(&late_lock);
    fputs(late, stderr);
    late[0] = 0;
    pthread_mutex_unlock(&late_lock);
}

static void *say_later(void *nothing) {
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    say_late();
    return nothing;
}

static void keep_for_later(const char *text) {
    static bool is_registered;
    if (!is_registered)
        is_registered = atexit(say_late) == 0;
    pthread_mutex_lock(&late_lock);
    snprintf(late + strlen(late), sizeof late - strlen(late), "%s", text);
    pthread_mutex_unlock(&late_lock);
    pthread_t thread;
    if (pthread_create(&thread, NULL, say_later, NULL) == 0)
        pthread_detach(thread);
}

/* The lines of Metal's shader validation, of the findings that it would have: it sees accesses
 * outside of buffers and of threadgroup memory. */
- (void)reportFinding:(const finding *)f {
    const launch *l = find_launch(recorded, f->kernel, f->buffer);
    bool is_load = f->what == FINDING_LOAD_OUTSIDE, is_shared = strstr(f->label, "threadgroup");
    const buffer *b = l && f->buffer >= 0 ? l->args[f->buffer].at.buffer : NULL;
    if (!l || (!is_load && f->what != FINDING_STORE_OUTSIDE) || (!b && !is_shared))
        return;
    long long offset = b && f->by > 0 ? (long long)b->bytes + f->by - f->bytes : f->by;
    size_t at = (size_t)(l - recorded->launches), part = 0;
    while (part + 1 < segment_count && at >= segments[part].first + segments[part].count)
        part++;
    NSString *encoder = segments[part].label ? segments[part].label : @"0";
    char text[1024];
    int length = snprintf(
        text, sizeof text, "Invalid %s %s at offset %lld, executing kernel function: \"%s\"\n",
        b ? "device" : "threadgroup", is_load ? "load" : "store", offset, f->kernel);
    if (b)
        length += snprintf(text + length, sizeof text - (size_t)length,
                         "buffer: %s, length:%zu, resident:Read Write\n", b->label, b->bytes);
    length += snprintf(text + length, sizeof text - (size_t)length, "encoder: \"%s\", dispatch: %zu\n",
                     [encoder UTF8String], at - segments[part].first);
    if (!double_has("no-frames"))
        snprintf(text + length, sizeof text - (size_t)length, "  * frame #0: %s() - /%s:%d:9\n",
                 f->kernel, f->file, f->line);
    if (double_has("late-reports"))
        keep_for_later(text);
    else
        fputs(text, stderr);
}

- (void)reportFindings {
    device *soft = owner->soft;
    const char *wanted = getenv("MTL_SHADER_VALIDATION_REPORT_TO_STDERR");
    const finding_list *found = device_get_findings(soft);
    bool is_told = wanted && strcmp(wanted, "1") == 0 && !double_has("no-reports");
    for (size_t i = 0; is_told && i < found->count; i++)
        [self reportFinding:&found->items[i]];
    device_clear_findings(soft);
}

/* An encoder that is sampled starts when the one before has almost ended. */
static uint64_t find_overlap(const segment *s, uint64_t before_ns) {
    return !s->samples ? 0 : double_has("overlap") ? before_ns / 2 : before_ns / 200;
}

/* Every kernel faults, or the one that is named. */
static bool does_fault(const tape *t, const segment *s) {
    bool does = double_has("fault");
    for (size_t i = s->first; i < s->first + s->count && !does; i++) {
        char name[160];
        snprintf(name, sizeof name, "fault:%s", t->launches[i].pipeline->kernel);
        does = double_has(name);
    }
    return does;
}

static void take_samples(const segment *s, uint64_t begin, uint64_t end) {
    if (!s->samples)
        return;
    bool is_zero = double_has("zero-counters");
    if (s->start_sample != MTLCounterDontSample)
        s->samples->times[s->start_sample] = is_zero ? 0 : double_step_clock(begin);
    if (s->end_sample != MTLCounterDontSample)
        s->samples->times[s->end_sample] = is_zero ? 0 : double_step_clock(end);
}

- (void)finish {
    if (_status != MTLCommandBufferStatusCommitted)
        return;
    uint64_t began = (uint64_t)(kernel_start * 1e9), clock = began, before_ns = 0;
    err failure = {.code = EXIT_OK};
    const char *outside = [self findOutside];
    bool ok = !outside || err_set(&failure, EXIT_CANNOT, "%s", outside);
    for (size_t i = 0; i < segment_count; i++) {
        segment *s = &segments[i];
        err e = {.code = EXIT_OK};
        bool fine = !s->is_submitted || device_wait(owner->soft, &s->ticket, &s->times, &e);
        if (fine && s->is_submitted && does_fault(recorded, s))
            fine = err_set(&e, EXIT_WRONG, "Caused GPU Address Fault Error");
        s->state = !ok    ? MTLCommandEncoderErrorStatePending
                   : fine ? MTLCommandEncoderErrorStateCompleted
                          : MTLCommandEncoderErrorStateFaulted;
        if (ok && !fine)
            failure = e;
        ok = ok && fine;
        clock -= find_overlap(s, before_ns);
        take_samples(s, clock, clock + s->times.gpu_ns);
        clock += s->times.gpu_ns;
        before_ns = s->times.gpu_ns;
    }
    start = double_has("no-times") ? 0 : (double)double_step_clock(began) * 1e-9;
    end = double_has("no-times")
              ? 0
              : (double)double_step_clock(clock) * 1e-9 + double_has("long-times") * 1e3;
    if (!ok)
        [self failWith:&failure];
    _status = ok ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusError;
    [self reportFindings];
    [used removeAllObjects];
    [[self retain] autorelease];
    [queue->running removeObject:self];
}

- (void)waitUntilCompleted {
    if (_status == MTLCommandBufferStatusNotEnqueued)
        double_refuse(self, _cmd, "the command buffer is not committed: this would wait for ever");
    while (_status == MTLCommandBufferStatusCommitted)
        [[queue->running objectAtIndex:0] finish];
}

/* Times are there when it is over. */
- (double)kernelStartTime {
    return _status >= MTLCommandBufferStatusCompleted ? kernel_start : 0;
}
- (double)kernelEndTime {
    return _status >= MTLCommandBufferStatusCompleted ? kernel_end : 0;
}
- (double)GPUStartTime {
    return _status >= MTLCommandBufferStatusCompleted ? start : 0;
}
- (double)GPUEndTime {
    return _status >= MTLCommandBufferStatusCompleted ? end : 0;
}
@end
