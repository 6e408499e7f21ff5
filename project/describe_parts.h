/* describe_parts: what the files of describe.h share. */
#pragma once

#include "harness/check/description.h"

/* Compiles the lines of C. */
bool describe_compile(description *d, described_rule *r, err *e);

/* The descriptions, and the one that a kernel belongs to. */
void describe_keep(description *d);
description *describe_find_owner(const kernel *k);
void describe_set_dims(description *d, const uint32_t *sizes);
/* The file of an argument: "x_{rows}.npy" with the size for its name, below the description's
 * folder. */
bool describe_find_file(const description *d, const described_argument *a, char *path, size_t size,
                        err *e);
/* op.build and op.accepts of a description, and the oracle of its launches, whose context it is. */
bool describe_build(kernel_case *c, err *e);
bool describe_accepts(const kernel *k, const shape *s, err *e);
void describe_oracle(const launch *l, oracle_io *io);
