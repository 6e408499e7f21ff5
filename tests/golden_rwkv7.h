/* golden_rwkv7: a small RWKV-7 whose weights are given by a formula, and what it must compute. The
 * numbers were confirmed with llama.cpp's CPU backend on the same file.
 *
 * 2 layers of 2 heads of 64, a feed-forward of 512, a vocabulary of 32, adapters of rank 32 and 64
 * (the gate), all in F32. */
#ifndef ASSAY_TESTS_GOLDEN_RWKV7_H
#define ASSAY_TESTS_GOLDEN_RWKV7_H

#include "runner/gguf/gguf.h"

enum { GOLDEN_HIDDEN = 128, GOLDEN_LAYERS = 2, GOLDEN_VOCAB = 32, GOLDEN_TOKENS = 4 };

/* Ways in which writers of such files differ, and what may be wrong with one. */
typedef struct {
    bool no_dummies;     /* no value residual in the first layer */
    bool more_dims;      /* vectors have dimensions of 1, or are (heads, head size) */
    bool half_vectors;   /* mixes and r_k are F16 */
    const char *without; /* a tensor that is not there; NULL: all are */
    const char *cut;     /* a tensor with half the rows; NULL: none */
    uint32_t head_size;  /* 0: 64 */
    const char *key;     /* a number that is added; NULL: none */
    uint32_t value;
} golden_options;

bool golden_rwkv7_write(const char *path, const golden_options *o, err *e);

extern const uint32_t golden_tokens[GOLDEN_TOKENS];
/* After each token: the first 8 logits, the largest, the sum of all. */
typedef struct {
    double logits[8], sum;
    uint32_t best;
} golden_output;
extern const golden_output golden_outputs[GOLDEN_TOKENS];

/* After the last: the first values of the state, S[1][5][9], the sum of |S|, and the shifts. */
typedef struct {
    double first[4], other, sum, time_shift[4], channel_shift[4];
} golden_state;
extern const golden_state golden_states[GOLDEN_LAYERS];

#endif
