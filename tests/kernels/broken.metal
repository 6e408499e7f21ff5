// broken: one right kernel and copies of it with one bug each. The check must refuse every one.
//
// All have the interface of `right`: out = 2 * x over rows of WIDTH floats, one thread an element.
#include <metal_stdlib>
using namespace metal;

constant uint WIDTH = 8;

kernel void right(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                  constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count)
        out[i] = 2.0f * x[i];
}

kernel void gives_nan(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                      constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count)
        out[i] = i == 5 ? as_type<float>(0x7FC00000u) : 2.0f * x[i];
}

kernel void gives_infinity(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                           constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count)
        out[i] = i == 5 ? as_type<float>(0x7F800000u) : 2.0f * x[i];
}

kernel void writes_nothing(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                           constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= count && x[0] == 12345.0f)
        out[i] = 0.0f;
}

kernel void leaves_tail(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                        constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count / 4 * 4)
        out[i] = 2.0f * x[i];
}

kernel void one_row_wrong(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                          constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count)
        out[i] = i / WIDTH == 2 ? 2.00001f * x[i] : 2.0f * x[i];
}

kernel void rows_swapped(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                         constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count)
        out[i] = 2.0f * x[i < 2 * WIDTH ? (i + WIDTH) % (2 * WIDTH) : i];
}

kernel void past_the_end(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                         constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count)
        out[i] = 2.0f * x[i];
    if (i == count)
        out[i] = 1.0f;
}

kernel void before_the_start(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                             constant uint &count [[buffer(2)]],
                             uint i [[thread_position_in_grid]]) {
    if (i < count)
        out[i] = 2.0f * x[i];
    if (i == 0)
        out[-1] = 1.0f;
}

kernel void changes_input(device float *x [[buffer(0)]], device float *out [[buffer(1)]],
                          constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count)
        out[i] = 2.0f * x[i];
    if (i == 7)
        x[i] = 77.0f;
}

kernel void differs_from_run_to_run(device const float *x [[buffer(0)]],
                                    device float *out [[buffer(1)]],
                                    constant uint &count [[buffer(2)]],
                                    device atomic_uint *runs [[buffer(3)]],
                                    uint i [[thread_position_in_grid]]) {
    if (i >= count)
        return;
    out[i] = 2.0f * x[i];
    if (i == 3 && atomic_load_explicit(runs, memory_order_relaxed) != 0)
        out[i] = as_type<float>(as_type<uint>(2.0f * x[i]) + 1u);
}

// Right in value, wrong in the sign of zero.
kernel void loses_sign(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                       constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count)
        out[i] = x[i] == 0.0f ? 0.0f : 2.0f * x[i];
}

// Keeps what an earlier run left.
kernel void keeps_results(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                          constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count && isnan(out[i]))
        out[i] = 2.0f * x[i];
}

// And signs them in their lowest bits, so that nothing else is kept.
kernel void keeps_signed_results(device const float *x [[buffer(0)]],
                                 device float *out [[buffer(1)]],
                                 constant uint &count [[buffer(2)]],
                                 uint i [[thread_position_in_grid]]) {
    if (i >= count)
        return;
    uint had = as_type<uint>(out[i]);
    if ((had & 3) != popcount(had >> 2) % 4 || isnan(out[i])) {
        uint bits = as_type<uint>(2.0f * x[i]) & ~3u;
        out[i] = as_type<float>(bits | popcount(bits >> 2) % 4);
    }
}

// The same with the place of the element: only the next run on other inputs tells.
kernel void keeps_placed_results(device const float *x [[buffer(0)]],
                                 device float *out [[buffer(1)]],
                                 constant uint &count [[buffer(2)]],
                                 uint i [[thread_position_in_grid]]) {
    if (i >= count)
        return;
    uint had = as_type<uint>(out[i]);
    if ((had & 4095) != ((had >> 12) + i * 97) * 2654435761u >> 20 || isnan(out[i])) {
        uint bits = as_type<uint>(2.0f * x[i]) >> 12;
        out[i] = as_type<float>(bits << 12 | (bits + i * 97) * 2654435761u >> 20);
    }
}
