/* tape: see tape.h. Owns recording and playing; the device owns what a play does to it. A library has the parsed
 * .metal files of a folder and their compiled pipelines, each made once and kept until it is freed. */
#include "tape.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

/* Libraries ------------------------------------------------------------------------------------ */

enum { LIBRARY_CONSTANTS = 16 };

typedef struct file_entry {
    struct file_entry *next;
    char *name;
    msl_unit *unit;
    bool is_used; /* see library_list_used */
} file_entry;

typedef struct pipeline_entry {
    struct pipeline_entry *next;
    const file_entry *file;
    constant_value constants[LIBRARY_CONSTANTS];
    size_t count;
    pipeline *pipeline;
} pipeline_entry;

struct library {
    device *device;
    math_mode math;
    const library_project *project;
    char folder[PATH_MAX];
    file_entry *files;
    pipeline_entry *pipelines;
    msl_extras extras;    /* zeros: none */
    library_watch *watch; /* or NULL */
    void *watch_context;
    bool has_failed; /* a pipeline was not made */
    bool is_default; /* see library_is_default */
    bool is_plan;    /* see library_set_plan */
};

static library_project project;

void library_set_project(const library_project *p) {
    project = *p;
}

const library_project *library_get_project(const library *lib) {
    return lib ? lib->project : &project;
}

/* A file that the project describes must be where the library's folder has it: one of the same name
 * among Assay's own would be checked in its place. */
static bool is_project_file(const library *lib, const char *name) {
    for (size_t i = 0; i < lib->project->file_count; i++)
        if (strcmp(lib->project->files[i], name) == 0)
            return true;
    return false;
}

/* The folder that is given, or else that of ASSAY_KERNELS, of the project or of this program. */
static bool find_folder(const char *given, char path[PATH_MAX], err *e) {
    if (!given)
        given = getenv("ASSAY_KERNELS");
    if (!given || !*given)
        given = project.folder;
    return given && *given ? path_print(path, PATH_MAX, e, "%s", given)
                           : os_join_home(path, PATH_MAX, e, "kernels");
}

library *library_new(device *d, const char *folder, err *e) {
    library *lib = array_new(1, sizeof *lib);
    char own[PATH_MAX];
    lib->device = d;
    lib->project = &project;
    lib->math = d ? d->facts.math : MATH_SAFE;
    if (!find_folder(folder, lib->folder, e)) {
        free(lib);
        return NULL;
    }
    lib->is_default = !folder || (find_folder(NULL, own, NULL) && strcmp(own, lib->folder) == 0);
    return lib;
}

library *library_new_of(device *d, const library_project *p, err *e) {
    library *lib = library_new(d, p->folder, e);
    if (lib)
        lib->project = p;
    return lib;
}

void library_free(library *lib) {
    if (!lib)
        return;
    for (pipeline_entry *p = lib->pipelines, *next; p; p = next) {
        next = p->next;
        pipeline_free(p->pipeline);
        free(p);
    }
    for (file_entry *f = lib->files, *next; f; f = next) {
        next = f->next;
        msl_free(f->unit);
        free(f->name);
        free(f);
    }
    free(lib);
}

void library_set_math(library *lib, math_mode math) {
    assert(!lib->pipelines);
    lib->math = math;
}

void library_set_plan(library *lib) {
    assert(!lib->pipelines);
    lib->is_plan = true;
}

bool library_is_plan(const library *lib) {
    return lib->is_plan;
}

void library_set_extras(library *lib, const msl_extras *extras) {
    assert(!lib->files);
    lib->extras = *extras;
}

void library_set_watch(library *lib, library_watch *watch, void *context) {
    lib->watch = watch;
    lib->watch_context = context;
}

device *library_get_device(const library *lib) {
    return lib->device;
}

bool library_has_failed(const library *lib) {
    return lib->has_failed;
}

bool library_is_default(const library *lib) {
    return lib->is_default;
}

const char *library_get_folder(const library *lib) {
    return lib->folder;
}

static const pipeline_entry *look_up(const library *lib, const pipeline *p) {
    const pipeline_entry *entry = lib->pipelines;
    while (entry && entry->pipeline != p)
        entry = entry->next;
    return entry;
}

static const pipeline_entry *find_entry(const library *lib, const pipeline *p) {
    const pipeline_entry *entry = look_up(lib, p);
    assert(entry);
    return entry;
}

const char *library_get_file(const library *lib, const pipeline *p) {
    const pipeline_entry *entry = look_up(lib, p);
    return entry ? entry->file->name : NULL;
}

size_t library_get_constants(const library *lib, const pipeline *p, const constant_value **out) {
    *out = find_entry(lib, p)->constants;
    return find_entry(lib, p)->count;
}

bool library_find_path(const library *lib, const char *name, char *path, size_t size, err *e) {
    char home[PATH_MAX];
    int n = name[0] == '/' ? snprintf(path, size, "%s", name)
                           : snprintf(path, size, "%s/%s", lib->folder, name);
    if (n < (int)size && lib->project->folder && access(path, F_OK) != 0 &&
        !is_project_file(lib, name) && os_find_home(home, sizeof home, NULL))
        n = snprintf(path, size, "%s/kernels/%s", home, name);
    return n < (int)size ||
           err_set(e, EXIT_USAGE, "the path of the kernel file %.100s is too long", name);
}

static msl_unit *load_unit(const library *lib, const char *name, const char *path, err *e) {
    static char folders[LIBRARY_INCLUDES][PATH_MAX];
    const char *list[LIBRARY_INCLUDES];
    const library_project *p = lib->project;
    size_t count = is_project_file(lib, name) ? p->include_count : 0;
    msl_extras extras =
        lib->device ? device_complete_extras(lib->device, &lib->extras) : lib->extras;
    if (count == 0)
        return msl_load_with(path, &extras, e);
    assert(count <= LIBRARY_INCLUDES);
    for (size_t i = 0; i < count; i++) {
        if (!path_join(folders[i], sizeof folders[i], e, lib->folder, p->includes[i]))
            return NULL;
        list[i] = folders[i];
    }
    extras.folders = list;
    extras.folder_count = count;
    extras.macro_count = 0;
    return msl_load_with(path, &extras, e);
}

/* A plan needs no text. */
static file_entry *find_file(library *lib, const char *name, err *e) {
    for (file_entry *f = lib->files; f; f = f->next)
        if (strcmp(f->name, name) == 0)
            return f;
    char path[PATH_MAX];
    msl_unit *unit = !lib->is_plan && library_find_path(lib, name, path, sizeof path, e)
                         ? load_unit(lib, name, path, e)
                         : NULL;
    if (!unit && !lib->is_plan)
        return NULL;
    file_entry *f = array_new(1, sizeof *f);
    f->name = strdup(name);
    f->unit = unit;
    f->next = lib->files;
    lib->files = f;
    return f;
}

const msl_unit *library_find_unit(library *lib, const char *name, err *e) {
    const file_entry *f = find_file(lib, name, e);
    return f ? f->unit : NULL;
}

static bool is_same(const pipeline_entry *p, const char *kernel, const constant_value *constants,
                    size_t count) {
    if (strcmp(p->pipeline->kernel, kernel) != 0 || p->count != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (p->constants[i].index != constants[i].index ||
            p->constants[i].type != constants[i].type || p->constants[i].bits != constants[i].bits)
            return false;
    return true;
}

const pipeline *library_find(library *lib, const char *file, const char *kernel,
                             const constant_value *constants, size_t count, err *e) {
    file_entry *f = find_file(lib, file, e);
    lib->has_failed |= !f;
    if (!f)
        return NULL;
    f->is_used = true;
    for (pipeline_entry *p = lib->pipelines; p; p = p->next)
        if (p->file == f && is_same(p, kernel, constants, count))
            return p->pipeline;
    if (count > LIBRARY_CONSTANTS)
        return err_null(e, EXIT_USAGE, "%.80s is given %zu function constants, and %d is the limit",
                        kernel, count, LIBRARY_CONSTANTS);
    if (lib->watch && !lib->watch(lib->watch_context, kernel))
        return err_null(e, EXIT_INTERRUPTED, "stopped by a signal");
    pipeline *made = lib->is_plan ? device_plan_pipeline(lib->device, kernel, lib->math)
                                  : device_new_pipeline(lib->device, f->unit, kernel, constants,
                                                        count, lib->math, e);
    if (lib->watch)
        lib->watch(lib->watch_context, NULL);
    lib->has_failed |= !made;
    if (!made)
        return NULL;
    pipeline_entry *p = array_new(1, sizeof *p);
    p->file = f;
    p->count = count;
    for (size_t i = 0; i < count; i++)
        p->constants[i] = constants[i];
    p->pipeline = made;
    p->next = lib->pipelines;
    lib->pipelines = p;
    return made;
}

const pipeline *library_find_like(library *lib, const char *file, const char *kernel,
                                  const library *other, const pipeline *p, err *e) {
    const pipeline_entry *entry = find_entry(other, p);
    return library_find(lib, file, kernel, entry->constants, entry->count, e);
}

size_t library_count_files(const library *lib) {
    size_t count = 0;
    for (const file_entry *f = lib->files; f; f = f->next)
        count++;
    return count;
}

size_t library_list_used(const library *lib, const char **files) {
    size_t count = 0;
    for (const file_entry *f = lib->files; f; f = f->next)
        if (f->is_used)
            files[count++] = f->name;
    return count;
}

void library_forget_uses(library *lib) {
    for (file_entry *f = lib->files; f; f = f->next)
        f->is_used = false;
}

/* Tapes ---------------------------------------------------------------------------------------- */

tape *tape_new(library *lib) {
    tape *t = array_new(1, sizeof *t);
    t->lib = lib;
    return t;
}

static void drop_prepared(tape *t) {
    if (t->free_prepared)
        t->free_prepared(t->prepared);
    t->prepared = NULL;
    t->free_prepared = NULL;
    t->known_count = 0;
    t->version = 0;
}

void tape_free(tape *t) {
    if (!t)
        return;
    drop_prepared(t);
    free(t->launches);
    free(t->known);
    free(t->marks);
    free(t);
}

launch *tape_add_pipeline(tape *t, const pipeline *p) {
    drop_prepared(t);
    launch *l = ARRAY_ADD(t->launches, t->count, t->capacity);
    memset(l, 0, sizeof *l);
    l->pipeline = p;
    l->barrier_before = t->barrier_next;
    t->barrier_next = false;
    snprintf(l->label, sizeof l->label, "%.63s", p->kernel);
    return l;
}

launch *tape_add_specialised(tape *t, const char *file, const char *kernel,
                             const constant_value *constants, size_t count, err *e) {
    const pipeline *p = library_find(t->lib, file, kernel, constants, count, e);
    return p ? tape_add_pipeline(t, p) : NULL;
}

launch *tape_add(tape *t, const char *file, const char *kernel, err *e) {
    return tape_add_specialised(t, file, kernel, NULL, 0, e);
}

void tape_mark(tape *t, const char *name) {
    mark *m = ARRAY_ADD(t->marks, t->mark_count, t->mark_capacity);
    m->at = t->count;
    snprintf(m->name, sizeof m->name, "%s", name);
}

const char *tape_get_part(const tape *t, size_t index) {
    const char *name = "";
    for (size_t i = 0; i < t->mark_count && t->marks[i].at <= index; i++)
        name = t->marks[i].name;
    return name;
}

void tape_name_part(const tape *t, size_t first, size_t count, char *name, size_t size) {
    const char *part = count ? tape_get_part(t, first) : "";
    if (count <= 1)
        snprintf(name, size, "%s", count ? t->launches[first].label : "nothing");
    else
        snprintf(name, size, "%s%s%s and %zu more", part, *part ? ": " : "",
                 t->launches[first].label, count - 1);
}

void tape_barrier(tape *t) {
    t->barrier_next = true;
}

/* The end of the part that starts at launch `first`. */
static size_t find_part_end(const tape *t, play_mode mode, size_t first) {
    if (mode == PLAY_LAUNCHES || mode == PLAY_SAMPLED)
        return first + 1;
    if (mode == PLAY_MARKS)
        for (size_t i = 0; i < t->mark_count; i++)
            if (t->marks[i].at > first && t->marks[i].at < t->count)
                return t->marks[i].at;
    return t->count;
}

void play_times_set(play_times *times, uint64_t gpu_ns, uint64_t wall_ns) {
    times->wall_ns = wall_ns;
    times->gpu_is_wall = gpu_ns == 0 || gpu_ns > wall_ns;
    times->gpu_ns = times->gpu_is_wall ? wall_ns : gpu_ns;
}

void play_times_add(play_times *sum, const play_times *more) {
    sum->gpu_ns += more->gpu_ns;
    sum->encode_ns += more->encode_ns;
    sum->wall_ns += more->wall_ns;
    sum->driver_ns += more->driver_ns;
    sum->gpu_is_wall |= more->gpu_is_wall;
    sum->samples_overlap |= more->samples_overlap;
}

size_t tape_count_parts(const tape *t, play_mode mode) {
    size_t parts = 0;
    for (size_t first = 0; first < t->count; first = find_part_end(t, mode, first))
        parts++;
    return parts;
}

static bool play_sampled(tape *t, play_times *total, play_times *each, err *e) {
    play_times ignored, *list = each ? each : calloc(t->count, sizeof *list);
    assert(list);
    bool ok = device_play_sampled(library_get_device(t->lib), t, total ? total : &ignored, list, e);
    if (!each)
        free(list);
    return ok;
}

bool tape_play(tape *t, play_mode mode, play_times *total, play_times *each, err *e) {
    device *d = library_get_device(t->lib);
    play_times sum = {0};
    if (mode == PLAY_SAMPLED && t->count > 0 && device_can_sample(d))
        return play_sampled(t, total, each, e);
    for (size_t first = 0, end, part = 0; first < t->count; first = end, part++) {
        end = find_part_end(t, mode, first);
        ticket k;
        play_times times;
        if (!device_submit(d, t, first, end - first, &k, e) || !device_wait(d, &k, &times, e))
            return false;
        play_times_add(&sum, &times);
        if (each)
            each[part] = times;
    }
    if (total)
        *total = sum;
    return true;
}
