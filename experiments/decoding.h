/* decoding: what the experiments on whole tokens share: ways to play one token, timed interleaved.
 *
 * Rates of these experiments are those of one token played again and again after 32 others, which
 * is what the ways can be compared by. The rate of decode is that of text: runs of tokens that
 * each follow from the one before, at other depths. The two differ by what a rewind costs and by
 * the depth, so each says which it is. */
#ifndef ASSAY_DECODING_H
#define ASSAY_DECODING_H

#include "experiment.h"

/* One way to get the next token from a decoder. */
typedef struct {
    const char *name;
    lab_decoder *decoder;
    play_mode mode;
    bool greedy; /* the device chooses; else the logits are read and the CPU finds the largest */
} decoding_way;

/* Times all ways interleaved, one row each with columns `variant`, `tok_s` and `command_buffers` besides
 * the usual ones. The time is that of the caller: from the call to the token known. */
bool decoding_time(lab *l, sheet *s, const decoding_way *ways, size_t count, err *e);

/* Of the sample files two rows: median ratio of walls b / a, and whether the quartiles overlap. */
double decoding_find_ratio(const sheet *s, const char *a, const char *b);
bool decoding_is_clear(const sheet *s, const char *a, const char *b);

/* A metric in tok/s of one way, with its quartiles. */
void decoding_add_rate(sheet *s, const char *metric, const char *variant);
/* The spread of the ratio b / a: from the quartiles that are nearest to those that are farthest. */
void decoding_find_ratios(const sheet *s, const char *a, const char *b, double *low, double *high);

#endif
