/* residency_metal: keeps the buffers of a device wired, so that times after a pause do not include
 * wiring them again. See metal.h. */
#include "harness/base/os.h"
#include "metal.h"

#if __MAC_OS_X_VERSION_MAX_ALLOWED >= 150000

enum { PAUSE_NS = 500000000 }; /* half of the time that macOS leaves to idle memory */

void metal_open_residency(metal_device *m) {
    if (@available(macOS 15.0, *)) {
        MTLResidencySetDescriptor *what = [[[MTLResidencySetDescriptor alloc] init] autorelease];
        [what setLabel:@"buffers"];
        NSError *error = nil;
        m->residency = [m->device newResidencySetWithDescriptor:what error:&error];
        if (m->residency)
            [m->queue addResidencySet:m->residency];
    }
}

void metal_close_residency(metal_device *m) {
    if (@available(macOS 15.0, *)) {
        id<MTLResidencySet> set = m->residency;
        if (set)
            [m->queue removeResidencySet:set];
        [set endResidency];
        [set release];
        m->residency = nil;
    }
}

void metal_add_resident(metal_device *m, id<MTLBuffer> b) {
    if (@available(macOS 15.0, *)) {
        [(id<MTLResidencySet>)m->residency addAllocation:b];
        m->residency_changed = true;
    }
}

/* At once: until then the set holds the memory. */
void metal_remove_resident(metal_device *m, id<MTLBuffer> b) {
    if (@available(macOS 15.0, *)) {
        id<MTLResidencySet> set = m->residency;
        [set removeAllocation:b];
        [set commit];
    }
}

void metal_keep_resident(metal_device *m) {
    uint64_t now = os_now_ns();
    bool is_due = m->residency_changed || now - m->used_ns > PAUSE_NS;
    m->used_ns = now;
    if (@available(macOS 15.0, *)) {
        id<MTLResidencySet> set = m->residency;
        if (!set || !is_due)
            return;
        if (m->residency_changed)
            [set commit];
        m->residency_changed = false;
        [set requestResidency];
    }
}

#else

void metal_open_residency(metal_device *m) {
    (void)m;
}
void metal_close_residency(metal_device *m) {
    (void)m;
}
void metal_add_resident(metal_device *m, id<MTLBuffer> b) {
    (void)m, (void)b;
}
void metal_remove_resident(metal_device *m, id<MTLBuffer> b) {
    (void)m, (void)b;
}
void metal_keep_resident(metal_device *m) {
    (void)m;
}

#endif
