/* mutate: small wrong edits of MSL text, for measuring what the checks catch.
 *
 * Each mutation is a mistake that people make: a bound off by one, a missing guard or barrier, a
 * wrong lane. They are found by looking at tokens, in the bodies of functions and the
 * values of constants, in the order of the text: the same text always gives the same list. A
 * mutation keeps every line in its place. The meaning of the text is not known, so some mutants
 * do not compile and some change nothing; running them shows which.
 *
 * Whether `*` and `<` are operators is decided by the blanks around them, so text that is not
 * formatted has fewer mutants. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

typedef enum {
    MUTATE_BOUND,    /* < and <=, > and >= swapped */
    MUTATE_GUARD,    /* `if (c) return;` dropped; the condition of another `if` made true */
    MUTATE_BARRIER,  /* a barrier dropped */
    MUTATE_INDEX,    /* a * b + c with two of them swapped; [a][b]; .x and .y */
    MUTATE_NIBBLE,   /* `& 15` and `>> 4` swapped */
    MUTATE_PLUS,     /* + to - */
    MUTATE_MINUS,    /* - to +; a sign dropped */
    MUTATE_TIMES,    /* * to + */
    MUTATE_TERM,     /* `a += b` to `a = b`; an addend dropped */
    MUTATE_CONSTANT, /* an integer one more, one less */
    MUTATE_LANE,     /* `== 0` to `== 1`; another simdgroup function */
    MUTATE_UNSET,    /* a variable's first value dropped */
    MUTATE_EDGE,     /* the last of a range or the last partial simdgroup left out, the first index
                        one more, one at a power of two one less */
    MUTATE_KINDS
} mutate_kind;

const char *mutate_get_name(mutate_kind kind); /* "off-by-one bound" */

typedef struct {
    mutate_kind kind;
    uint32_t begin, bytes; /* what is replaced */
    char *with;            /* by what; one line */
    int line;
    char where[64]; /* the function, class or constant it is in; "" for one without a name */
} mutation;

typedef struct {
    mutation *items;
    size_t count, room;
} mutation_list;

/* All mutations of a text; name is the file's, for messages. */
bool mutate_find(const char *name, const char *source, mutation_list *out, err *e);
void mutate_free(mutation_list *l);

/* The text with one mutation. The caller frees it. */
char *mutate_apply(const char *source, const mutation *m);

/* The lines that it touches, before and after, with blanks folded to one. The caller frees both. */
void mutate_describe(const char *source, const mutation *m, char **before, char **after);

/* What the kernel `name` is made of: the names that its text mentions, and those that their texts
 * mention. `sources` are its file and what that includes. When in doubt, a name is in it. */
typedef struct {
    char **names;
    size_t count, room;
} mutate_parts;

bool mutate_find_parts(const char *const *sources, size_t count, const char *name,
                       mutate_parts *out, err *e);
bool mutate_has_part(const mutate_parts *p, const char *name); /* true for "" */
void mutate_free_parts(mutate_parts *p);
