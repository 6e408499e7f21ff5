/* ir: reads the text of an LLVM module: names, types, functions, and what its metadata says. The passes
 * over kernels (instrument.c, converge.c, count_ir.c) are made of it. A module is read
 * as clang 16 and newer print it: pointers have no types. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

/* A part of the module's text. */
typedef struct {
    const char *at;
    size_t bytes;
} span;

/* For "%.*s". */
#define SPELL(s) (int)(s).bytes, (s).at

/* Text ----------------------------------------------------------------------------------------- */

const char *ir_find(span s, const char *word); /* NULL: it is not in there */
bool ir_begins(span s, const char *word);
bool ir_is_same(span a, span b);
uint64_t ir_hash(span name); /* for hash tables of names */
/* The rest from a place on; empty if that is NULL. */
span ir_cut(span s, const char *from);
/* What follows the word, of which the text begins with, or which is anywhere in it; empty if not. */
span ir_skip(span s, const char *word);
span ir_find_after(span s, const char *word);

span ir_take_line(const char **p);
/* The next local name in the text, `%x` or `%"x y"`, or function `@f` before its arguments; empty if there
 * is none. s becomes the rest. */
span ir_take_local(span *s);
span ir_take_callee(span *s);

/* What is defined by the line, and what of; false if it defines nothing. */
bool ir_split_definition(span line, span *name, span *value);
/* A line without its indent and what it defines: `load i32, ...`. */
span ir_get_instruction(span line);
bool ir_is_call(span line);
/* Does the line begin a basic block? */
bool ir_is_label(span line);
/* `, !dbg !7`, and nothing after it; empty if the line has none. */
span ir_get_debug(span line);

/* The operand that the text begins with, a name or an expression in parentheses: it ends at a comma or
 * bracket outside of these. */
span ir_get_operand(span text);

/* Types ---------------------------------------------------------------------------------------- */

/* `%struct.S = type { float, i8 }` */
typedef struct {
    span name, body;
} ir_named;

typedef struct {
    ir_named *list;
    size_t count, room;
} ir_types;

void ir_types_read(ir_types *t, const char *module);

/* The size of a type; 0 if it is not known. marks, if it is not NULL: SOFT_MARK_UNSET for each byte
 * of a value, SOFT_MARK_MAYBE where that may be padding, 0 for padding. */
uint64_t ir_measure(const ir_types *t, span type, unsigned char *marks);

/* The type that the text begins with; empty if it is not understood. */
span ir_get_type(const ir_types *t, span text);

/* `[4 x T]`: T and 4. False if the type is not an array. */
bool ir_split_array(span type, span *element, uint64_t *count);

/* Member n of `{ a, b }`, or of a type of that name. */
typedef struct {
    span type;
    uint64_t offset;
    bool is_packed;   /* the struct is */
    bool is_followed; /* by another member, which is not padding */
} ir_part;
bool ir_find_member(const ir_types *t, span type, uint64_t n, ir_part *out);

/* Has the type an array in it, outside of the shim's own classes? */
bool ir_has_array(const ir_types *t, span type);

/* Metadata ------------------------------------------------------------------------------------- */

typedef struct {
    const char **lines; /* by number, what follows the '='; NULL: there is none */
    size_t count;
} ir_metadata;

void ir_metadata_read(ir_metadata *m, const char *module);
/* The number after a word of the line that a text begins with, such as "line: " or "!dbg !"; -1: none. */
long ir_read_number(const char *text, const char *word);
/* The metadata that a word of the line refers to; "" if there is none. */
const char *ir_follow(const ir_metadata *m, const char *text, const char *word);
/* Is the file that this metadata names one of the shim's, or made by us? */
bool ir_is_shim_file(span file);

/* Puts what a pass makes of a module in its place. problem: of a pass that gives NULL. */
typedef char *ir_pass(const char *module);
bool ir_change_file(ir_pass *pass, const char *path, const char *problem, err *e);

/* Shifts --------------------------------------------------------------------------------------- */

/* Shifts by more than the width of a scalar, as MSL defines them: the count is its log2(width) lowest bits.
 * In C++, and to LLVM, such a result is anything, and a store of it goes. Can the text of a kernel have such a
 * shift? All counts that are literals below 32 are right. */
bool shift_mask_is_needed(const char *msl);

/* The text of an unoptimised module (clang -S -emit-llvm -Xclang -disable-llvm-passes), with masked
 * counts; the caller frees it. */
char *shift_mask_module(const char *module);

/* Paths ---------------------------------------------------------------------------------------- */

/* The text of an unoptimised module with names (and -fno-discard-value-names) in which each lane keeps its
 * path (soft/abi.h): in the state of its simdgroup, or in the kernel's own memory, whose address and
 * count of words every function hands to those that it calls. The caller frees it. NULL if a function has
 * more loops inside each other than a path has room for. */
char *keep_paths_in_state(const char *module);
char *keep_paths_in_arguments(const char *module);
