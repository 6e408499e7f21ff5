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
