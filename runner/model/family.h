/* model/family: what an architecture implements, and what it is built with.
 *
 * A family is: the sizes in a file (read_shape), the weights and buffers (open), the launches of a
 * forward pass (record), and the same pass in plain C (the reference). Everything else is done once
 * for all families in model.c (tapes, plays, decoding on the device) and state.c (rewinding).
 *
 * To add one: write <name>.c with a `const model_family <name>_family`, and add it to model.c.
 * tests/test_model.c has a whole recurrent family of 100 lines. */
#pragma once

#include "kernels/kernels.h"
#include "model.h"
#include "runner/choice/rules.h"
#include "shake.h"

/* A key of the metadata that is known, without the family's name and dot. */
typedef struct {
    const char *name;    /* a '*' stands for any text; NULL: the end of a list */
    const char *neutral; /* "0 1": the values without effect, others are refused; NULL: any value
                            is fine, as the family reads it or does not depend on it */
} known_key;

typedef struct model_family {
    const char *name;      /* general.architecture */
    const known_key *keys; /* a file with other keys of this family is refused */
    bool (*read_shape)(const gguf *g, model_shape *out, err *e);

    /* Finds the weights, makes the family's buffers, and leaves what the family knows in m->own.
     * m->shape, m->context and m->tile are set. Where m->device is NULL the file is only checked:
     * the functions below then look for tensors and make nothing. */
    bool (*open)(model *m, err *e);
    void (*close)(void *own); /* not the buffers; own may be NULL or half filled */

    /* The way of attention that is fastest for `tokens` tokens from a position on: a tape is
     * recorded for each way, and the position decides which one is played. NULL: the family has no
     * attention, and its tapes are the same everywhere. */
    const kernel *(*pick_attention)(const model *m, uint32_t tokens, uint32_t position);

    /* Records the forward pass of `tokens` tokens, from their ids (a slice of u32 on the device) to
     * the last layer; with has_head then the logits of the last one into m->logits. One token is
     * decoding; more, up to m->tile, are a tile of a prompt. Marks: "embedding", "layer 0" and on,
     * "head". What depends on the position is read from model_get_control. A recurrent family reads
     * and overwrites its state; a tape must be right from any position, whatever `attention` it was
     * recorded with (of pick_attention, or NULL). */
    bool (*record)(model *m, tape *t, slice ids, uint32_t tokens, const kernel *attention,
                   bool has_head, err *e);

    /* See model_reference_new. own is what new_reference returned; it and all that it needs come from
     * reference_make. */
    void *(*new_reference)(const model *m, size_t tokens, reference_memory *r, err *e);
    void (*step_reference)(void *own, uint32_t token, double *logits);
} model_family;

/* NULL with e set: no family of this name. */
const model_family *families_find(gguf_text name, err *e);

/* --- memory --- */

typedef enum {
    MEMORY_WEIGHTS,
    MEMORY_CACHE,   /* rows by position, written before they are read */
    MEMORY_STATE,   /* recurrent: zero at position 0; kept and restored by state.c */
    MEMORY_SCRATCH, /* activations: nothing in it outlives a play */
    MEMORY_VISIBLE, /* scratch that the CPU writes or reads */
    MEMORY_KINDS
} memory_kind;

/* (rows, columns) floats or 32-bit integers. The model frees what is made here. */
bool model_make(model *m, memory_kind kind, const char *label, size_t rows, size_t columns,
                slice *out, err *e);
/* Scratch of (tile, columns) each; those without columns are left out. */
typedef struct {
    const char *label;
    uint32_t columns;
    slice *at;
} scratch_part;
bool model_make_scratch(model *m, const scratch_part *parts, size_t count, err *e);
/* (context, columns) of m->cache */
bool model_make_cache(model *m, const char *label, size_t columns, slice *out, err *e);
/* A table that the CPU computed. */
bool model_make_table(model *m, const char *label, const float *values, size_t count, slice *out,
                      err *e);

/* --- weights --- */

/* A weight where it lies in the file. at.buffer is NULL for one that the file does not have. */
typedef struct {
    slice at;
    const weight_format *format; /* NULL: not there */
    uint32_t rows, columns;      /* a vector has 1 row */
} weight;

/* A tensor of the file, which is now known to belong to the model: a file with others is refused.
 * NULL: there is none of this name. */
const gguf_tensor *model_claim_tensor(model *m, const char *name);
/* W (rows, columns) in any format that kernels read; floats are F32 vectors (norms, biases). A
 * tensor that is missing or of another shape is an error. */
bool model_find_matrix(model *m, const char *name, uint32_t rows, uint32_t columns, weight *out,
                       err *e);
bool model_find_floats(model *m, const char *name, uint32_t count, weight *out, err *e);
/* A vector in any type that can be decoded, with as many elements in whatever dimensions; as floats. */
bool model_find_vector(model *m, const char *name, uint32_t count, weight *out, err *e);
/* The weights of a layer. */
typedef struct {
    const char *name;       /* "attn_q": its tensors are blk.3.attn_q.weight and .bias */
    uint32_t rows, columns; /* 0 rows: a vector */
    weight *out, *bias;     /* bias: NULL: none; of a matrix it is found if the file has it */
} layer_part;
bool model_find_parts(model *m, uint32_t layer, const layer_part *parts, size_t count, err *e);
/* "the model's block_count is 0: ..." */
bool model_refuse_size(err *e, const char *what, uint32_t value, const char *why);
/* Rows of the embedding, which must be as many as the vocabulary has tokens. */
bool model_read_vocab(const gguf *g, uint32_t *vocab, err *e);
/* "blk.3.attn_q.weight" into text (GGUF_NAME_BYTES). */
void model_name_tensor(char *text, uint32_t layer, const char *part, const char *kind);
/* The tensor of that name, or NULL. */
const gguf_tensor *model_find_part(const gguf *g, uint32_t layer, const char *part,
                                   const char *kind);
/* Rows of a matrix, values of a vector: several weights in one tensor. */
weight weight_take_rows(const weight *w, uint32_t first, uint32_t rows);
weight weight_take_values(const weight *v, uint32_t first, uint32_t count);

/* --- launches that every family has --- */

/* x (tokens, columns) = rows of the embedding */
bool model_record_embedding(model *m, tape *t, const weight *table, slice ids, slice x,
                            uint32_t tokens, err *e);
/* y = W x, to be given a bias, an activation or accumulation; and recorded for each of x (tokens,
 * columns), with the kernel that is chosen for it */
product_matrix weight_multiply(const weight *w, slice x, slice y);
/* Up to three products with the same x: if it is to be split into halves, once for all, and those in the same format
 * in one launch. */
bool model_record_matrices(model *m, tape *t, const product_matrix *matrices, uint32_t count,
                           uint32_t tokens, err *e);
/* Makes room for it on a device that can. columns: of the widest x. */
bool model_make_halves(model *m, uint32_t columns, err *e);
/* y (tokens, rows) = W x, or += */
bool model_record_product(model *m, tape *t, const weight *w, slice x, slice y, bool accumulates,
                          uint32_t tokens, err *e);
/* y (tokens, columns) += bias, where there is one */
bool model_record_bias(tape *t, const weight *bias, slice y, uint32_t tokens, err *e);
void model_mark_layer(tape *t, uint32_t layer);

/* --- the reference --- */

/* y (rows) = or += rows first.. of W times x, plus the bias where there is one */
void model_reference_multiply(shaker *s, const gguf_tensor *w, const gguf_tensor *bias,
                              size_t first, size_t rows, const double *x, bool accumulates,
                              double *y);
slice model_take_row(slice s, uint32_t row, uint32_t columns);

/* What changes from play to play, in device memory, in this order. */
typedef enum {
    CONTROL_TOKEN,
    CONTROL_POSITION,
    CONTROL_LENGTH,
    CONTROL_STEP,
    CONTROL_WORDS
} control_word;
param model_get_control(const model *m, control_word word);

/* --- the model itself --- */

enum { MODEL_PROMPT_TAPES = 6, MODEL_TOKEN_TAPES = 16 };

typedef struct {
    tape *tape;
    const kernel *attention;
} token_tape;

typedef struct {
    tape *tape;
    uint32_t tokens;
    const kernel *attention;
    bool has_head;
    uint64_t used; /* when, counted in prompts: the oldest makes room */
} prompt_tape;

typedef struct {
    buffer *buffer;
    memory_kind kind;
    void *kept; /* MEMORY_STATE: its contents at kept_position; NULL: zeros */
} model_buffer;

struct model {
    const model_family *family;
    void *own; /* the family's */
    library *lib;
    device *device;         /* NULL while a file is only checked, or memory planned */
    uint64_t planned_bytes; /* that buffers would take, weights apart; without a device */
    const gguf *file;
    bool *is_claimed; /* each tensor of the file */
    model_shape shape;
    uint32_t context; /* 0: no limit */
    uint32_t tile;
    bool shared_scratch;
    model_fusion fusion;
    const weight_format *cache; /* &format_f16, or NULL: floats */
    variants_basis variants;    /* which kernels it takes */
    slice logits;               /* (vocab) */
    slice halves, powers;       /* scratch: x of products, split; no buffer: it never is */
    /* the rest is for model.c and state.c */
    slice ids;     /* (tile) of a prompt */
    slice control; /* CONTROL_WORDS */
    slice history; /* (MODEL_IN_FLIGHT) tokens that greedy steps chose */
    slice argmax_values, argmax_indices, next;
    model_buffer *buffers; /* all of them */
    size_t buffer_count, buffer_capacity;
    bool (*goes_on)(void *context); /* may be NULL; asked between tiles */
    void *watch_context;
    /* One per way of attention, recorded at first use; [1]: greedy. */
    token_tape tokens[2][MODEL_TOKEN_TAPES];
    uint32_t band; /* of keys, in which a token takes this way of attention; 0: none yet */
    const kernel *attention;
    prompt_tape prompts[MODEL_PROMPT_TAPES];
    uint64_t prompts_played;
    uint32_t position;
    ticket flying[MODEL_IN_FLIGHT];
    uint32_t submitted, collected; /* greedy steps since the start */
    /* recurrent state only */
    bool is_recurrent, is_unsettled; /* unsettled: the state is not that of the position */
    uint32_t kept_position;
    uint32_t *fed; /* (position) tokens seen */
    size_t fed_capacity;
    uint32_t flying_token; /* that the next step in flight was fed with */
};

/* keys.c: false, with e naming it, where the file holds something that may change the result
 * and is not known. Tensors are known when the family has claimed them. */
bool model_check_keys(const gguf *g, const model_family *f, err *e);
bool model_check_tensors(const model *m, err *e);

/* state.c */
void model_note_fed(model *m, const uint32_t *tokens, size_t count); /* at the position */
void model_unsettle(model *m);
/* Recurrent buffers as they were at the last position that was saved, which becomes the position;
 * and saves them. */
bool model_restore_state(model *m, err *e);
bool model_save_state(model *m, err *e);
