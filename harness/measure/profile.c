/* profile: see profile.h. */
#include "profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

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
    p->must_flops += l->flops;
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
