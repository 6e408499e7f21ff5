/* proof: what a case proves of its kernel, and what another version of its description makes of that.
 *
 * Two open cases of the same shape and inputs are compared by what they do, not by their text: which inputs they make, how they
 * launch, which values their oracles expect and how far an output may be off. The older version's inputs
 * are given to both oracles, so that a tolerance or a value that differs does so by itself, whatever it
 * is written through. Nothing is played: the libraries of the cases are plans (tape.h). */
#pragma once

#include "op.h"

/* The most important first. */
typedef enum {
    CHANGE_DELETED,   /* of kernels: what was proved of it is gone */
    CHANGE_LOOSER,    /* an output may be further off, or is compared less */
    CHANGE_ORACLE,    /* other values are expected */
    CHANGE_CASES,     /* of kernels: shapes or inputs are gone */
    CHANGE_UNREAD,    /* of descriptions: it cannot be compared */
    CHANGE_INPUTS,    /* inputs hold other values */
    CHANGE_LAUNCH,    /* grid, threadgroups, constants, scalars, types and order of arguments */
    CHANGE_SETTINGS,  /* of the project: what fails and what is accepted */
    CHANGE_RENAMED,   /* of kernels, as the rest */
    CHANGE_REWRITTEN, /* of descriptions: other words, and nothing else was found */
    CHANGE_TIGHTER,
    CHANGE_MORE, /* cases */
    CHANGE_NEW,
    CHANGE_KINDS
} change_kind;
const char *change_get_name(change_kind k); /* "looser" */
bool change_find(const char *name, change_kind *k);

typedef struct {
    change_kind kind;
    double weight;  /* among those of a kind, the largest is shown */
    char about[64]; /* the label of the buffer, or "" */
    char why[64];   /* "softmax.op:9", where the tolerance comes from now, or "" */
    char text[320]; /* a clause: "y may be off by 0.5, ..." */
} change;

typedef struct {
    change *items;
    size_t count, room;
} change_list;

/* Adds what is different. Both cases are open; inputs of `now` are changed. EXIT_USAGE if an oracle cannot tell. */
bool proof_compare(const kernel_case *was, kernel_case *now, change_list *out, err *e);
