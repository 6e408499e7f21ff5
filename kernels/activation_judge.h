/* activation_judge: the activations of activations.h as records and oracles know them. */
#pragma once

#include "activations.h"
#include "harness/device/launch.h"

/* For op.accepts: is it in the list? */
bool activation_check(uint32_t kind, err *e);

/* Turns the judgement of a sum into that of the function of it: value and scale are those of the
 * sums on entry, with terms and roundings filled in, and of the results on return. */
void activation_judge(uint32_t kind, bool is_fast, expected *out);
