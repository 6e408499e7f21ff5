/* record: what the record functions and test cases of several ops share. */
#ifndef ASSAY_RECORD_H
#define ASSAY_RECORD_H

#include "harness/check/kernel_case.h"
#include "reference/quant.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

uint32_t divide_up(uint32_t a, uint32_t b);

/* A new launch of k on the tape, its kernel filled in. NULL with e set. */
launch *record_launch(tape *t, const kernel *k, err *e);

/* Floats that a launch is given. */
typedef struct {
    const char *name;
    slice at;
    size_t count;
    access_mode access;
} operand;

/* A launch of k with `count` operands in buffers 0, 1, ..., each cut down to what the launch uses
 * and starting at a multiple of `alignment` bytes. l->bytes is what they must move. NULL with e
 * set. */
launch *record_floats(tape *t, const kernel *k, size_t alignment, const operand *operands,
                      size_t count, err *e);

/* Cuts s down to the `bytes` that the launch uses, so that the check knows which elements must be
 * written. An error if bytes is 0, if s is too small, or if it does not start at a multiple of
 * `alignment`. */
bool record_trim(const kernel *k, const char *what, size_t bytes, size_t alignment, slice *s,
                 err *e);

/* For op.accepts: only kernels that say how many tokens they take at a time take several. */
bool record_accepts_tokens(const kernel *k, uint32_t tokens, err *e);

/* A (rows, columns) matrix: the size must fit exactly, so that weights of another type are refused,
 * and columns must be whole blocks. It must start at a multiple of `alignment`. */
bool record_check_weights(const kernel *k, const char *what, const weight_format *f, slice w,
                          uint32_t rows, uint32_t columns, size_t alignment, err *e);

/* (rows, columns) weights for a case: most blocks encoded from values of the case's distribution;
 * one in four with random bits and any scale (zero, negative, denormal). */
bool case_input_weights(kernel_case *c, const char *label, const weight_format *f, uint32_t rows,
                        uint32_t columns, slice *out, err *e);

#endif
