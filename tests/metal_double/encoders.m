/* encoders: what may be said to an encoder of the double, and when. */
#include <string.h>

#include "double.h"

@implementation DoubleEncoder
- (id)initWithCommands:(DoubleCommands *)given {
    self = [super initWithDevice:given->owner];
    commands = [given retain];
    part = given->segment_count;
    [given addSegment];
    given->open = self;
    return self;
}

- (void)dealloc {
    if (!has_ended)
        double_refuse(self, _cmd, "the encoder is released and has not ended");
    [commands release];
    [super dealloc];
}

- (void)checkOpen:(SEL)what {
    if (has_ended)
        double_refuse(self, what, "the encoder has ended");
}

- (void)pushDebugGroup:(NSString *)string {
    [self checkOpen:_cmd];
    if (!string)
        double_refuse(self, _cmd, "the name is nil");
    groups++;
}

- (void)popDebugGroup {
    [self checkOpen:_cmd];
    if (groups-- == 0)
        double_refuse(self, _cmd, "there is no debug group");
}

- (void)endEncoding {
    [self checkOpen:_cmd];
    if (groups > 0)
        double_refuse(self, _cmd, "%d debug groups have not ended", groups);
    has_ended = true;
    commands->segments[part].count = commands->recorded->count - commands->segments[part].first;
    commands->segments[part].label = [_label copy];
    commands->open = nil;
}

- (void)checkBuffer:(id<MTLBuffer>)buffer for:(SEL)what {
    if (buffer && [buffer device] != owner)
        double_refuse(self, what, "buffer '%s' is of another device",
                      [[buffer label] ? [buffer label] : @"" UTF8String]);
}
@end

/* Copies ------------------------------------------------------------------------------------- */

@implementation DoubleBlitEncoder
/* Each copy is a part of its own, so that one encoder may do many. */
- (void)copyFromBuffer:(id<MTLBuffer>)sourceBuffer
          sourceOffset:(NSUInteger)sourceOffset
              toBuffer:(id<MTLBuffer>)destinationBuffer
     destinationOffset:(NSUInteger)destinationOffset
                  size:(NSUInteger)size {
    [self checkOpen:_cmd];
    [self checkBuffer:sourceBuffer for:_cmd];
    [self checkBuffer:destinationBuffer for:_cmd];
    if (!sourceBuffer || !destinationBuffer)
        double_refuse(self, _cmd, "a buffer is nil");
    if (sourceOffset % 4 || destinationOffset % 4 || size % 4 || size == 0)
        double_refuse(self, _cmd, "offsets %lu and %lu and size %lu are not whole words",
                      (unsigned long)sourceOffset, (unsigned long)destinationOffset,
                      (unsigned long)size);
    if (sourceOffset > [sourceBuffer length] || size > [sourceBuffer length] - sourceOffset ||
        destinationOffset > [destinationBuffer length] ||
        size > [destinationBuffer length] - destinationOffset)
        double_refuse(self, _cmd, "%lu bytes from %lu to %lu are outside of a buffer",
                      (unsigned long)size, (unsigned long)sourceOffset,
                      (unsigned long)destinationOffset);
    segment *s = [commands addSegment];
    s->is_blit = true;
    s->from = (DoubleBuffer *)sourceBuffer;
    s->to = (DoubleBuffer *)destinationBuffer;
    s->from_offset = sourceOffset;
    s->to_offset = destinationOffset;
    s->bytes = size;
    if (commands->keeps) {
        [commands->used addObject:sourceBuffer];
        [commands->used addObject:destinationBuffer];
    }
}
@end

/* Kernels ------------------------------------------------------------------------------------ */

@implementation DoubleComputeEncoder

static void take_samples(DoubleComputeEncoder *self, SEL what, MTLComputePassDescriptor *pass) {
    MTLComputePassSampleBufferAttachmentDescriptor *a =
        [[pass sampleBufferAttachments] objectAtIndexedSubscript:0];
    DoubleSamples *samples = (DoubleSamples *)[a sampleBuffer];
    if (!samples)
        return;
    NSUInteger first = [a startOfEncoderSampleIndex], last = [a endOfEncoderSampleIndex];
    if ((first != MTLCounterDontSample && first >= samples->count) ||
        (last != MTLCounterDontSample && last >= samples->count))
        double_refuse(self, what, "samples %lu and %lu of %lu", (unsigned long)first,
                      (unsigned long)last, (unsigned long)samples->count);
    segment *s = &self->commands->segments[self->part];
    s->samples = samples;
    s->start_sample = first;
    s->end_sample = last;
    [self->commands->used addObject:samples];
}

- (id)initWithCommands:(DoubleCommands *)given
                 order:(MTLDispatchType)dispatch
                  pass:(MTLComputePassDescriptor *)pass {
    self = [super initWithCommands:given];
    order = dispatch;
    updated = [[NSMutableArray alloc] init];
    commands->segments[part].is_concurrent = dispatch == MTLDispatchTypeConcurrent;
    if (pass)
        take_samples(self, _cmd, pass);
    return self;
}

- (void)dealloc {
    for (size_t i = 0; i < DOUBLE_INDICES; i++) {
        [slots[i].buffer release];
        [slots[i].bytes release];
    }
    [state release];
    [updated release];
    [super dealloc];
}

- (MTLDispatchType)dispatchType {
    return order;
}

- (void)setComputePipelineState:(id<MTLComputePipelineState>)given {
    [self checkOpen:_cmd];
    if (!given)
        double_refuse(self, _cmd, "the pipeline is nil");
    if ([given device] != owner)
        double_refuse(self, _cmd, "pipeline '%s' is of another device", [[given label] UTF8String]);
    [given retain];
    [state release];
    state = (DoublePipeline *)given;
}

- (binding_slot *)slotAt:(NSUInteger)index for:(SEL)what {
    [self checkOpen:what];
    if (index >= DOUBLE_INDICES)
        double_refuse(self, what, "index %lu; the last is %d", (unsigned long)index,
                      DOUBLE_INDICES - 1);
    return &slots[index];
}

- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
    binding_slot *s = [self slotAt:index for:_cmd];
    if (!bytes || length == 0 || length > DOUBLE_BYTES)
        double_refuse(self, _cmd, "%lu bytes at index %lu; 1 to %d can be", (unsigned long)length,
                      (unsigned long)index, DOUBLE_BYTES);
    [s->buffer release];
    [s->bytes release];
    *s = (binding_slot){.bytes = [[NSData alloc] initWithBytes:bytes length:length]};
}

- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
    binding_slot *s = [self slotAt:index for:_cmd];
    [self checkBuffer:buffer for:_cmd];
    if (buffer && offset >= [buffer length])
        double_refuse(self, _cmd, "offset %lu at index %lu is not inside of %lu bytes",
                      (unsigned long)offset, (unsigned long)index, (unsigned long)[buffer length]);
    [buffer retain];
    [s->buffer release];
    [s->bytes release];
    *s = (binding_slot){.buffer = (DoubleBuffer *)buffer, .offset = offset};
}

- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
    [self slotAt:index for:_cmd];
    if (length % 16 || length == 0)
        double_refuse(self, _cmd, "length %lu is not a multiple of 16 above 0",
                      (unsigned long)length);
    threadgroup[index] = length;
}

- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
    [self checkOpen:_cmd];
    if (scope != MTLBarrierScopeBuffers)
        double_refuse(self, _cmd, "scope %lu is not that of buffers", (unsigned long)scope);
    tape_barrier(commands->recorded);
}

- (void)updateFence:(id<MTLFence>)fence {
    [self checkOpen:_cmd];
    if (!fence)
        double_refuse(self, _cmd, "the fence is nil");
    ((DoubleFence *)fence)->is_updated = true;
    [updated addObject:fence];
}

- (void)waitForFence:(id<MTLFence>)fence {
    [self checkOpen:_cmd];
    if (!fence || !((DoubleFence *)fence)->is_updated)
        double_refuse(self, _cmd, "nothing updates the fence");
    if ([updated containsObject:fence])
        double_refuse(self, _cmd, "this encoder has updated the fence already");
}

/* A dispatch is a launch with what is bound now. */

/* What does not fit into a launch goes into a buffer of its own. */
static void bind_bytes(DoubleComputeEncoder *self, launch *l, const msl_param *p, NSData *data) {
    if (l->inline_used + [data length] + 16 <= LAUNCH_INLINE_BYTES) {
        launch_set_bytes(l, p->index, [data bytes], [data length]);
        return;
    }
    DoubleBuffer *room = [[DoubleBuffer alloc] initWithDevice:(DoubleDevice *)[self device]
                                                       length:[data length]
                                                         mode:MTLStorageModeShared
                                                       memory:NULL];
    memcpy([room contents], [data bytes], [data length]);
    [self->commands->used addObject:room];
    launch_bind(l, p->index, slice_whole(room->soft), ACCESS_READ, ELEM_U8);
    [room release];
}

static void bind_param(DoubleComputeEncoder *self, SEL what, launch *l, const msl_param *p) {
    const binding_slot *s = &self->slots[p->index];
    const char *kernel = self->state->soft->kernel;
    NSUInteger room = s->bytes ? [s->bytes length] : s->buffer ? s->buffer->bytes - s->offset : 0;
    if (!s->buffer && !s->bytes)
        double_refuse(self, what, "Compute Function(%s): missing buffer binding at index %d for %s",
                      kernel, p->index, p->name);
    if (p->value_bytes > room)
        double_refuse(self, what,
                      "Compute Function(%s): argument %s at index %d has space for %lu bytes, but "
                      "has a length of %u",
                      kernel, p->name, p->index, (unsigned long)room, p->value_bytes);
    if (s->bytes && !p->is_const)
        double_refuse(self, what,
                      "Compute Function(%s): bytes are bound at index %d to an argument with write "
                      "access",
                      kernel, p->index);
    NSUInteger unit = [[self device] supportsFamily:MTLGPUFamilyApple1] ? 4 : 32;
    if (s->buffer && p->space == MSL_SPACE_CONSTANT && s->offset % unit)
        double_refuse(self, what, "Compute Function(%s): offset %lu at index %d of constant memory",
                      kernel, (unsigned long)s->offset, p->index);
    if (s->bytes) {
        bind_bytes(self, l, p, s->bytes);
        return;
    }
    launch_bind(l, p->index, slice_part(s->buffer->soft, s->offset, room),
                p->is_const ? ACCESS_READ : ACCESS_BOTH, ELEM_U8);
    if (self->commands->keeps)
        [self->commands->used addObject:s->buffer];
}

static void check_size(DoubleComputeEncoder *self, SEL what, MTLSize grid, MTLSize group) {
    NSUInteger most = [self->state maxTotalThreadsPerThreadgroup];
    MTLSize limit = [[self device] maxThreadsPerThreadgroup];
    if (!grid.width || !grid.height || !grid.depth || !group.width || !group.height || !group.depth)
        double_refuse(self, what, "a size is zero");
    if (grid.width > UINT32_MAX || grid.height > UINT32_MAX || grid.depth > UINT32_MAX)
        double_refuse(self, what, "the grid is %lu x %lu x %lu", (unsigned long)grid.width,
                      (unsigned long)grid.height, (unsigned long)grid.depth);
    if (group.width > limit.width || group.height > limit.height || group.depth > limit.depth ||
        group.width * group.height * group.depth > most)
        double_refuse(self, what, "a threadgroup of %lu x %lu x %lu; this pipeline takes %lu",
                      (unsigned long)group.width, (unsigned long)group.height,
                      (unsigned long)group.depth, (unsigned long)most);
}

static launch *record(DoubleComputeEncoder *self, SEL what, MTLSize grid, MTLSize group) {
    [self checkOpen:what];
    if (!self->state)
        double_refuse(self, what, "no pipeline is set");
    check_size(self, what, grid, group);
    const msl_signature *s = &self->state->soft->signature;
    launch *l = tape_add_pipeline(self->commands->recorded, self->state->soft);
    NSUInteger held = [self->state staticThreadgroupMemoryLength];
    for (size_t i = 0; i < DOUBLE_INDICES; i++)
        held += self->threadgroup[i];
    if (held > [[self device] maxThreadgroupMemoryLength])
        double_refuse(self, what, "%lu bytes of threadgroup memory; there are %lu",
                      (unsigned long)held,
                      (unsigned long)[[self device] maxThreadgroupMemoryLength]);
    for (size_t i = 0; i < s->count; i++) {
        const msl_param *p = &s->params[i];
        if (p->kind == MSL_BUFFER)
            bind_param(self, what, l, p);
        if (p->kind == MSL_THREADGROUP && !self->threadgroup[p->index])
            double_refuse(self, what, "threadgroup memory at index %d for %s has no length",
                          p->index, p->name);
        if (p->kind == MSL_THREADGROUP)
            l->threadgroup_bytes[p->index] = (uint32_t)self->threadgroup[p->index];
    }
    [self->commands->used addObject:self->state];
    return l;
}

static size3 narrow(MTLSize s) {
    return (size3){(uint32_t)s.width, (uint32_t)s.height, (uint32_t)s.depth};
}

- (void)dispatchThreadgroups:(MTLSize)threadgroupsPerGrid
       threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup {
    launch *l = record(self, _cmd, threadgroupsPerGrid, threadsPerThreadgroup);
    launch_set_groups(l, narrow(threadgroupsPerGrid), narrow(threadsPerThreadgroup));
}

- (void)dispatchThreads:(MTLSize)threadsPerGrid
    threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup {
    launch *l = record(self, _cmd, threadsPerGrid, threadsPerThreadgroup);
    launch_set_threads(l, narrow(threadsPerGrid), narrow(threadsPerThreadgroup));
}
@end
