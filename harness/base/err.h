/* err: how every fallible function reports what went wrong.
 *
 * Functions return bool (true is ok) or a pointer (NULL is failure) and take `err *e` last. The
 * text names the thing, the value and the next step in one sentence; `detail` holds what a tool
 * printed (a compiler's message), possibly many lines. Nothing below main prints or exits: main
 * prints the text and exits with `code`. */
#pragma once

#include <stdbool.h>

typedef enum {
    EXIT_OK = 0,
    EXIT_WRONG = 1,      /* a kernel or model is wrong, or validation found something */
    EXIT_USAGE = 2,      /* bad flags, names and paths; input files that are malformed or of a kind
                              that is not supported */
    EXIT_CANNOT = 3,     /* this machine cannot: no device, no compiler, no memory, a full disk */
    EXIT_REGRESSION = 4, /* slower than the baseline */
    EXIT_INCONCLUSIVE = 5, /* not enough data to say */
    /* As a shell reports a program that the signal ended, whether or not we had to clean up first. */
    EXIT_INTERRUPTED = 130, /* Ctrl-C; main has the number of another signal that asks to stop */
    EXIT_CLOSED = 141,      /* the reader of stdout hung up */
} exit_code;

typedef struct {
    exit_code code;
    char text[256];
    char detail[4096];
} err;

/* Fills e (which may be NULL) and returns false, so that `return err_set(...)` reads well. */
bool err_set(err *e, exit_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for functions that return a pointer, and for verbs, which return an exit status. */
#define err_null(...) (err_set(__VA_ARGS__), NULL)
#define err_code(e, code, ...) (err_set(e, code, __VA_ARGS__), code)

/* Makes e the machine's fault (EXIT_CANNOT: a full disk, a compiler that does not work), whatever was at work
 * then: the first such error ends the run, so that no kernel is blamed for it. Returns false. */
bool err_blame_machine(err *e);
const err *err_get_machine_fault(void); /* NULL: none */

/* Attaches tool output to e, cut at a line end when it is too long. Returns false. */
bool err_set_detail(err *e, const char *detail);
