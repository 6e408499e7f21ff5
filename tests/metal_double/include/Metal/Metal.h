/* Metal: declarations of the part of Apple's Metal that harness/device/metal uses, for Linux.
 *
 * Every selector, type, property attribute, nullability and enum value is the one of Apple's SDK:
 * protocols, descriptors and enums as in the macOS 11 headers, mathMode and friends as in the macOS
 * 15 headers, numbers compared with Apple's metal-cpp. Members that harness/device/metal does not
 * use are left out, and nothing is added but instance variables, which this runtime wants in
 * interfaces. What the members do is in tests/metal_double. */
#ifndef ASSAY_METAL_DOUBLE_METAL_H
#define ASSAY_METAL_DOUBLE_METAL_H

#import <Foundation/Foundation.h>
#include <stdint.h>

#if !defined(API_AVAILABLE)
#define API_AVAILABLE(...)
#define API_UNAVAILABLE(...)
#define API_DEPRECATED(...)
#endif
#if !defined(NS_RETURNS_RETAINED)
#define NS_RETURNS_RETAINED __attribute__((ns_returns_retained))
#endif
#if !defined(NS_RETURNS_INNER_POINTER)
#define NS_RETURNS_INNER_POINTER __attribute__((objc_returns_inner_pointer))
#endif
#if !defined(NS_TYPED_ENUM)
#define NS_TYPED_ENUM
#endif
#if !defined(__MAC_OS_X_VERSION_MAX_ALLOWED)
#define __MAC_OS_X_VERSION_MAX_ALLOWED 150000
#endif
#define MTL_EXTERN extern
#define MTL_EXPORT

typedef double CFTimeInterval;
#if defined(GNUSTEP)
typedef NSString *NSErrorUserInfoKey;
#endif

NS_ASSUME_NONNULL_BEGIN

@protocol MTLDevice
, MTLCommandQueue, MTLCommandBuffer, MTLComputeCommandEncoder;
@protocol MTLBlitCommandEncoder
, MTLBuffer, MTLLibrary, MTLFunction, MTLComputePipelineState;
@protocol MTLCounterSet
, MTLCounterSampleBuffer, MTLFence, MTLResidencySet;
@class MTLComputePipelineReflection;

/* Sizes -------------------------------------------------------------------------------------- */

typedef struct {
    NSUInteger width, height, depth;
} MTLSize;

static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
    MTLSize size;
    size.width = width;
    size.height = height;
    size.depth = depth;
    return size;
}

typedef uint64_t MTLTimestamp;

/* Resources ---------------------------------------------------------------------------------- */

typedef NS_ENUM(NSUInteger, MTLStorageMode) {
    MTLStorageModeShared = 0,
    MTLStorageModeManaged = 1,
    MTLStorageModePrivate = 2,
};

#define MTLResourceStorageModeShift 4

typedef NS_OPTIONS(NSUInteger, MTLResourceOptions) {
    MTLResourceStorageModeShared = MTLStorageModeShared << MTLResourceStorageModeShift,
    MTLResourceStorageModeManaged = MTLStorageModeManaged << MTLResourceStorageModeShift,
    MTLResourceStorageModePrivate = MTLStorageModePrivate << MTLResourceStorageModeShift,
};

API_AVAILABLE(macos(15.0), ios(18.0))
@protocol MTLAllocation <NSObject>
@property(readonly) NSUInteger allocatedSize API_AVAILABLE(macos(15.0), ios(18.0));
@end

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLResource <MTLAllocation>
@property(nullable, copy, atomic) NSString *label;
@property(readonly) id<MTLDevice> device;
@property(readonly) MTLStorageMode storageMode;
@end

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLBuffer <MTLResource>
@property(readonly) NSUInteger length;
- (void *)contents NS_RETURNS_INNER_POINTER;
@end

API_AVAILABLE(macos(10.13), ios(10.0))
@protocol MTLFence <NSObject>
@property(readonly) id<MTLDevice> device;
@property(nullable, copy, atomic) NSString *label;
@end

MTL_EXPORT API_AVAILABLE(macos(15.0), ios(18.0)) @interface MTLResidencySetDescriptor : NSObject {
    NSString *_label;
    NSUInteger _initialCapacity;
}
@property(nullable, copy, nonatomic) NSString *label;
@property(nonatomic) NSUInteger initialCapacity;
@end

API_AVAILABLE(macos(15.0), ios(18.0))
@protocol MTLResidencySet <NSObject>
@property(readonly) id<MTLDevice> device;
@property(nullable, readonly) NSString *label;
- (void)requestResidency;
- (void)endResidency;
- (void)addAllocation:(id<MTLAllocation>)allocation;
- (void)removeAllocation:(id<MTLAllocation>)allocation;
- (void)commit;
@end

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

/* Libraries, functions and pipelines --------------------------------------------------------- */

typedef NS_ENUM(NSUInteger, MTLDataType) {
    MTLDataTypeNone = 0,
    MTLDataTypeFloat = 3,
    MTLDataTypeHalf = 16,
    MTLDataTypeInt = 29,
    MTLDataTypeUInt = 33,
    MTLDataTypeShort = 37,
    MTLDataTypeUShort = 41,
    MTLDataTypeChar = 45,
    MTLDataTypeUChar = 49,
    MTLDataTypeBool = 53,
    MTLDataTypeLong API_AVAILABLE(macos(12.0), ios(14.0)) = 81,
    MTLDataTypeULong API_AVAILABLE(macos(12.0), ios(14.0)) = 85,
    MTLDataTypeBFloat API_AVAILABLE(macos(14.0), ios(17.0)) = 121,
};

typedef NS_ENUM(NSUInteger, MTLLanguageVersion) {
    MTLLanguageVersion2_3 API_AVAILABLE(macos(11.0), ios(14.0)) = (2 << 16) + 3,
    MTLLanguageVersion2_4 API_AVAILABLE(macos(12.0), ios(15.0)) = (2 << 16) + 4,
    MTLLanguageVersion3_0 API_AVAILABLE(macos(13.0), ios(16.0)) = (3 << 16) + 0,
    MTLLanguageVersion3_1 API_AVAILABLE(macos(14.0), ios(17.0)) = (3 << 16) + 1,
    MTLLanguageVersion3_2 API_AVAILABLE(macos(15.0), ios(18.0)) = (3 << 16) + 2,
    MTLLanguageVersion4_0 API_AVAILABLE(macos(26.0), ios(26.0)) = (4 << 16) + 0,
};

typedef NS_ENUM(NSInteger, MTLMathMode) {
    MTLMathModeSafe = 0,
    MTLMathModeRelaxed = 1,
    MTLMathModeFast = 2,
};

typedef NS_ENUM(NSInteger, MTLMathFloatingPointFunctions) {
    MTLMathFloatingPointFunctionsFast = 0,
    MTLMathFloatingPointFunctionsPrecise = 1,
};

MTL_EXPORT API_AVAILABLE(macos(10.11), ios(8.0)) @interface MTLCompileOptions : NSObject {
    MTLLanguageVersion _languageVersion;
    MTLMathMode _mathMode;
    MTLMathFloatingPointFunctions _mathFloatingPointFunctions;
    BOOL _fastMathEnabled;
}
@property(readwrite, nonatomic)
    BOOL fastMathEnabled API_DEPRECATED("Use mathMode instead", macos(10.11, 15.0), ios(8.0, 18.0));
@property(readwrite, nonatomic) MTLMathMode mathMode API_AVAILABLE(macos(15.0), ios(18.0));
@property(nonatomic)
    MTLMathFloatingPointFunctions mathFloatingPointFunctions API_AVAILABLE(macos(15.0), ios(18.0));
@property(readwrite, nonatomic)
    MTLLanguageVersion languageVersion API_AVAILABLE(macos(10.11), ios(9.0));
@end

API_AVAILABLE(macos(10.11), ios(8.0))
MTL_EXTERN NSErrorDomain const MTLLibraryErrorDomain;

typedef NS_ENUM(NSUInteger, MTLLibraryError) {
    MTLLibraryErrorUnsupported = 1,
    MTLLibraryErrorCompileFailure = 3,
    MTLLibraryErrorCompileWarning = 4,
    MTLLibraryErrorFunctionNotFound = 5,
};

MTL_EXPORT API_AVAILABLE(macos(10.12), ios(10.0)) @interface MTLFunctionConstantValues : NSObject {
    NSMutableDictionary *_values;
}
- (void)setConstantValue:(const void *)value type:(MTLDataType)type atIndex:(NSUInteger)index;
@end

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLFunction <NSObject>
@property(nullable, copy, atomic) NSString *label;
@property(readonly) id<MTLDevice> device;
@property(readonly) NSString *name;
@end

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLLibrary <NSObject>
@property(nullable, copy, atomic) NSString *label;
@property(readonly) id<MTLDevice> device;
- (nullable id<MTLFunction>)newFunctionWithName:(NSString *)functionName;
- (nullable id<MTLFunction>)newFunctionWithName:(NSString *)name
                                 constantValues:(MTLFunctionConstantValues *)constantValues
                                          error:(__autoreleasing NSError **)error
    API_AVAILABLE(macos(10.12), ios(10.0));
@end

typedef NS_OPTIONS(NSUInteger, MTLPipelineOption) {
    MTLPipelineOptionNone = 0,
};

typedef __autoreleasing MTLComputePipelineReflection
    *_Nullable MTLAutoreleasedComputePipelineReflection;

MTL_EXPORT API_AVAILABLE(macos(10.11), ios(9.0)) @interface MTLComputePipelineDescriptor : NSObject {
    NSString *_label;
    id<MTLFunction> _computeFunction;
}
@property(nullable, copy, nonatomic) NSString *label;
@property(nullable, readwrite, nonatomic, strong) id<MTLFunction> computeFunction;
@end

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLComputePipelineState <NSObject>
@property(nullable, readonly) NSString *label API_AVAILABLE(macos(10.13), ios(11.0));
@property(readonly) id<MTLDevice> device;
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property(readonly) NSUInteger threadExecutionWidth;
@property(readonly) NSUInteger staticThreadgroupMemoryLength API_AVAILABLE(macos(10.13), ios(11.0));
@end

/* The device --------------------------------------------------------------------------------- */

typedef NS_ENUM(NSInteger, MTLGPUFamily) {
    MTLGPUFamilyApple1 = 1001,
    MTLGPUFamilyApple7 = 1007,
    MTLGPUFamilyMac2 = 2002,
    MTLGPUFamilyCommon1 = 3001,
    MTLGPUFamilyCommon3 = 3003,
    MTLGPUFamilyMetal3 API_AVAILABLE(macos(13.0), ios(16.0)) = 5001,
};

typedef NS_ENUM(NSUInteger, MTLCounterSamplingPoint) {
    MTLCounterSamplingPointAtStageBoundary,
    MTLCounterSamplingPointAtDrawBoundary,
    MTLCounterSamplingPointAtDispatchBoundary,
    MTLCounterSamplingPointAtTileDispatchBoundary,
    MTLCounterSamplingPointAtBlitBoundary
};

API_AVAILABLE(macos(10.11), ios(8.0))
@protocol MTLDevice <NSObject>
@property(nonnull, readonly) NSString *name;
@property(readonly) MTLSize maxThreadsPerThreadgroup API_AVAILABLE(macos(10.11), ios(9.0));
@property(readonly) BOOL hasUnifiedMemory API_AVAILABLE(macos(10.15), ios(13.0));
@property(readonly) uint64_t recommendedMaxWorkingSetSize API_AVAILABLE(macos(10.12));
@property(readonly) NSUInteger currentAllocatedSize API_AVAILABLE(macos(10.13), ios(11.0));
@property(readonly) NSUInteger maxThreadgroupMemoryLength API_AVAILABLE(macos(10.13), ios(11.0));
@property(readonly) NSUInteger maxBufferLength API_AVAILABLE(macos(10.14), ios(12.0));
@property(readonly, nullable)
    NSArray<id<MTLCounterSet>> *counterSets API_AVAILABLE(macos(10.15), ios(14.0));
- (nullable id<MTLCommandQueue>)newCommandQueue;
- (nullable id<MTLBuffer>)newBufferWithLength:(NSUInteger)length
                                      options:(MTLResourceOptions)options;
- (nullable id<MTLBuffer>)
    newBufferWithBytesNoCopy:(void *)pointer
                      length:(NSUInteger)length
                     options:(MTLResourceOptions)options
                 deallocator:(void (^_Nullable)(void *pointer, NSUInteger length))deallocator;
- (nullable id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                                        options:(nullable MTLCompileOptions *)options
                                          error:(__autoreleasing NSError **)error;
- (nullable id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:
                                   (MTLAutoreleasedComputePipelineReflection *_Nullable)reflection
                                    error:(__autoreleasing NSError **)error
    API_AVAILABLE(macos(10.11), ios(9.0));
- (nullable id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor *)desc
                                                        error:(__autoreleasing NSError **)error
    API_AVAILABLE(macos(15.0), ios(18.0));
- (nullable id<MTLFence>)newFence API_AVAILABLE(macos(10.13), ios(10.0));
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily API_AVAILABLE(macos(10.15), ios(13.0));
- (nullable id<MTLCounterSampleBuffer>)newCounterSampleBufferWithDescriptor:
                                           (MTLCounterSampleBufferDescriptor *)descriptor
                                                                      error:(NSError **)error
    API_AVAILABLE(macos(10.15), ios(14.0));
- (void)sampleTimestamps:(MTLTimestamp *)cpuTimestamp
            gpuTimestamp:(MTLTimestamp *)gpuTimestamp API_AVAILABLE(macos(10.15), ios(14.0));
- (BOOL)supportsCounterSampling:(MTLCounterSamplingPoint)samplingPoint
    API_AVAILABLE(macos(11.0), ios(14.0));
@end

MTL_EXTERN id<MTLDevice> _Nullable MTLCreateSystemDefaultDevice(void)
    API_AVAILABLE(macos(10.11), ios(8.0)) NS_RETURNS_RETAINED;
MTL_EXTERN NSArray<id<MTLDevice>> *MTLCopyAllDevices(void)
    API_AVAILABLE(macos(10.11)) NS_RETURNS_RETAINED;

/* Captures ----------------------------------------------------------------------------------- */

API_AVAILABLE(macos(10.15), ios(13.0))
MTL_EXTERN NSErrorDomain const MTLCaptureErrorDomain;

typedef NS_ENUM(NSInteger, MTLCaptureError) {
    MTLCaptureErrorNotSupported = 1,
    MTLCaptureErrorAlreadyCapturing,
    MTLCaptureErrorInvalidDescriptor,
};

typedef NS_ENUM(NSInteger, MTLCaptureDestination) {
    MTLCaptureDestinationDeveloperTools = 1,
    MTLCaptureDestinationGPUTraceDocument,
};

MTL_EXTERN API_AVAILABLE(macos(10.15), ios(13.0)) @interface MTLCaptureDescriptor : NSObject {
    id _captureObject;
    MTLCaptureDestination _destination;
    NSURL *_outputURL;
}
@property(nonatomic, strong, nullable) id captureObject;
@property(nonatomic, assign) MTLCaptureDestination destination;
@property(nonatomic, copy, nullable) NSURL *outputURL;
@end

MTL_EXTERN API_AVAILABLE(macos(10.13), ios(11.0)) @interface MTLCaptureManager : NSObject
+ (MTLCaptureManager *)sharedCaptureManager;
- (BOOL)supportsDestination:(MTLCaptureDestination)destination
    API_AVAILABLE(macos(10.15), ios(13.0));
- (BOOL)startCaptureWithDescriptor:(MTLCaptureDescriptor *)descriptor
                             error:(__autoreleasing NSError **)error
    API_AVAILABLE(macos(10.15), ios(13.0));
- (void)stopCapture;
@property(readonly) BOOL isCapturing;
@end

NS_ASSUME_NONNULL_END

#endif
