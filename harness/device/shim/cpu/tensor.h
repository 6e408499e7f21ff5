// tensor: Metal 4's tensors: views of memory, cooperative tensors in registers, and the products of
// matrices of Metal Performance Primitives, mpp::tensor_ops::matmul2d.
//
// A tensor is a pointer, extents and strides; the first dimension is the one that lies together. A
// slice moves the origin: without extents of its own it ends where the tensor ends, and operations
// stop there; with extents of its own nothing is checked, as on a GPU.
#pragma once
#pragma clang system_header

// Vectors of more than four components, as kernels hold fragments of matrices in them.
namespace metal {

template <class T, int n> struct vec {
    static_assert(n > 4, "a vector has 2, 3, 4 or more components");
    using assay_scalar = T;
    static constexpr int assay_count = n;
    T assay_elements[n];

    vec() = default;
    template <class S, assay::if_scalars<S> = 0> METAL_FUNC constexpr vec(S s) : assay_elements{} {
        for (int i = 0; i < n; ++i)
            assay_elements[i] = assay::to<T>(s);
    }
    template <class U, assay::if_different<T, U> = 0>
    METAL_FUNC constexpr explicit vec(const vec<U, n> &v) : assay_elements{} {
        for (int i = 0; i < n; ++i)
            assay_elements[i] = assay::to<T>(v[i]);
    }
    METAL_FUNC constexpr T &operator[](int i) {
        ASSAY_CHECK_COMPONENT(i, n);
        return assay_elements[i];
    }
    METAL_FUNC constexpr const T &operator[](int i) const {
        ASSAY_CHECK_COMPONENT(i, n);
        return assay_elements[i];
    }
};

constexpr size_t dynamic_extent = ~size_t(0);

template <class I, size_t... E> struct extents {
    using index_type = I;
    using size_type = make_unsigned_t<I>;
    using rank_type = size_t;
    I assay_value[sizeof...(E) + 1];

    static METAL_FUNC constexpr size_t rank() { return sizeof...(E); }
    static METAL_FUNC constexpr size_t rank_dynamic() {
        return (size_t(E == dynamic_extent) + ... + 0);
    }
    static METAL_FUNC constexpr size_t static_extent(size_t r) {
        constexpr size_t list[] = {E..., 0};
        return list[r];
    }
    METAL_FUNC constexpr extents() : assay_value{(E == dynamic_extent ? I(0) : I(E))..., I(0)} {}
    // One value for every extent, or only for those that are dynamic.
    template <class... A,
              enable_if_t<(sizeof...(A) > 0) && (is_convertible_v<A, I> && ...), int> = 0>
    METAL_FUNC constexpr extents(A... a) : extents() {
        constexpr bool all = sizeof...(A) == sizeof...(E);
        static_assert(all || sizeof...(A) == rank_dynamic(),
                      "extents take a value for each dimension, or for each dynamic one");
        const I given[] = {static_cast<I>(a)...};
        for (size_t r = 0, next = 0; r < rank(); ++r)
            if (all || static_extent(r) == dynamic_extent)
                assay_value[r] = given[next++];
    }
    METAL_FUNC constexpr I extent(size_t r) const { return assay_value[r]; }
};

} // namespace metal

namespace assay {
template <class I, size_t> constexpr size_t every = metal::dynamic_extent;
template <class I, size_t... i>
metal::extents<I, every<I, i>...> make_dynamic(metal::index_sequence<i...>);
} // namespace assay

namespace metal {

template <class I, size_t rank> using dextents =
    decltype(assay::make_dynamic<I>(make_index_sequence<rank>()));

struct tensor_handle {};
struct tensor_offset {};
struct tensor_inline {};

template <class T, class E, class Descriptor = tensor_handle, class... Tags> struct tensor {
    using element_type = T;
    using value_type = remove_cv_t<T>;
    using extents_type = E;
    using index_type = typename E::index_type;
    using data_handle_type = T *;
    static constexpr size_t assay_rank = E::rank();

    T *assay_data;
    E assay_extents;
    long assay_stride[assay_rank + 1];

    METAL_FUNC constexpr tensor(T *data, E e) : assay_data(data), assay_extents(e), assay_stride{} {
        long stride = 1;
        for (size_t r = 0; r < assay_rank; ++r) {
            assay_stride[r] = stride;
            stride *= e.extent(r);
        }
    }
    template <class S> METAL_FUNC constexpr tensor(T *data, E e, array<S, assay_rank> strides)
        : assay_data(data), assay_extents(e), assay_stride{} {
        for (size_t r = 0; r < assay_rank; ++r)
            assay_stride[r] = static_cast<long>(strides[r]);
    }

    static METAL_FUNC constexpr size_t get_rank() { return assay_rank; }
    static METAL_FUNC constexpr size_t get_static_extent(size_t r) { return E::static_extent(r); }
    METAL_FUNC constexpr E extents() const { return assay_extents; }
    METAL_FUNC constexpr index_type get_extent(size_t r) const { return assay_extents.extent(r); }
    METAL_FUNC constexpr index_type get_stride(size_t r) const {
        return static_cast<index_type>(assay_stride[r]);
    }
    METAL_FUNC constexpr T *data_handle() const { return assay_data; }

    template <class... A> METAL_FUNC T &operator[](A... at) const {
        static_assert(sizeof...(A) == assay_rank, "a tensor takes an index for each dimension");
        return assay_data[find(static_cast<long>(at)...)];
    }

    template <size_t... S, class... O> METAL_FUNC auto slice(O... origin) const {
        static_assert(sizeof...(O) == assay_rank, "a slice takes an origin for each dimension");
        if constexpr (sizeof...(S) == 0)
            return cut<dextents<index_type, assay_rank>>(static_cast<long>(origin)...);
        else
            return cut<metal::extents<index_type, S...>>(static_cast<long>(origin)...);
    }
    template <size_t... S, class... O> METAL_FUNC auto static_slice(O... origin) const {
        return slice<S...>(origin...);
    }

  private:
    template <class... A> METAL_FUNC long find(A... at) const {
        const long index[] = {at...};
        long offset = 0;
        for (size_t r = 0; r < assay_rank; ++r)
            offset += index[r] * assay_stride[r];
        return offset;
    }
    template <class F, class... O> METAL_FUNC auto cut(O... origin) const {
        const long from[] = {origin...};
        tensor<T, F, tensor_inline> part(assay_data + find(origin...), F());
        for (size_t r = 0; r < assay_rank; ++r) {
            const long left = static_cast<long>(get_extent(r)) - from[r];
            part.assay_stride[r] = assay_stride[r];
            if (F::static_extent(r) == dynamic_extent)
                part.assay_extents.assay_value[r] = static_cast<index_type>(left > 0 ? left : 0);
        }
        return part;
    }
};

template <class T, class E> tensor(T *, E) -> tensor<T, E, tensor_inline>;
template <class T, class E, class S> tensor(T *, E, S) -> tensor<T, E, tensor_inline>;

template <class T> struct is_tensor : false_type {};
template <class T, class E, class D, class... Tags> struct is_tensor<tensor<T, E, D, Tags...>>
    : true_type {};
template <class T> constexpr bool is_tensor_v = is_tensor<T>::value;

} // namespace metal

// Cooperative tensors ---------------------------------------------------------------------------
// Their elements are in the registers of the threads that compute together. Which element is in which
// thread, and at which index, is not defined by MSL. Here it is another one in each launch
// (soft_launch's layout), some of a thread's elements are not valid, and a kernel that assumes a layout
// instead of asking for it computes something wrong. Layout 0 is the one that kernels for one GPU
// assume: fragments of 16 x 16, eight elements to a lane.
namespace metal {

template <size_t n> struct execution_threads {
    static_assert(n == 1, "execution_threads<1> is the only one");
    static constexpr int assay_simdgroups = 0;
    static METAL_FUNC constexpr uint size() { return n; }
};
template <size_t n> struct execution_simdgroups {
    static_assert(n > 0, "execution_simdgroups<0> is not supported");
    static constexpr int assay_simdgroups = n;
    static METAL_FUNC constexpr uint size() { return n; }
};
using execution_thread = execution_threads<1>;
using execution_simdgroup = execution_simdgroups<1>;

} // namespace metal

namespace assay {

// The layout of registers in this launch.
METAL_FUNC uint get_tensor_layout() {
    return soft_here()->launch->tensor_layout;
}

// Which thread of a tensor operation's scope this is. simdgroups: 0: the thread alone.
template <int simdgroups> METAL_FUNC uint get_scope_thread() {
    const soft_simdgroup *g = soft_here()->running;
    return simdgroups == 0 ? 0 : simdgroups == 1 ? g->current : g->index * MSL_LANES + g->current;
}

// Where the elements of an X by Y tensor are. Elements are numbered along X; `none` and more are
// not elements.
template <int X, int Y, int Simdgroups> struct register_layout {
    static constexpr int simdgroups = Simdgroups, width = X;
    static constexpr int threads = Simdgroups ? Simdgroups * MSL_LANES : 1;
    static constexpr int none = X * Y, least = (none + threads - 1) / threads;
    static constexpr int slots = threads * (least + 1);
    static constexpr int fragments = X % 16 || Y % 16 ? 0 : X / 16 * (Y / 16);
    static constexpr bool has_fragments =
        Simdgroups && fragments && fragments % (Simdgroups ? Simdgroups : 1) == 0;

    int step, shift; // step 0: layout 0

    METAL_FUNC register_layout() : step(0), shift(0) {
        const uint layout = get_tensor_layout();
        if (layout == 0)
            return;
        const uint mixed = (layout * 2654435761u ^ X * 40503u ^ Y * 9176u) >> 4;
        for (step = 5 + static_cast<int>(mixed % 64) * 2; has_common_factor(step); step += 2) {
        }
        shift = static_cast<int>(mixed % slots);
    }
    METAL_FUNC int get_capacity() const { return step ? least + 1 : least; }
    METAL_FUNC int find(uint thread, int i) const {
        if (thread >= threads || static_cast<uint>(i) >= static_cast<uint>(get_capacity()))
            return none;
        if (step)
            return ((static_cast<int>(thread) * (least + 1) + i) * step + shift) % slots;
        if constexpr (has_fragments)
            return find_in_fragments(thread, i);
        else
            return i * threads + static_cast<int>(thread);
    }

  private:
    static METAL_FUNC bool has_common_factor(int step) {
        int a = slots, b = step;
        while (b) {
            const int rest = a % b;
            a = b;
            b = rest;
        }
        return a != 1;
    }
    static METAL_FUNC int find_in_fragments(uint thread, int i) {
        const int lane = static_cast<int>(thread % MSL_LANES), quad = lane >> 2;
        const int fragment = i / 8 * Simdgroups + static_cast<int>(thread / MSL_LANES);
        const int row = (quad & 4) + (lane >> 1 & 3) + (i % 8 >= 4 ? 8 : 0);
        const int column = ((quad & 2) + (lane & 1)) * 4 + i % 4;
        return (fragment / (X / 16) * 16 + row) * X + fragment % (X / 16) * 16 + column;
    }
};

// One value for each row or column of a tensor with layout Of, at every index of the thread that
// has one of its elements; valid where that is the first.
template <class Of, bool of_rows> struct line_layout : Of {
    METAL_FUNC int find_line(int element) const {
        return of_rows ? element / Of::width : element % Of::width;
    }
    METAL_FUNC bool is_first(int element) const {
        return element < Of::none && (of_rows ? element % Of::width : element / Of::width) == 0;
    }
};

} // namespace assay

namespace metal {

template <class T, class E, class Layout> struct cooperative_tensor {
    using element_type = T;
    using value_type = T;
    using extents_type = E;
    using index_type = typename E::index_type;
    using layout = Layout;
    using thread_index_type = uint16_t;
    static constexpr size_t assay_rank = E::rank();
    static constexpr int assay_simdgroups = Layout::simdgroups;

    Layout assay_layout;
    T assay_elements[Layout::least + 2]; // the last one is for indices that are wrong

    template <class Tensor, class Element> struct assay_iterator {
        Tensor *of;
        int at;
        METAL_FUNC Element &operator*() const { return (*of)[at]; }
        METAL_FUNC Element *operator->() const { return &(*of)[at]; }
        METAL_FUNC assay_iterator &operator++() {
            ++at;
            return *this;
        }
        METAL_FUNC assay_iterator operator++(int) {
            assay_iterator before = *this;
            ++at;
            return before;
        }
        METAL_FUNC bool operator==(assay_iterator other) const { return at == other.at; }
        METAL_FUNC bool operator!=(assay_iterator other) const { return at != other.at; }
        METAL_FUNC bool is_valid_element() const { return of->is_valid_element(at); }
        METAL_FUNC auto get_multidimensional_index() const {
            return of->get_multidimensional_index(at);
        }
    };
    using iterator = assay_iterator<cooperative_tensor, T>;
    using const_iterator = assay_iterator<const cooperative_tensor, const T>;

    METAL_FUNC cooperative_tensor() : assay_layout(), assay_elements{} {}

    METAL_FUNC uint16_t get_capacity() const {
        return static_cast<uint16_t>(assay_layout.get_capacity());
    }
    METAL_FUNC bool is_valid_element(int i) const {
        const int element = find(i);
        if constexpr (assay_rank == 1)
            return assay_layout.is_first(element);
        else
            return element < Layout::none;
    }
    METAL_FUNC bool get_mask(int i) const { return is_valid_element(i); }
    METAL_FUNC bool is_valid_element(const_iterator it) const { return is_valid_element(it.at); }
    METAL_FUNC T &operator[](int i) { return assay_elements[check(i)]; }
    METAL_FUNC const T &operator[](int i) const { return assay_elements[check(i)]; }

    METAL_FUNC array<index_type, assay_rank> get_multidimensional_index(int i) const {
        const int element = find(i);
        array<index_type, assay_rank> at;
        if constexpr (assay_rank == 1) {
            at[0] = static_cast<index_type>(assay_layout.find_line(element));
        } else {
            at[0] = static_cast<index_type>(element % Layout::width);
            at[1] = static_cast<index_type>(element / Layout::width);
        }
        return at;
    }
    METAL_FUNC auto get_multidimensional_index(const_iterator it) const {
        return get_multidimensional_index(it.at);
    }

    METAL_FUNC iterator begin() { return {this, 0}; }
    METAL_FUNC iterator end() { return {this, get_capacity()}; }
    METAL_FUNC const_iterator begin() const { return {this, 0}; }
    METAL_FUNC const_iterator end() const { return {this, get_capacity()}; }
    METAL_FUNC iterator get_iterator(int i) { return {this, i}; }
    template <class Other> METAL_FUNC iterator map_iterator(Other it) { return {this, it.at}; }
    template <class Other> METAL_FUNC const_iterator map_iterator(Other it) const {
        return {this, it.at};
    }

    template <class Tensor> METAL_FUNC void load(const Tensor &from) {
        for (int i = 0; i < get_capacity(); ++i)
            if (is_valid_element(i))
                assay_elements[i] = is_inside(from, i) ? assay::to<T>(*find_in(from, i)) : T(0);
    }
    template <class Tensor> METAL_FUNC void store(const Tensor &target) const {
        for (int i = 0; i < get_capacity(); ++i)
            if (is_valid_element(i) && is_inside(target, i))
                *find_in(target, i) = assay::to<typename Tensor::value_type>(assay_elements[i]);
    }

  private:
    METAL_FUNC int find(int i) const {
        return assay_layout.find(assay::get_scope_thread<assay_simdgroups>(), i);
    }
    METAL_FUNC int check(int i) const {
        const bool is_wrong = static_cast<uint>(i) >= static_cast<uint>(get_capacity());
        ASSAY_CHECK(is_wrong, SOFT_INDEX, i, "'cooperative tensor'");
        return is_wrong ? Layout::least + 1 : i;
    }
    template <class Tensor> METAL_FUNC bool is_inside(const Tensor &t, int i) const {
        const auto at = get_multidimensional_index(i);
        for (size_t r = 0; r < assay_rank; ++r)
            if (at[r] >= t.get_extent(r))
                return false;
        return true;
    }
    template <class Tensor> METAL_FUNC auto find_in(const Tensor &t, int i) const {
        const auto at = get_multidimensional_index(i);
        auto *p = t.assay_data;
        for (size_t r = 0; r < assay_rank; ++r)
            p += static_cast<long>(at[r]) * t.assay_stride[r];
        return p;
    }
};

template <class T> struct is_cooperative_tensor : false_type {};
template <class T, class E, class L> struct is_cooperative_tensor<cooperative_tensor<T, E, L>>
    : true_type {};
template <class T> constexpr bool is_cooperative_tensor_v = is_cooperative_tensor<T>::value;

} // namespace metal

// Products --------------------------------------------------------------------------------------
// left is m by k and right k by n; the first dimension of their tensors is k and n, or m and k where
// they are transposed, and that of the destination is n.
//
// Each lane loads its share of a few columns of left and rows of right, all lanes meet, and the last of
// them multiplies for each what its registers hold. The simdgroups of a larger scope each load all of
// the inputs for themselves: nothing waits for the whole threadgroup, because MSL does not say that an
// operation does. Only where inputs are in registers, those of all simdgroups are needed.
namespace mpp {
namespace tensor_ops {

template <class T> struct dynamic_length {
    static constexpr T value = metal::numeric_limits<T>::max();
};
template <class T> constexpr T dynamic_length_v = dynamic_length<T>::value;

enum class reduction_operation { sum, max, min };
template <class T> struct reduction_operation_identity {
    static constexpr T sum_identity = T(0);
    static constexpr T max_identity = metal::numeric_limits<T>::lowest();
    static constexpr T min_identity = metal::numeric_limits<T>::max();
};

struct matmul2d_descriptor {
    enum class mode { multiply, multiply_accumulate };
    int m, n, k;
    bool transpose_left, transpose_right, relaxed_precision;
    mode matmul_mode;

    constexpr matmul2d_descriptor(int m_, int n_, int k_ = -1, bool transpose_left_ = false,
                                  bool transpose_right_ = false, bool relaxed_precision_ = false,
                                  mode mode_ = mode::multiply)
        : m(m_), n(n_), k(k_), transpose_left(transpose_left_), transpose_right(transpose_right_),
          relaxed_precision(relaxed_precision_), matmul_mode(mode_) {}
};

} // namespace tensor_ops
} // namespace mpp

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

namespace mpp {
namespace tensor_ops {

template <matmul2d_descriptor D, class Scope, class... Args> struct matmul2d {
    static constexpr matmul2d_descriptor descriptor = D;
    using scope = Scope;
    static constexpr int assay_simdgroups = Scope::assay_simdgroups;
    static constexpr bool assay_is_dynamic = D.k == -1 || D.k == dynamic_length_v<int>;
    static_assert(D.m > 0 && D.n > 0, "m and n of a matmul2d_descriptor must be positive");
    static_assert(D.k > 0 || assay_is_dynamic,
                  "k of a matmul2d_descriptor must be positive, or dynamic_extent");

    template <int x, int y, class T, class C> using assay_registers =
        metal::cooperative_tensor<T, metal::extents<C, x, y>,
                                  assay::register_layout<x, y, assay_simdgroups>>;
    static constexpr int assay_k = assay_is_dynamic ? 1 : D.k;

    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_left_input_t =
        assay_registers<D.transpose_left ? D.m : assay_k, D.transpose_left ? assay_k : D.m, L, C>;
    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_right_input_t =
        assay_registers<D.transpose_right ? assay_k : D.n, D.transpose_right ? D.n : assay_k, R, C>;
    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_destination_t = assay_registers<D.n, D.m, T, C>;

    template <bool of_rows, class T, class C> using assay_lines = metal::cooperative_tensor<
        T, metal::extents<C, of_rows ? D.m : D.n>,
        assay::line_layout<assay::register_layout<D.n, D.m, assay_simdgroups>, of_rows>>;
    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_row_reduction_destination_t = assay_lines<true, T, C>;
    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_column_reduction_destination_t = assay_lines<false, T, C>;

    // As inputs also what another operation left in registers, where it lies as it must.
#define ASSAY_INPUT(side)                                                                          \
    template <class L, class R, class T, class C = int>                                            \
    METAL_FUNC auto get_##side##_input_cooperative_tensor() const {                                \
        static_assert(!assay_is_dynamic,                                                           \
                      "a cooperative tensor of inputs needs a k that is known");                   \
        return cooperative_tensor_##side##_input_t<L, R, T, C>();                                  \
    }                                                                                              \
    template <class L, class R, class T, class Source>                                             \
    METAL_FUNC bool is_compatible_as_##side##_input(const Source &) const {                        \
        return assay::lies_alike<Source, cooperative_tensor_##side##_input_t<L, R, T>>();          \
    }                                                                                              \
    template <class L, class R, class T, class C = int, class Source>                              \
    METAL_FUNC auto get_##side##_input_cooperative_tensor(const Source &source) const {            \
        return assay::copy_registers<cooperative_tensor_##side##_input_t<L, R, T, C>>(source);     \
    }
    ASSAY_INPUT(left)
    ASSAY_INPUT(right)
#undef ASSAY_INPUT

    template <class L, class R, class T, class C = int>
    METAL_FUNC auto get_destination_cooperative_tensor() const {
        return cooperative_tensor_destination_t<L, R, T, C>();
    }
    template <class L, class R, class T, class C = int>
    METAL_FUNC auto get_row_reduction_destination_cooperative_tensor() const {
        return assay_lines<true, T, C>();
    }
    template <class L, class R, class T, class C = int>
    METAL_FUNC auto get_column_reduction_destination_cooperative_tensor() const {
        return assay_lines<false, T, C>();
    }

    template <class L, class R, class T> METAL_FUNC void run(L &left, R &right, T &target) const {
        static_assert(metal::is_tensor_v<L> || metal::is_cooperative_tensor_v<L>,
                      "the left input of matmul2d is not a tensor");
        static_assert(metal::is_tensor_v<R> || metal::is_cooperative_tensor_v<R>,
                      "the right input of matmul2d is not a tensor");
        if constexpr (metal::is_cooperative_tensor_v<T>) {
            assay::multiply_tensors<matmul2d>(left, right, target);
        } else {
            auto sums = get_destination_cooperative_tensor<L, R, typename T::value_type>();
            if (D.matmul_mode == matmul2d_descriptor::mode::multiply_accumulate)
                sums.load(target);
            assay::multiply_tensors<matmul2d>(left, right, sums);
            sums.store(target);
        }
    }
};

// Each value of the destination becomes that of a row's or a column's elements. identity takes
// part.
#define ASSAY_REDUCE_LINES(name)                                                                   \
    template <class T, class E, class F, class L, class M>                                         \
    METAL_FUNC void name(metal::cooperative_tensor<T, E, L> &source,                               \
                         metal::cooperative_tensor<T, F, M> &target,                               \
                         reduction_operation op = reduction_operation::sum,                        \
                         T identity = reduction_operation_identity<T>::sum_identity) {             \
        assay::reduce_lines(source, target, op, identity);                                         \
    }
ASSAY_REDUCE_LINES(reduce_rows)
ASSAY_REDUCE_LINES(reduce_columns)
#undef ASSAY_REDUCE_LINES

template <class T, class U, class E, class F, class L, class M>
METAL_FUNC bool is_iterator_compatible(const metal::cooperative_tensor<T, E, L> &,
                                       const metal::cooperative_tensor<U, F, M> &) {
    return __is_base_of(L, M) || __is_same(L, M);
}

} // namespace tensor_ops
} // namespace mpp
