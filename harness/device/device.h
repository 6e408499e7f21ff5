/* device: the whole GPU interface.
 *
 * Shaped like Metal: a device has buffers (shared, private, or no-copy over memory of the caller),
 * pipelines (a kernel of an MSL file, specialised by function constants) and plays parts of tapes,
 * each part as one command buffer. The same calls are served by the software device (soft/), by
 * Metal (metal/) and by CUDA (cuda/) through device_ops below. What else differs between them is a
 * fact of the device; the few places that know which kind they have ask device_facts.kind.
 *
 * Every buffer made here has a guard zone before and after its contents, filled with a pattern that
 * is NaN in every float type, so that a kernel that reads outside gives NaN and one that writes
 * outside is found by buffer_check_guards. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "finding.h"
#include "harness/base/err.h"
#include "launch.h"
#include "msl/msl.h"

typedef struct device device;
typedef struct tape tape; /* tape.h */

typedef enum { STORAGE_SHARED, STORAGE_PRIVATE, STORAGE_NO_COPY } storage_mode;

/* A private buffer of this size takes memory on the software device only where it is written. */
#define DEVICE_VAST_BYTES ((size_t)1 << 30)

/* What not every device has. A kernel says what it needs, a device what it offers: device_offers. */
enum {
    FEATURE_MATRICES = 1 << 0,    /* units for simdgroup_matrix */
    FEATURE_BULK_COPIES = 1 << 1, /* NVIDIA's TMA, mbarriers and clusters: kernels/cuda */
    FEATURE_WARPGROUPS = 1 << 2,  /* NVIDIA's products of warpgroups (wgmma): kernels/cuda */
};

enum { BUFFER_GUARD_BYTES = 16384 }; /* a page on Apple GPUs: contents stay page aligned */
/* Repeated 16-bit words: NaN as f32, f16 and bf16. Guards go from the first of their patterns to below
 * the poison, so that a kernel which copies past the end of two buffers changes what it writes to. */
enum { GUARD_PATTERN = 0xFF81, POISON_PATTERN = 0xFFC3 };

/* How freely a compiler may treat floating point, as in Metal's compile options.
 * safe: each operation as written, the precise functions. relaxed: operations are contracted and
 * reassociated and the fast functions are used, but infinity and NaN stay what they are. fast: as
 * relaxed, and the compiler assumes that there is no infinity and no NaN. */
typedef enum { MATH_SAFE, MATH_RELAXED, MATH_FAST, MATH_COUNT } math_mode;

const char *math_mode_get_name(math_mode m);                 /* "safe" */
bool math_mode_find(const char *name, math_mode *m, err *e); /* false: names the modes */

/* The flags for clang, on every device that it compiles for, to take the freedom that Metal's
 * compiler has in this mode; NULL ends the list. Denormals, division and square root are the
 * device's own. */
enum { MATH_FLAGS = 8 };
const char *const *math_mode_get_flags(math_mode m);

typedef enum { DEVICE_SOFT, DEVICE_METAL, DEVICE_CUDA } device_kind;

typedef struct {
    device_kind kind;
    char name[96];      /* "Apple M4", "NVIDIA H200", "software Metal device, 2 threads" */
    char api[16];       /* its kind in words: "soft", "metal", "cuda" */
    char spec[80];      /* what device_open takes to get the same one again: "metal:Apple M4" */
    char compiler[256]; /* what turns MSL into code here, and with which math */
    char sandbox[96];   /* what keeps kernels from the system; "": the GPU's driver */
    char family[64];    /* "Apple9, Mac2, Metal3"; "" where there are none */
    uint64_t memory_bytes;
    uint64_t working_set_bytes; /* what it can use well at the same time; 0: unknown */
    uint64_t max_buffer_bytes;  /* of one buffer; 0: unknown */
    uint64_t allocated_bytes;   /* held by this process when the device was opened */
    uint64_t cache_bytes;       /* of its last-level cache; 0: unknown */
    uint32_t threads;           /* of the CPU, if that runs the kernels; else 0 */
    uint32_t simd_width;        /* 0: each pipeline has its own */
    uint32_t max_group_threads;
    uint32_t max_threadgroup_bytes;
    uint32_t constant_alignment; /* of offsets at which constant memory is bound; 0: of its type */
    uint32_t cores;              /* that run threadgroups side by side; 0: not known */
    uint32_t offers;             /* FEATURE_ bits */
    bool unified;                /* CPU and GPU share memory */
    bool emulated;               /* a CPU runs it: kernels that suit a CPU, and no times of a GPU */
    bool is_virtual; /* a GPU under a hypervisor: kernels of a GPU, but times not to be trusted */
    bool flushes_denormals; /* f32 denormals are 0 to its arithmetic; see pipeline */
    math_mode math;         /* what its libraries compile with unless told otherwise */
    int language;           /* the version of MSL that its libraries read (msl.h) */
    bool validates;         /* its validation is on: MTL_SHADER_VALIDATION=1 when it was opened */
    bool traces;        /* NaN and infinities to where they are born: kernels are not optimised */
    bool names_lines;   /* and every finding says where in the text; false: some may */
    bool exact_buffers; /* it sees the ends of buffers, not of bindings: they have no guard zones */
} device_facts;

/* Three clocks, never one called the other. */
typedef struct {
    uint64_t gpu_ns;      /* the device at work */
    uint64_t encode_ns;   /* the CPU describing the work */
    uint64_t wall_ns;     /* from commit to known completion */
    uint64_t driver_ns;   /* the operating system handing it to the GPU; 0: unknown */
    bool gpu_is_wall;     /* the device has no clock of its own: gpu_ns is the wall's */
    bool gpu_is_sampled;  /* gpu_ns is from counters around the launch's own encoder */
    bool samples_overlap; /* the sampled times of all launches sum to more than the whole took */
} play_times;

/* Work handed to the device and not yet waited for. */
typedef struct {
    uint64_t id;
    uint64_t encode_ns, commit_at_ns;
} ticket;

/* One function constant of a pipeline: by index, with the bytes of its value. */
typedef struct {
    uint32_t index;
    elem type; /* ELEM_U8 also for bool */
    uint64_t bits;
} constant_value;

struct buffer {
    device *device;
    char label[48];
    size_t bytes; /* of the contents, without guards */
    storage_mode storage;
    bool is_copy;   /* STORAGE_NO_COPY, and yet the device has a copy: it takes no such memory */
    void *contents; /* CPU address; NULL for private, and where CPU and GPU do not share memory */
    size_t base;    /* offset of the contents in the device's allocation: the front guard, or page
                       rounding */
    uint16_t guard; /* the pattern of its guard zones */
    uint16_t block_bytes; /* of a block of weights; 0: it is not of blocks */
    void *impl;           /* the device's own */
};

struct pipeline {
    device *device;
    char kernel[128]; /* host name */
    msl_signature signature;
    uint32_t max_group_threads;
    uint32_t simd_width;
    bool counts_lanes;   /* it uses simdgroups, on a device where they are not of MSL_LANES */
    bool needs_matrices; /* the device lacks them: there is nothing to launch, and impl is NULL */
    uint32_t threadgroup_bytes; /* static; 0 when the device cannot tell */
    math_mode math;             /* what it is compiled with */
    bool flushes_denormals;     /* the device's, or what this math makes of it */
    void *impl;
};

/* name: "soft", "metal", "cuda", "auto", or NULL for ASSAY_DEVICE or else auto (metal, cuda, soft).
 * Where there are several of a kind: "metal:M4", the first whose name contains what follows the
 * colon, ignoring case. */
device *device_open(const char *name, err *e);

/* How a device is opened; zeros are what device_open asks for. */
typedef struct {
    /* 0: ASSAY_MATH, which --math sets, or else safe. */
    math_mode math;
    /* As msl_languages has it; 0: ASSAY_LANGUAGE, or else the newest that the device has. */
    int language;
    /* The software device flushes f32 denormals (not f16), as some GPUs do; so with ASSAY_FLUSH=1.
     * Other devices ignore it. */
    bool flush_denormals;
    /* The software device's GPU time is the CPU time of its threads, divided by their number, and not
     * the time that passes: other programs that take the CPU away do not count. It costs about a
     * microsecond per launch. Other devices ignore it. */
    bool cpu_clock;
    /* The software device counts what each line of a kernel does (finding.h), one threadgroup of this
     * many; 0: it does not. Others cannot. */
    uint32_t counts;
} device_options;
device *device_open_with(const char *name, const device_options *o, err *e);

void device_close(device *d);
const device_facts *device_get_facts(const device *d);
/* Does the device have all of these FEATURE_ bits? If not, e says what a kernel needs. */
bool device_offers(const device_facts *d, uint32_t needs, err *e);
/* The same extras for a text that is for this device: in its language, and as its compiler reads it. */
msl_extras device_complete_extras(const device *d, const msl_extras *extras);

/* Whether each kind of device is available here, and why not, for `assay info`. i counts from 0;
 * false past the last. */
bool device_describe(int i, const char **name, bool *available, err *why_not);

buffer *device_new_buffer(device *d, size_t bytes, storage_mode storage, const char *label, err *e);
/* A buffer over the caller's memory (an mmap): no copy where the device can, no guards, never
 * written. */
buffer *device_wrap_memory(device *d, const void *memory, size_t bytes, const char *label, err *e);
void buffer_free(buffer *b);

bool buffer_upload(buffer *b, size_t offset, const void *data, size_t bytes, err *e);
bool buffer_download(const buffer *b, size_t offset, void *data, size_t bytes, err *e);
/* What is filled with POISON_PATTERN counts as never written. */
bool buffer_fill_pattern(buffer *b, size_t offset, size_t bytes, uint16_t pattern, err *e);

/* A byte for each of the contents: 0 where nothing was written. NULL: the device does not know. */
const unsigned char *buffer_get_written(const buffer *b);

/* True if both guard zones are whole. If not: how far outside the contents the nearest change is
 * (negative: before). */
bool buffer_check_guards(const buffer *b, ptrdiff_t *at, err *e);

/* A kernel of a parsed MSL file, compiled. The unit must outlive the pipeline. */
pipeline *device_new_pipeline(device *d, const msl_unit *unit, const char *kernel,
                              const constant_value *constants, size_t count, math_mode math,
                              err *e);
/* One that is not compiled: a launch of it can be described, and its oracle asked, but not run. */
pipeline *device_plan_pipeline(device *d, const char *kernel, math_mode math);
void pipeline_free(pipeline *p);

/* Can every launch of the tape run as it is written? Kernels are written for simdgroups of MSL_LANES
 * and some for simdgroup matrices; GPUs of other makers, and virtual ones, have others or none. False
 * with a sentence: such a launch is refused when it is submitted, and a case of it is skipped. */
bool device_can_play(const tape *t, err *e);

/* Has the device refused this process, or may it, because of work that failed? Then only another
 * process can go on. device_tell_loss adds that to the message of the failure. */
bool device_is_lost(const device *d);
void device_tell_loss(const device *d, err *e);

/* Launches first..first+count-1 of a tape as one command buffer, in order. Checked against the
 * signatures before anything runs. Several may be in flight; they run in the order of submission.
 * Each ticket is waited for exactly once. */
bool device_submit(device *d, tape *t, size_t first, size_t count, ticket *out, err *e);
bool device_wait(device *d, ticket *k, play_times *times, err *e);

/* Counters read by the GPU at the ends of encoders: the time of each launch in one command buffer.
 * Asking tries them out. A play runs the whole tape in order with one encoder per launch, each
 * waiting for the one before; `each` has one entry per launch, with gpu_ns 0 where a sample was
 * lost. */
bool device_can_sample(device *d);
bool device_play_sampled(device *d, tape *t, play_times *total, play_times *each, err *e);

/* Everything that is played between the two goes to a .gputrace document for Xcode. */
bool device_start_capture(device *d, const char *path, err *e);
void device_stop_capture(device *d);

/* What the device's own validation found so far; always empty when it is not on. */
const finding_list *device_get_findings(const device *d);
void device_clear_findings(device *d);

/* What the launch that was played last did; the caller frees the rows. For a tape of one launch, or one
 * played launch by launch, with nothing else in flight. */
bool device_get_counts(device *d, const launch *l, count_list *out, err *e);

/* What a device implements. Arguments have been checked by the functions above. */
typedef struct {
    const char *name;
    bool (*open)(device *d, err *e);
    void (*close)(device *d);
    bool (*new_buffer)(buffer *b, size_t allocation_bytes, const void *no_copy,
                       err *e); /* sets impl, contents */
    void (*free_buffer)(buffer *b);
    bool (*copy)(buffer *b, size_t allocation_offset, void *host, size_t bytes, bool to_device,
                 err *e);
    /* NULL: it is filled by copies. Offset and bytes are even. */
    bool (*fill)(buffer *b, size_t allocation_offset, size_t bytes, uint16_t pattern, err *e);
    /* These bytes count as never written; NULL where the device does not know such a thing. */
    void (*forget)(buffer *b, size_t allocation_offset, size_t bytes);
    /* A byte for each of the allocation's: 0 where nothing was written; likewise. */
    const unsigned char *(*get_written)(const buffer *b);
    /* The signature is there; texts: the constants as C++. */
    bool (*new_pipeline)(pipeline *p, const msl_unit *unit, const constant_value *constants,
                         const msl_constant_text *texts, size_t count, err *e);
    void (*free_pipeline)(pipeline *p);
    bool (*submit)(device *d, tape *t, size_t first, size_t count, ticket *out, err *e);
    bool (*wait)(device *d, ticket *k, play_times *times, err *e);
    finding_list *(*get_findings)(const device *d);
    bool (*get_counts)(device *d, const launch *l, count_list *out, err *e);
    /* NULL where the device has no such thing; of can_sample: where it always can. */
    bool (*can_sample)(device *d);
    bool (*play_sampled)(device *d, tape *t, play_times *total, play_times *each, err *e);
    bool (*start_capture)(device *d, const char *path, err *e);
    void (*stop_capture)(device *d);
    bool has_many; /* there may be several: open looks at device.wanted */
} device_ops;

struct device {
    const device_ops *ops;
    const char *wanted; /* while it is opened: a part of its name; "": any */
    device_options options;
    device_facts facts;
    bool is_lost;      /* see device_is_lost */
    uint64_t releases; /* buffers and pipelines freed: an address may be that of another by now */
    uint64_t buffers;  /* made so far */
    void *impl;
};

extern const device_ops soft_device_ops;
extern const device_ops cuda_device_ops;
extern const device_ops metal_device_ops; /* where the build defines ASSAY_METAL */

/* The C++ spelling of a function constant's value, exact to the bit. */
void constant_spell(const constant_value *v, msl_constant_text *out);
/* Does the file have these function constants, with these types? */
bool constant_check(const msl_unit *u, const constant_value *values, size_t count, err *e);
