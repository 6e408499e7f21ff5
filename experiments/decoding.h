/* decoding: what the experiments on whole tokens share: ways to play one token, interleaved. */
#ifndef ASSAY_DECODING_H
#define ASSAY_DECODING_H

#include "experiment.h"

/* One way to get the next token from a decoder. */
typedef struct {
    const char *name;
    lab_decoder *decoder;
    play_mode mode;
    bool greedy; /* the device chooses; else the CPU reads the logits and finds the largest */
} decoding_way;

/* Times all ways interleaved, one row each, with columns `variant`, `tok_s` and `command_buffers`
 * besides the usual ones. The time is the caller's: from the call until the token is known. */
bool decoding_time(lab *l, sheet *s, const decoding_way *ways, size_t count, err *e);

/* Of two rows: the ratio of their median wall times, b / a, and whether the quartiles are apart. */
double decoding_find_ratio(const sheet *s, const char *a, const char *b);
bool decoding_is_clear(const sheet *s, const char *a, const char *b);

#endif
