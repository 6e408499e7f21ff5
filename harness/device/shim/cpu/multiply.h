// multiply: products of tensors, by the lanes of a simdgroup together.
//
// Each lane loads its share of a few columns of left and rows of right, all lanes meet, and the
// last of them multiplies for each what its registers hold. The simdgroups of a larger scope each
// load all of the inputs for themselves: nothing waits for the whole threadgroup, because MSL does
// not say that an operation does. Only where inputs are in registers, those of all simdgroups are
// needed.
#pragma once
#pragma clang system_header

namespace assay {

template <class A, class B> constexpr bool lies_alike() {
    return __is_same(typename A::layout, typename B::layout);
}
template <class To, class From> METAL_FUNC To copy_registers(const From &source) {
    static_assert(lies_alike<To, From>(), "the registers of this cooperative tensor lie otherwise: "
                                          "ask is_compatible_as_left_input or _right_input");
    To target;
    for (int i = 0; i < source.get_capacity(); ++i)
        target[i] = to<typename To::value_type>(source[i]);
    return target;
}

// All threads of the scope post `mine`; work(all, first, party) is called once for each simdgroup,
// with what threads first to first + 31 posted, where party has them, and with all of a larger
// scope's if `whole`.
template <int simdgroups, bool whole, class T, class Work>
METAL_FUNC void work_together(T *mine, Work work) {
    if constexpr (simdgroups == 0) {
        work(&mine, 0u, 1u);
    } else {
        soft_worker *w = soft_here();
        const soft_u32 first = simdgroups == 1 ? 0 : w->running->index * SOFT_LANES;
        if constexpr (simdgroups > 1) {
            const soft_u32 groups = (w->group_total + SOFT_LANES - 1) / SOFT_LANES;
            ASSAY_CHECK(groups != simdgroups, SOFT_SCOPE, simdgroups | groups << 16, "matmul2d");
        }
        if constexpr (simdgroups > 1 && whole) {
            w->posted[first + w->running->current] = mine;
            park();
        }
        meet<bool, meeting_of_simd>(
            mine, [work, first, w](T *const *in, bool *, soft_u32 party)
                      __attribute__((always_inline, nodebug, no_sanitize("thread", "undefined"))) {
                          if constexpr (simdgroups > 1) {
                              w->tensor_runs[first / SOFT_LANES]++;
                              w->tensor_site = w->running->site[w->running->current];
                          }
                          if constexpr (simdgroups > 1 && whole)
                              work(reinterpret_cast<T *const *>(w->posted), first, party);
                          else
                              work(in - first, first, party);
                      });
        if constexpr (simdgroups > 1 && whole)
            park();
    }
}

// Sums are floats, or integers where both inputs are.
template <class L, class R> using sum_of =
    metal::conditional_t<metal::is_integral_v<typename L::value_type> &&
                             metal::is_integral_v<typename R::value_type>,
                         int, float>;

// What one thread posts. A chunk is as many of the k as are multiplied at a time.
template <class Op, class L, class R, class C> struct product_part {
    using S = sum_of<L, R>;
    static constexpr int m = Op::descriptor.m, n = Op::descriptor.n, simdgroups = Op::assay_simdgroups;
    static constexpr bool left_is_posted = metal::is_cooperative_tensor_v<L>;
    static constexpr bool right_is_posted = metal::is_cooperative_tensor_v<R>;
    static constexpr bool is_whole = left_is_posted || right_is_posted;
    static constexpr int most = 4096 / (m + n) < 1 ? 1 : 4096 / (m + n) > 32 ? 32 : 4096 / (m + n);
    static constexpr int chunk = is_whole                            ? Op::assay_k
                                 : !Op::assay_is_dynamic && Op::assay_k < most ? Op::assay_k
                                                                     : most;
    static constexpr int lanes = simdgroups ? SOFT_LANES : 1;

    const L *left;
    const R *right;
    C *target;
    int depth; // of this chunk
    S a[left_is_posted ? 1 : (m * chunk + lanes - 1) / lanes];
    S b[right_is_posted ? 1 : (n * chunk + lanes - 1) / lanes];
    S sum[C::layout::least + 1];
};

// rows by chunk values out of what the threads loaded (part->*share), or have in registers.
template <class P, int rows, class S, class T, int n> METAL_FUNC void
gather_input(S (&out)[n], P *const *all, soft_u32 first, soft_u32 party, S *(*get)(P *),
             const T *(*get_tensor)(P *), bool transposed) {
    constexpr int chunk = P::chunk;
    if constexpr (metal::is_cooperative_tensor_v<T>) {
        constexpr int threads = T::layout::threads;
        for (int thread = 0; thread < threads; ++thread) {
            if (P::simdgroups == 1 && !(party >> thread & 1))
                continue;
            const T *t = get_tensor(all[thread]);
            for (int i = 0; i < t->assay_layout.get_capacity(); ++i) {
                const int element = t->assay_layout.find(static_cast<uint>(thread), i);
                if (element >= T::layout::none)
                    continue;
                const int x = element % T::layout::width, y = element / T::layout::width;
                out[transposed ? x * chunk + y : y * chunk + x] = to<S>(t->assay_elements[i]);
            }
        }
    } else {
        for (int lane = 0; lane < P::lanes; ++lane)
            for (int i = lane; i < rows * chunk && (party >> lane & 1); i += P::lanes)
                out[i] = get(all[first + static_cast<soft_u32>(lane)])[i / P::lanes];
    }
}

// A lane that takes no part leaves NaN in its places, and so in what depends on them.
template <class Op, class L, class R, class C> ASSAY_SERVE void
multiply_parts(product_part<Op, L, R, C> *const *all, soft_u32 first, soft_u32 party) {
    using P = product_part<Op, L, R, C>;
    using S = typename P::S;
    constexpr int chunk = P::chunk;
    __attribute__((uninitialized)) S a[P::m * chunk], b[P::n * chunk];
    if (party != ~0u) {
        for (S &x : a)
            x = metal::is_same_v<S, float> ? S(NAN) : S(0);
        for (S &x : b)
            x = metal::is_same_v<S, float> ? S(NAN) : S(0);
    }
    gather_input<P, P::m>(
        a, all, first, party, +[](P *p) -> S * { return p->a; },
        +[](P *p) -> const L * { return p->left; }, Op::descriptor.transpose_left);
    gather_input<P, P::n>(
        b, all, first, party, +[](P *p) -> S * { return p->b; },
        +[](P *p) -> const R * { return p->right; }, !Op::descriptor.transpose_right);
    for (int lane = 0; lane < P::lanes; ++lane) {
        if (!(party >> lane & 1))
            continue;
        const soft_u32 thread = first + static_cast<soft_u32>(lane);
        P *p = all[thread];
        for (int i = 0; i < p->target->assay_layout.get_capacity(); ++i) {
            const int element = p->target->assay_layout.find(thread, i);
            if (element >= C::layout::none)
                continue;
            const S *row = a + element / P::n * chunk, *column = b + element % P::n * chunk;
            S sum = p->sum[i];
            for (int k = 0; k < p->depth; ++k)
                sum += row[k] * column[k];
            p->sum[i] = sum;
        }
    }
}

// This lane's share of `rows` rows, columns k to k + depth - 1. Along the rows a tensor ends where
// its extents say; along k an operation with a k of its own does not look.
template <class P, int rows, class S, class T>
METAL_FUNC void load_share(S *share, const T &t, int k, int depth, bool k_is_first) {
    const long step = t.assay_stride[k_is_first ? 0 : 1], line = t.assay_stride[k_is_first ? 1 : 0];
    const int limit = static_cast<int>(t.get_extent(k_is_first ? 1 : 0));
    const int lane = P::simdgroups ? static_cast<int>(lane_index()) : 0;
    for (int i = lane; i < rows * P::chunk; i += P::lanes) {
        const int row = i / P::chunk, column = i % P::chunk;
        share[i / P::lanes] = row < limit && column < depth
                                  ? to<S>(t.assay_data[row * line + (k + column) * step])
                                  : S(0);
    }
}

template <class Op, class L, class R> METAL_FUNC int count_depth(const L &left, const R &right) {
    if constexpr (!Op::assay_is_dynamic)
        return Op::assay_k;
    else
        return static_cast<int>(left.get_extent(Op::descriptor.transpose_left ? 1 : 0));
}

template <class Op, class L, class R, class C>
METAL_FUNC void multiply_tensors(const L &left, const R &right, C &target) {
    using P = product_part<Op, L, R, C>;
    using S = typename P::S;
    static_assert(__is_same(typename C::layout,
                            register_layout<Op::descriptor.n, Op::descriptor.m, Op::assay_simdgroups>),
                  "this cooperative tensor is not a destination of this operation");
    P p;
    p.left = &left;
    p.right = &right;
    p.target = &target;
    const bool adds =
        Op::descriptor.matmul_mode == mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate;
    for (int i = 0; i < C::layout::least + 1; ++i)
        p.sum[i] = adds ? to<S>(target.assay_elements[i]) : S(0);
    const int depth = count_depth<Op>(left, right);
    for (int k = 0; k < depth; k += P::chunk) {
        p.depth = depth - k < P::chunk ? depth - k : P::chunk;
        if constexpr (!P::left_is_posted)
            load_share<P, P::m>(p.a, left, k, p.depth, !Op::descriptor.transpose_left);
        if constexpr (!P::right_is_posted)
            load_share<P, P::n>(p.b, right, k, p.depth, Op::descriptor.transpose_right);
        work_together<P::simdgroups, P::is_whole>(&p, multiply_parts<Op, L, R, C>);
    }
    for (int i = 0; i < C::layout::least + 1; ++i)
        target.assay_elements[i] = to<typename C::value_type>(p.sum[i]);
}

// ------------------------------------------------------------------------------------- reductions
template <class Source, class Target> struct reduction_part {
    const Source *source;
    Target *target;
    mpp::tensor_ops::reduction_operation op;
    typename Source::value_type identity;
};

template <class Source, class Target> ASSAY_SERVE void
reduce_parts(reduction_part<Source, Target> *const *all, soft_u32 first, soft_u32 party) {
    using T = typename Source::value_type;
    using operation = mpp::tensor_ops::reduction_operation;
    using layout = typename Source::layout;
    __attribute__((uninitialized)) T line[Target::extents_type::static_extent(0)];
    const reduction_part<Source, Target> *mine = all[first + static_cast<soft_u32>(__builtin_ctz(party))];
    for (T &x : line)
        x = mine->identity;
    for (int thread = 0; thread < layout::threads; ++thread) {
        if (layout::simdgroups <= 1 && !(party >> thread & 1))
            continue;
        const Source *s = all[thread]->source;
        for (int i = 0; i < s->assay_layout.get_capacity(); ++i) {
            const int element = s->assay_layout.find(static_cast<uint>(thread), i);
            if (element >= layout::none)
                continue;
            T &x = line[mine->target->assay_layout.find_line(element)];
            const T y = s->assay_elements[i];
            x = mine->op == operation::sum   ? static_cast<T>(x + y)
                : mine->op == operation::max ? (x < y ? y : x)
                                             : (y < x ? y : x);
        }
    }
    for (int lane = 0; lane < (layout::simdgroups ? SOFT_LANES : 1); ++lane) {
        if (!(party >> lane & 1))
            continue;
        const soft_u32 thread = first + static_cast<soft_u32>(lane);
        Target *t = all[thread]->target;
        for (int i = 0; i < t->assay_layout.get_capacity(); ++i) {
            const int element = t->assay_layout.find(thread, i);
            if (element < layout::none)
                t->assay_elements[i] = line[t->assay_layout.find_line(element)];
        }
    }
}

template <class Source, class Target> METAL_FUNC void
reduce_lines(const Source &source, Target &target, mpp::tensor_ops::reduction_operation op,
             typename Source::value_type identity) {
    reduction_part<Source, Target> p = {&source, &target, op, identity};
    work_together<Source::assay_simdgroups, true>(&p, reduce_parts<Source, Target>);
}

} // namespace assay
