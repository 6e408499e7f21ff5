/* Commands: declarations of counters, command buffers, queues and encoders. See Metal.h. */
#ifndef ASSAY_METAL_DOUBLE_COMMANDS_H
#define ASSAY_METAL_DOUBLE_COMMANDS_H

#import <Metal/Base.h>

NS_ASSUME_NONNULL_BEGIN

/* Counters ----------------------------------------------------------------------------------- */

#define MTLCounterErrorValue ((uint64_t)-1)
#define MTLCounterDontSample ((NSUInteger)-1)

typedef NSString *const MTLCommonCounterSet NS_TYPED_ENUM;
MTL_EXTERN MTLCommonCounterSet MTLCommonCounterSetTimestamp API_AVAILABLE(macos(10.15), ios(14.0));

typedef struct {
    uint64_t timestamp;
} MTLCounterResultTimestamp;

API_AVAILABLE(macos(10.15), ios(14.0))
@protocol MTLCounterSet <NSObject>
@property(readonly, copy) NSString *name API_AVAILABLE(macos(10.15), ios(14.0));
@end

MTL_EXPORT API_AVAILABLE(macos(10.15), ios(14.0)) @interface MTLCounterSampleBufferDescriptor : NSObject {
    id<MTLCounterSet> _counterSet;
    NSString *_label;
    MTLStorageMode _storageMode;
    NSUInteger _sampleCount;
}
@property(nullable, readwrite, retain) id<MTLCounterSet> counterSet API_AVAILABLE(macos(10.15),
                                                                                  ios(14.0));
@property(readwrite, copy) NSString *label API_AVAILABLE(macos(10.15), ios(14.0));
@property(readwrite) MTLStorageMode storageMode API_AVAILABLE(macos(10.15), ios(14.0));
@property(readwrite) NSUInteger sampleCount API_AVAILABLE(macos(10.15), ios(14.0));
@end

API_AVAILABLE(macos(10.15), ios(14.0))
@protocol MTLCounterSampleBuffer <NSObject>
@property(readonly) id<MTLDevice> device API_AVAILABLE(macos(10.15), ios(14.0));
@property(readonly) NSString *label API_AVAILABLE(macos(10.15), ios(14.0));
@property(readonly) NSUInteger sampleCount API_AVAILABLE(macos(10.15), ios(14.0));
- (nullable NSData *)resolveCounterRange:(NSRange)range API_AVAILABLE(macos(10.15), ios(14.0));
@end

API_AVAILABLE(macos(10.15), ios(14.0))
MTL_EXTERN NSErrorDomain const MTLCounterErrorDomain;

typedef NS_ENUM(NSUInteger, MTLDispatchType) {
    MTLDispatchTypeSerial,
    MTLDispatchTypeConcurrent,
};

MTL_EXPORT API_AVAILABLE(macos(11.0), ios(14.0))
    @interface MTLComputePassSampleBufferAttachmentDescriptor : NSObject {
    id<MTLCounterSampleBuffer> _sampleBuffer;
    NSUInteger _startOfEncoderSampleIndex, _endOfEncoderSampleIndex;
}
@property(nullable, nonatomic, retain) id<MTLCounterSampleBuffer> sampleBuffer;
@property(nonatomic) NSUInteger startOfEncoderSampleIndex;
@property(nonatomic) NSUInteger endOfEncoderSampleIndex;
@end

MTL_EXPORT API_AVAILABLE(macos(11.0), ios(14.0))
    @interface MTLComputePassSampleBufferAttachmentDescriptorArray : NSObject {
    MTLComputePassSampleBufferAttachmentDescriptor *_items[4];
}
- (MTLComputePassSampleBufferAttachmentDescriptor *)objectAtIndexedSubscript:
    (NSUInteger)attachmentIndex;
@end

MTL_EXPORT API_AVAILABLE(macos(11.0), ios(14.0)) @interface MTLComputePassDescriptor : NSObject {
    MTLDispatchType _dispatchType;
    MTLComputePassSampleBufferAttachmentDescriptorArray *_sampleBufferAttachments;
}
+ (MTLComputePassDescriptor *)computePassDescriptor;
@property(nonatomic) MTLDispatchType dispatchType;
@property(readonly) MTLComputePassSampleBufferAttachmentDescriptorArray *sampleBufferAttachments;
@end

/* Command buffers ---------------------------------------------------------------------------- */

typedef NS_ENUM(NSUInteger, MTLCommandBufferStatus) {
    MTLCommandBufferStatusNotEnqueued = 0,
    MTLCommandBufferStatusCommitted = 2,
    MTLCommandBufferStatusCompleted = 4,
    MTLCommandBufferStatusError = 5,
};

API_AVAILABLE(macos(10.11), ios(8.0))
MTL_EXTERN NSErrorDomain const MTLCommandBufferErrorDomain;

typedef NS_ENUM(NSUInteger, MTLCommandBufferError) {
    MTLCommandBufferErrorInternal = 1,
    MTLCommandBufferErrorTimeout = 2,
    MTLCommandBufferErrorPageFault = 3,
};

API_AVAILABLE(macos(11.0), ios(14.0))
MTL_EXTERN NSErrorUserInfoKey const MTLCommandBufferEncoderInfoErrorKey;

typedef NS_OPTIONS(NSUInteger, MTLCommandBufferErrorOption) {
    MTLCommandBufferErrorOptionEncoderExecutionStatus = 1 << 0,
};

typedef NS_ENUM(NSInteger, MTLCommandEncoderErrorState) {
    MTLCommandEncoderErrorStateCompleted = 1,
    MTLCommandEncoderErrorStateAffected = 2,
    MTLCommandEncoderErrorStatePending = 3,
    MTLCommandEncoderErrorStateFaulted = 4,
};

MTL_EXPORT API_AVAILABLE(macos(11.0), ios(14.0)) @interface MTLCommandBufferDescriptor : NSObject {
    BOOL _retainedReferences;
    MTLCommandBufferErrorOption _errorOptions;
}
@property(readwrite, nonatomic) BOOL retainedReferences;
@property(readwrite, nonatomic) MTLCommandBufferErrorOption errorOptions;
@end

API_AVAILABLE(macos(11.0), ios(14.0))
@protocol MTLCommandBufferEncoderInfo <NSObject>
@property(readonly, nonatomic) NSString *label;
@property(readonly, nonatomic) NSArray<NSString *> *debugSignposts;
@property(readonly, nonatomic) MTLCommandEncoderErrorState errorState;
@end

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLCommandBuffer <NSObject>
@property(readonly) id<MTLDevice> device;
@property(readonly) id<MTLCommandQueue> commandQueue;
@property(readonly) BOOL retainedReferences;
@property(nullable, copy, atomic) NSString *label;
@property(readonly) CFTimeInterval kernelStartTime API_AVAILABLE(macos(10.15), ios(10.3));
@property(readonly) CFTimeInterval kernelEndTime API_AVAILABLE(macos(10.15), ios(10.3));
@property(readonly) CFTimeInterval GPUStartTime API_AVAILABLE(macos(10.15), ios(10.3));
@property(readonly) CFTimeInterval GPUEndTime API_AVAILABLE(macos(10.15), ios(10.3));
- (void)commit;
- (void)waitUntilCompleted;
@property(readonly) MTLCommandBufferStatus status;
@property(nullable, readonly) NSError *error;
- (nullable id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (nullable id<MTLComputeCommandEncoder>)computeCommandEncoder;
- (nullable id<MTLComputeCommandEncoder>)computeCommandEncoderWithDescriptor:
    (MTLComputePassDescriptor *)computePassDescriptor API_AVAILABLE(macos(11.0), ios(14.0));
- (nullable id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:
    (MTLDispatchType)dispatchType API_AVAILABLE(macos(10.14), ios(12.0));
@end

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLCommandQueue <NSObject>
@property(nullable, copy, atomic) NSString *label;
@property(readonly) id<MTLDevice> device;
- (nullable id<MTLCommandBuffer>)commandBufferWithDescriptor:
    (MTLCommandBufferDescriptor *)descriptor API_AVAILABLE(macos(11.0), ios(14.0));
- (void)addResidencySet:(id<MTLResidencySet>)residencySet API_AVAILABLE(macos(15.0), ios(18.0));
- (void)removeResidencySet:(id<MTLResidencySet>)residencySet API_AVAILABLE(macos(15.0), ios(18.0));
@end

/* Encoders ----------------------------------------------------------------------------------- */

typedef NS_OPTIONS(NSUInteger, MTLBarrierScope) {
    MTLBarrierScopeBuffers = 1 << 0,
};

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLCommandEncoder <NSObject>
@property(readonly) id<MTLDevice> device;
@property(nullable, copy, atomic) NSString *label;
- (void)endEncoding;
- (void)pushDebugGroup:(NSString *)string;
- (void)popDebugGroup;
@end

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
@property(readonly) MTLDispatchType dispatchType API_AVAILABLE(macos(10.14), ios(12.0));
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBytes:(const void *)bytes
          length:(NSUInteger)length
         atIndex:(NSUInteger)index API_AVAILABLE(macos(10.11), ios(8.3));
- (void)setBuffer:(nullable id<MTLBuffer>)buffer
           offset:(NSUInteger)offset
          atIndex:(NSUInteger)index;
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreadgroups:(MTLSize)threadgroupsPerGrid
       threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup;
- (void)dispatchThreads:(MTLSize)threadsPerGrid
    threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup API_AVAILABLE(macos(10.13), ios(11.0));
- (void)updateFence:(id<MTLFence>)fence API_AVAILABLE(macos(10.13), ios(10.0));
- (void)waitForFence:(id<MTLFence>)fence API_AVAILABLE(macos(10.13), ios(10.0));
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope API_AVAILABLE(macos(10.14), ios(12.0));
@end

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)copyFromBuffer:(id<MTLBuffer>)sourceBuffer
          sourceOffset:(NSUInteger)sourceOffset
              toBuffer:(id<MTLBuffer>)destinationBuffer
     destinationOffset:(NSUInteger)destinationOffset
                  size:(NSUInteger)size;
@end

NS_ASSUME_NONNULL_END

#endif
