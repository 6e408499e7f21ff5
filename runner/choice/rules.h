/* rules: which kernel is best for a choice (choice.h), by what was measured on devices of its kind. */
#pragma once

#include "choice.h"
#include "harness/device/device.h"

/* Is it one of the ops that models have a choice for? */
bool rules_has(const op *o);
/* NULL with e set: no way takes the shape, or there is no rule for this op. */
const kernel *rules_find(const device_facts *d, const choice *c, err *e);
/* The kernel of this variant (NULL: any) that the device offers, or NULL; with weights there are some for
 * one token and some for a batch. */
const kernel *rules_find_variant(const device_facts *d, const choice *c, const char *variant,
                                 bool is_batch, bool must_take);
