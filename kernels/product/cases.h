/* cases: the test cases of products. */
#pragma once

#include "harness/check/kernel_case.h"

/* For op.accepts and op.build of the ops of products. */
bool product_accepts(const kernel *k, const shape *s, err *e);
bool product_build(kernel_case *c, err *e);
