/* ptx: C++ text of one pipeline in, PTX out; compiled by clang once and kept in the cache. It needs
 * no GPU and no driver. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/device/device.h"
#include "harness/device/msl/msl.h"

typedef struct ptx_compiler ptx_compiler;

/* capability: of the GPU, 90 for 9.0. Finds clang and libdevice; the error says what to install. */
ptx_compiler *ptx_compiler_new(int capability, err *e);
void ptx_compiler_free(ptx_compiler *c);
const char *ptx_compiler_get_name(const ptx_compiler *c); /* clang's version, libdevice, target */

/* The text of the PTX; the caller frees it. name is the kernel's, for messages. path (may be NULL)
 * gets the file of the cache. */
char *ptx_compile(ptx_compiler *c, const char *text, const char *name, math_mode math, char *path,
                  size_t size, err *e);

/* The text of PTX with products of simdgroup matrices merged. The caller frees it. */
char *ptx_merge_text(const char *ptx);
/* What shim/ptx/product.h writes after an instruction (mma) that has a matrix in its first 8 rows only. */
#define PTX_UPPER_ROWS "// assay upper rows"

/* The kernel's name in the PTX: with a prefix, as PTX has words of its own, and as an identifier. */
void ptx_name_entry(const char *kernel, char *name, size_t size);
#define PTX_ENTRY_PREFIX "msl_"

/* Sizes that the MSL text alone did not tell: what parameters point or refer to. `all` is the
 * kernel before it was specialised. */
void ptx_complete_signature(const char *ptx, const msl_signature *all, msl_signature *s);

/* Threadgroup variables of the kernel, in bytes. */
uint32_t ptx_count_shared(const char *ptx);

/* Shared memory that bulk copies fill (shim/ptx/cuda.h), in bytes. */
uint32_t ptx_count_bulk(const char *ptx);

/* Threadgroups of a cluster, of which a launch has a multiple; 1: there are none. */
uint32_t ptx_count_cluster(const char *ptx);

/* Does the kernel wait for the launch before it on its own (kernels/prefetch.h)? *buffers: those it
 * loads before that, a bit each; *caches: those of which it loads only older rows. */
bool ptx_find_early_loads(const char *ptx, uint32_t *buffers, uint32_t *caches);

/* What a thread of a kernel needs, by ptxas. */
typedef struct {
    uint32_t registers;
    uint32_t spill_bytes; /* stores and loads of spilled registers in the code, each counted once */
} ptx_needs;

/* A program of the toolkit: "ptxas", "nvdisasm", "compute-sanitizer". */
bool ptx_find_tool(const char *name, char *path, size_t size);

/* What ptxas makes of a file. cubin: a file for the machine code, which then
 * knows the lines of the source; may be NULL, as may needs. */
bool ptx_assemble(const ptx_compiler *c, const char *assembler, const char *ptx_path,
                  const char *name, const char *cubin, ptx_needs *needs, err *e);
/* What nvdisasm prints of such a file: instructions, each group of them after the file
 * and the line that they come from. The caller frees it. */
char *ptx_disassemble(const char *disassembler, const char *cubin, err *e);
