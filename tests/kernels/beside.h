// Included by beside.metal.
#pragma once
inline void put(threadgroup float *p, uint i) { p[i] = i; }
