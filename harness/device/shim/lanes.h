// lanes: which lane a lane takes its value from, for the simdgroup and quadgroup functions of simd.h.
//
// How values get there is the target's business (exchange.h of cpu/ and of ptx/): reduce_lanes,
// scan_lanes, take_from, take_first, ask, and the barriers. Groups are 32 lanes (simd_*) or 4
// (quad_*).
#pragma once
#pragma clang system_header

#include "exchange.h"

namespace assay {

// Where a lane of a group takes its value from. Lanes that would reach over the edge keep theirs; a
// source outside the group is no_lane and more.
template <int group> METAL_FUNC uint source_at(uint index) {
    return index < group ? lane_index() / group * group + index : no_lane + index;
}
template <int group> METAL_FUNC uint source_xor(uint mask) {
    const uint lane = lane_index();
    return source_at<group>((lane % group) ^ mask);
}
template <int group> METAL_FUNC uint source_up(uint delta) {
    const uint lane = lane_index();
    return lane % group >= delta ? lane - delta : lane;
}
template <int group> METAL_FUNC uint source_down(uint delta) {
    const uint lane = lane_index();
    return lane % group + delta < group ? lane + delta : lane;
}
template <int group> METAL_FUNC uint source_rotate(uint delta) {
    const uint lane = lane_index();
    return lane / group * group + (lane + delta) % group;
}

// Shift in segments of `modulo` lanes; what comes in over the edge is taken from `filling`.
template <int group, class V> METAL_FUNC V shift_and_fill(V value, V filling, uint delta,
                                                          uint modulo, bool up, const char *name) {
    const uint lane = lane_index();
    const uint place = lane % modulo, same = delta | modulo << 16;
    const uint source = lane - place + (up ? place - delta : place + delta) % modulo;
    const bool inside = up ? place >= delta : place + delta < modulo;
    const V shifted = take_from<group>(value, inside ? source : lane, name, same);
    const V filled = take_from<group>(filling, inside ? lane : source, name, same);
    return inside ? shifted : filled;
}

} // namespace assay
