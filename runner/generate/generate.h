/* generate: from a prompt to more tokens: prefill, then decoding until something ends it.
 *
 * Where the sampler only takes the largest logit, the device chooses and several steps are in
 * flight; otherwise each token's logits come back to the CPU. */
#pragma once

#include "runner/model/model.h"
#include "runner/tokenizer/tokenizer.h"
#include "sampler.h"

typedef enum {
    END_COUNT,   /* max_tokens */
    END_TOKEN,   /* the model said so */
    END_CONTEXT, /* the cache is full */
    END_CALLER   /* emit returned false */
} end_reason;

const char *end_reason_get_text(end_reason r); /* "context full" */

typedef struct {
    size_t max_tokens;
    uint32_t in_flight; /* steps handed to the device ahead; 1 to MODEL_IN_FLIGHT, 0: the default */
    const tokenizer *tokenizer; /* says which tokens end the text; NULL: none does */
    /* Told of each token but the one that ends the text; false: stop. */
    bool (*emit)(void *context, uint32_t token);
    void *context;
} generate_options;

typedef struct {
    size_t prompt_tokens, tokens; /* tokens: emitted */
    size_t decoded;               /* forward passes after the prompt, which decode_ns is for */
    uint64_t prefill_ns, decode_ns;
    end_reason end;
} generate_report;

/* Continues from the model's position; a prompt that does not fit is an error. Logits that are not
 * finite are EXIT_WRONG, and e names the first launch that wrote such a value. */
bool generate(model *m, sampler *s, const uint32_t *prompt, size_t count, const generate_options *o,
              generate_report *out, err *e);
