/* capture: GPU trace documents of the double are lists of the command buffers' labels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"

NSErrorDomain const MTLCaptureErrorDomain = @"MTLCaptureErrorDomain";

static FILE *document;

void double_note_commit(DoubleCommands *commands) {
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
