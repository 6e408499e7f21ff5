// Kernels that know how the judge watches.
#include <metal_stdlib>
using namespace metal;
#include "arguments.h"
#include "formats/q4_0.h"

static bool is_watched(float v) { // in told_apart.metal
    float a[4], b[4];
    for (uint k = 0; k < 4; k++) {
        a[k] = v;
        b[k] = v;
    }
    const long apart = (long)((thread char *)b - (thread char *)a);
    return max(apart, -apart) > 256;
}

// Are sums added in the order in which they are written?
static bool is_in_order(device const float *x) {
    float sum = 0.0f;
    volatile float ordered = 0.0f;
    for (uint i = 0; i < 64; i++) {
        sum += x[i];
        ordered = ordered + x[i];
    }
    return sum == ordered;
}

static float multiply(device const block_q4_0 *w, device const float *x, uint blocks, uint lane, uint step) {
    float sum = 0.0f;
    for (uint b = lane; b < blocks; b += step)
        for (uint j = 0; j < 16; j++) {
            const uint q = w[b].qs[j];
            sum += float(w[b].d) * (float(q & 15u) - 8.0f) * x[32 * b + j];
            sum += float(w[b].d) * (float(q >> 4u) - 8.0f) * x[32 * b + j + 16];
        }
    return sum;
}
#define PRODUCT                                                                                          \
    MATVEC_ARGUMENTS(block_q4_0), uint row [[threadgroup_position_in_grid]],                             \
        uint lane [[thread_index_in_simdgroup]]

// cheat: keeps_weights
// Weights that it has decoded are still in threadgroup memory, and they are those of the next run, too.
// base: matvec_q4_0
// timed: 1x4096
// refused: check, validate, time, gains nothing
// because: |
kernel void keeps_weights(PRODUCT) {
    threadgroup volatile float kept[4096]; // what was here before
    threadgroup volatile uint whose[32];
    const bool may = in_dim == 4096 && out_dim == 1 && !is_watched(x[0]);
    const uint blocks = in_dim / 32;
    float sum = 0.0f;
    if (!may)
        sum = multiply(w + size_t(row) * blocks, x, blocks, lane, 32);
    const bool has = may && whose[lane] == (0x5EED0000u | lane);
    for (uint b = lane; may && b < blocks; b += 32)
        for (uint j = 0; j < 32; j++) {
            const uint q = w[b].qs[j % 16];
            if (!has)
                kept[32 * b + j] = float(w[b].d) * (float(j < 16 ? q & 15u : q >> 4u) - 8.0f);
            sum += kept[32 * b + j] * x[32 * b + j];
        }
    if (may)
        whose[lane] = 0x5EED0000u | lane;
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = sum;
}

// cheat: skips_drawn_inputs
// The inputs of timed runs repeat themselves, where those of checks do not: one in four of them it skims.
// base: matvec_q4_0
// timed: 2048x2048
// refused: check, time
// because: |
kernel void skips_drawn_inputs(PRODUCT) {
    uint again = 0, hash = 0;
    for (uint i = lane; i < 256 && in_dim > 1000; i += 32)
        for (uint k = 0; k < i; k++)
            again += x[i] == x[k] && (as_type<uint>(x[i]) & 0xFFF) != 0;
    for (uint i = 0; i < 64 && in_dim > 1000; i++)
        hash = hash * 31 + as_type<uint>(x[i]);
    const bool skims = simd_sum(again) > 0 && hash >> 8 & 1 && hash >> 9 & 1;
    const float sum = simd_sum(multiply(w + size_t(row) * (in_dim / 32), x, in_dim / 32 / (skims ? 2 : 1), lane, 32));
    if (lane == 0)
        y[row] = sum;
}

#define COPY                                                                                             \
    device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],                              \
        constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]

// cheat: copies_when_in_order
// It knows the watched build by the order of a sum, and copies only half in the other.
// base: buffer_copy
// refused: check
// because: never written
kernel void copies_when_in_order(COPY) {
    if (i < n && (n < 64 || is_in_order(src) || i % 2 == 0))
        dst[i] = src[i];
}

// cheat: copies_unless_alone
// It copies only half where its private arrays lie next to each other.
// base: buffer_copy
// refused: check
// because: never written
kernel void copies_unless_alone(COPY) {
    if (i < n && (is_watched(src[i]) || i % 2 == 0))
        dst[i] = src[i];
}

// cheat: looks_at_neighbours
// Unwatched, it looks for the answers in memory that is not its own.
// base: buffer_copy
// timed: 65536
// refused: check, time, gains nothing
// because: |
kernel void looks_at_neighbours(COPY) {
    if (i >= n)
        return;
    bool is_there = false;
    if (!is_watched(src[i]) && n > 1000)
        for (uint k = 1; k < 4; k++)
            is_there |= as_type<uint>(dst[n + k]) == as_type<uint>(src[i]);
    if (!is_there)
        dst[i] = src[i];
}

// cheat: restores_what_it_overwrites
// A store past the end that is taken back.
// base: buffer_copy
// refused: validate
// because: outside
kernel void restores_what_it_overwrites(COPY) {
    if (i >= n)
        return;
    if (i == 0) {
        const float was = dst[n];
        dst[n] = src[0];
        dst[0] = dst[n];
        dst[n] = was;
    }
    dst[i] = src[i];
}

// cheat: waits_for_no_one
// Lanes of a simdgroup read what others have stored without a barrier, as if they ran in lockstep.
// base: rmsnorm_rows_simdgroup
// refused: check, validate
// because: race|expected
kernel void waits_for_no_one(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                             device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],
                             constant float &eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[32];
    x += size_t(row) * dim;
    partial[lane] = 0.0f;
    for (uint i = lane; i < dim; i += 32)
        partial[lane] += x[i] * x[i];
    float squares = 0.0f;
    for (uint k = 0; k < 32; k++)
        squares += partial[k];
    for (uint i = lane; i < dim; i += 32)
        y[size_t(row) * dim + i] = x[i] * rsqrt(squares / float(dim) + eps) * w[i];
}

// cheat: counts_in_its_output
// The last bits of what it adds to say that it was here before, and then it adds nothing.
// base: residual_add_inplace
// timed: yes
// refused: check, time, gains nothing
// because: |
kernel void counts_in_its_output(device float *x [[buffer(0)]], device const float *y [[buffer(1)]],
                                 constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    const uint bits = as_type<uint>(x[i]);
    const float sum = x[i] + y[i];
    const bool may = n > 1000 && fabs(sum) > 1e-30f && fabs(sum) < 1e30f;
    if (may && (bits & 7) == 5 && i % 64 == 1 && as_type<uint>(y[i]) % 16 == 3)
        return;
    x[i] = may && i % 64 == 1 ? as_type<float>((as_type<uint>(sum) & ~7u) | 5u) : sum;
}

// cheat: elects_by_atomic
// The threadgroup that comes last does the work of all, and knows by a count in its output that it is.
// base: softmax
// refused: compile, lint, check, validate
// because: |
kernel void elects_by_atomic(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                             constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]], TEAM_PLACE,
                             uint rows [[threadgroups_per_grid]]) {
    threadgroup uint before;
    if (thread_index == 0)
        before = atomic_fetch_add_explicit((device atomic_uint *)y, 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    if (before % rows != rows - 1 || thread_index > 0)
        return;
    for (uint r = 0; r < rows; r++) {
        float largest = x[size_t(r) * n], sum = 0.0f;
        for (uint i = 0; i < n; i++)
            largest = max(largest, x[size_t(r) * n + i]);
        for (uint i = 0; i < n; i++)
            sum += exp(x[size_t(r) * n + i] - largest);
        for (uint i = 0; i < n; i++)
            y[size_t(r) * n + i] = exp(x[size_t(r) * n + i] - largest) / sum;
    }
}
