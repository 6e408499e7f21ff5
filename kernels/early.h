// early: what a kernel may load before the launches before it have ended.
//
// EARLY_LOADS(buffers) stands between loads of the buffers whose bits are set, and the first access to
// any other memory. Those are weights: no launch of a model writes them. A device that sets launches
// up ahead of time then waits there and not at the start of the kernel, so that the weights are under
// way while the launch before still runs; if a launch before writes one of them after all, it waits at
// the start. At least one thread of every launch must come to it. On every other device it is nothing.
#pragma once

#ifdef __ASSAY__
#define EARLY_LOADS(buffers) ASSAY_EARLY_LOADS(buffers)
#else
#define EARLY_LOADS(buffers)
#endif
