/* rescue: gets control back from a kernel that faults or does not end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "harness/base/err.h"

typedef struct soft_rescue soft_rescue;

/* Called on the kernel's thread, on a signal stack, with the address of the instruction and the
 * frame pointer. What it returns happens next: the running lane ends, the whole launch is given up,
 * the lane goes on after a division that trapped, whose quotient is 0, or, after the timer, the kernel
 * goes on until it comes again in a moment. */
typedef enum { RESCUE_END_LANE, RESCUE_GIVE_UP, RESCUE_STEP_OVER, RESCUE_GO_ON } rescue_action;
typedef rescue_action (*rescue_fn)(void *context, int signal, const void *pc, uintptr_t fp,
                                   void *address);

/* Where a signal's context, as its handler gets it, was interrupted. */
typedef struct {
    uintptr_t pc, sp, fp;
} rescue_place;
rescue_place rescue_get_place(const void *context);

soft_rescue *soft_rescue_new(soft_worker *w, rescue_fn call, void *context, err *e);
void soft_rescue_free(soft_rescue *r);

/* From the thread that runs kernels. Between the two, faults come to `call`, and so does the end of
 * the time that a threadgroup may take. */
void soft_rescue_begin(soft_rescue *r, double seconds);
void soft_rescue_advance(soft_rescue *r); /* a threadgroup begins */
void soft_rescue_end(soft_rescue *r);

/* Ends the running lane as if the kernel had returned. Does not come back, but is not `noreturn`, where
 * AddressSanitizer expects to be on the thread's own stack. */
void soft_end_lane(soft_worker *w);
