// counted: what a kernel that is compiled to be counted calls (soft/count_ir.c adds the calls). Compiled once
// (ASSAY_HOOKS) and linked to each. What lanes did is folded by soft/counted.c.
#pragma once

#include "../../soft/abi.h"

#if defined(ASSAY_HOOKS)
#define ASSAY_HOOK extern "C" __attribute__((visibility("hidden"), used))

namespace assay {
static inline __attribute__((always_inline)) soft_site *find_site(soft_u32 site, soft_u32 *lane) {
    soft_worker *w = soft_here();
    soft_counts *c = w->counts;
    *lane = w->running->current;
    // Lanes run in ascending order between meetings: an earlier one means that all have met.
    if (__builtin_expect(*lane < c->last, 0))
        c->fold(w);
    c->last = *lane;
    soft_site *s = &c->sites[site];
    if (__builtin_expect(!s->is_used, 0)) {
        s->is_used = 1;
        c->used[c->used_count++] = site;
    }
    return s;
}
} // namespace assay

// An access to memory.
ASSAY_HOOK void __assay_access(const void *at, soft_u32 site) {
    soft_u32 lane;
    soft_site *s = assay::find_site(site, &lane);
    const soft_u32 n = s->times[lane]++;
    if (__builtin_expect(n >= s->room, 0)) {
        soft_worker *w = soft_here();
        if (!w->counts->grow(w, site, n))
            return;
    }
    s->at[lane * s->room + n] = reinterpret_cast<soft_u64>(at);
}

// A basic block, a meeting.
ASSAY_HOOK void __assay_block(soft_u32 site) {
    soft_u32 lane;
    assay::find_site(site, &lane)->times[lane]++;
}
#undef ASSAY_HOOK
#endif
