/* checked: sees every memory access of a kernel compiled for checked mode and reports what is
 * wrong.
 *
 * One worker, one launch at a time. Bad loads give zero and bad stores are dropped, so that one run
 * shows everything that is wrong. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "harness/base/err.h"
#include "harness/device/finding.h"

typedef struct soft_checker soft_checker;

/* A binding as the checker sees it. */
typedef struct {
    void *begin; /* as the kernel sees it */
    void *real;  /* the same byte in the buffer's own mapping */
    size_t bytes;
    bool is_bound, can_write, is_inline;
    bool is_constant;  /* by its address space */
    bool is_value;     /* a small constant that a GPU gets with the launch, not from memory */
    bool is_once;      /* one in a buffer, which each of its simdgroups loads when it begins */
    bool is_private;   /* the host writes it by calls alone */
    bool is_coherent;  /* across threadgroups */
    bool may_overread; /* loads past its end are not findings */
    uint32_t element_bytes;
    uint8_t *written; /* of each byte, whether it was; NULL: all were */
    char label[48];
    char name[64]; /* of the parameter */
} soft_bound;

/* Also makes it the worker's. is_traced: where NaN and infinity first appear is found too. */
soft_checker *soft_checker_new(soft_worker *w, bool is_traced, err *e);
void soft_checker_free(soft_checker *c);

/* Threadgroup memory that the launch gives, as it is called in the kernel. */
typedef struct {
    char name[64];
    uint32_t element_bytes;
} soft_dynamic;

/* Runs a launch of this many threadgroups, by `run`: the first threadgroup first, or the last. One with atomic
 * accesses runs again, with threads that take turns at them and the last threadgroup first. One that does
 * not end then, because its threadgroups wait for earlier ones, does so once more with the first one first.
 * Its results are those of the last run. */
struct soft_item;
struct soft_image;
typedef void checked_run(void *context, bool is_backwards);
void soft_checker_run(soft_checker *c, const struct soft_item *item, const struct soft_image *image,
                      uint64_t groups, checked_run *run, void *context, finding_list *out);

/* What the scheduler reports: a threadgroup starts; every thread of it has returned or parked; a
 * threadgroup variable was placed. */
void soft_checker_begin_group(soft_worker *w);
void soft_checker_end_phase(soft_worker *w);
void soft_checker_end_group(soft_worker *w);
void soft_checker_add_variable(soft_worker *w, void *at, size_t bytes, const char *name,
                               uint32_t element_bytes);
void soft_checker_add_dynamic(soft_worker *w, int index, void *at, size_t bytes);
