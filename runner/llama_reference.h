/* llama_reference: the whole forward pass in plain C and double precision, from the file alone.
 *
 * Launches are held against oracles one by one; this says whether they are the right launches, with
 * the right weights, in the right order. It shares nothing with the tapes. */
#ifndef ASSAY_LLAMA_REFERENCE_H
#define ASSAY_LLAMA_REFERENCE_H

#include "llama.h"

typedef struct llama_reference llama_reference;

/* g must be a file that llama_new takes. Room for `context` tokens. */
llama_reference *llama_reference_new(const gguf *g, const llama_shape *s, size_t context, err *e);
void llama_reference_free(llama_reference *r);

/* The next token; logits (vocab) may be NULL where nobody asks for them. */
void llama_reference_step(llama_reference *r, uint32_t token, double *logits);

#endif
