/* profile: see profile.h. */
#include "profile.h"

#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/record.h"
#include "results.h"

/* Adding up ------------------------------------------------------------------------------------ */

static profile_line *find_line(profile *p, const char *file, int line) {
    for (size_t i = 0; i < p->count; i++)
        if (p->lines[i].line == line && strcmp(p->lines[i].file, file) == 0)
            return &p->lines[i];
    profile_line *l = ARRAY_ADD(p->lines, p->count, p->room);
    *l = (profile_line){.line = line};
    snprintf(l->file, sizeof l->file, "%s", file);
    return l;
}

static void add_access(profile_line *l, const count_row *r, const uint64_t *n) {
    traffic t = r->kind == PLACE_LOAD    ? TRAFFIC_LOAD
                : r->kind == PLACE_STORE ? TRAFFIC_STORE
                                         : TRAFFIC_ATOMIC;
    for (int i = 0; i < COUNT_FIELDS; i++)
        l->n[t][r->space][i] += i == COUNT_STRIDE ? 0 : n[i];
    bool is_memory = r->space == SPACE_DEVICE || r->space == SPACE_CONSTANT;
    if (t == TRAFFIC_LOAD && is_memory)
        for (int i = 0; i < PROFILE_WIDTHS; i++)
            l->widths[i] += r->work[0] == 1u << i ? n[COUNT_LANES] : 0;
    if (is_memory && n[COUNT_SECTORS] >= l->sectors_of_most) {
        l->sectors_of_most = n[COUNT_SECTORS];
        l->stride = (int64_t)r->n[COUNT_STRIDE];
        l->width = r->work[0];
    }
}

static void add_row(profile_line *l, const count_row *r, const uint64_t *n) {
    const uint64_t times = n[COUNT_TIMES], lanes = n[COUNT_LANES];
    switch (r->kind) {
    case PLACE_LOAD:
    case PLACE_STORE:
    case PLACE_ATOMIC:
        add_access(l, r, n);
        break;
    case PLACE_BLOCK:
        for (int i = 0; i < WORKS; i++)
            l->work[i] += lanes * r->work[i];
        l->instructions += times * r->work[WORK_ALL];
        break;
    case PLACE_MATRIX:
        l->matrices += times;
        l->work[WORK_FLOPS] += times * 2 * 8 * 8 * 8;
        break;
    case PLACE_SIMD:
        l->simd += times;
        break;
    case PLACE_BARRIER:
        l->barriers += times;
        l->work_most += n[COUNT_WORK_MOST];
        l->work_mean += n[COUNT_WORK_MEAN];
        break;
    case PLACE_ARRAY:
        break;
    }
}

/* Adds what the launch did that was just played. Counts of a part of the threadgroups are scaled up. */
static void add_launch(profile *p, const launch *l, const count_list *counts) {
    const uint64_t whole = counts->groups, run = counts->groups_run ? counts->groups_run : 1;
    const uint64_t threads = (uint64_t)l->group.x * l->group.y * l->group.z;
    uint32_t arrays = 0;
    for (size_t i = 0; i < counts->count; i++) {
        const count_row *r = &counts->rows[i];
        uint64_t n[COUNT_FIELDS];
        for (int k = 0; k < COUNT_FIELDS; k++)
            n[k] = r->n[k] * (whole / run) + r->n[k] * (whole % run) / run;
        arrays += r->kind == PLACE_ARRAY ? r->work[0] : 0;
        if (r->line) {
            add_row(find_line(p, r->file, r->line), r, n);
            add_row(&p->sum, r, n);
        }
    }
    snprintf(p->kernel, sizeof p->kernel, "%s", l->pipeline->kernel);
    p->launches++;
    p->groups += whole;
    p->groups_run += counts->groups_run;
    p->simdgroups += whole * ((threads + MSL_LANES - 1) / MSL_LANES);
    p->must_bytes += l->bytes;
    p->group_threads = (uint32_t)threads;
    if (counts->threadgroup_bytes > p->threadgroup_bytes)
        p->threadgroup_bytes = counts->threadgroup_bytes;
    p->private_bytes = arrays > p->private_bytes ? arrays : p->private_bytes;
}

void profile_free(profile *p) {
    free(p->lines);
    free(p->code);
    *p = (profile){.lines = NULL};
}

bool profile_play(tape *t, profile_choose *choose, void *context, err *e) {
    device *d = library_get_device(t->lib);
    for (size_t i = 0; i < t->count; i++) {
        ticket k;
        play_times times;
        count_list counts = {.rows = NULL};
        bool ok = device_submit(d, t, i, 1, &k, e) && device_wait(d, &k, &times, e) &&
                  device_get_counts(d, &t->launches[i], &counts, e);
        if (ok)
            add_launch(choose(context, &t->launches[i]), &t->launches[i], &counts);
        free(counts.rows);
        if (!ok)
            return false;
    }
    return true;
}

/* Reading -------------------------------------------------------------------------------------- */

uint64_t profile_sum_device(const profile_line *l, count_field f) {
    uint64_t sum = 0;
    for (int t = 0; t < TRAFFICS; t++)
        sum += l->n[t][SPACE_DEVICE][f] + l->n[t][SPACE_CONSTANT][f];
    return sum;
}

uint64_t profile_sum_shared(const profile_line *l, count_field f) {
    uint64_t sum = 0;
    for (int t = 0; t < TRAFFICS; t++)
        sum += l->n[t][SPACE_THREADGROUP][f];
    return sum;
}

double profile_get_coalescing(const profile_line *l) {
    uint64_t sectors = profile_sum_device(l, COUNT_SECTORS);
    return sectors ? (double)profile_sum_device(l, COUNT_USED) / (double)(sectors * COUNT_SECTOR)
                   : NAN;
}

double profile_get_active(const profile_line *l) {
    return l->instructions ? (double)l->work[WORK_ALL] / (double)(l->instructions * MSL_LANES)
                           : NAN;
}

static int compare_lines(const void *a, const void *b) {
    const profile_line *x = a, *y = b;
    const uint64_t keys[][2] = {
        {profile_sum_device(x, COUNT_SECTORS), profile_sum_device(y, COUNT_SECTORS)},
        {profile_sum_shared(x, COUNT_CONFLICTS), profile_sum_shared(y, COUNT_CONFLICTS)},
        {x->instructions, y->instructions}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] > keys[i][1] ? -1 : 1;
    int order = strcmp(x->file, y->file);
    return order ? order : x->line - y->line;
}

void profile_sort(profile *p) {
    qsort(p->lines, p->count, sizeof *p->lines, compare_lines);
}

/* What the counts mean ------------------------------------------------------------------------ */

const char *profile_get_bound_name(profile_bound b) {
    static const char *const names[] = {"memory", "cache", "threadgroup memory", "issue",
                                        "latency"};
    return names[b];
}

/* What is stored of the GPU ---------------------------------------------------------------------- */

#define NUMBER(member) FIELD(profile_gpu, member, FIELD_REAL, #member)
static const field gpu_fields[] = {
    FIELD(profile_gpu, name, FIELD_CHARS, "device"),
    NUMBER(cores),
    NUMBER(clock_ghz),
    NUMBER(memory_gb_s),
    NUMBER(launch_ns),
    NUMBER(simdgroups_per_core),
    NUMBER(threadgroup_bytes_per_core),
    NUMBER(registers_per_core),
    NUMBER(issue),
    NUMBER(sectors_per_clock),
    NUMBER(memory_part),
    NUMBER(start_ns),
    NUMBER(step_ns),
    NUMBER(load_ns),
    NUMBER(far_ns),
};

/* The first one in the results that come with Assay. */
static bool read_gpu(profile_gpu *out, err *e) {
    char pattern[PATH_MAX];
    glob_t found;
    *out = (profile_gpu){.name = ""};
    if (!os_join_home(pattern, sizeof pattern, e, "results/*/gpu.csv"))
        return false;
    if (glob(pattern, 0, NULL, &found) != 0)
        return err_set(e, EXIT_CANNOT, "%.200s: no GPU is described", pattern);
    csv_file *f = csv_read(found.gl_pathv[0], e);
    bool ok = f && csv_count_rows(f) > 0 && record_read(&(record)RECORD(gpu_fields), f, 0, out, e);
    globfree(&found);
    csv_file_free(f);
    return ok;
}

/* Its stored times and counters, read once. */
typedef struct {
    results_list times;
    csv_file *counters; /* NULL: there are none */
} stored;

static const stored *find_stored(void) {
    static stored s;
    static bool is_read;
    profile_gpu g;
    char folder[PATH_MAX - 64], path[PATH_MAX];
    if (!is_read && read_gpu(&g, NULL) &&
        results_find_folder(g.name, folder, sizeof folder, NULL)) {
        snprintf(path, sizeof path, "%s/bench.csv", folder);
        results_read(path, &s.times, NULL);
        snprintf(path, sizeof path, "%s/profile_ncu.csv", folder);
        s.counters = csv_read(path, NULL);
    }
    is_read = true;
    return &s;
}

bool profile_find_gpu(profile_gpu *out, err *e) {
    if (!read_gpu(out, e))
        return false;
    const results_list *list = &find_stored()->times;
    for (size_t i = 0; i < list->count && !out->is_measured; i++)
        if (list->cases[i].row.roof_gb_s > 0 && list->cases[i].row.launch_ns > 0) {
            out->memory_gb_s = list->cases[i].row.roof_gb_s;
            out->launch_ns = list->cases[i].row.launch_ns;
            out->is_measured = true;
        }
    return true;
}

double profile_find_measured(const char *case_name) {
    char name[320];
    snprintf(name, sizeof name, "%s/chained/cold", case_name);
    const result_case *c = results_list_find(&find_stored()->times, name);
    return c && c->row.gpu.count ? c->row.gpu.median : NAN;
}

double profile_find_registers(const char *kernel) {
    const csv_file *f = find_stored()->counters;
    const size_t length = strlen(kernel);
    double most = 0;
    for (size_t i = 0; f && i < csv_count_rows(f); i++) {
        const char *text = csv_find_text(f, i, "case");
        if (strncmp(text, kernel, length) == 0 && text[length] == '/')
            most = fmax(most, csv_find_double(f, i, "registers_gpu"));
    }
    return most;
}

/* What to expect -------------------------------------------------------------------------------- */

/* Bytes that must come from memory: the first time that any thread loads a sector, more if 8 MB do not
 * keep it; and what is stored. */
static double count_memory_bytes(const profile_line *s) {
    double sectors = 0;
    for (int k = SPACE_DEVICE; k <= SPACE_CONSTANT; k++) {
        sectors += (double)s->n[TRAFFIC_LOAD][k][COUNT_MISS_8M];
        sectors += (double)s->n[TRAFFIC_STORE][k][COUNT_SECTORS];
        sectors += (double)s->n[TRAFFIC_ATOMIC][k][COUNT_SECTORS];
    }
    return sectors * (double)COUNT_SECTOR;
}

/* Simdgroups that a core can hold, by threads, threadgroups, threadgroup memory and registers, which are
 * given out by eight. */
static double count_in_flight(const profile *p, const profile_gpu *g) {
    const double per_group = ceil(fmax(1, p->group_threads) / (double)MSL_LANES);
    const double registers = 8 * ceil(profile_find_registers(p->kernel) / 8) * (double)MSL_LANES;
    double groups = fmin(32, floor(g->simdgroups_per_core / per_group));
    if (p->threadgroup_bytes)
        groups =
            fmin(groups, floor(g->threadgroup_bytes_per_core / (p->threadgroup_bytes + 1024.0)));
    if (registers > 0)
        groups = fmin(groups, floor(g->registers_per_core / (registers * per_group)));
    return fmin(fmax(1, groups) * per_group * g->cores,
                (double)p->simdgroups / (double)p->launches);
}

/* A simdgroup alone goes from one instruction and load to the next; as many rounds of them as the grid takes. */
static double measure_latency(const profile *p, const profile_gpu *g, double in_flight) {
    double loads = 0, sectors = 0, far = 0;
    for (int k = SPACE_DEVICE; k <= SPACE_CONSTANT; k++) {
        const uint64_t *n = p->sum.n[TRAFFIC_LOAD][k];
        loads += (double)n[COUNT_TIMES];
        sectors += (double)n[COUNT_SECTORS];
        far += (double)n[COUNT_MISS_8K];
    }
    const double simdgroups = fmax(1, (double)p->simdgroups),
                 launches = fmax(1, (double)p->launches);
    const double load_ns = g->load_ns + g->far_ns * far / fmax(1, sectors);
    const double rounds = ceil(simdgroups / launches / fmax(1, in_flight));
    return rounds * ((double)p->sum.instructions * g->step_ns + loads * load_ns) / simdgroups;
}

profile_expectation profile_expect(const profile *p, const profile_gpu *g) {
    const profile_line *s = &p->sum;
    profile_expectation x = {.memory_bytes = count_memory_bytes(s)};
    const double launches = p->launches ? (double)p->launches : 1;
    const double groups = (double)p->groups / launches, busy = fmin(g->cores, groups);
    const double clock = g->clock_ghz * fmax(1, busy) * launches;
    const double requests = (double)profile_sum_device(s, COUNT_TIMES);
    const double shared =
        (double)profile_sum_shared(s, COUNT_TIMES) + (double)profile_sum_shared(s, COUNT_CONFLICTS);
    x.in_flight = p->launches ? count_in_flight(p, g) : 1;
    x.ns[BOUND_MEMORY] = x.memory_bytes / (g->memory_part * g->memory_gb_s) / launches;
    x.ns[BOUND_CACHE] =
        fmax(requests, (double)profile_sum_device(s, COUNT_SECTORS) / g->sectors_per_clock) / clock;
    x.ns[BOUND_SHARED] = shared / clock;
    x.ns[BOUND_ISSUE] = (double)s->instructions / g->issue / clock;
    x.ns[BOUND_LATENCY] = measure_latency(p, g, x.in_flight);
    for (int i = 0; i < BOUNDS; i++)
        x.bound = x.ns[i] > x.ns[x.bound] ? (profile_bound)i : x.bound;
    x.total_ns = g->launch_ns + g->start_ns + x.ns[x.bound];
    return x;
}

/* Sentences ------------------------------------------------------------------------------------ */

static double share(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void describe_stride(const profile_line *l, char *text, size_t size) {
    if (l->stride == 0)
        snprintf(text, size, "%u-byte loads of one place by all lanes", l->width);
    else if (l->stride == (int64_t)COUNT_MIXED)
        snprintf(text, size, "%u-byte accesses at uneven distances", l->width);
    else if (l->stride == (int64_t)l->width)
        snprintf(text, size, "%u-byte accesses side by side", l->width);
    else
        snprintf(text, size, "%u-byte accesses %lld bytes apart", l->width, (long long)l->stride);
}

static const profile_line *find_most(const profile *p, uint64_t (*value)(const profile_line *)) {
    const profile_line *most = NULL;
    for (size_t i = 0; i < p->count; i++)
        if (!most || value(&p->lines[i]) > value(most))
            most = &p->lines[i];
    return most;
}

static uint64_t get_sectors(const profile_line *l) {
    return profile_sum_device(l, COUNT_SECTORS);
}

static uint64_t get_instructions(const profile_line *l) {
    return l->instructions;
}

static uint64_t get_conflicts(const profile_line *l) {
    return profile_sum_shared(l, COUNT_CONFLICTS);
}

static uint64_t get_contention(const profile_line *l) {
    uint64_t sum = 0;
    for (int k = 0; k < SPACES; k++)
        sum += l->n[TRAFFIC_ATOMIC][k][COUNT_CONTENTION];
    return sum;
}

static void say_where(const profile *p, char *out) {
    const profile_line *l = find_most(p, get_sectors);
    char how[120];
    if (!l || !get_sectors(l)) {
        snprintf(out, PROFILE_SENTENCE, "It touches no device memory.");
        return;
    }
    describe_stride(l, how, sizeof how);
    snprintf(out, PROFILE_SENTENCE,
             "%.0f %% of the sectors come from %s:%d: %s use %.0f %% of each sector.",
             share(get_sectors(l), get_sectors(&p->sum)), path_get_name(l->file), l->line, how,
             100 * profile_get_coalescing(l));
}

static void say_again(const profile *p, const profile_expectation *x, char *out) {
    const profile_line *s = &p->sum;
    uint64_t asked = 0, fresh = 0, sectors = 0, miss[3] = {0};
    for (int k = SPACE_DEVICE; k <= SPACE_CONSTANT; k++) {
        const uint64_t *n = s->n[TRAFFIC_LOAD][k];
        asked += n[COUNT_BYTES];
        fresh += n[COUNT_NEW_GRID];
        sectors += n[COUNT_SECTORS];
        for (int i = 0; i < 3; i++)
            miss[i] += n[COUNT_MISS_8K + i];
    }
    char moved[160] = "", must[32], all[32];
    format_number(x->memory_bytes / 1e6, 3, all, sizeof all);
    if (p->must_bytes)
        snprintf(moved, sizeof moved, ", %.2f times the %s MB that the op must move",
                 x->memory_bytes / (double)p->must_bytes,
                 format_number((double)p->must_bytes / 1e6, 3, must, sizeof must));
    if (sectors == 0)
        snprintf(out, PROFILE_SENTENCE,
                 "It loads nothing from device memory; %s MB come from memory or go there%s.", all,
                 moved);
    else
        snprintf(out, PROFILE_SENTENCE,
                 "Lanes load each byte %.1f times; a cache of 8 KB per threadgroup catches %.0f %% "
                 "of the sectors, 64 KB %.0f %%, 8 MB %.0f %%, so that %s MB come from memory or "
                 "go there%s.",
                 fresh ? (double)asked / (double)fresh : 0, 100 - share(miss[0], sectors),
                 100 - share(miss[1], sectors), 100 - share(miss[2], sectors), all, moved);
}

/* What binds, and the count that says so. */
static void describe_bound(const profile *p, const profile_gpu *g, const profile_expectation *x,
                           char *text, size_t size) {
    const profile_line *s = &p->sum, *most = find_most(p, get_instructions);
    const profile_line *bank = find_most(p, get_conflicts);
    const double simdgroups = fmax(1, (double)p->simdgroups);
    char moved[32];
    if (x->bound == BOUND_ISSUE && most)
        snprintf(text, size, "issuing instructions: %llu of simdgroups, %.0f %% of them in %s:%d",
                 (unsigned long long)s->instructions, share(most->instructions, s->instructions),
                 path_get_name(most->file), most->line);
    else if (x->bound == BOUND_LATENCY)
        snprintf(text, size,
                 "latency: %.0f simdgroup%s in flight on %.0f cores, each with %.0f loads and "
                 "%.0f instructions one after another",
                 x->in_flight, x->in_flight > 1 ? "s" : "", g->cores,
                 (double)profile_sum_device(s, COUNT_TIMES) / simdgroups,
                 (double)s->instructions / simdgroups);
    else if (x->bound == BOUND_SHARED && bank && get_conflicts(bank))
        snprintf(text, size,
                 "threadgroup memory: with bank conflicts it takes %.3g times the cycles, most of "
                 "them in %s:%d",
                 1 + share(get_conflicts(s), profile_sum_shared(s, COUNT_TIMES)) / 100,
                 path_get_name(bank->file), bank->line);
    else if (x->bound == BOUND_CACHE)
        snprintf(text, size, "the cache of each core: %llu sectors of 32 bytes for %llu bytes",
                 (unsigned long long)get_sectors(s),
                 (unsigned long long)profile_sum_device(s, COUNT_USED));
    else if (x->bound == BOUND_MEMORY)
        snprintf(text, size, "memory: %s MB at %.0f GB/s",
                 format_number(x->memory_bytes / 1e6, 3, moved, sizeof moved), g->memory_gb_s);
    else
        snprintf(text, size, "%s", profile_get_bound_name(x->bound));
}

/* Lanes of atomics that wait for others: no part of the prediction. */
static void describe_contention(const profile *p, char *text, size_t size) {
    uint64_t lanes = 0;
    for (int k = 0; k < SPACES; k++)
        lanes += p->sum.n[TRAFFIC_ATOMIC][k][COUNT_LANES];
    const profile_line *most = find_most(p, get_contention);
    text[0] = 0;
    if (most && get_contention(most))
        snprintf(text, size,
                 " without the %.0f %% of the lanes of atomics that wait for another lane at the "
                 "same address (%s:%d)",
                 share(get_contention(&p->sum), lanes), path_get_name(most->file), most->line);
}

static void say_bound(const profile *p, const profile_gpu *g, const profile_expectation *x,
                      char *out) {
    char why[220], waits[160], time[32], start[32];
    const double active = profile_get_active(&p->sum);
    describe_bound(p, g, x, why, sizeof why);
    describe_contention(p, waits, sizeof waits);
    snprintf(
        out, PROFILE_SENTENCE,
        "On an %s the limit should be %s; %.0f %% of the lanes are active, and a launch should "
        "take %s, %s of it to start (a prediction%s).",
        g->name, why, isnan(active) ? 100 : 100 * active,
        format_time(x->total_ns, time, sizeof time),
        format_time(g->launch_ns + g->start_ns, start, sizeof start), waits);
}

void profile_say(const profile *p, const profile_gpu *g,
                 char out[PROFILE_SENTENCES][PROFILE_SENTENCE]) {
    const profile_expectation x = profile_expect(p, g);
    say_where(p, out[0]);
    say_again(p, &x, out[1]);
    say_bound(p, g, &x, out[2]);
}
