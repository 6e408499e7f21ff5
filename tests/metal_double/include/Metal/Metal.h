/* Metal: declarations of the part of Apple's Metal that harness/device/metal uses, for Linux.
 * The device and captures are here, the rest in the headers imported below. These are split and
 * named differently from Apple's: include only this one.
 *
 * Every selector, type, property attribute, nullability and enum value is the one of Apple's SDK:
 * protocols, descriptors and enums as in the macOS 11 headers, mathMode and friends as in the macOS
 * 15 headers, numbers compared with Apple's metal-cpp. Members that harness/device/metal does not
 * use are left out, and nothing is added but instance variables, which this runtime wants in
 * interfaces. What the members do is in tests/metal_double. */
#ifndef ASSAY_METAL_DOUBLE_METAL_H
#define ASSAY_METAL_DOUBLE_METAL_H

#import <Metal/Base.h>
#import <Metal/Commands.h>
#import <Metal/Library.h>

NS_ASSUME_NONNULL_BEGIN

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
