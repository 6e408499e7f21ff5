// prefetch: what a kernel may load before the launches before it have ended.
//
// PREFETCHED(buffers) stands between loads of the buffers whose bits are set, and the first access
// to any other memory. Those are weights: no launch of a model writes them. A device that sets
// launches up ahead of time then waits there and not at the start of the kernel, so that the
// weights are under way while the launch before still runs; if a launch before writes one of them
// after all, it waits at the start. At least one thread of every launch must come to it. On every
// other device it is nothing.
//
// PREFETCHED_ROWS(buffers) is the same for caches to which a launch appends a row for each token: only
// rows before the newest one are loaded before it. A launch that appends to them and says so
// (launch.appends) is then nothing to wait for at the start.
//
// LOADS_AHEAD: whether a kernel loads what it needs later before it computes, at the price of registers.
// An M1 has too few of them: what is kept there spills, and more simdgroups hide the wait as well.
#pragma once

#ifdef __ASSAY__
#define PREFETCHED(buffers) ASSAY_EARLY_LOADS(buffers)
#define PREFETCHED_ROWS(buffers) ASSAY_EARLY_ROWS(buffers)
constant bool LOADS_AHEAD = true;
#else
#define PREFETCHED(buffers)
#define PREFETCHED_ROWS(buffers)
constant bool LOADS_AHEAD = false;
#endif
