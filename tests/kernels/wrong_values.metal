// More wrong kernels, as in wrong.metal: misaligned accesses, values out of range, simdgroups.
#include <metal_stdlib>
using namespace metal;

#include "exact.h"

// ------------------------------------------------------------------------------------- misaligned

kernel void atomic_at_an_odd_address(device uchar *zero [[buffer(4)]], IDS) {
    device atomic_uint *words = (device atomic_uint *)(zero + 2);
    atomic_fetch_add_explicit(&words[i], 1u, memory_order_relaxed); // bug: misaligned
}

struct triple {
    float a;
    uint b[2];
};
kernel void struct_at_an_odd_address(FOUR, device const uchar *data [[buffer(3)]], IDS) {
    triple t;
    t = ((device const triple *)(data + 2))[i % 8]; // bug: misaligned
    out[i] = in[i % n] + float(t.b[i % 2]);
}

struct small {
    half scale;
    uchar q[16];
};
kernel void word_of_a_block(FOUR, device const small *data [[buffer(3)]], IDS) {
    uint word = *(device const uint *)data[i % 28].q; // bug: misaligned
    out[i] = in[i % n] + float(word);
}

kernel void word_of_a_block_by_name(FOUR, device const small *data [[buffer(3)]], IDS) {
    uint word = reinterpret_cast<device const uint *>(data[i % 28].q)[0]; // bug: misaligned
    out[i] = in[i % n] + float(word);
}

kernel void struct_stored_at_an_odd_address(FOUR, device uchar *data [[buffer(3)]], IDS) {
    triple t = {in[i % n], {1, 2}};
    t.b[i % 2] = 7;
    if (i < 8)
        *(device triple *)(data + 1 + 12 * i) = t; // bug: misaligned
    out[i] = t.a;
}

// ------------------------------------------------------------------------------------ in fast math

kernel void infinite_half_to_integer(FOUR, device ushort *data [[buffer(3)]], IDS) {
    half h = as_type<half>(ushort(i % 2 ? 0x7C00 : 0x4000));
    out[i] = in[i % n];
    data[i] = ushort(h); // bug: float to int overflow
}

// ----------------------------------------------------------------------------------- out of range

kernel void divisions_one_after_the_other(FOUR, device uint *zero [[buffer(4)]], IDS) {
    uint a = i / zero[i % 4]; // bug: division by zero
    a += i % zero[i % 4];     // bug: division by zero
    out[i] = in[i % n] + float(a + ushort2(i, 7).y / ushort2(1, zero[i % 4]).y); // bug: division by zero
}

kernel void bits_inserted_past_the_end(FOUR, device uint *data [[buffer(3)]], IDS) {
    data[i] = insert_bits(0u, 255u, 26 + i % 2, 6); // bug: shift out of range
    out[i] = in[i % n];
}

kernel void bits_extracted_past_the_end(FOUR, IDS) {
    uint2 v = extract_bits(uint2(i, n), 20 + i % 8, 6); // bug: shift out of range
    out[i] = float(v.x + v.y) + in[i % n];
}

kernel void smoothstep_with_reversed_edges(FOUR, IDS) {
    float4 edge = float4(0, 1, 2, in[i % n] - 120.0f);
    float4 s = smoothstep(edge, float4(4), float4(in[i % n])); // bug: clamp range
    out[i] = s.x + s.w;
}

// ------------------------------------------------------------------------------------- simdgroups

kernel void shuffle_by_a_delta_of_each_lane(FOUR, IDS) {
    float x = in[i % n];
    out[i] = simd_shuffle_down(x, ushort(lane < 8 ? 1 : 2)); // bug: diverged simdgroup
}

kernel void shuffle_by_a_mask_of_each_lane(FOUR, IDS) {
    half4 x = half4(half(in[i % n]));
    out[i] = float(simd_shuffle_xor(x, ushort(lane / 16)).x); // bug: diverged simdgroup
}

kernel void rotate_by_a_delta_of_each_quad_lane(FOUR, IDS) {
    out[i] = quad_shuffle_rotate_up(in[i % n], ushort(lane % 2)); // bug: diverged simdgroup
}

kernel void fill_with_a_delta_of_each_lane(FOUR, IDS) {
    float x = in[i % n];
    out[i] = simd_shuffle_and_fill_up(x, 0.0f, ushort(lane == 31)); // bug: diverged simdgroup
}

kernel void lock_among_lanes(FOUR, device atomic_uint *lock [[buffer(4)]], IDS) {
    uint free = 0;
    while (!atomic_compare_exchange_weak_explicit( // bug: endless loop
        &lock[g], &free, 1u, memory_order_relaxed, memory_order_relaxed)) // bug: endless loop
        free = 0;
    out[i] = in[i % n];
    atomic_store_explicit(&lock[g], 0u, memory_order_relaxed);
}

void take(device atomic_uint *lock) {
    bool is_mine;
    do
        is_mine = !atomic_exchange_explicit(lock, 1u, memory_order_relaxed); // bug: endless loop
    while (!is_mine);
}
kernel void lock_of_a_function(FOUR, device atomic_uint *lock [[buffer(4)]], IDS) {
    take(&lock[g]);
    out[i] = in[i % n];
    atomic_store_explicit(&lock[g], 0u, memory_order_relaxed);
}

kernel void stored_after_many_releases(FOUR, device atomic_uint *flag [[buffer(4)]], IDS) {
    if (l == 0) {
        for (uint k = 0; k < 100; k++) {
            RELEASE(device, device);
            atomic_store_explicit(&flag[g], k, memory_order_relaxed);
        }
        out[i] = in[i % n];
    }
    if (l == 32 && atomic_load_explicit(&flag[g], memory_order_relaxed) == 99) {
        ACQUIRE(device, device);
        out[i] = out[i - 32]; // bug: race in threadgroup
    }
}

struct bit_fields {
    uint a : 5;
    uint b : 7;
    int c : 20;
    ushort d : 3;
};
kernel void bit_field_without_a_value(FOUR, IDS) {
    bit_fields x;
    out[i] = in[i % n] + float(x.b); // bug: unwritten memory
}

kernel void bit_field_added_to_without_a_value(FOUR, IDS) {
    bit_fields x;
    x.c += 3; // bug: unwritten memory
    out[i] = in[i % n] + float(x.c);
}

// --------------------------------------------------------------------------------- overflow

// Each by a thread of its own: on some CPUs a division that overflows ends it.
kernel void overflows(FOUR, IDS) {
    const int minus = 127 - int(n), least = int(n << 24);
    long x = 0;
    switch (i) {
    case 0: x = (short2(32767) + short(n / 128)).x; break; // bug: signed overflow
    case 1: x = (char4(127) + char(n / 128)).w; break; // bug: signed overflow
    case 2: x = (char3(-128) - char(n / 128)).z; break; // bug: signed overflow
    case 3: x = (short4(32767) * short(n / 64)).y; break; // bug: signed overflow
    case 4: x = (short3(-32768) / short(minus)).z; break; // bug: signed overflow
    case 5: x = (char2(-128) % char(minus)).y; break; // bug: signed overflow
    case 6: x = (int4(least) / int4(minus)).w; break; // bug: signed overflow
    case 7: x = (long2(long(least) << 32) % long(minus)).y; break; // bug: signed overflow
    case 8: x = least / minus; break; // bug: signed overflow
    case 9: x = (long(least) << 32) % minus; break; // bug: signed overflow
    case 10: x = (-char3(char(n))).y; break; // bug: signed overflow
    case 11: x = (-short2(short(n * 256))).y; break; // bug: signed overflow
    case 12: x = (-int4(least)).y; break; // bug: signed overflow
    case 13: x = -least; break; // bug: signed overflow
    case 14: x = abs(char(n)); break; // bug: signed overflow
    case 15: x = abs(short3(short(n * 256))).z; break; // bug: signed overflow
    case 16: x = abs(least); break; // bug: signed overflow
    case 17: x = abs(int4(least)).z; break; // bug: signed overflow
    case 18: x = abs(long(least) << 32); break; // bug: signed overflow
    }
    out[i] = in[i % n] + float(x);
}

kernel void without_its_second_result(FOUR, IDS) {
    float w;
    float rest = in[i % n];
    if (i % 2)
        rest = modf(rest, w);
    out[i] = rest + w; // bug: unwritten memory
}
