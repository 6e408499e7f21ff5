/* msl: reads a .metal file far enough to launch its kernels and to hand it to a C++ compiler.
 *
 * It finds kernels, their parameters and attributes, host names, function constants and threadgroup
 * storage by looking at tokens; of expressions it evaluates integer constants only. msl_rewrite turns
 * the text into plain C++ for clang, which compiles it for the CPU, NVIDIA's and Apple's GPUs: what MSL
 * adds to C++ (address spaces, attributes, kernel, literals that are float, casts between half and
 * bfloat) is replaced, everything else passes through byte for byte and every line keeps its number.
 * The MSL library itself (vectors, simd_sum...) is in the shim. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/base/remark.h"
#include "limits.h"

typedef struct msl_unit msl_unit; /* a parsed file */

enum { MSL_PARAMS = 64 };

typedef enum {
#define MSL_KIND(NAME, attribute) MSL_##NAME,
    MSL_KINDS(MSL_KIND)
#undef MSL_KIND
} msl_kind;

typedef enum {
    MSL_SPACE_NONE,
    MSL_SPACE_DEVICE,
    MSL_SPACE_CONSTANT,
    MSL_SPACE_THREADGROUP
} msl_space;

typedef struct {
    msl_kind kind;
    char name[64];
    char type[96]; /* as written, without address space and attributes: "const block_q4_0 *", "uint
                      &" */
    msl_space space; /* buffers and threadgroup memory */
    bool is_reference;
    bool is_const;
    bool is_coherent; /* across threadgroups, or may be: coherent(device), or MSL older than 3.2 */
    int index;        /* buffer or threadgroup index, explicit or counted; -1 for the rest */
    bool is_numbered; /* explicit */
    uint32_t
        value_bytes; /* size of *pointer or of the referenced value; 0: only the compiler knows */
    uint32_t dimensions; /* of a thread-position type: 1, 2 or 3 */
    char gate[64];       /* function constant that switches the parameter on; "" for none */
    int line;
} msl_param;

/* A kernel as a launch sees it. */
typedef struct {
    char host_name[128];
    char function[512]; /* C++ name with template arguments: what the entry glue calls */
    int line;
    uint32_t max_total_threads; /* [[max_total_threads_per_threadgroup(n)]]; 0 if not said */
    msl_param params[MSL_PARAMS];
    size_t count;
} msl_signature;

typedef struct {
    char name[64];
    char type[32]; /* "uint", "bool", "float", "half", ... */
    int index;
    int line;
} msl_constant;

/* Versions of the language are numbers as __METAL_VERSION__ has them: 310 is MSL 3.1. Those that can
 * be asked for; a Mac whose newest is older has that one. The shim of the software and the CUDA device
 * has what MSL_LANGUAGE has, the software device also 4.0's tensors; newer texts may do without the rest. */
enum { MSL_LANGUAGES = 4, MSL_LANGUAGE = 320, MSL_LANGUAGE_TEXT = 16 };
extern const int msl_languages[MSL_LANGUAGES];                   /* oldest first */
bool msl_read_language(const char *text, int *language, err *e); /* "3.1" */
/* What ASSAY_LANGUAGE asks for, where it is set; else *language stays as it is. */
bool msl_ask_language(int *language, err *e);
void msl_spell_language(int language, char text[MSL_LANGUAGE_TEXT]);

/* From a file (local includes resolved beside it), or from text that is given a name for messages; with
 * folders to look for includes in, and with macros, "NAME" or "NAME=VALUE"; in a version of the language
 * (0: MSL_LANGUAGE); and as Apple's compiler reads it, without __ASSAY__. */
typedef struct {
    const char *const *folders, *const *macros;
    size_t folder_count, macro_count;
    int language;
    bool is_apple;
} msl_extras;
msl_unit *msl_load_with(const char *path, const msl_extras *extras, err *e);
msl_unit *msl_from_text(const char *name, const char *text, err *e);
msl_unit *msl_from_text_with(const char *name, const char *text, const msl_extras *extras, err *e);
void msl_free(msl_unit *u);

const char *msl_get_name(const msl_unit *u);
int msl_get_language(const msl_unit *u); /* that it was read in */
/* The file with its local includes put in, macros and all, for a compiler of MSL that takes one
 * text and looks into no folder; #line marks keep the names of files and their lines. */
const char *msl_get_text(const msl_unit *u);
/* The same with macros expanded: what is parsed. */
const char *msl_get_expanded(const msl_unit *u);
size_t msl_count_kernels(const msl_unit *u);
const msl_signature *msl_get_kernel(const msl_unit *u, size_t i);
const msl_signature *msl_find_kernel(const msl_unit *u, const char *host_name,
                                     err *e); /* the error lists the kernels of the file */
size_t msl_count_constants(const msl_unit *u);
const msl_constant *msl_get_constant(const msl_unit *u, size_t i);

/* A value for one function constant, as C++ text ("true", "64u", "0.5f"). */
typedef struct {
    int index;
    char text[64];
} msl_constant_text;

/* The signature of one pipeline: parameters whose gate is off with these constants are left out. A
 * constant that a gate needs and that is not given is an error. */
bool msl_specialise(const msl_unit *u, const char *host_name, const msl_constant_text *constants,
                    size_t count, msl_signature *out, err *e);

/* Every function constant that the kernel's text uses must be given: false with the first that is
 * not. */
bool msl_check_constants(const msl_unit *u, const char *host_name,
                         const msl_constant_text *constants, size_t count, err *e);

/* Does the kernel, or a function that it calls, work with the lanes of a simdgroup? */
bool msl_uses_simdgroups(const msl_unit *u, const char *host_name);
/* Or multiply simdgroup matrices, or address a lane's elements of them (thread_elements)? */
bool msl_uses_matrices(const msl_unit *u, const char *host_name);
bool msl_uses_elements(const msl_unit *u, const char *host_name);

/* The C++ text of one pipeline for the software device: every kernel but the wanted one static,
 * function constants as constexpr values (one that the kernel's text uses and that is not given is
 * an error), `#line` for each origin, and the entry glue of shim/entry.h at the end:
 *     using assay_params = assay::params<assay::param<assay::kind_buffer, 0>,
 *                                        assay::param<assay::kind_thread_position_in_grid, 0>>;
 *     static constexpr auto assay_function = &kernel_name<float>;
 *     ASSAY_EXPORT        (or ASSAY_EXPORT_FOR(n) if it says max_total_threads_per_threadgroup)
 * Kinds are spelled as the attributes of MSL. A gated parameter that is off is assay::kind_off.
 * The caller frees the string. */
char *msl_rewrite(const msl_unit *u, const char *host_name, const msl_constant_text *constants,
                  size_t count, err *e);
/* Does a text of msl_rewrite need the shim's tensors? Where the file includes Metal 4's headers of them,
 * in a version of the language that has them. */
bool msl_text_has_tensors(const char *text);
bool msl_text_uses_elements(const char *text); /* msl_uses_elements of its kernel */
/* The same; is_traced: with every statement's end marked, to trace where something happens. */
char *msl_rewrite_for(const msl_unit *u, const char *host_name, const msl_constant_text *constants,
                      size_t count, bool is_traced, err *e);

/* What Apple's compiler refuses and C++ does not, in its words, as far as tokens show it. */
void msl_check_refused(const msl_unit *u, remark_list *out);

/* The C++ text of a whole file, for a compiler that only checks it: every kernel
 * that can be launched, every instantiation that has a host name, function constants as zero. */
char *msl_rewrite_whole(const msl_unit *u, err *e);

/* The text as C++ for OpenCL, whose address spaces are those of MSL, for -fsyntax-only with
 * msl/strict/metal.h. Kernels with parameters that are not supported, and instantiations, are left
 * out. Lines are kept. The caller frees it. */
char *msl_rewrite_strict(const msl_unit *u);

/* Which kernels does a line of a file belong to? Sets marks (one for each kernel, by number) of
 * those whose definition, or whose explicit instantiation, has it; false if there is none. A line of
 * a template that is not instantiated belongs to a kernel, but to none with a number. */
bool msl_mark_kernels(const msl_unit *u, const char *file, int line, bool *marks);
bool msl_mark_instantiations(const msl_unit *u, const char *file, int line, bool *marks);
/* Why the kernel cannot be launched here; NULL if it can. */
const char *msl_get_problem(const msl_unit *u, size_t i);

/* Looks for mistakes that compilers do not report (listed in lint.h). */
void msl_check_rules(const msl_unit *u, remark_list *out);
/* Only those that fast math makes: tests for NaN and infinity. */
void msl_check_fast_math(const msl_unit *u, remark_list *out);

/* The alignment of the address that a parameter takes. Of a struct only the size is known. */
uint32_t msl_get_alignment(const msl_param *p);
