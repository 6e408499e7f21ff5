/* Base: what the other headers of this folder need: macros, forward declarations, sizes, memory.
 * See Metal.h. */
#ifndef ASSAY_METAL_DOUBLE_BASE_H
#define ASSAY_METAL_DOUBLE_BASE_H

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

NS_ASSUME_NONNULL_END

#endif
