/* Library: declarations of libraries, functions and pipelines. See Metal.h. */
#ifndef ASSAY_METAL_DOUBLE_LIBRARY_H
#define ASSAY_METAL_DOUBLE_LIBRARY_H

#import <Metal/Base.h>

NS_ASSUME_NONNULL_BEGIN

typedef NS_ENUM(NSUInteger, MTLDataType) {
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

NS_ASSUME_NONNULL_END

#endif
