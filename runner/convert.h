/* convert: writes a model again with its weights in another type.
 *
 * Which tensors change follows the rule of llama-quantize, and the bytes of a block are those of
 * ggml's reference quantisation: matrices get the requested type; vectors, norms and small tensors
 * that lose too much stay as they are; with a quantised type the head (the embedding, in a model
 * without a separate head) gets Q8_0 unless is_pure. Tensors already in the type are copied.
 *
 * Where llama-quantize would give the head Q6_K (Q4_0 with rows of whole blocks of 256) it is Q8_0
 * here too: larger, and exact to the reference. */
#ifndef ASSAY_CONVERT_H
#define ASSAY_CONVERT_H

#include "weight_stream.h"

typedef struct {
    const gguf_type *type;
    bool is_pure;            /* the head gets the type too */
    const char *const *kept; /* tensors whose names match one of these globs stay as they are */
    size_t kept_count;
    weight_watch watch; /* may be NULL */
    void *context;
} convert_options;

/* The type by its name on a command line: q4_0, q8_0, f16 or f32. */
const gguf_type *convert_find_type(const char *name, err *e);

/* general.file_type of a model that is mostly of this type. */
uint32_t convert_get_file_type(const gguf_type *type);

/* The type that a tensor of g gets. */
const gguf_type *convert_choose_type(const gguf *g, const gguf_tensor *t, const convert_options *o);

bool convert_model(const gguf *g, const char *path, const convert_options *o, err *e);

#endif
