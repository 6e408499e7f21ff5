/* gguf/write: makes a GGUF file, version 3.
 *
 * First the metadata, then every tensor is announced, then their bytes follow in the same order, so
 * that a model larger than memory can be written. It is written to a temporary file and renamed at
 * the end: whole or not at all. */
#pragma once

#include "gguf.h"

typedef struct gguf_writer gguf_writer;

/* Nothing is written before gguf_writer_finish_header. */
gguf_writer *gguf_writer_new(const char *path, err *e);
void gguf_writer_free(gguf_writer *w); /* without finish: no file is left */

void gguf_writer_add_u32(gguf_writer *w, const char *key, uint32_t value);
void gguf_writer_add_f32(gguf_writer *w, const char *key, float value);
void gguf_writer_add_bool(gguf_writer *w, const char *key, bool value);
void gguf_writer_add_text(gguf_writer *w, const char *key, gguf_text value);
void gguf_writer_add_texts(gguf_writer *w, const char *key, const gguf_text *values, size_t count);
void gguf_writer_add_i32s(gguf_writer *w, const char *key, const int32_t *values, size_t count);
void gguf_writer_add_copy(gguf_writer *w, const gguf_value *value); /* as another file has it */

/* dim[0] is the length of a row. */
void gguf_writer_add_tensor(gguf_writer *w, const char *name, const gguf_type *type,
                            const uint64_t *dim, uint32_t dims);

/* Writes all that was added; then the tensors' bytes, in order, in pieces of any size; then the end:
 * fails if bytes are missing. */
bool gguf_writer_finish_header(gguf_writer *w, err *e);
bool gguf_writer_write(gguf_writer *w, const void *data, size_t bytes, err *e);
bool gguf_writer_finish(gguf_writer *w, err *e);

/* --- the tensors of a new model a piece at a time, so that memory stays a few hundred KB whatever the size
 * of the model --- */

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
