/* model: what a verb or an experiment needs of a model, whatever its architecture.
 *
 * A model is a few tapes, recorded once and played many times: one token with its logits, one token
 * whose successor the device chooses (the next step needs nothing from the CPU), one tile of a
 * prompt. What changes from token to token (id, position, length) lives in a device buffer that the
 * kernels read. Which kernel of attention is fastest depends on how many keys there are: each that is
 * chosen has tapes of its own, and the position of a step decides which tape is played. Every tape is
 * right at every position. Weights are bound where they lie in the mapped file.
 *
 * What the layers compute is up to the model's family, which the file names
 * (general.architecture): family.h says what a family implements, model.c lists them.
 *
 * Two kinds of memory of the past are served alike. A cache has one row per token: going back is
 * free, and the context limits the length. A recurrent state is overwritten by every token: going
 * back means restoring a kept state and replaying the tokens since, and there is no limit. */
#pragma once

#include "harness/check/check.h"
#include "harness/device/tape.h"
#include "runner/gguf/gguf.h"

typedef struct {
    char family[24];    /* "llama": general.architecture */
    char size_name[16]; /* "256M": what llama.cpp calls a model of this shape; "": nothing */
    uint32_t layers, hidden, vocab;
    uint32_t context; /* tokens that the model was made for; 0: any number */
} model_shape;

/* How many ops a launch does, where the family and the weights leave a choice. */
typedef enum {
    FUSION_BEST, /* as many as pays off on the device */
    FUSION_NONE, /* one, to measure what fusing saves */
    FUSION_MOST, /* as on a GPU, to check it on the software device */
    FUSION_ROWS  /* to measure it: norms in the products after them, each row of which computes its
                    own; a family without such products fuses as FUSION_BEST */
} model_fusion;

typedef struct {
    uint32_t context; /* tokens to have room for; 0: as many as the model was made for */
    uint32_t tile;    /* tokens of a prompt that go through the layers together; 0: the device's */
    bool shared_scratch; /* scratch that the CPU can see, to measure what that costs */
    model_fusion fusion;
    const weight_format *cache;        /* of keys and values: &format_f16; NULL: floats */
    const struct model_family *family; /* NULL: the one that the file names */
    /* Which kernels are fastest, as measured; NULL: as rules say. Must outlive the model. */
    const struct tuned *tuned;
    const struct choice_watch *watch; /* NULL, or is called with each choice */
} model_options;

typedef struct model model;

/* The path of an existing model file. given NULL: the model that comes with the project. */
bool model_file_find(const char *given, char *path, size_t size, err *e);

/* The sizes that the file states, checked; and whether all that the model needs is in the file and
 * can be run. Both without a device. */
bool model_read_shape(const gguf *g, model_shape *out, err *e);
bool model_check_file(const gguf *g, err *e);

/* lib and g must outlive the model. */
model *model_new(library *lib, const gguf *g, const model_options *o, err *e);
void model_free(model *m);
const model_shape *model_get_shape(const model *m);
const gguf *model_get_file(const model *m);
uint32_t model_get_tile(const model *m);
const char *model_get_cache_name(const model *m); /* "f16" or "f32" */

/* The launches of a layer on a tape of a model; false if it has no such layer. */
bool model_find_layer(const tape *t, uint32_t layer, size_t *first, size_t *end);

/* Bytes by what they are for. */
typedef struct {
    uint64_t weights; /* those that are bound, where they lie in the file */
    uint64_t state;   /* the cache, or the recurrent state */
    uint64_t scratch;
} model_memory;
model_memory model_get_memory(const model *m);

/* Asked between the tiles of a prompt: false ends it with EXIT_INCONCLUSIVE. NULL: never. */
void model_set_watch(model *m, bool (*goes_on)(void *context), void *context);

/* Records and compiles what a prompt of this length at a position needs, and decoding this many tokens
 * after it, so that the first play is as fast as the next. */
bool model_prepare(model *m, uint32_t position, size_t prompt_tokens, size_t tokens, bool greedy,
                   err *e);

/* Forward passes ---------------------------------------------------------------------------- */

/* Each checks for room before anything is submitted: a full context is EXIT_USAGE and
 * changes nothing. logits (vocab) are those of the last token. times (may be NULL) are summed over
 * the tiles. */
bool model_forward_prompt(model *m, const uint32_t *tokens, size_t count, play_mode mode,
                          float *logits, play_times *times, err *e);
bool model_forward_token(model *m, uint32_t token, play_mode mode, float *logits, play_times *times,
                         err *e);
bool model_forward_greedy(model *m, uint32_t token, play_mode mode, uint32_t *next,
                          play_times *times, err *e);

/* The logits of the last play, whichever it was. */
bool model_read_logits(const model *m, float *logits, err *e);

/* The same tapes launch by launch, each launch compared with its oracle on the real activations;
 * o->observe is called for each. Where out says that a launch is wrong, logits are not filled and the
 * position stays. */
bool model_debug_prompt(model *m, const uint32_t *tokens, size_t count, float *logits,
                        const check_options *o, check_result *out, err *e);
bool model_debug_token(model *m, uint32_t token, float *logits, const check_options *o,
                       check_result *out, err *e);

/* Greedy decoding with several tokens in flight: start with a token, submit up to MODEL_IN_FLIGHT
 * steps without waiting, collect them in order. Between start and the last collect nothing else may
 * be asked of the model. Steps submitted after a token that ends the text are collected, then
 * dropped with model_rewind. */
enum { MODEL_IN_FLIGHT = 16 };
bool model_start_greedy(model *m, uint32_t token, err *e);
bool model_submit_greedy(model *m, err *e);
bool model_collect_greedy(model *m, uint32_t *next, play_times *times, err *e);
/* All of that: up to `count` tokens after `first`, with this many in flight, until `take` returns false or
 * the context is full. The position is then after the last token that was taken. */
bool model_decode_greedy(model *m, uint32_t first, size_t count, uint32_t in_flight,
                         bool (*take)(void *context, uint32_t token), void *context, err *e);

/* Position ---------------------------------------------------------------------------------- */

/* As if `tokens` tokens had been seen, with pseudo-random keys and values in their rows of the cache: no
 * text, but attention takes as long as it would, and no prompt has to be run. */
bool model_fill_cache(model *m, uint32_t tokens, uint64_t seed, err *e);
/* Has it a cache, and nothing recurrent? */
bool model_has_cache(const model *m);

/* Tokens seen so far, and how many more there is room for (UINT32_MAX: any number). */
uint32_t model_get_position(const model *m);
uint32_t model_get_room(const model *m);

/* Forgets what came after a position, which is at most the current one. Costs nothing by itself:
 * where the state is recurrent, the next play brings it back first, from the state that was kept
 * at or before the position and the tokens since. model_settle does that now, so that the time of
 * the next play is its own. */
void model_rewind(model *m, uint32_t position);
bool model_settle(model *m, err *e);

/* Makes rewinding to the current position exact and cheap. One position is kept, and the start. */
bool model_keep(model *m, err *e);

/* What the model remembers of the tokens so far, to a file and back: the text goes on as if nothing
 * had happened, in this process or another. Loading replaces what there was; a file that is damaged
 * or of another model is refused and changes nothing. Saving replaces a file whole or not at all. */
#define MODEL_NO_TOKEN UINT32_MAX
/* pending: a token that was chosen but not fed yet, as the last one of a text; to be fed first when
 * the text goes on. MODEL_NO_TOKEN: none. */
bool model_write_state(model *m, const char *path, uint32_t pending, err *e);
bool model_read_state(model *m, const char *path, uint32_t *pending, err *e);

/* Tapes ------------------------------------------------------------------------------------- */

/* The tape of one token at the current position, for experiments that play it or its launches
 * themselves, any number of times after model_place has set what it reads. Its marks name the parts:
 * "embedding", "layer 0" and on, "head", "choice". */
tape *model_get_token_tape(model *m, bool greedy, err *e);
/* They are recorded again when they are needed. */
void model_forget_tapes(model *m);
/* Does decoding from one position up to another take more than one tape? */
bool model_changes_tape(const model *m, uint32_t from, uint32_t to);
bool model_place(model *m, uint32_t token, err *e);

/* Reference --------------------------------------------------------------------------------- */

/* The whole forward pass in plain C and double precision, from the file alone. Launches are
 * compared with oracles one by one; this tells whether they are the right launches, with the right
 * weights, in the right order. It shares nothing with the tapes. */
typedef struct model_reference model_reference;
/* With room for this many tokens. is_shaken: with the errors that single precision may make (shake.h). */
model_reference *model_reference_new(const model *m, size_t tokens, bool is_shaken, err *e);
void model_reference_free(model_reference *r);
void model_reference_step(model_reference *r, uint32_t token, double *logits); /* may be NULL */
