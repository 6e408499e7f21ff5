/* agx: what Mesa's compiler for Apple GPUs makes of a kernel: machine code of an M1 (G13), on Linux, without
 * a Mac. It is not Apple's compiler: docs/agx.md says how far its numbers are from Apple's own.
 *
 * The compiler is a folder of Debian packages that `assay agx setup` unpacks (ASSAY_AGX, or assay-agx
 * beside the cache). clang makes SPIR-V of the text that a Mac would compile, Mesa machine code of
 * that; what it says is kept in the cache of compiled code. Metal's default math is fast, and so is this. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/device/device.h"
#include "harness/device/msl/msl.h"

#define AGX_LABEL "Mesa's compiler, M1"

/* Threads of a threadgroup that any kernel may have: with all 256 half registers this many still fit. */
enum { AGX_FEWEST_THREADS = 384 };

typedef struct {
    char refusal[200]; /* "", or why there is nothing else */
    uint32_t instructions, bytes, registers /* of 16 bits */, uniforms, loops;
    uint32_t threads; /* that have room on a core: the largest threadgroup */
    uint32_t
        scratch; /* bytes per thread: spilled registers, and arrays that are not in registers */
    uint32_t spills, fills;
} agx_facts;

typedef struct agx_compiler agx_compiler;

/* The folder of the packages; it need not exist. */
bool agx_find_folder(char *path, size_t size, err *e);
/* Says how to make the folder if there is none. */
agx_compiler *agx_compiler_new(err *e);
void agx_compiler_free(agx_compiler *c);
const char *agx_compiler_get_name(const agx_compiler *c); /* versions of Mesa and clang */

typedef enum {
    AGX_COMPILE, /* if it is not in the cache: about a second */
    AGX_LOOK_UP, /* only if it is; else facts->refusal says that it is not */
} agx_effort;

/* One kernel with the values of its function constants. A kernel that Mesa does not take, or whose
 * counts would mean nothing, is a refusal; false: the compiler cannot be run. code (may be NULL) gets
 * the disassembly; the caller frees it. */
bool agx_compile(agx_compiler *c, const msl_unit *u, const char *kernel,
                 const constant_value *constants, size_t count, agx_effort effort, agx_facts *facts,
                 char **code, err *e);

/* Parts of it ------------------------------------------------------------------------------- */

/* "   1a: 8e31921600000000       iadd     $r12, $r9.sx, 1": an address, bytes, an instruction. */
bool agx_read_address(const char *line, unsigned long *address);
/* Code and statistics of the last compilation in what agx_driver printed; NULL if it has none. The caller
 * frees it. */
char *agx_shorten_log(const char *log);
/* Reads that, or "refused: why". */
bool agx_read_answer(const char *answer, agx_facts *facts, char **code);
/* In place, in LLVM's text form: constant arrays move from the address space of devices, where clang puts
 * them for HIP, to the constant one, with every pointer into them: Mesa reads no others that have a value. What
 * HIP adds to a module becomes a comment. */
void agx_move_constants(char *module);
/* In the same form: a load of 64 bits from device memory becomes two of 32. LLVM loads four halves as one such number and
 * shifts; Mesa sees the halves and makes an instruction of it that its own compiler for Apple GPUs does not know. The caller
 * frees it. */
char *agx_split_loads(const char *module);

/* Where an instruction of the module is from: "file:line", in the text that it was read from. */
typedef struct {
    uint32_t offset; /* of the instruction, in bytes */
    const char *text;
    int length;   /* 0: no line of the source */
    bool is_near; /* it has no line of its own: this is that of an instruction that uses it */
} agx_place;

typedef struct {
    agx_place *items;
    size_t count, room;
} agx_places;

/* From what llc printed of the module (--print-after=spirv-asm-printer) and the module's words. False if they are not the
 * same instructions. */
bool agx_read_places(const char *printed, const uint32_t *words, size_t count, agx_places *out);
/* NULL: it has no line. */
const agx_place *agx_find_place(const agx_places *p, uint32_t offset);
/* What agx_driver printed, with " ; file:line" after instructions of the disassembly; " ;~ file:line" where it is the
 * line of the neighbour that the instruction serves. Files below `home` are named from there. The caller frees it. */
char *agx_add_lines(const char *log, const agx_places *places, const char *home);
