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
@end

@implementation MTLComputePipelineDescriptor
@synthesize label = _label, computeFunction = _computeFunction;
- (void)dealloc {
    [_label release];
    [_computeFunction release];
    [super dealloc];
}
@end

@implementation MTLResidencySetDescriptor
@synthesize label = _label, initialCapacity = _initialCapacity;
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
@end

@implementation MTLCounterSampleBufferDescriptor
@synthesize counterSet = _counterSet, label = _label, storageMode = _storageMode;
@synthesize sampleCount = _sampleCount;
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
- (void)dealloc {
    [_captureObject release];
    [_outputURL release];
    [super dealloc];
}
@end
