// scope: which thread of a tensor operation's scope this is, and the launch's layout of registers.
#pragma once
#pragma clang system_header

namespace assay {

METAL_FUNC uint get_tensor_layout() {
    return soft_here()->launch->tensor_layout;
}

// simdgroups: 0: the thread alone.
template <int simdgroups> METAL_FUNC uint get_scope_thread() {
    const soft_simdgroup *g = soft_here()->running;
    return simdgroups == 0 ? 0 : simdgroups == 1 ? g->current : g->index * MSL_LANES + g->current;
}

} // namespace assay
