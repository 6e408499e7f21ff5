/* buffer_cuda: memory of the GPU, and copies to and from it.
 *
 * Shared and private buffers are the same here: plain device memory without a CPU address. A no-copy
 * buffer is a copy after all, made when the GPU first needs it. Managed memory is not used: pages
 * that migrate between CPU and GPU would spoil every time.
 *
 * Copies to the device and fills are queued with the plays. A copy from the device waits for
 * those copies, not for plays that were submitted since: what it reads was written by plays that the
 * caller has waited for. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "sanitizer.h"

static cuda_buffer *get(const buffer *b) {
    return b->impl;
}

static bool allocate(const cuda_device *c, const buffer *b, size_t bytes, CUdeviceptr *at, err *e) {
    CUresult result = c->driver->memory_new(at, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return err_set(e, EXIT_CANNOT, "no memory on the GPU for the buffer '%s' of %zu bytes",
                       b->label, b->bytes);
    return cuda_ok(c->driver, result, e, "give memory for the buffer '%s'", b->label);
}

static bool note_upload(const cuda_device *c, CUresult result, const buffer *b, err *e) {
    if (result == CUDA_SUCCESS)
        result = c->driver->event_record(c->uploaded, c->stream);
    return cuda_ok(c->driver, result, e, "take a copy to the buffer '%s'", b->label);
}

bool cuda_new_buffer(buffer *b, size_t allocation_bytes, const void *no_copy, err *e) {
    cuda_device *c = cuda_enter(b->device);
    cuda_buffer *made = calloc(1, sizeof *made);
    assert(made);
    b->impl = made;
    if (no_copy) {
        made->source = no_copy;
        made->source_bytes = allocation_bytes;
        b->is_copy = true;
        b->contents = (void *)(uintptr_t)no_copy;
        return true;
    }
    bool ok = allocate(c, b, allocation_bytes, &made->at, e);
    /* What nothing wrote reads as NaN; where a tool looks for such reads it must stay unwritten. */
    if (ok && !b->device->facts.validates)
        ok = note_upload(
            c, c->driver->fill(made->at, POISON_PATTERN, allocation_bytes / 2, c->stream), b, e);
    if (!ok) {
        if (made->at)
            c->driver->memory_free(made->at);
        free(made);
    }
    return ok;
}

void cuda_free_buffer(buffer *b) {
    cuda_device *c = cuda_enter(b->device);
    if (get(b)->at)
        c->driver->memory_free(get(b)->at);
    free(b->impl);
}

bool cuda_find_address(cuda_device *c, const buffer *b, CUdeviceptr *at, err *e) {
    cuda_buffer *own = get(b);
    if (own->source && !own->at) {
        CUdeviceptr made;
        if (!allocate(c, b, own->source_bytes, &made, e))
            return false;
        if (!note_upload(c, c->driver->copy_in(made, own->source, own->source_bytes, c->stream), b,
                         e)) {
            c->driver->memory_free(made);
            return false;
        }
        own->at = made;
    }
    *at = own->at;
    return true;
}

/* Memory that is not pinned is read, or staged by the driver, before these calls return. */
bool cuda_copy(buffer *b, size_t allocation_offset, void *host, size_t bytes, bool to_device,
               err *e) {
    cuda_device *c = cuda_enter(b->device);
    const cuda_buffer *own = get(b);
    if (bytes == 0)
        return true;
    if (own->source) { /* never written: it is bound to be read */
        memcpy(host, (const char *)own->source + allocation_offset, bytes);
        return true;
    }
    if (to_device)
        return note_upload(
            c, c->driver->copy_in(own->at + allocation_offset, host, bytes, c->stream), b, e);
    void *to = bytes <= CUDA_LANDING_BYTES ? c->landing : host;
    CUresult result = c->driver->stream_wait_for(c->copies, c->uploaded, 0);
    if (result == CUDA_SUCCESS)
        result = c->driver->copy_out(to, own->at + allocation_offset, bytes, c->copies);
    if (result == CUDA_SUCCESS)
        result = c->driver->stream_wait(c->copies);
    if (result == CUDA_SUCCESS && to != host)
        memcpy(host, to, bytes);
    return cuda_ok(c->driver, result, e, "give a copy of the buffer '%s'", b->label);
}

bool cuda_fill(buffer *b, size_t allocation_offset, size_t bytes, uint16_t pattern, err *e) {
    cuda_device *c = cuda_enter(b->device);
    assert(allocation_offset % 2 == 0 && bytes % 2 == 0);
    /* Poison says that nothing was written. A tool that looks for reads of such memory would take
     * it for written. */
    const char *tool = sanitizer_get_tool();
    if (pattern == POISON_PATTERN && tool && strcmp(tool, "initcheck") == 0)
        return true;
    return note_upload(
        c, c->driver->fill(get(b)->at + allocation_offset, pattern, bytes / 2, c->stream), b, e);
}
