/* buffer_metal: memory of the Metal device: shared, private, and over memory of the caller.
 *
 * Guard zones are device.c's business: a buffer here is one allocation with the contents at `base`.
 *
 * Memory of the caller need not be page-aligned, as Metal requires. The buffer then begins at the
 * page boundary before it, and `base` is the offset of the contents.
 *
 * All buffers of a device are kept wired, so that times after a pause do not include wiring them again. */
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "metal.h"

enum { STAGING_BYTES = 4 << 20, SMALL_BYTES = 1 << 20, BLIT_UNIT = 4 };

static id<MTLBuffer> get_buffer(const buffer *b) {
    return (id<MTLBuffer>)b->impl;
}

/* Refuses impossible sizes, with the numbers: Metal would return nil, or swap for minutes. */
static bool check_room(const buffer *b, size_t bytes, err *e) {
    id<MTLDevice> d = metal_get(b->device)->device;
    const device_facts *f = &b->device->facts;
    if (bytes > f->max_buffer_bytes)
        return err_set(e, EXIT_CANNOT,
                       "the buffer '%s' of %.2f GB is larger than the %.2f GB that this GPU allows "
                       "per buffer",
                       b->label, (double)bytes * 1e-9, (double)f->max_buffer_bytes * 1e-9);
    if (bytes < SMALL_BYTES || !f->working_set_bytes)
        return true;
    uint64_t held = [d currentAllocatedSize];
    return held + bytes <= f->working_set_bytes ||
           err_set(e, EXIT_CANNOT,
                   "the buffer '%s' of %.2f GB does not fit: %.2f of the %.2f GB that this GPU can "
                   "use are taken",
                   b->label, (double)bytes * 1e-9, (double)held * 1e-9,
                   (double)f->working_set_bytes * 1e-9);
}

static bool allocate(buffer *b, size_t bytes, MTLResourceOptions options, err *e) {
    size_t whole = (bytes + BLIT_UNIT - 1) / BLIT_UNIT * BLIT_UNIT;
    id<MTLBuffer> made = [metal_get(b->device)->device newBufferWithLength:whole options:options];
    b->impl = made;
    return made || err_set(e, EXIT_CANNOT, "no memory for the buffer '%s' of %zu bytes", b->label,
                           b->bytes);
}

/* In place if Metal accepts the pages as they are, otherwise a copy: it may return nil, or a buffer
 * of length 0. */
static bool wrap(buffer *b, const void *memory, size_t bytes, err *e) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)memory % page;
    size_t whole = (before + bytes + page - 1) / page * page;
    void *start = (char *)(uintptr_t)memory - before;
    id<MTLBuffer> made =
        [metal_get(b->device)->device newBufferWithBytesNoCopy:start
                                                        length:whole
                                                       options:MTLResourceStorageModeShared
                                                   deallocator:nil];
    if ([made length] < whole) {
        [made release];
        made = nil;
    }
    b->impl = made;
    if (made) {
        b->base = before;
        b->contents = (void *)(uintptr_t)memory;
        return true;
    }
    if (!allocate(b, bytes, MTLResourceStorageModeShared, e))
        return false;
    b->base = 0;
    b->is_copy = true;
    b->contents = [get_buffer(b) contents];
    memcpy(b->contents, memory, bytes);
    return true;
}

bool metal_new_buffer(buffer *b, size_t allocation_bytes, const void *no_copy, err *e) {
    @autoreleasepool {
        if (!check_room(b, allocation_bytes, e))
            return false;
        bool ok = no_copy ? wrap(b, no_copy, allocation_bytes, e)
                  : b->storage == STORAGE_PRIVATE
                      ? allocate(b, allocation_bytes, MTLResourceStorageModePrivate, e)
                      : allocate(b, allocation_bytes, MTLResourceStorageModeShared, e);
        if (!ok)
            return false;
        if (b->storage == STORAGE_SHARED)
            b->contents = (char *)[get_buffer(b) contents] + b->base;
        [get_buffer(b) setLabel:[NSString stringWithUTF8String:b->label]];
        metal_add_resident(metal_get(b->device), get_buffer(b));
        return true;
    }
}

void metal_free_buffer(buffer *b) {
    @autoreleasepool {
        metal_remove_resident(metal_get(b->device), get_buffer(b));
        [get_buffer(b) release];
    }
}

/* Private memory is reached by a blit from or to the staging buffer. */
static bool blit(buffer *b, size_t at, size_t bytes, bool to_device, err *e) {
    metal_device *m = metal_get(b->device);
    id<MTLCommandBuffer> commands = metal_new_command_buffer(m, "copy", false, e);
    id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
    if (!encoder)
        return err_set(e, EXIT_CANNOT, "Metal returned no encoder to copy buffer '%s'", b->label);
    [encoder setLabel:[NSString stringWithUTF8String:b->label]];
    [encoder copyFromBuffer:to_device ? m->staging : get_buffer(b)
               sourceOffset:to_device ? 0 : at
                   toBuffer:to_device ? get_buffer(b) : m->staging
          destinationOffset:to_device ? at : 0
                       size:bytes];
    [encoder endEncoding];
    [commands commit];
    play_times times = {0};
    return metal_finish(m, commands, 0, &times, e);
}

/* One piece. Blits on macOS copy whole words: the bytes around the piece are fetched first and put
 * back. */
static bool copy_piece(buffer *b, size_t at, char *host, size_t bytes, bool to_device, err *e) {
    char *room = [metal_get(b->device)->staging contents];
    size_t before = at % BLIT_UNIT;
    size_t whole = (before + bytes + BLIT_UNIT - 1) / BLIT_UNIT * BLIT_UNIT;
    if ((!to_device || whole != bytes) && !blit(b, at - before, whole, false, e))
        return false;
    memcpy(to_device ? room + before : host, to_device ? host : room + before, bytes);
    return !to_device || blit(b, at - before, whole, true, e);
}

static bool copy_private(buffer *b, size_t at, char *host, size_t bytes, bool to_device, err *e) {
    metal_device *m = metal_get(b->device);
    if (!m->staging) {
        m->staging = [m->device newBufferWithLength:STAGING_BYTES
                                            options:MTLResourceStorageModeShared];
        if (!m->staging)
            return err_set(e, EXIT_CANNOT, "no memory to copy buffer '%s' through", b->label);
        [m->staging setLabel:@"staging"];
    }
    const size_t most = STAGING_BYTES - 2 * BLIT_UNIT;
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < most ? bytes - done : most;
        if (!copy_piece(b, at + done, host + done, n, to_device, e))
            return false;
    }
    return true;
}

bool metal_copy(buffer *b, size_t allocation_offset, void *host, size_t bytes, bool to_device,
                err *e) {
    @autoreleasepool {
        if (b->storage == STORAGE_PRIVATE)
            return copy_private(b, allocation_offset, host, bytes, to_device, e);
        char *at = (char *)[get_buffer(b) contents] + allocation_offset;
        memcpy(to_device ? (void *)at : host, to_device ? host : (void *)at, bytes);
        return true;
    }
}

/* Residency ------------------------------------------------------------------------------------- */

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

#endif
