#include "roof_kernels.h"

#include "kernels.h"

static bool record_read(tape *t, slice in, slice sums, uint32_t vectors, uint32_t groups, err *e) {
    return bandwidth_read_record(t, op_find_kernel(&bandwidth_read_op, "bandwidth_read_f32"), in,
                                 sums, vectors, groups, e);
}

static bool record_copy(tape *t, slice in, slice out, uint32_t vectors, uint32_t groups, err *e) {
    return bandwidth_copy_record(t, &bandwidth_copy_op.kernels[0], in, out, vectors, groups, e);
}

static bool record_triad(tape *t, slice a, slice b, slice out, uint32_t vectors, uint32_t groups,
                         err *e) {
    return bandwidth_triad_record(t, &bandwidth_triad_op.kernels[0], a, b, out, vectors, 0.5f,
                                  groups, e);
}

static bool record_empty(tape *t, slice counter, err *e) {
    return dispatch_overhead_noop_record(t, &dispatch_overhead_noop_op.kernels[0], counter, e);
}

static bool record_compute(tape *t, slice in, slice out, uint32_t threads, uint32_t rounds,
                           err *e) {
    return compute_fma_record(t, &compute_fma_op.kernels[0], in, out, threads, rounds, e);
}

const roof_kernels bandwidth_roof_kernels = {record_read, record_copy, record_triad, record_empty,
                                             record_compute};
