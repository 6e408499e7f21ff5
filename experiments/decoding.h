/* decoding: what the experiments on whole tokens share: ways to play one token, timed in turns. */
#ifndef ASSAY_DECODING_H
#define ASSAY_DECODING_H

#include "experiment.h"

/* One way to get the next token from a decoder. */
typedef struct {
    const char *name;
    lab_decoder *decoder;
    play_mode mode;
    bool
        greedy; /* the device chooses; else the logits are read and the CPU looks for the largest */
} decoding_way;

/* Times each way in turns, a row each with columns `variant`, `tok_s` and `command_buffers` besides
 * the usual ones. The time is that of the caller: from the call to the token known. */
bool decoding_time(lab *l, sheet *s, const decoding_way *ways, size_t count, err *e);

/* Of the sample files two rows: median ratio of walls b / a, and whether the quartiles overlap. */
double decoding_find_ratio(const sheet *s, const char *a, const char *b);
bool decoding_is_clear(const sheet *s, const char *a, const char *b);

#endif
