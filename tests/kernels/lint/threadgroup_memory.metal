#include <metal_stdlib>
using namespace metal;

#define TILE 64

struct pair {
    float a, b;
};

kernel void fits(device float *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    threadgroup float4 tile[TILE][TILE / 2];
    tile[i][0] = 1.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = tile[0][i].x;
}

kernel void too_much(device float *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    threadgroup half one[TILE * TILE], two[TILE * TILE];
    threadgroup float three[TILE][TILE + 1]; // mistake: the sum of all
    one[i] = two[i] = 1.0h;
    three[i][0] = 1.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = float(one[0] + two[0]) + three[0][0];
}

kernel void large_structs(device float *x [[buffer(0)]],
                          uint i [[thread_position_in_threadgroup]]) {
    threadgroup pair pairs[TILE * TILE + 1]; // mistake: only the compiler knows the size
    pairs[i].a = 1.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = pairs[0].a;
}

template <typename T, int N>
kernel void tile_of(device T *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    threadgroup T tile[N] = {0}; // mistake: in one instantiation
    tile[i] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = tile[0];
}
template [[host_name("tile_of_64")]] kernel void tile_of<float, 64>(device float *, uint);
template [[host_name("tile_of_9000")]] kernel void tile_of<float, 9000>(device float *, uint);
template [[host_name("tile_of_halves")]] kernel void tile_of<half, 9000>(device half *, uint);
