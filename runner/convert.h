/* convert: writes a model again with its weights in another type.
 *
 * Which tensors change follows the rule of llama-quantize, and the bytes of a block are those of
 * ggml's reference quantisation: matrices become the type that is asked for; vectors, norms and the
 * small tensors that suffer from it stay as they are; with a quantised type the head (the embedding
 * where there is no other) becomes Q8_0 unless all is to be pure. What is in the type already is
 * copied.
 *
 * The one surprise: where llama-quantize would give the head Q6_K (Q4_0 with rows of whole blocks
 * of 256) it is Q8_0 here too: larger, and exact to the reference. */
#ifndef ASSAY_CONVERT_H
#define ASSAY_CONVERT_H

#include "gguf.h"

/* Told how many of the bytes are done; false stops the work, and nothing is left behind. */
typedef bool (*convert_watch)(void *context, uint64_t done, uint64_t total);

typedef struct {
    const gguf_type *type;
    bool is_pure;            /* the head is no exception */
    const char *const *kept; /* tensors whose names match one of these globs stay as they are */
    size_t kept_count;
    convert_watch watch; /* NULL: nobody is told */
    void *context;
} convert_options;

/* The type by its name on a command line: q4_0, q8_0, f16 or f32. */
const gguf_type *convert_find_type(const char *name, err *e);

/* general.file_type of a model that is mostly of this type. */
uint32_t convert_get_file_type(const gguf_type *type);

/* The type that a tensor of g gets. */
const gguf_type *convert_choose_type(const gguf *g, const gguf_tensor *t, const convert_options *o);

/* count values, whole blocks of f. */
void convert_encode(const weight_format *f, const float *values, size_t count, void *out);

/* Memory is a few hundred KB, whatever the size of the model. */
bool convert_model(const gguf *g, const char *path, const convert_options *o, err *e);

#endif
