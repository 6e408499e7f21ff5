#include "weight_stream.h"

#include <stdlib.h>

#include "harness/base/share.h"

bool weight_stream_open(weight_stream *s, const char *path, weight_watch watch, void *context,
                        err *e) {
    *s = (weight_stream){.values = malloc(WEIGHT_PIECE * sizeof *s->values),
                         .blocks = malloc(WEIGHT_PIECE * sizeof(float)), /* F32 takes the most */
                         .watch = watch,
                         .context = context};
    if (!s->values || !s->blocks)
        return err_set(e, EXIT_CANNOT, "no memory to write %.160s", path);
    return (s->file = gguf_writer_new(path, e)) != NULL;
}

void weight_stream_close(weight_stream *s) {
    gguf_writer_free(s->file);
    free(s->values);
    free(s->blocks);
}

void weight_stream_add(weight_stream *s, const char *name, const gguf_type *type,
                       const uint64_t *dim, uint32_t dims) {
    uint64_t bytes = type->bytes;
    for (uint32_t i = 0; i < dims; i++)
        bytes *= i ? dim[i] : dim[0] / type->values;
    s->total += bytes;
    gguf_writer_add_tensor(s->file, name, type, dim, dims);
}

bool weight_stream_write(weight_stream *s, const void *data, size_t bytes, err *e) {
    if (!gguf_writer_write(s->file, data, bytes, e))
        return false;
    s->done += bytes;
    return !s->watch || s->watch(s->context, s->done, s->total) ||
           err_set(e, EXIT_INTERRUPTED, "stopped; nothing was written");
}

typedef struct {
    const weight_format *format;
    const float *values;
    uint8_t *blocks;
} encoding;

static void encode_blocks(void *context, size_t from, size_t to) {
    const encoding *c = context;
    for (size_t i = from; i < to; i++)
        c->format->encode(c->values + i * c->format->values, c->blocks + i * c->format->bytes);
}

bool weight_stream_encode(weight_stream *s, const gguf_type *type, size_t count, err *e) {
    enum { WORTH_A_THREAD = 32768 };
    const weight_format *f = type->format;
    encoding c = {f, s->values, s->blocks};
    size_t blocks = count / f->values;
    share_run(blocks, WORTH_A_THREAD / f->values, encode_blocks, &c);
    return weight_stream_write(s, s->blocks, blocks * f->bytes, e);
}
