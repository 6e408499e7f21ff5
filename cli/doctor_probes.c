#include "doctor_probes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/device/tape.h"

static const char text[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "kernel void copy(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]],\n"
    "                 uint i [[thread_position_in_grid]]) { y[i] = x[i]; }\n"
    "kernel void scale_f32(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],\n"
    "                      uint i [[thread_position_in_grid]]) { y[i] = x[i] * x[i + 64]; }\n"
    "kernel void scale_f16(device const half *x [[buffer(0)]], device half *y [[buffer(1)]],\n"
    "                      uint i [[thread_position_in_grid]]) { y[i] = x[i] * x[i + 64]; }\n"
    "kernel void spin(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]],\n"
    "                 uint i [[thread_position_in_grid]]) {\n"
    "    uint v = i;\n"
    "    for (uint n = x[0]; n > 0; n--)\n"
    "        v = (v ^ (v >> 7)) * 1664525u + n;\n"
    "    y[i] = v;\n"
    "}\n"
    "kernel void stray(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]],\n"
    "                  uint i [[thread_position_in_grid]]) {\n"
    "    y[(ulong(x[0]) << 34) + i] = 1;\n"
    "}\n";

enum { THREADS = 64 };

/* One kernel with two buffers, ready to play. */
typedef struct {
    device *device;
    msl_unit *unit;
    library *lib;
    pipeline *pipeline;
    buffer *in, *out;
    tape *tape;
} rig;

static void close_rig(rig *r) {
    tape_free(r->tape);
    buffer_free(r->in);
    buffer_free(r->out);
    pipeline_free(r->pipeline);
    library_free(r->lib);
    msl_free(r->unit);
}

static void add_launches(rig *r, size_t count) {
    tape_clear(r->tape);
    for (size_t i = 0; i < count; i++) {
        launch *l = tape_add_pipeline(r->tape, r->pipeline);
        launch_bind(l, 0, slice_whole(r->in), ACCESS_READ, ELEM_U32);
        launch_bind(l, 1, slice_whole(r->out), ACCESS_BOTH, ELEM_U32);
        launch_set_groups(l, (size3){1, 1, 1}, (size3){THREADS, 1, 1});
    }
}

/* `in` holds these bytes; in_place: it is a buffer over them. */
static bool open_rig(rig *r, device *d, const char *kernel, math_mode math, const void *data,
                     size_t bytes, bool in_place, err *e) {
    static const uint32_t zeros[THREADS];
    *r = (rig){.device = d};
    bool ok = (r->lib = library_new(d, NULL, e)) && (r->unit = msl_from_text("probe", text, e)) &&
              (r->pipeline = device_new_pipeline(d, r->unit, kernel, NULL, 0, math, e)) &&
              (r->in = in_place ? device_wrap_memory(d, data, bytes, "in", e)
                                : device_new_buffer(d, bytes, STORAGE_SHARED, "in", e)) &&
              (in_place || buffer_upload(r->in, 0, data, bytes, e)) &&
              (r->out = device_new_buffer(d, sizeof zeros, STORAGE_SHARED, "out", e)) &&
              buffer_upload(r->out, 0, zeros, sizeof zeros, e) && (r->tape = tape_new(r->lib));
    if (ok)
        add_launches(r, 1);
    else
        close_rig(r);
    return ok;
}

/* Sampled times ---------------------------------------------------------------------------------- */

static exit_code judge_samples(rig *r, const play_times *whole, err *e) {
    enum { LAUNCHES = 32 };
    play_times sum, each[LAUNCHES];
    add_launches(r, LAUNCHES);
    if (!device_play_sampled(r->device, r->tape, &sum, each, e))
        return e->code;
    size_t lost = 0;
    uint64_t total_ns = 0;
    for (size_t i = 0; i < LAUNCHES; i++) {
        lost += each[i].gpu_ns == 0;
        total_ns += each[i].gpu_ns;
    }
    printf("launch: %.1f us by counters, %.1f by command buffer; %zu of %d samples are missing%s\n",
           (double)(total_ns / LAUNCHES) * 1e-3, (double)whole->gpu_ns * 1e-3, lost, LAUNCHES,
           each[0].samples_overlap ? ", and their sum is longer than the whole" : "");
    return lost == 0 ? EXIT_OK : EXIT_WRONG;
}

static exit_code probe_times(device *d, err *e) {
    const uint32_t turns = 20000;
    rig r;
    play_times whole = {0};
    if (!open_rig(&r, d, "spin", MATH_SAFE, &turns, sizeof turns, false, e))
        return e->code;
    exit_code code = tape_play(r.tape, PLAY_WHOLE, &whole, NULL, e) ? EXIT_OK : e->code;
    bool is_possible = whole.gpu_ns > 0 && whole.gpu_ns <= whole.wall_ns + whole.wall_ns / 50;
    if (code == EXIT_OK && !is_possible) {
        printf("the GPU's time of a launch is %" PRIu64 " ns, of %" PRIu64 " by the wall clock\n",
               whole.gpu_ns, whole.wall_ns);
        code = EXIT_WRONG;
    } else if (code == EXIT_OK && device_can_sample(d))
        code = judge_samples(&r, &whole, e);
    else if (code == EXIT_OK)
        printf("no counters; one command buffer per launch%s: %.1f us\n",
               whole.gpu_is_wall ? ", by the wall clock" : "", (double)whole.gpu_ns * 1e-3);
    close_rig(&r);
    return code;
}

/* Memory without a copy -------------------------------------------------------------------------- */

/* A mapped file as a model is: the contents do not begin at a page. */
static exit_code judge_mapping(device *d, const char *at, size_t bytes, err *e) {
    rig r;
    char got[THREADS * 4];
    if (!open_rig(&r, d, "copy", MATH_SAFE, at, bytes, true, e))
        return e->code;
    bool is_played = tape_play(r.tape, PLAY_WHOLE, NULL, NULL, e) &&
                     buffer_download(r.out, 0, got, sizeof got, e);
    bool is_same = is_played && memcmp(got, at, sizeof got) == 0;
    bool is_in_place = r.in->contents == at, unified = device_get_facts(d)->unified;
    close_rig(&r);
    if (!is_played)
        return e->code;
    printf("a mapped file is %s%s\n", unified && is_in_place ? "used in place" : "copied",
           !is_same                  ? ", and a kernel reads other bytes than it has"
           : unified && !is_in_place ? ", although CPU and GPU share memory"
                                     : "");
    return is_same && (is_in_place || !unified) ? EXIT_OK : EXIT_WRONG;
}

static exit_code probe_mapping(device *d, err *e) {
    enum { BYTES = 1 << 20, OFFSET = (1 << 15) + 96 };
    char folder[4096], path[4200];
    static char data[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (char)(i * 7 + i / 251);
    if (!os_make_scratch(folder, sizeof folder, e))
        return e->code;
    snprintf(path, sizeof path, "%s/mapped", folder);
    FILE *file = os_write_file(path, data, BYTES, e) ? fopen(path, "rb") : NULL;
    void *map = file ? mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fileno(file), 0) : MAP_FAILED;
    exit_code code;
    if (map == MAP_FAILED)
        code = err_code(e, EXIT_CANNOT, "a file of 1 MB cannot be mapped");
    else
        code = judge_mapping(d, (const char *)map + OFFSET, BYTES - OFFSET, e);
    if (map != MAP_FAILED)
        munmap(map, BYTES);
    if (file)
        fclose(file);
    os_remove_folder(folder);
    return code;
}

/* Denormals -------------------------------------------------------------------------------------- */

/* What a multiplication of a denormal by 1 gives. */
static bool ask_denormals(device *d, elem type, math_mode math, bool *are_kept, err *e) {
    const bool is_f16 = type == ELEM_F16;
    uint32_t f32[2 * THREADS], got[THREADS] = {0};
    uint16_t f16[2 * THREADS];
    for (size_t i = 0; i < 2 * THREADS; i++) {
        f32[i] = i < THREADS ? 0x00400000 : 0x3f800000;
        f16[i] = i < THREADS ? 0x0200 : 0x3c00;
    }
    rig r;
    if (!open_rig(&r, d, is_f16 ? "scale_f16" : "scale_f32", math, is_f16 ? (void *)f16 : f32,
                  is_f16 ? sizeof f16 : sizeof f32, false, e))
        return false;
    bool ok = tape_play(r.tape, PLAY_WHOLE, NULL, NULL, e) &&
              buffer_download(r.out, 0, got, sizeof got, e);
    *are_kept = is_f16 ? (got[0] & 0xffff) == f16[0] : got[0] == f32[0];
    close_rig(&r);
    return ok;
}

/* A tolerance that allows for denormals that are not flushed does no harm; the opposite does. */
static exit_code probe_denormals(device *d, err *e) {
    static const char *const words[] = {"flushed", "kept"};
    bool safe32, fast32, safe16, flushes = device_get_facts(d)->flushes_denormals;
    if (!ask_denormals(d, ELEM_F32, MATH_SAFE, &safe32, e) ||
        !ask_denormals(d, ELEM_F32, MATH_FAST, &fast32, e) ||
        !ask_denormals(d, ELEM_F16, MATH_SAFE, &safe16, e))
        return e->code;
    printf("f32 %s (safe), %s (fast); f16 %s%s\n", words[safe32], words[fast32], words[safe16],
           safe32 == flushes ? "; info says otherwise" : "");
    return safe32 || flushes ? EXIT_OK : EXIT_WRONG;
}

/* At your own risk ------------------------------------------------------------------------------- */

static exit_code probe_fault(device *d, err *e) {
    const uint32_t far = 4;
    rig r;
    if (!open_rig(&r, d, "stray", MATH_SAFE, &far, sizeof far, false, e))
        return e->code;
    err own = {.code = EXIT_OK};
    fflush(stdout);
    bool ok = tape_play(r.tape, PLAY_WHOLE, NULL, NULL, &own);
    printf("a store 256 GB outside its buffer %s%s\n",
           ok ? "is not reported: it went nowhere" : "is reported: ", ok ? "" : own.text);
    close_rig(&r);
    return EXIT_OK;
}

/* Each kernel runs about four times as long as the one before it, up to 10 seconds. */
static exit_code probe_long(device *d, err *e) {
    uint64_t took_ns = 0;
    for (uint32_t turns = 1 << 20; took_ns < UINT64_C(3000000000) && turns < 1u << 31; turns *= 4) {
        rig r;
        play_times t = {0};
        err own = {.code = EXIT_OK};
        if (!open_rig(&r, d, "spin", MATH_SAFE, &turns, sizeof turns, false, e))
            return e->code;
        bool ok = tape_play(r.tape, PLAY_WHOLE, &t, NULL, &own);
        close_rig(&r);
        if (!ok) {
            printf("a kernel of about %.1f s is ended: %s\n", (double)took_ns * 4e-9, own.text);
            return took_ns * 4 > 1000000000 ? EXIT_OK : EXIT_WRONG;
        }
        took_ns = t.gpu_ns;
        printf("a kernel of %.2f s runs to its end\n", (double)took_ns * 1e-9);
        fflush(stdout);
    }
    return EXIT_OK;
}

exit_code doctor_probe(const char *name, const char *device_name, err *e) {
    static const struct {
        const char *name;
        exit_code (*ask)(device *d, err *e);
    } probes[] = {{"times", probe_times},
                  {"mapping", probe_mapping},
                  {"denormals", probe_denormals},
                  {"fault", probe_fault},
                  {"long", probe_long}};
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
        if (strcmp(probes[i].name, name) == 0) {
            device *d = device_open(device_name, e);
            exit_code code = d ? probes[i].ask(d, e) : e->code;
            device_close(d);
            return code;
        }
    return err_code(e, EXIT_USAGE, "no probe is called '%.40s'", name);
}
