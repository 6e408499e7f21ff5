/* llama: a model of the llama architecture (SmolLM and its kin) as tapes.
 *
 * Everything the model does is one of three tapes, recorded once and played many times: a token
 * with its logits, a token with its argmax (the next step needs nothing from the CPU), a tile of a
 * prompt. What changes from token to token (token id, position, cache length) lives in a device
 * buffer that the kernels read. Weights are bound where they lie in the mapped file.
 *
 * The cache is checked for room before anything is submitted: a full one is EXIT_INCONCLUSIVE and
 * changes nothing. */
#ifndef ASSAY_LLAMA_H
#define ASSAY_LLAMA_H

#include "gguf.h"
#include "harness/check/check.h"
#include "harness/device/tape.h"

typedef struct {
    uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context;
    float eps, rope_base;
    bool tied; /* the head is the embedding */
} llama_shape;

typedef struct {
    uint32_t context; /* rows of the cache; 0: as many as the model was made for */
    uint32_t tile;    /* tokens of a prompt that go through the layers together; 0: the device's */
    bool shared_scratch; /* scratch that the CPU can see, to measure what that costs */
} llama_options;

typedef struct llama llama;

/* What the file says of the model's sizes, checked; and whether all it needs is in the file and can be
 * run. Both without a device. */
bool llama_read_shape(const gguf *g, llama_shape *out, err *e);
bool llama_check_file(const gguf *g, err *e);

/* lib and g must outlive the model. */
llama *llama_new(library *lib, const gguf *g, const llama_options *o, err *e);
void llama_free(llama *m);
const llama_shape *llama_get_shape(const llama *m);
uint64_t llama_get_cache_bytes(const llama *m);
uint32_t llama_get_tile(const llama *m);

/* Records and compiles what a prompt of so many tokens and decoding behind it need, so that the
 * first play is as fast as the next. */
bool llama_prepare(llama *m, size_t prompt_tokens, bool greedy, err *e);

/* Tokens in the cache, and how many more there is room for. */
uint32_t llama_get_position(const llama *m);
uint32_t llama_get_room(const llama *m);
void llama_rewind(llama *m, uint32_t position); /* forgets what is behind; at most the position */

/* logits (vocab) are those behind the last token. times (may be NULL) are the sums over the parts.
 */
bool llama_forward_prompt(llama *m, const uint32_t *tokens, size_t count, play_mode mode,
                          float *logits, play_times *times, err *e);
bool llama_forward_token(llama *m, uint32_t token, play_mode mode, float *logits, play_times *times,
                         err *e);
bool llama_forward_token_greedy(llama *m, uint32_t token, play_mode mode, uint32_t *next,
                                play_times *times, err *e);

/* The same tapes a launch at a time, each held against its oracle on what is really there;
 * o->observe is told of each. Where out says that a launch is wrong, logits are not filled. */
bool llama_forward_prompt_debug(llama *m, const uint32_t *tokens, size_t count, float *logits,
                                const check_options *o, check_result *out, err *e);
bool llama_forward_token_debug(llama *m, uint32_t token, float *logits, const check_options *o,
                               check_result *out, err *e);

/* Greedy decoding with several tokens in flight: start with a token, submit as many steps as there
 * is room for without waiting, collect them in order. Between start and the last collect nothing
 * else may be asked of the model. What was submitted behind a token that ends the text is collected
 * and then forgotten with llama_rewind. */
enum { LLAMA_IN_FLIGHT = 16 };
bool llama_start_greedy(llama *m, uint32_t token, err *e);
bool llama_submit_greedy(llama *m, err *e);
bool llama_collect_greedy(llama *m, uint32_t *next, play_times *times, err *e);

/* The tape of one token, for experiments: play it after llama_place has set what it reads. */
tape *llama_get_token_tape(llama *m, bool greedy, err *e);
bool llama_place(llama *m, uint32_t token, uint32_t position, err *e);

#endif
