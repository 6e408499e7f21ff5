/* record: what the record functions and test cases of several ops share. */
#pragma once

#include "harness/check/op.h"
#include "reference/quant.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

uint32_t divide_up(uint32_t a, uint32_t b);

/* op_takes of a shape with these dimensions, in a message that names the kernel. The first thing that
 * a record function asks. */
#define RECORD_TAKES(o, k, e, ...) record_takes(o, k, &(const shape){{__VA_ARGS__}}, e)
bool record_takes(const op *o, const kernel *k, const shape *s, err *e);

/* A new launch of k on the tape, its kernel filled in. NULL with e set. */
launch *record_launch(tape *t, const kernel *k, err *e);

/* One argument of a launch, made by one of the macros below: a buffer, of which the launch uses
 * `count` elements, or a value. */
typedef struct {
    const char *name; /* of a buffer; NULL: a value */
    slice at;
    size_t count, alignment; /* alignment: of its first byte */
    access_mode access;
    elem type;
    const weight_format *format; /* of weights (rows, columns); NULL: others */
    uint32_t rows, columns;
    param value;
    const void *bytes; /* a value of byte_count bytes; NULL: of 4 */
    size_t byte_count;
    bool is_absent; /* the kernel has no such argument */
    bool is_unread; /* bound because Metal requires it; not counted as moved */
} launch_arg;

#define ARG_BUFFER(name_, at_, count_, access_, type_, alignment_)                                 \
    {                                                                                              \
        .name = name_, .at = at_, .count = count_, .alignment = alignment_, .access = access_,     \
        .type = type_                                                                              \
    }
/* Floats that are read, written (all of them), or changed in place; as float4 ARG_IN4 and so on. */
#define ARG_IN(name, at, count) ARG_BUFFER(name, at, count, ACCESS_READ, ELEM_F32, 4)
#define ARG_OUT(name, at, count) ARG_BUFFER(name, at, count, ACCESS_WRITE, ELEM_F32, 4)
#define ARG_BOTH(name, at, count) ARG_BUFFER(name, at, count, ACCESS_BOTH, ELEM_F32, 4)
#define ARG_IN4(name, at, count) ARG_BUFFER(name, at, count, ACCESS_READ, ELEM_F32, 16)
#define ARG_OUT4(name, at, count) ARG_BUFFER(name, at, count, ACCESS_WRITE, ELEM_F32, 16)
#define ARG_BOTH4(name, at, count) ARG_BUFFER(name, at, count, ACCESS_BOTH, ELEM_F32, 16)
/* 32-bit integers */
#define ARG_WORDS(name, at, count, access) ARG_BUFFER(name, at, count, access, ELEM_U32, 4)
/* A matrix as record_check_weights wants it. */
#define ARG_WEIGHTS(name_, at_, format_, rows_, columns_, alignment_)                              \
    {                                                                                              \
        .name = name_, .at = at_, .alignment = alignment_, .access = ACCESS_READ, .type = ELEM_U8, \
        .format = format_, .rows = rows_, .columns = columns_                                      \
    }
#define ARG_PARAM(value_)                                                                          \
    { .type = ELEM_U32, .value = value_ }
#define ARG_U32(value) ARG_PARAM(param_u32(value))
#define ARG_BYTES(bytes_, count_)                                                                  \
    { .bytes = bytes_, .byte_count = count_ }
#define ARG_F32(value_)                                                                            \
    { .type = ELEM_F32, .value = param_f32(value_) }

/* The rest of a launch. */
typedef struct {
    size3 groups;     /* threadgroups; or */
    uint32_t threads; /* threads, rounded up to whole groups: the kernel guards its tail */
    uint32_t group;   /* threads per threadgroup; 0: those of the kernel */
    uint32_t threadgroup_bytes; /* of threadgroup argument 0 */
    uint64_t flops;
    uint64_t unmoved; /* bytes of its arguments that need not be moved */
    uint32_t appends; /* as launch.appends */
    oracle_fn oracle;
    const void *context; /* as launch.context */
} launch_work;

/* Threadgroups of k->rows rows and k->tokens tokens. */
size3 record_tiles(const kernel *k, uint32_t rows, uint32_t tokens);

/* A launch of k with `count` arguments in buffers 0, 1, ..., each cut down to what the launch uses.
 * l->bytes is what they must move. */
bool record_args(tape *t, const kernel *k, const launch_arg *args, size_t count,
                 const launch_work *w, err *e);
/* The same, with the arguments written out at the end. */
#define RECORD_ARGS(t, k, w, e, ...)                                                               \
    record_args(t, k, (const launch_arg[]){__VA_ARGS__},                                           \
                sizeof((const launch_arg[]){__VA_ARGS__}) / sizeof(launch_arg), w, e)

/* Cuts s down to the `bytes` that the launch uses, so that the check knows which elements must be
 * written. An error if bytes is 0, if s is too small, or if it does not start at a multiple of
 * `alignment`. */
bool record_trim(const kernel *k, const char *what, size_t bytes, size_t alignment, slice *s,
                 err *e);

/* A (rows, columns) matrix: the size must fit exactly, so that weights of another type are refused,
 * and columns must be whole blocks. It must start at a multiple of `alignment`. */
bool record_check_weights(const kernel *k, const char *what, const weight_format *f, slice w,
                          uint32_t rows, uint32_t columns, size_t alignment, err *e);

/* (rows, columns) weights for a case: most blocks encoded from values of the case's distribution;
 * one in four with random bits and any scale (zero, negative, denormal). */
bool case_input_weights(kernel_case *c, const char *label, const weight_format *f, uint32_t rows,
                        uint32_t columns, slice *out, err *e);

/* For op.accepts: is it in the list? */
bool activation_check(uint32_t kind, err *e);

/* Turns the judgement of a sum into that of the function of it: value and scale are those of the
 * sums on entry, with terms and roundings filled in, and of the results on return. */
void activation_judge(uint32_t kind, bool is_fast, expected *out);

/* Floats or halves for a case, filled from c->inputs. */
bool case_input_elem(kernel_case *c, const char *label, elem type, size_t count, slice *out,
                     err *e);
