/* lab: what experiments measure with: the device, a meter, a model, and how long they may take.
 *
 * The measuring itself is meter.h's. The level "smoke" measures nothing meaningful: it exists to
 * see that an experiment works. No roof is measured and "cold" is only another set of buffers. */
#pragma once

#include "harness/measure/meter.h"
#include "runner/model/model.h"
#include "sheet.h"

typedef enum { LEVEL_FULL, LEVEL_QUICK, LEVEL_SMOKE, LEVEL_COUNT } lab_level;
const char *lab_get_level_name(lab_level l); /* "full", "quick", "smoke" */

typedef struct lab lab;

typedef struct {
    const char *device; /* NULL: ASSAY_DEVICE, else auto */
    const char *model;  /* NULL: the best one found */
    lab_level level;
    uint64_t seed;
} lab_options;

lab *lab_new(const lab_options *o, err *e);
void lab_free(lab *l);
lab_level lab_get_level(const lab *l);
library *lab_get_library(lab *l);
const device_facts *lab_get_facts(const lab *l);
uint64_t lab_get_seed(const lab *l);
/* Which kernels a model would take. */
const struct variants_basis *lab_get_variants(const lab *l);

/* How many of `count` points a sweep has at this level: all of them, `quick`, or one or two. */
size_t lab_choose(const lab *l, size_t count, size_t quick);

/* Measured at first use; NULL in *out at the level smoke. */
bool lab_find_roof(lab *l, roof **out, err *e);
/* Where the last-level cache ends; something small at the level smoke. */
bool lab_find_cache(lab *l, size_t *bytes, err *e);

/* Timing ------------------------------------------------------------------------------------ */

/* A measurement (meter.h) of a case. Filled either way: close it. */
bool lab_open_case(lab *l, measurement *c, const op *o, const kernel *k, shape s,
                   timing_regime regime, timing_cache cache, err *e);
void lab_close_cases(measurement *cases, size_t count);

/* meter_time; in a smoke run no more samples than needed. */
bool lab_time(lab *l, measurement *cases, size_t count, err *e);

/* meter_time_again: more samples of the same, for at most `seconds`. */
bool lab_time_again(lab *l, measurement *cases, size_t count, double seconds, err *e);

/* Fills the columns that every row has (results.h), except those the experiment has already filled,
 * and adds the samples to the sheet. Needs a key. */
void lab_put(lab *l, sheet *s, const measurement *c);

/* Models ------------------------------------------------------------------------------------ */

/* A model with some tokens in its cache, and the token to feed next. Its forward pass was compared
 * with its oracles, launch by launch. */
typedef struct {
    model *model;
    uint32_t position, token; /* the token to feed, and its position */
    uint32_t next;            /* the token that must follow: the argmax */
    float *logits;            /* (vocab) expected after it */
    float *room;              /* (vocab) for logits to compare with them */
} lab_decoder;

/* position 0: as deep as the level asks for. */
bool lab_open_decoder(lab *l, const model_options *o, uint32_t position, lab_decoder *d, err *e);
void lab_close_decoder(lab_decoder *d);

/* Rewinds the decoder's model, and compares what it then computes with what is expected. */
void lab_rewind_decoder(lab_decoder *d);
bool lab_check_logits(const lab_decoder *d, const float *logits, const char *what, err *e);
bool lab_check_next(const lab_decoder *d, uint32_t next, const char *what, err *e);
/* The sample of a play, by another clock than its own if wall_ns is not t->wall_ns. */
timing_sample lab_get_sample(const play_times *t, uint64_t wall_ns);
/* A greedy token of a lab_decoder, as a timing_source. */
bool lab_take_token(void *decoder, timing_sample *out, err *e);
/* A launch of a token, named for people: "kernel: buffer that it reads > buffer that it writes". */
void lab_name_launch(const struct launch *l, char *text, size_t size);

/* From now on the model is of this family (runner/model/family.h), NULL: of any. The one given with the
 * options is used if it is. */
void lab_choose_family(lab *l, const char *family);

/* `count` random ids, determined by the seed. */
void lab_draw_tokens(const lab *l, uint32_t vocab, uint32_t *tokens, size_t count);
bool lab_read_model_shape(lab *l, model_shape *out, err *e);
/* "smollm2-135m-instruct-q4_0.gguf", for rows and notes; "" before a model was opened. */
const char *lab_get_model_name(const lab *l);
/* The type of most of the weights in its layers, such as "Q4_0"; "" before it is opened. */
const char *lab_get_model_weights(const lab *l);
