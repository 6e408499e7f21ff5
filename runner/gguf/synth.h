/* synth: models of random weights in the shape of real ones, to measure and to test with.
 *
 * The same seed and options give the same bytes on every machine: no operation is used that is
 * not exactly rounded. Weights have a spread of 1 / sqrt(row), so activations neither die nor
 * explode, and logits have one of about 3. The vectors of a recurrent layer are in the range
 * that trained ones are in, so that its state stays finite, however long the text is. What such
 * a model says is noise; its tokenizer is a real one. */
#pragma once

#include "convert.h"

typedef struct {
    const char *name, *about;
    uint32_t layers, hidden, heads, kv_heads, ffn, vocab, context;
    float eps, rope_base;
    bool is_tied;      /* the head is the embedding */
    uint32_t ranks[4]; /* of the adapters w, a, v, g of an RWKV-7; 0: a llama */
} synth_shape;

const synth_shape *synth_get_shape(size_t i); /* in the order of the table; NULL: no more */
const synth_shape *synth_find_shape(const char *name, err *e);

typedef struct {
    uint64_t seed;
    const gguf_type *type; /* of the layers; with a quantised one embedding and head of a llama are
                              Q8_0, and an RWKV-7 is as convert would make it */
    uint32_t layers;       /* 0: as many as the shape has */
    weight_watch watch;    /* may be NULL */
    void *context;
} synth_options;

bool synth_write_model(const synth_shape *s, const char *path, const synth_options *o, err *e);

/* A byte-level BPE vocabulary of `count` tokens: three special ones, the 256 bytes, then a token
 * for each merge. Pairs of letters come first, then pairs of these. */
enum { SYNTH_SPECIALS = 3, SYNTH_MIN_VOCAB = SYNTH_SPECIALS + 256, SYNTH_MAX_VOCAB = 400000 };

typedef struct {
    gguf_text *tokens, *merges;
    int32_t *types;
    size_t count, merge_count;
    char *letters; /* what the texts point to */
} synth_vocab;

void synth_vocab_make(synth_vocab *v, uint32_t count);
/* A World vocabulary: one control token, the 256 bytes, the same pairs of letters and pairs of
 * pairs, and padding at the end. It has no merges. */
enum { SYNTH_WORLD_MIN = 1 + 256, SYNTH_WORLD_PADDING = 6 };
void synth_vocab_make_world(synth_vocab *v, uint32_t count);
void synth_vocab_free(synth_vocab *v);
