/* record: what the record functions and test cases of several ops share. */
#ifndef ASSAY_RECORD_H
#define ASSAY_RECORD_H

#include "harness/op.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

uint32_t divide_up(uint32_t a, uint32_t b);

/* Cuts s down to the `bytes` that the launch is about, so that the check knows which elements must
 * be written. An error if there are none, not that many, or if they do not start at a multiple of
 * `alignment`. */
bool record_trim(const kernel_row *k, const char *what, size_t bytes, size_t alignment, slice *s,
                 err *e);

/* W of a (rows, columns) product with Q4_0 weights: the size must fit exactly, so that a tensor of
 * another type is refused, and columns must be whole blocks. */
bool record_check_q4_0(const kernel_row *k, slice w, uint32_t rows, uint32_t columns, err *e);

/* (rows, columns) Q4_0 weights for a case: most blocks encoded from values of the case's
 * distribution; one in four with random nibbles and any scale (zero, negative, denormal). */
bool case_input_q4_0(kernel_case *c, const char *label, uint32_t rows, uint32_t columns, slice *out,
                     err *e);

#endif
