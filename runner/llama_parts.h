/* llama_parts: what the files of the llama model share, and nobody else sees. llama_file.c finds
 * the weights, llama_record.c records the tapes, llama.c plays them. */
#ifndef ASSAY_LLAMA_PARTS_H
#define ASSAY_LLAMA_PARTS_H

#include "kernels/kernels.h"
#include "llama.h"

/* A weight where it lies in the file. at.buffer is NULL for one that the file does not have. */
typedef struct {
    slice at;
    const weight_format *format;
    uint32_t rows, columns; /* a vector has 1 row */
} weight;

typedef struct {
    weight attn_norm, q, k, v, attn_output, ffn_norm, gate, up, down;
    weight q_bias, k_bias, v_bias, attn_output_bias, gate_bias, up_bias, down_bias;
} llama_layer;

typedef struct {
    weight embedding, norm, head;
    llama_layer *layers;
} llama_weights;

/* What changes from play to play, in device memory, in this order. */
enum { STATE_TOKEN, STATE_POSITION, STATE_LENGTH, STATE_STEP, STATE_WORDS };

/* Activations; those of a tile have a row for each of its tokens. */
typedef struct {
    slice x, normed, q, k, v, attention, gate, up, activated; /* (tile, ...) */
    slice logits, argmax_values, argmax_indices, next;
    slice ids;     /* (tile) of a prompt */
    slice state;   /* STATE_WORDS */
    slice history; /* (LLAMA_IN_FLIGHT) tokens that greedy steps chose */
    slice freqs;   /* (head_dim / 2) turns a position, where rope_base does not say all */
} llama_scratch;

typedef struct {
    slice keys, values; /* (context, kv_heads, head_dim) */
} llama_cache;

enum { LLAMA_PROMPT_TAPES = 4 };

typedef struct {
    tape *tape;
    uint32_t tokens;
    bool has_head;
    uint64_t used; /* when, counted in prompts: the oldest makes room */
} llama_prompt_tape;

struct llama {
    library *lib;
    device *device;
    const gguf *file;
    llama_shape shape;
    uint32_t context, tile;
    llama_weights weights;
    llama_scratch scratch;
    llama_cache *cache; /* a layer each */
    buffer **buffers;   /* all of them, freed with the model */
    size_t buffer_count, buffer_capacity;
    tape *token, *greedy; /* recorded when they are first asked for */
    llama_prompt_tape prompts[LLAMA_PROMPT_TAPES];
    uint64_t prompts_played;
    uint32_t position;
    ticket flying[LLAMA_IN_FLIGHT];
    uint32_t submitted, collected; /* greedy steps since the start */
};

/* Takes over b (NULL: fails with e as it is) and gives a slice of all of it. */
bool llama_own(llama *m, buffer *b, slice *out);

/* Finds every weight, checks its shape and wraps it for the device. */
bool llama_find_weights(llama *m, err *e);

/* How much a position turns each pair of a head, where scaling or factors in the file say so:
 * *needed is false and nothing is filled where rope_base says it all. */
bool llama_read_freqs(const gguf *g, const llama_shape *s, float *freqs, bool *needed, err *e);

/* The layers for `tokens` of the scratch, from embedding to the last residual; then, where asked
 * for, the logits of the last of them; then the argmax and the step to the next token. */
bool llama_record_prompt(llama *m, tape *t, uint32_t tokens, bool has_head, err *e);
bool llama_record_token(llama *m, tape *t, bool greedy, err *e);

#endif
