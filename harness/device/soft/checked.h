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

/* Around the threadgroups of one launch. object is the compiled kernel's file; inline_begin where
 * the small constants stand. */
void soft_checker_begin(soft_checker *c, const char *kernel, const soft_kernel *k,
                        const char *object, const soft_bound bound[SOFT_BUFFERS],
                        const soft_dynamic dynamic[SOFT_DYNAMIC], const void *inline_begin);
/* In which order threads run: one after the other, each until it returns or waits for others, or in
 * turns, where each hands over before an atomic access. The nth threadgroup that runs is number
 * first + n * step of the grid. */
typedef struct {
    bool takes_turns;
    int64_t first, step;
} soft_order;
/* Of the next launch; one that takes turns is the last one again, and its limits and new findings are
 * seen against that. */
void soft_checker_set_order(soft_checker *c, const soft_order *order);
/* Copies the memory that a launch may write, if it is not too much, and puts it back. */
void soft_checker_save(soft_checker *c, const soft_bound bound[SOFT_BUFFERS]);
void soft_checker_restore(const soft_checker *c);
void soft_checker_forget(soft_checker *c); /* the copies */
/* Should the launch, now over, run again in turns? It has atomic accesses, and its memory is saved. */
bool soft_checker_runs_again(const soft_checker *c);
/* Who stores there last in this launch is a finding: the host knows that the value is wrong. */
void soft_checker_watch(soft_checker *c, uintptr_t at, size_t bytes);
void soft_checker_end(soft_checker *c, finding_list *out); /* out: NULL for none */

/* What the scheduler tells: a threadgroup starts; every thread of it has returned or parked; a
 * threadgroup variable was placed. */
void soft_checker_begin_group(soft_worker *w);
void soft_checker_end_phase(soft_worker *w);
void soft_checker_end_group(soft_worker *w);
void soft_checker_add_variable(soft_worker *w, void *at, size_t bytes, const char *name,
                               uint32_t element_bytes);
void soft_checker_add_dynamic(soft_worker *w, int index, void *at, size_t bytes);
