/* residency: which memory is wired. A set takes effect when it is committed, and its memory is wired
 * from a request for it until a second without work. */
#include "double.h"
#include "harness/base/os.h"

enum { LASTS_NS = 1000000000 };

@implementation DoubleResidencySet
- (id)initWithDevice:(DoubleDevice *)device descriptor:(MTLResidencySetDescriptor *)descriptor {
    self = [super init];
    owner = device; /* not retained, as Metal's: the queue that has the set keeps it */
    _label = [[descriptor label] copy];
    members = [[NSMutableSet alloc] init];
    wanted = [[NSMutableSet alloc] init];
    return self;
}

- (void)dealloc {
    [members release];
    [wanted release];
    owner = nil;
    [super dealloc];
}

- (void)addAllocation:(id<MTLAllocation>)allocation {
    if (!allocation || [wanted containsObject:allocation])
        double_refuse(self, _cmd, "the allocation is nil, or in the set already");
    [wanted addObject:allocation];
}

- (void)removeAllocation:(id<MTLAllocation>)allocation {
    if (!allocation || ![wanted containsObject:allocation])
        double_refuse(self, _cmd, "the allocation is not in the set");
    [wanted removeObject:allocation];
}

- (void)commit {
    [members setSet:wanted];
}

- (void)requestResidency {
    lasts_until_ns = os_now_ns() + LASTS_NS;
}

- (void)endResidency {
    lasts_until_ns = 0;
}

- (bool)holds:(DoubleBuffer *)buffer {
    return os_now_ns() < lasts_until_ns && [members containsObject:buffer];
}

- (void)keep {
    if (os_now_ns() < lasts_until_ns)
        [self requestResidency];
}
@end
