/* load: a C text compiled to a shared object, and the ops that it has. */
#pragma once

#include "harness/check/op.h"

/* Where the ops of a description come from. */
typedef struct {
    const char *path; /* of the description: messages name it */
    const char *text; /* of the C file */
    const char *key;  /* what else the code depends on: the hash of included files */
    bool is_made; /* the text was made from a description: the compiler is given it, not the path */
} load_source;

/* Compiles (or finds in the cache) and loads it. *ops is an array that ends with NULL and stays for
 * the rest of the process. */
bool load_ops(const load_source *s, const op *const **ops, err *e);
/* The same for lines of C, whose function is called assay_oracle. */
bool load_oracle(const load_source *s, oracle_fn *out, err *e);
