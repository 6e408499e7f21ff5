/* decoding: what the experiments on whole tokens share: ways to play one token, interleaved.
 *
 * Their rates are those of one token repeated at a context of 32, by which the ways can be
 * compared. The rate of the experiment decode is that of generated text: every token follows from
 * the one before, and the context grows. The two differ by depth and by the cost of a rewind. */
#pragma once

#include "experiment.h"

/* One way to get the next token from a decoder. */
typedef struct {
    const char *name;
    lab_decoder *decoder;
    play_mode mode;
    bool greedy; /* the device chooses; else the CPU reads the logits and finds the largest */
    /* PLAY_MARKS with other marks than the tape's own, in their order; NULL: with those. */
    mark *marks;
    size_t mark_count;
} decoding_way;

/* Times all ways interleaved, one row each, with columns `variant`, `tok_s` and `command_buffers`
 * besides the usual ones. The time is the caller's: from the call until the token is known. */
bool decoding_time(lab *l, sheet *s, const decoding_way *ways, size_t count, err *e);

/* A run of greedy tokens: how they are played, and what was chosen. */
enum { DECODING_MOST = 64 };
typedef struct {
    const char *name;
    lab_decoder *decoder;
    play_mode mode;
    bool greedy;        /* as above */
    uint32_t in_flight; /* tokens submitted ahead; 0: each is waited for before the next */
    uint32_t count, chosen[DECODING_MOST];
    const uint32_t *wanted; /* (count) of another run; NULL: nothing yet */
} decoding_run;

/* A timing_source: a sample is a decoding_run, divided by its tokens, which must be those that are
 * wanted. */
bool decoding_take_run(void *run, timing_sample *out, err *e);

/* A prompt from a state of nothing to the logits of its last token. */
typedef struct {
    model *model;
    const uint32_t *tokens;
    size_t count;
    bool is_one_by_one;
    float *logits;     /* (vocab) */
    const float *want; /* (vocab) that these must be, bit for bit; NULL: any */
} decoding_prompt;
bool decoding_take_prompt(void *prompt, timing_sample *out, err *e); /* a timing_source */

/* Of two rows: the ratio of their median wall times, b / a, and whether the quartiles are apart. */
double decoding_find_ratio(const sheet *s, const char *a, const char *b);
bool decoding_is_clear(const sheet *s, const char *a, const char *b);

/* A metric in tok/s of one way, with its quartiles. */
void decoding_add_rate(sheet *s, const char *metric, const char *variant);
/* The spread of the ratio b / a: from the quartiles that are nearest to those that are farthest. */
void decoding_find_ratios(const sheet *s, const char *a, const char *b, double *low, double *high);
