/* axes: which kernels, by what varies among them: --format, --accumulate, --variant, --batch.
 *
 * An axis that is not given matches everything. A word that no kernel has is an error that names
 * the nearest valid one. */
#pragma once

#include "harness/check/op.h"

/* A comma-separated list, cut into words. */
enum { WORDS_MAX = 64, WORD_SIZE = 96 };
typedef struct {
    char words[WORDS_MAX][WORD_SIZE];
    bool used[WORDS_MAX]; /* for callers that track which words matched something */
    size_t count;
} word_list;

/* NULL gives no words. `name` is the option's, for the message. */
bool words_split(const char *text, const char *name, word_list *out, err *e);

/* As on the command line, or NULL. */
typedef struct {
    const char *formats, *accumulate, *variants, *batches;
} axes_query;

/* For tables of options. */
/* clang-format off */
#define AXES_KERNEL_OPTIONS(query) \
    TEXT_OPTION("format", &(query).formats, "F,...", "only kernels that read these weight formats, such as q4_0,q8_0"), \
    TEXT_OPTION("accumulate", &(query).accumulate, "yes|no", "only kernels that add to their output, or only those that do not"), \
    TEXT_OPTION("variant", &(query).variants, "V,...", "only these kernels or variants of an op, such as rowblock")
#define AXES_OPTIONS(query) \
    AXES_KERNEL_OPTIONS(query), \
    TEXT_OPTION("batch", &(query).batches, "N,...", "tokens, for ops that take many (default: those of the shapes)")
/* clang-format on */

typedef struct {
    word_list formats, variants;
    bool has_accumulate, accumulates;
    uint32_t batches[WORDS_MAX];
    size_t batch_count;
} axes;

bool axes_parse(const axes_query *q, axes *out, err *e);
bool axes_take_kernel(const axes *a, const kernel *k);

/* A shape of an op that counts tokens, with this batch. Kernels of one token leave that dimension
 * out, and for a batch of 1 it stays out. */
shape axes_set_batch(const op *o, const shape *s, uint32_t batch);

/* "q4_0", or "" for a kernel without weights. */
void axes_get_format(const kernel *k, char *text, size_t size);

/* Says that no op or kernel is called so, and which is most alike; false. what: "op or kernel" */
bool axes_refuse_name(const char *what, const char *name, err *e);
/* The same of a filter that matches nothing; or if it is known, because the axes leave nothing of it. */
bool axes_refuse_filter(const char *what, const char *filter, bool is_known, err *e);

/* An error: no `what` is called `word`; names the nearest one. */
bool axes_refuse_word(const char *what, const char *word, const char *const *known, size_t count,
                      err *e);
