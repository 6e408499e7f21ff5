// words: what the exchanges between lanes of GPUs are made of (exchange.h of ptx/ and of agx/shim).
#pragma once
#pragma clang system_header

namespace assay {

constexpr uint all_lanes = ~0u;

METAL_FUNC uint lane_index();

// A value as the 32-bit words that lanes exchange.
template <class V> struct words {
    static constexpr int count = (sizeof(V) + 3) / 4;
    int word[count];

    METAL_FUNC explicit words(const V &value) {
        word[count - 1] = 0;
        __builtin_memcpy(word, &value, sizeof value);
    }
    METAL_FUNC V get() const {
        V value;
        __builtin_memcpy(&value, word, sizeof value);
        return value;
    }
};

template <class Op, class V> METAL_FUNC V apply(V a, V b) {
    if constexpr (is_scalar<V>) {
        return Op::apply(a, b);
    } else {
        for (int i = 0; i < count_of<V>::value; ++i)
            a[i] = Op::apply(typename scalar_of<V>::type(a[i]), typename scalar_of<V>::type(b[i]));
        return a;
    }
}
template <int group> METAL_FUNC uint first_of_group() {
    return lane_index() / group * group;
}

} // namespace assay
