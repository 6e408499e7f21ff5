// opaque: constants that stay in registers.
//
// An NVIDIA GPU computes (a & B) | C in one instruction if only one of B and C is an immediate.
// Compilers know every constant and then need two, so the other one is made from a value that they
// do not know: `some`, an argument of the kernel that is never the largest uint. What is the same
// for all lanes may end up in a register that they share, which costs a copy each time: an argument
// plus the number of the lane does not.
#pragma once

inline uint opaque(uint value, uint some) {
    return some == 0xFFFFFFFFu ? 0u : value;
}
