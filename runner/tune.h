/* tune: measures which way of a choice is fastest on a device.
 *
 * Every way is first checked against its oracle on the shape and timed for a moment: one that is
 * wrong is reported and never chosen, and one that is far from the fastest is left out. The others
 * are timed interleaved with the rule's, and the fastest of those that are significantly faster
 * (verdict.h) replaces it; else the rule's way stays. Launches are chained, as in a model; the
 * caches are cold on a GPU, where the weights of other layers have passed through them.
 *
 * A worker is `assay tune --worker`, as in bench.h: it is given a choice and answers with what it
 * found. What was decided before is in the table, so that the steps of a fusion are those that the
 * model would take. */
#pragma once

#include "gguf.h"
#include "harness/measure/meter.h"
#include "tuned.h"

typedef struct {
    uint64_t seed;
    const char *device;
    math_mode math;
    double budget_s; /* of samples, for each way that comes near the fastest */
    double timeout_s;
    double min_effect; /* percent: a smaller gain is none */
    const char *cache; /* "warm" or "cold"; NULL: as above */
    const char *table; /* the file: read by the worker, written by the caller */
} tune_settings;

typedef enum {
    WAY_TIMED,  /* to the end, interleaved with the rule's */
    WAY_FAR,    /* for a moment: far slower than the fastest */
    WAY_WRONG,  /* its outputs are wrong: why says how */
    WAY_CANNOT, /* this device or this shape is not for it */
} way_state;

typedef struct {
    char name[96];
    way_state state;
    double ns, iqr;
    double gain, low, high; /* WAY_TIMED: over the rule's */
    char why[200];
} tune_way;

typedef struct {
    bool made; /* else `why` says why nothing was chosen */
    char why[256];
    tuned_row row; /* choice and way are filled in by tune_run */
    tune_way ways[CHOICE_WAYS];
    size_t count, chosen; /* ways[0] is the rule's */
} tune_outcome;

typedef struct {
    choice *items;
    size_t count, capacity;
} choice_list;

void choice_list_add(choice_list *l, const choice *c); /* unless it is there */
/* Parts before what they are parts of. */
void choice_list_sort(choice_list *l);
void choice_list_free(choice_list *l);

/* What the tapes of a model choose among: of a token, of prompts of these lengths, with caches of
 * several sizes; also in steps where it fuses. */
bool tune_list_model(library *lib, const gguf *g, const uint32_t *tokens, size_t count,
                     choice_list *out, err *e);

/* Tasks of the worker that only compile a kernel begin with this. */
#define TUNE_COMPILE "compile "

/* All choices, each delivered when it is decided; before that, their kernels are compiled by several
 * workers at the same time. */
typedef bool tune_deliver(void *context, const choice *c, const tune_outcome *o, err *e);
bool tune_run(const tune_settings *s, const device_facts *f, const choice_list *choices,
              tune_deliver *deliver, void *context, err *e);

/* Rows that differ from the rules, in the order of the choices, held against the time of the whole
 * model on the library's device: one that does not make it faster, on top of those before it, is
 * taken back. One that the model's tapes do not use stays. */
typedef struct {
    bool is_used, is_kept;
    double gain, low, high; /* of the whole model, where it is used */
} tune_confirmation;
typedef void tune_tell(void *context, const tuned_row *r, const tune_confirmation *c);
bool tune_confirm(library *lib, const gguf *g, const choice_list *choices, const tune_settings *s,
                  tuned *table, tune_tell *tell, void *context, err *e);

/* The worker's side. */
exit_code tune_serve(const tune_settings *s, err *e);

/* Of all ways of a choice: changes when one is changed or added. */
bool tune_find_made_of(const library *lib, const char *api, const choice *c, char text[MADE_OF],
                       err *e);
