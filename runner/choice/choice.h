/* choice: what the tapes of a model choose among.
 *
 * A choice is an op, the format of its weights, whether it adds to its output, and a shape. Its
 * ways are the kernels of the op that take the shape; for a fused op also "apart", a launch for
 * each of its steps; for the attention of one token also "attention_ranges:N", the cache cut into
 * N ranges, and "attention_ranges_shared:N", the same with heads that share a head of the cache in a
 * threadgroup ("attention_ranges_f16:N" and so on where the cache is in F16). Which way is taken is decided by variants.h alone. */
#pragma once

#include "harness/check/op.h"

typedef struct {
    const op *op;
    const weight_format
        *format; /* NULL: it has no weights; of attention, that of the cache, NULL: F32 */
    bool accumulates;
    shape shape; /* as op.dims says; tokens are 1 or more */
} choice;

/* Who wants to know what is chosen. */
typedef struct choice_watch {
    void (*observe)(void *context, const choice *c);
    void *context;
} choice_watch;

enum { CHOICE_WAYS = 64, CHOICE_TEXT = 128 };

/* The ways that take the shape, the kernels first. */
size_t choice_list_ways(const choice *c, const kernel *ways[CHOICE_WAYS]);
/* The way of this name. NULL with e set: the op has no such way, or it does not take the format,
 * the accumulation or the shape. */
const kernel *choice_find_way(const choice *c, const char *name, err *e);
bool choice_takes(const choice *c, const kernel *way, err *e);

/* "apart" for a choice; NULL: its op is not fused. */
const kernel *choice_find_apart(const choice *c);
/* Is the way several launches, not a kernel of the op? */
bool choice_is_apart(const kernel *way);
/* Into how many ranges a way of decode_attention cuts the cache; 1: it does not. */
uint32_t choice_count_ranges(const kernel *way);
/* The way of the variant, "ranges" or "shared", that cuts it into at least so many, or into the most. */
const kernel *choice_find_ranges(const weight_format *cache, const char *variant, uint32_t ranges);
/* The kernel of attention_ranges with which it does. */
const kernel *choice_find_ranges_kernel(const kernel *way);

/* The .metal file of a way; of steps, that of the fused kernel in place of which they stand. */
const char *choice_get_file(const choice *c, const kernel *way);

/* How far a choice is from one that was measured: the ratio of their tokens times that of their
 * keys, 1 if they are equal; infinite if anything else differs, or one of them has one token, for
 * which there are kernels of their own. A row with a kv_len of 0 is just near enough to any. */
#define CHOICE_NEAR 1.25 /* as far as a measurement holds */
double choice_find_distance(const choice *row, const choice *asked);

/* "matvec q4_0 += 576x1536x8" */
void choice_get_text(const choice *c, char *text, size_t size);

/* By op as the registry lists them, format, accumulation and shape: the order of tables. */
int choice_compare(const choice *a, const choice *b);

/* "q4_0"; "" for NULL, and back (NULL: there is none of this name). */
void choice_get_format(const weight_format *f, char *text, size_t size);
const weight_format *choice_find_format(const char *name);
