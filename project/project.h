/* project: the user's own ops.
 *
 * A project is a folder with a file assay.project, descriptions of ops beside it and the .metal
 * files that they name. A description is a text NAME.op (see describe.h) or a C file (see
 * include/assay.h), which is compiled by the machine's C compiler when it is first used, kept in the
 * cache by its content, and loaded into the process. Their ops take the place of Assay's own in the
 * registry, so that every verb works on them. A description that cannot be used stands among them as
 * an op whose only case fails.
 *
 *   # assay.project
 *   kernels = src/kernels          folder of the .metal files (default: this folder)
 *   include = ../common            folders of what they include, relative to them
 *   ops = ops/rms.op ops/mul.c      the descriptions, as globs (default: each .op and .c file)
 *   fail = deleted looser          kinds of changes of what is proved that fail `assay changes`
 *   accept = deleted softmax: WHY  what this version changes on purpose, any number of lines
 */
#pragma once

#include <stddef.h>

#include "harness/check/op.h"

enum { PROJECT_ACCEPTS = 32 };

/* Loads the ops of the project that is worked on; nothing where there is none. */
bool project_load(err *e);

/* Another version of a project, with its own descriptions: a baseline. */
typedef struct {
    const op *const *ops; /* NULL: it has no descriptions */
    size_t count;
    const library_project *sources;
    /* Of assay.project: which kinds of changes fail (NULL: it does not say), and what it accepts. */
    const char *fail, *const *accept;
    size_t accept_count;
} project_version;
/* The project in a folder, or the one whose folder of kernels it is; the registry stays as it is. */
bool project_load_version(const char *folder, project_version *out, err *e);

/* Where its .metal files are, without its ops: in ASSAY_KERNELS, or else where the project says; the folder
 * is NULL if there is neither. Stays as it is until it is asked for again. */
enum { PROJECT_INCLUDES = 16 };
bool project_find_sources(library_project *out, err *e);
/* From now on libraries have them, as after project_load. */
bool project_use_sources(err *e);
