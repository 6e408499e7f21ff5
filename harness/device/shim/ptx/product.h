// product: d = a b + c of simdgroup matrices, by exchanges between lanes.
//
// Each lane computes the two elements of d that it holds; k goes up and every product and sum is
// rounded once, as on the CPU.
#pragma once
#pragma clang system_header

namespace assay {

// The lane that holds an element of a fragment: the inverse of fragment_row and fragment_column.
METAL_FUNC constexpr uint fragment_lane(uint row, uint column) {
    return (row >> 2 & 1) << 4 | (column >> 2 & 1) << 3 | (row & 3) << 1 | (column >> 1 & 1);
}

template <class V> METAL_FUNC V take_fragment(uint party, V value, uint source) {
    if (party == all_lanes)
        return shuffle(all_lanes, value, source);
    const V got = shuffle(party, value, source);
    return party >> source & 1 ? got : absent<V>();
}

template <class D, class A, class B, class C>
METAL_FUNC metal::vec<D, 2> multiply_fragments(metal::vec<A, 2> a, metal::vec<B, 2> b,
                                               metal::vec<C, 2> c) {
    const uint party = active_lanes(), lane = lane_index();
    const uint row = fragment_row(lane), column = fragment_column(lane);
    float x = to<float>(C(c.x)), y = to<float>(C(c.y));
    for (uint k = 0; k < 8; k += 2) {
        const metal::vec<A, 2> left = take_fragment(party, a, fragment_lane(row, k));
        const metal::vec<B, 2> upper = take_fragment(party, b, fragment_lane(k, column));
        const metal::vec<B, 2> lower = take_fragment(party, b, fragment_lane(k + 1, column));
        x += to<float>(A(left.x)) * to<float>(B(upper.x));
        y += to<float>(A(left.x)) * to<float>(B(upper.y));
        x += to<float>(A(left.y)) * to<float>(B(lower.x));
        y += to<float>(A(left.y)) * to<float>(B(lower.y));
    }
    return metal::vec<D, 2>(to<D>(x), to<D>(y));
}

} // namespace assay
