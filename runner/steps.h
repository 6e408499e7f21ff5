/* steps: the ways of a choice that are several launches, as cases that can be checked and timed
 * like those of a kernel. What the launches of the steps are is up to variants.h, as in a model. */
#pragma once

#include "variants.h"

/* An op whose cases record the steps; it is the op of the case, so it must outlive it. */
typedef struct {
    op op; /* first: a case knows it by this address */
    const variants_basis *variants;
} steps;

steps steps_new(const variants_basis *v, const choice *c);
