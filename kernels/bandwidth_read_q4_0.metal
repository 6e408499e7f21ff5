// bandwidth_read_q4_0: reads Q4_0 blocks as fast as it can and proves that it did, by a sum.
#include <metal_stdlib>
using namespace metal;

#include "formats/q4_0.h"
#include "threadgroup_sum.h"

// A thread adds up the weights of blocks, strided by the whole grid; a threadgroup writes the sum
// of its threads to out[threadgroup]. Reads 18 n bytes, writes 4 per threadgroup. It exists because
// a block is 18 bytes and only 2-byte aligned: this is the roof of every Q4_0 kernel that reads it
// with nine 16-bit loads, and the distance from bandwidth_read_f32 is the price of the format. All
// 32 nibbles reach the sum, but cheaply: a word's bytes are added side by side, and 16 nibbles of
// at most 15 fit a byte.
kernel void bandwidth_read_q4_0(device const block_q4_0 *data [[buffer(0)]],
                                device float *out [[buffer(1)]],
                                constant uint &n [[buffer(2)]],
                                uint i [[thread_position_in_grid]],
                                uint grid [[threads_per_grid]],
                                uint group [[threadgroup_position_in_grid]],
                                uint thread_index [[thread_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint sg [[simdgroup_index_in_threadgroup]],
                                uint sg_count [[simdgroups_per_threadgroup]]) {
    threadgroup float partial[32];
    float sum = 0.0f;
    for (uint j = i; j < n; j += grid) {
        device const ushort *words = (device const ushort *)(data + j);
        uint nibbles = 0;
        for (uint w = 1; w < 9; w++)
            nibbles += (words[w] & 0x0F0Fu) + ((words[w] >> 4u) & 0x0F0Fu);
        const uint total = (nibbles & 0xFFu) + (nibbles >> 8u);
        sum += float(as_type<half>(words[0])) * (float(total) - 8.0f * 32.0f);
    }
    const float total = threadgroup_sum(sum, partial, lane, sg, sg_count);
    if (thread_index == 0)
        out[group] = total;
}
