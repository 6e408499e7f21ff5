/* weight_stream: writes the tensors of a new model a piece at a time, so that memory stays a few
 * hundred KB whatever the size of the model. */
#pragma once

#include "write.h"

enum { WEIGHT_PIECE = 1 << 20 }; /* values at a time: whole blocks of every type */

/* Told how many of the bytes are written; false stops the work, and no file is left. */
typedef bool (*weight_watch)(void *context, uint64_t done, uint64_t total);

typedef struct {
    gguf_writer *file;
    float *values;        /* (WEIGHT_PIECE) for the caller to fill */
    uint8_t *blocks;      /* the same in the type of the tensor */
    uint64_t done, total; /* bytes */
    weight_watch watch;   /* may be NULL */
    void *context;
} weight_stream;

bool weight_stream_open(weight_stream *s, const char *path, weight_watch watch, void *context,
                        err *e);
void weight_stream_close(weight_stream *s); /* without finish: no file is left */

void weight_stream_add(weight_stream *s, const char *name, const gguf_type *type,
                       const uint64_t *dim, uint32_t dims);

/* After gguf_writer_finish_header, tensor after tensor: bytes as they are, or the first `count`
 * values encoded. */
bool weight_stream_write(weight_stream *s, const void *data, size_t bytes, err *e);
bool weight_stream_encode(weight_stream *s, const gguf_type *type, size_t count, err *e);
