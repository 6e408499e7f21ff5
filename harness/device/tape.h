/* tape: a sequence of launches with marks, recorded once and played many times.
 *
 * One kernel test is a tape of one launch; a decode step of a model is a tape of hundreds.
 * Pipelines come from a library, which loads and compiles each kernel once. */
#pragma once

#include "device.h"
#include "launch.h"

/* The .metal files of one folder, parsed and compiled for one device at first use. A NULL folder
 * means ASSAY_KERNELS, or else the user's project's, or else Assay's own kernels/. */
typedef struct library library;
/* The kernels of a user's project. From then on every other file that a library's folder does not
 * have is Assay's own. Kept, not copied. */
enum { LIBRARY_INCLUDES = 32 };
typedef struct {
    const char *folder;
    const char *const *files; /* in the folder */
    size_t file_count;
    const char *const *includes; /* folders of included files, relative to the library's folder */
    size_t include_count;        /* at most LIBRARY_INCLUDES */
} library_project;
void library_set_project(const library_project *p);
/* That of a library; of NULL: the one that was set. */
const library_project *library_get_project(const library *lib);
library *library_new(device *d, const char *folder, err *e);
/* Of another project than the one that was set: its folder and includes. Kept, not copied. */
library *library_new_of(device *d, const library_project *p, err *e);
void library_free(library *lib);
/* Sets another math mode than the device's own; call it before the first pipeline is made. */
void library_set_math(library *lib, math_mode math);
/* Its pipelines are not compiled and its files not read: tapes are recorded, but not played. Call it
 * before the first. */
void library_set_plan(library *lib);
bool library_is_plan(const library *lib);
/* Called with the name of each kernel before its pipeline is made, which may take a compiler a
 * second, and with NULL afterwards. False before it is made gives up with EXIT_INTERRUPTED. */
typedef bool library_watch(void *context, const char *kernel);
void library_set_watch(library *lib, library_watch *watch, void *context);
/* Folders of included files and macros for every file of this library; call it before the first is
 * read. Kept, not copied. */
void library_set_extras(library *lib, const msl_extras *extras);
device *library_get_device(const library *lib);
const char *library_get_folder(const library *lib);
/* Is that the folder of a library for which none is given? */
bool library_is_default(const library *lib);
/* The file of the folder that a pipeline was made of; NULL: it is another library's. */
const char *library_get_file(const library *lib, const pipeline *p);
/* The function constants that it was specialised by; how many. */
size_t library_get_constants(const library *lib, const pipeline *p, const constant_value **out);
/* The path of a file by the name it has in this library. */
bool library_find_path(const library *lib, const char *file, char *path, size_t size, err *e);
/* A file of this library, parsed; it lives as long as the library. */
const msl_unit *library_find_unit(library *lib, const char *file, err *e);
/* Was a pipeline asked for that could not be made: a file that is not there or does not compile? */
bool library_has_failed(const library *lib);
const pipeline *library_find(library *lib, const char *file, const char *kernel,
                             const constant_value *constants, size_t count, err *e);
/* The same, specialised by the constants of a pipeline of another library. */
const pipeline *library_find_like(library *lib, const char *file, const char *kernel,
                                  const library *other, const pipeline *p, err *e);

/* The files of pipelines that were asked for since the library was made, or since the last
 * library_forget_uses; how many. There is room for library_count_files. */
size_t library_count_files(const library *lib);
size_t library_list_used(const library *lib, const char **files);
void library_forget_uses(library *lib);

typedef enum { ORDER_SERIAL, ORDER_CONCURRENT } play_order;

typedef struct {
    size_t at; /* index of the first launch of the part */
    char name[32];
} mark;

struct tape {
    library *lib;
    launch *launches;
    size_t count, capacity;
    mark *marks;
    size_t mark_count, mark_capacity;
    play_order order; /* concurrent: launches may overlap unless there is a barrier between them */
    bool barrier_next;
    bool explains;  /* a failure names the launch if the device can tell; never while it is timed */
    void *prepared; /* a device's own (a CUDA graph), dropped when the tape is freed */
    void (*free_prepared)(void *prepared);
    launch *known; /* (known_count) the launches as they were when last looked at */
    size_t known_count;
    play_order known_order;
    uint64_t known_releases; /* device.releases then */
    uint64_t version;        /* of what is known: another number means that something changed; 0:
                                nothing is known */
    uint64_t versions;       /* given out so far */
};

tape *tape_new(library *lib);
void tape_free(tape *t);

/* Appends a launch of a kernel of a file in the library's folder. NULL with e set if it cannot be
 * compiled. The pointer holds until the next launch is added. */
launch *tape_add(tape *t, const char *file, const char *kernel, err *e);
launch *tape_add_specialised(tape *t, const char *file, const char *kernel,
                             const constant_value *constants, size_t count, err *e);
launch *tape_add_pipeline(tape *t, const pipeline *p);
void tape_mark(tape *t, const char *name); /* what follows belongs to this part */
void tape_barrier(tape *t); /* concurrent order: what follows waits for what came before */

/* The mark before a launch; "" for none. */
const char *tape_get_part(const tape *t, size_t index);
/* What launches first..first+count-1 are called in messages: "layer 3: rmsnorm and 7 more". */
void tape_name_part(const tape *t, size_t first, size_t count, char *name, size_t size);
/* The GPU's time, unless it is 0 or longer than the wait for it, which is impossible. */
void play_times_set(play_times *times, uint64_t gpu_ns, uint64_t wall_ns);

typedef enum {
    PLAY_WHOLE,    /* one command buffer */
    PLAY_MARKS,    /* one command buffer per part between marks */
    PLAY_LAUNCHES, /* one command buffer per launch */
    PLAY_SAMPLED /* each launch timed by the GPU's counters in one command buffer; where the device
                    has none that work, as PLAY_LAUNCHES: play_times.gpu_is_sampled says which */
} play_mode;

/* Adds the times of one more play. If gpu_ns of either is wall time, so is that of the sum. */
void play_times_add(play_times *sum, const play_times *more);

/* Number of parts that a play times: the size of `each` below. */
size_t tape_count_parts(const tape *t, play_mode mode);

/* Plays and waits. total is the sum over parts; each (may be NULL) has one entry per part. Playing
 * per launch with checks is check_tape in check.h. */
bool tape_play(tape *t, play_mode mode, play_times *total, play_times *each, err *e);
