/* descriptors: the plain objects that are filled in and handed over. */
#include "double.h"

@implementation MTLCompileOptions
@synthesize fastMathEnabled = _fastMathEnabled, mathMode = _mathMode;
@synthesize mathFloatingPointFunctions = _mathFloatingPointFunctions;
@synthesize languageVersion = _languageVersion;

- (id)init {
    self = [super init];
    _fastMathEnabled = YES;
    _mathMode = MTLMathModeFast;
    return self;
}

- (id)copyWithZone:(NSZone *)zone {
    MTLCompileOptions *copy = [[MTLCompileOptions allocWithZone:zone] init];
    [copy setFastMathEnabled:_fastMathEnabled];
    [copy setMathMode:_mathMode];
    [copy setMathFloatingPointFunctions:_mathFloatingPointFunctions];
    [copy setLanguageVersion:_languageVersion];
    return copy;
}
@end

@implementation MTLComputePipelineDescriptor
@synthesize label = _label, computeFunction = _computeFunction;
- (id)copyWithZone:(NSZone *)zone {
    MTLComputePipelineDescriptor *copy = [[MTLComputePipelineDescriptor allocWithZone:zone] init];
    [copy setLabel:_label];
    [copy setComputeFunction:_computeFunction];
    return copy;
}
- (void)dealloc {
    [_label release];
    [_computeFunction release];
    [super dealloc];
}
@end

@implementation MTLResidencySetDescriptor
@synthesize label = _label, initialCapacity = _initialCapacity;
- (id)copyWithZone:(NSZone *)zone {
    MTLResidencySetDescriptor *copy = [[MTLResidencySetDescriptor allocWithZone:zone] init];
    [copy setLabel:_label];
    [copy setInitialCapacity:_initialCapacity];
    return copy;
}
- (void)dealloc {
    [_label release];
    [super dealloc];
}
@end

@implementation MTLCommandBufferDescriptor
@synthesize retainedReferences = _retainedReferences, errorOptions = _errorOptions;
- (id)init {
    self = [super init];
    _retainedReferences = YES;
    return self;
}
- (id)copyWithZone:(NSZone *)zone {
    MTLCommandBufferDescriptor *copy = [[MTLCommandBufferDescriptor allocWithZone:zone] init];
    [copy setRetainedReferences:_retainedReferences];
    [copy setErrorOptions:_errorOptions];
    return copy;
}
@end

@implementation MTLCounterSampleBufferDescriptor
@synthesize counterSet = _counterSet, label = _label, storageMode = _storageMode;
@synthesize sampleCount = _sampleCount;
- (id)copyWithZone:(NSZone *)zone {
    MTLCounterSampleBufferDescriptor *copy =
        [[MTLCounterSampleBufferDescriptor allocWithZone:zone] init];
    [copy setCounterSet:_counterSet];
    [copy setLabel:_label];
    [copy setStorageMode:_storageMode];
    [copy setSampleCount:_sampleCount];
    return copy;
}
- (void)dealloc {
    [_counterSet release];
    [_label release];
    [super dealloc];
}
@end

@implementation MTLComputePassSampleBufferAttachmentDescriptor
@synthesize sampleBuffer = _sampleBuffer;
@synthesize startOfEncoderSampleIndex = _startOfEncoderSampleIndex;
@synthesize endOfEncoderSampleIndex = _endOfEncoderSampleIndex;
- (id)copyWithZone:(NSZone *)zone {
    MTLComputePassSampleBufferAttachmentDescriptor *copy =
        [[MTLComputePassSampleBufferAttachmentDescriptor allocWithZone:zone] init];
    [copy setSampleBuffer:_sampleBuffer];
    [copy setStartOfEncoderSampleIndex:_startOfEncoderSampleIndex];
    [copy setEndOfEncoderSampleIndex:_endOfEncoderSampleIndex];
    return copy;
}
- (void)dealloc {
    [_sampleBuffer release];
    [super dealloc];
}
@end

@implementation MTLComputePassSampleBufferAttachmentDescriptorArray
- (MTLComputePassSampleBufferAttachmentDescriptor *)objectAtIndexedSubscript:
    (NSUInteger)attachmentIndex {
    if (attachmentIndex >= sizeof _items / sizeof *_items)
        double_refuse(self, _cmd, "attachment %lu of 4", (unsigned long)attachmentIndex);
    if (!_items[attachmentIndex])
        _items[attachmentIndex] = [[MTLComputePassSampleBufferAttachmentDescriptor alloc] init];
    return _items[attachmentIndex];
}
- (void)dealloc {
    for (size_t i = 0; i < sizeof _items / sizeof *_items; i++)
        [_items[i] release];
    [super dealloc];
}
@end

@implementation MTLComputePassDescriptor
@synthesize dispatchType = _dispatchType;
+ (MTLComputePassDescriptor *)computePassDescriptor {
    return [[[MTLComputePassDescriptor alloc] init] autorelease];
}
- (id)init {
    self = [super init];
    _sampleBufferAttachments = [[MTLComputePassSampleBufferAttachmentDescriptorArray alloc] init];
    return self;
}
- (id)copyWithZone:(NSZone *)zone {
    MTLComputePassDescriptor *copy = [[MTLComputePassDescriptor allocWithZone:zone] init];
    [copy setDispatchType:_dispatchType];
    return copy;
}
- (MTLComputePassSampleBufferAttachmentDescriptorArray *)sampleBufferAttachments {
    return _sampleBufferAttachments;
}
- (void)dealloc {
    [_sampleBufferAttachments release];
    [super dealloc];
}
@end

@implementation MTLCaptureDescriptor
@synthesize captureObject = _captureObject, destination = _destination, outputURL = _outputURL;
- (id)init {
    self = [super init];
    _destination = MTLCaptureDestinationDeveloperTools;
    return self;
}
- (id)copyWithZone:(NSZone *)zone {
    MTLCaptureDescriptor *copy = [[MTLCaptureDescriptor allocWithZone:zone] init];
    [copy setCaptureObject:_captureObject];
    [copy setDestination:_destination];
    [copy setOutputURL:_outputURL];
    return copy;
}
- (void)dealloc {
    [_captureObject release];
    [_outputURL release];
    [super dealloc];
}
@end
