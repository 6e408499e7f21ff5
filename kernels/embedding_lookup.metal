// embedding_lookup: rows of an embedding table, as floats: out (n, hidden) = table[ids], one kernel
// for each format a table comes in.
//
// One thread per float of out. The ids are read from device memory, where argmax left them: the
// next token can start without the CPU. A thread decodes only its own value; threads that share its
// block read it from cache. An id past the end of the table has no row: it gives NaN, which cannot
// be mistaken for an embedding. Moves 4 bytes out and one value in per thread. The table (vocab,
// hidden) has rows of whole blocks, so one index counts its values from the first row to the last.
#include <metal_stdlib>
using namespace metal;

#include "formats/formats.h"

template <typename F>
kernel void embedding_lookup(device const typename F::block *table [[buffer(0)]],
                             device const uint *ids [[buffer(1)]],
                             device float *out [[buffer(2)]],
                             constant uint &hidden [[buffer(3)]],
                             constant uint &n [[buffer(4)]],
                             constant uint &vocab [[buffer(5)]],
                             uint i [[thread_position_in_grid]]) {
    const uint token = i / hidden;
    if (token >= n)
        return;
    const uint id = ids[token];
    out[i] = id < vocab ? F::at(table, size_t(id) * hidden + i % hidden)
                        : as_type<float>(0x7FC00000u);
}

#define EMBEDDING_LOOKUP(format, ...)                                                              \
    template [[host_name("embedding_lookup_" #format)]] kernel decltype(embedding_lookup<format>)  \
        embedding_lookup<format>;
FORMATS(EMBEDDING_LOOKUP)
