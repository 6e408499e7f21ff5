// q5_1: the Q5_1 weight block as kernels read a format (formats.h).
//
// A block is 32 weights in 24 bytes: a half scale d, a half m, then bits and nibbles as in Q5_0;
// n of 5 bits stands for n * d + m.
#pragma once

#include "q5_0.h"

struct block_q5_1 {
    half d, m;
    ushort qh[2];
    uchar qs[16];
};

template <typename V> inline V weigh(device const block_q5_1 *b, V n) {
    return n * float(b->d) + float(b->m);
}

typedef five_bit_weights<block_q5_1> q5_1;
typedef weight_eights<q5_1> q5_1_eights;
