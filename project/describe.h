/* describe: ops described by a short text instead of a C file, for the simple cases: buffers whose
 * sizes follow from the shape, scalars, one launch, and an oracle that is an expression per
 * element, a piece of C, or a file of expected values.
 *
 *   op        row_sum: y[r] = the sum of row r of x
 *   dims      rows dim
 *   shapes    1x1 3x31 3x32 3x33 7x576 16x4096
 *   inputs    3x77                       this shape also with every input distribution
 *   needs     dim <= 65536               shapes for which it is false are skipped
 *   kernel    row_sum row_sum.metal group 32 groups rows
 *   in        x f32[rows, dim]           [[buffer(0)]], and so on in the order of the lines
 *   out       y f32[rows]                every element is written
 *   value     dim u32 = dim              a scalar
 *   oracle    y[r] = sum(j < dim: x[r, j])
 *
 * A # begins a comment. Each line is one thing; kernel lines may be several (variants).
 *
 *   kernel NAME FILE group T[,T,T] threads|groups|dispatch N[,N,N] [threadgroup B] [about TEXT]
 *     threads: rounded up to whole threadgroups, the kernel guards its tail; groups: threadgroups;
 *     dispatch: exactly these threads, the last threadgroups are smaller; threadgroup: bytes of
 *     [[threadgroup(0)]].
 *   in|inout NAME TYPE[N, ...] [below N] [from FILE] [at I]
 *     below: random whole numbers from 0 to N - 1, for indices; from: contents of a .npy file, or
 *     of raw elements, where {rows} stands for a size; at: another buffer index than the next.
 *   out NAME TYPE[N, ...] [from FILE] [at I]
 *     from: what is expected is in this file.
 *   oracle NAME[i, ...] = EXPRESSION, or oracle {, lines of C, and } at the start of a line
 *     in doubles, over the buffers, values and sizes; sum(j < N: ...) and max(j < N: ...) loop.
 *     In C lines, outputs are arrays of double too, and NAME_scale those of magnitudes.
 *   scale NAME[i] = EXPRESSION  magnitude that errors are relative to, where terms cancel
 *   terms N, roundings N        length of the longest sum, other roundings, if not as derived
 *   exact                       bits must agree
 *   flops N                     work of a launch
 *
 * It is translated to a C file of the form of include/assay.h, so expressions are C, and what the
 * compiler says about them names the line of the description. */
#pragma once

#include "harness/base/err.h"

/* The C text of a description, to be freed; NULL with e set, which names file and line. */
char *describe_translate(const char *path, const char *text, err *e);
