/* launch_run: one launch that the command line describes, from compiling the kernel to printing
 * what came out. Runs in a worker, because the kernel may do anything to its process. */
#pragma once

#include <stdio.h>

#include "description.h"

typedef struct {
    const char *file, *kernel, *device, *capture;
    const char *const *folders, *const *macros; /* -I and -D */
    size_t folder_count, macro_count;
    uint32_t may_overread; /* a bit per index */
    uint32_t assumed;      /* likewise: buffers whose size is a guess */
    description launch;    /* arguments, constants and one grid */
    struct {
        int index, of;        /* the buffer of another argument: from offset on, */
        size_t offset, bytes; /* bytes of it; 0: the rest */
    } parts[LAUNCH_BUFFERS];
    size_t part_count;
    uint32_t threadgroup_bytes[LAUNCH_THREADGROUPS];
    bool has_only;
    uint32_t only[3]; /* the threadgroup that is run alone */
    struct {
        bool wanted;
        uint64_t most; /* elements; 0: the usual number */
    } print[LAUNCH_BUFFERS];
    bool has_print;                   /* without any, everything that can be written is printed */
    const char *save[LAUNCH_BUFFERS]; /* paths, NULL for what is not saved */
    bool validate, trace_nan, strict;
    bool agx; /* --agx: see check.h */
    uint64_t repeat, seed, max_findings;
    uint32_t counts; /* device_options.counts: it is counted, and neither timed nor printed */
} launch_request;

/* Results go to `out`. EXIT_WRONG for findings and for writes outside of buffers, which are
 * described there; other failures are described by e. */
exit_code launch_run(const launch_request *r, FILE *out, err *e);

/* The launch alone: sets it up and hands its tape to `use`. */
typedef bool launch_use(void *context, tape *t, err *e);
bool launch_with(const launch_request *r, launch_use *use, void *context, err *e);
