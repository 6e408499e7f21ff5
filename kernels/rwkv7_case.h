/* rwkv7_case: what the records and cases of the ops of a time mix share. */
#pragma once

#include "harness/check/kernel_case.h"

enum { RWKV7_MAX_HEAD_SIZE = 256 };

/* What all kernels have: heads of whole float4s. */
#define RWKV7_HEADS .multiple_of = 4, .most = RWKV7_MAX_HEAD_SIZE
/* op.accepts for tokens x heads x head_size: sizes that 32 bits can count. */
bool rwkv7_accepts(const kernel *k, const shape *s, err *e);

/* scale holds errors in roundings (reference/time_mix_v7.c): the tolerance becomes twice the error.
 * terms is how many results a device that flushes may lose on the way. */
void rwkv7_take_errors(expected *out, double terms);

/* Inputs as a model makes them, from values of the case's distribution: a recurrence needs decays
 * and rates from 0 to 1 and keys of unit length to stay finite, and what is multiplied with three
 * others must not be large. */
bool case_input_decay(kernel_case *c, const char *label, size_t count, slice *out, err *e);
bool case_input_rate(kernel_case *c, const char *label, size_t count, slice *out, err *e);
bool case_input_small(kernel_case *c, const char *label, size_t count, slice *out, err *e);
/* (4, tokens, heads, head_size): k, v, a, kk */
bool case_input_packed(kernel_case *c, const char *label, uint32_t tokens, uint32_t heads,
                       uint32_t head_size, slice *out, err *e);
