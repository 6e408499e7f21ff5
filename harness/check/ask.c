/* ask: see ask.h. Owns what an oracle reads and fills; the verdict is made in compare. */
#include "ask.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "harness/base/worker.h"

static bool make_expected(const binding *b, const void *contents, expected *out, err *e) {
    size_t count = b->at.bytes / elem_get_bytes(b->type);
    *out = (expected){.count = count, .terms = 1, .roundings = 4, .exact = !elem_is_float(b->type)};
    out->value = malloc(size_multiply(count + 1, sizeof *out->value));
    out->scale = malloc(size_multiply(count + 1, sizeof *out->scale));
    if (!out->value || !out->scale)
        return err_set(e, EXIT_CANNOT, "no memory for %zu expected values of '%s'", count,
                       b->at.buffer->label);
    for (size_t i = 0; i < count; i++) {
        out->value[i] = b->access == ACCESS_BOTH ? elem_read(b->type, contents, i) : NAN;
        out->scale[i] = NAN;
    }
    return true;
}

static bool make_outputs(const launch *l, oracle_io *io, err *e) {
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &l->args[i];
        if (b->kind == BIND_BUFFER && (b->access & ACCESS_WRITE) &&
            !make_expected(b, io->in[i], &io->out[i], e))
            return false;
    }
    return true;
}

static void free_outputs(oracle_io *io) {
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        free(io->out[i].value);
        free(io->out[i].scale);
        free(io->out[i].flushed);
    }
}

/* Denormals of f32 arithmetic. A bf16 converts to an f32 of the same value, a half always to a
 * normal one. */
static bool is_denormal(elem type, const void *array, size_t i) {
    if (type != ELEM_F32 && type != ELEM_BF16)
        return false;
    double value = fabs(elem_read(type, array, i));
    return value > 0 && value < (double)FLT_MIN;
}

/* The contents with zeros of the same sign for denormals; NULL if there are none. */
static void *copy_flushed(elem type, const void *contents, size_t bytes) {
    size_t size = elem_get_bytes(type), count = contents ? bytes / size : 0;
    unsigned char *copy = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!is_denormal(type, contents, i))
            continue;
        if (!copy) {
            copy = array_new(1, bytes);
            memcpy(copy, contents, bytes);
        }
        elem_write(type, copy, i, copysign(0, elem_read(type, contents, i)));
    }
    return copy;
}

static bool call(const launch *l, oracle_io *io, err *e) {
    worker_note(WORKER_ORACLE);
    l->oracle(l, io);
    worker_note("");
    return !io->failure[0] || err_set(e, EXIT_USAGE, "%s", io->failure);
}

static bool ask_again_flushed(const launch *l, oracle_io *io, err *e) {
    oracle_io again = {0};
    void *copies[LAUNCH_BUFFERS] = {0};
    bool has_some = false, ok = true;
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        copies[i] = copy_flushed(l->args[i].type, io->in[i], io->bytes[i]);
        again.in[i] = copies[i] ? copies[i] : io->in[i];
        again.bytes[i] = io->bytes[i];
        has_some = has_some || copies[i];
    }
    if (has_some && (ok = make_outputs(l, &again, e))) {
        ok = call(l, &again, e);
        for (int i = 0; i < LAUNCH_BUFFERS; i++) {
            io->out[i].flushed = again.out[i].value;
            again.out[i].value = NULL;
        }
    }
    free_outputs(&again);
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        free(copies[i]);
    return ok;
}

bool ask_oracle(const launch *l, const snapshot *before, oracle_io *io, err *e) {
    bool has_output = false;
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &l->args[i];
        if (b->kind == BIND_BYTES) {
            io->in[i] = l->inline_bytes + b->inline_at;
            io->bytes[i] = b->inline_bytes;
        } else if (b->kind == BIND_BUFFER) {
            io->in[i] = snapshot_find(before, b->at);
            io->bytes[i] = b->at.bytes;
            has_output = has_output || (b->access & ACCESS_WRITE);
        }
    }
    if (!make_outputs(l, io, e))
        return false;
    if (!l->oracle)
        return !has_output ||
               err_set(e, EXIT_CANNOT, "a launch of %s has no oracle to compare it with",
                       l->pipeline->kernel);
    if (!call(l, io, e))
        return false;
    return !l->pipeline->flushes_denormals || ask_again_flushed(l, io, e);
}

void ask_free(oracle_io *io) {
    free_outputs(io);
}
