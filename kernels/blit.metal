// blit: rows copied from one place to another, each with a stride of its own, between floats and
// halves.
#include <metal_stdlib>
using namespace metal;

// dst (rows, columns) = src (rows, columns), whose rows start dst_stride and src_stride values
// apart. One thread per value.
template <typename From, typename To>
kernel void blit(device const From *src [[buffer(0)]],
                 device To *dst [[buffer(1)]],
                 constant uint &rows [[buffer(2)]],
                 constant uint &columns [[buffer(3)]],
                 constant uint &src_stride [[buffer(4)]],
                 constant uint &dst_stride [[buffer(5)]],
                 uint i [[thread_position_in_grid]]) {
    if (i >= rows * columns)
        return;
    const uint row = i / columns;
    const uint column = i % columns;
    dst[size_t(row) * dst_stride + column] = To(src[size_t(row) * src_stride + column]);
}

#define BLIT(name, From, To)                                                                       \
    template [[host_name(name)]] kernel decltype(blit<From, To>) blit<From, To>;
BLIT("blit_f32", float, float)
BLIT("blit_f16", half, half)
BLIT("blit_f32_f16", float, half)
BLIT("blit_f16_f32", half, float)
