// here: where a thread is in its launch, and what the launch has bound. A threadgroup is a block.
#pragma once

#include "../../cuda/abi.h"

namespace assay {

// The memory of threadgroup variables: one for each declaration of the kernel.
template <class T, uint slot> __attribute__((shared)) T threadgroup_storage;

template <class T, uint slot> METAL_FUNC T &threadgroup_variable(const char *) {
    static_assert(sizeof(T) <= MSL_THREADGROUP_BYTES,
                  "a threadgroup has 32768 bytes of threadgroup memory");
    return threadgroup_storage<T, slot>;
}

// Memory whose size the launch gives, all of it one after the other.
extern __attribute__((shared)) __attribute__((aligned(128))) unsigned char dynamic_storage[];

} // namespace assay

#include "cuda.h"

namespace assay {

// What a parameter that is switched off refers to: readable, because compilers load early.
__attribute__((device, aligned(64))) static unsigned char no_memory[4096];

struct here {
    const cuda_arguments &given;
    three size, at, group; /* of the threadgroup; of the thread and of the threadgroup */
    uint index;            /* of the thread in its threadgroup */

    METAL_FUNC explicit here(const cuda_arguments &a) : given(a) {
        at = three{__nvvm_read_ptx_sreg_tid_x(), __nvvm_read_ptx_sreg_tid_y(),
                   __nvvm_read_ptx_sreg_tid_z()};
        group = three{__nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_ctaid_y(),
                      __nvvm_read_ptx_sreg_ctaid_z()};
        size = nominal_size();
        index = (at.z * size.y + at.y) * size.x + at.x;
        if (given.flags & CUDA_LINEAR) {
            const three n = groups();
            group = three{group.x % n.x, group.x / n.x % n.y, group.x / n.x / n.y};
        }
        if (given.flags & CUDA_EDGES)
            shrink();
    }

    // False for a thread that a smaller group at the edge of the grid does not have.
    METAL_FUNC bool is_present() const {
        return !(given.flags & CUDA_EDGES) || index < size.product();
    }

    METAL_FUNC uint thread() const { return index; }
    METAL_FUNC three position() const { return at; }
    METAL_FUNC three grid_position() const {
        const three n = nominal_size();
        return three{group.x * n.x + at.x, group.y * n.y + at.y, group.z * n.z + at.z};
    }
    METAL_FUNC three group_position() const { return group; }
    METAL_FUNC three group_size() const { return size; }
    METAL_FUNC three nominal_size() const {
        return three{__nvvm_read_ptx_sreg_ntid_x(), __nvvm_read_ptx_sreg_ntid_y(),
                     __nvvm_read_ptx_sreg_ntid_z()};
    }
    METAL_FUNC three groups() const { return read_three(given.grid_groups); }
    METAL_FUNC three grid_size() const { return read_three(given.grid_threads); }

    template <class A> METAL_FUNC A nothing() const { return refer<A>(no_memory); }

    // A small constant is passed as a copy: it may be a value in its slot.
    template <class A, int Index> METAL_FUNC decltype(auto) buffer() const {
        using R = metal::remove_reference_t<A>;
        if constexpr (!metal::is_pointer_v<A> && metal::is_const_v<R> && is_value<R>) {
            using V = metal::remove_cv_t<R>;
            void *slot = given.slot[Index];
            return given.values >> Index & 1 ? to_value<V>(slot) : V(*static_cast<R *>(global(slot)));
        } else {
            return refer<A>(global(given.slot[Index]));
        }
    }

    template <class A, int Index> METAL_FUNC A dynamic() const {
        return refer<A>(dynamic_storage + given.dynamic_at[Index]);
    }

  private:
    template <class V> static constexpr bool is_value =
        sizeof(V) == 1 || sizeof(V) == 2 || sizeof(V) == 4 || sizeof(V) == 8;
    template <class V> static METAL_FUNC V to_value(void *slot) {
        using bits = metal::conditional_t<
            sizeof(V) == 1, uchar,
            metal::conditional_t<sizeof(V) == 2, ushort,
                                 metal::conditional_t<sizeof(V) == 4, uint, ulong>>>;
        return __builtin_bit_cast(V, static_cast<bits>(reinterpret_cast<ulong>(slot)));
    }

    // Through the space it is in, so that accesses need not find it out.
    static METAL_FUNC void *global(void *p) {
        return (void *)(__attribute__((address_space(1))) void *)p;
    }

    static METAL_FUNC uint least(uint a, uint b) { return a < b ? a : b; }

    // A group at the edge is smaller, and Metal numbers its threads without gaps.
    METAL_FUNC void shrink() {
        const three n = nominal_size(), all = grid_size();
        size = three{least(n.x, all.x - group.x * n.x), least(n.y, all.y - group.y * n.y),
                     least(n.z, all.z - group.z * n.z)};
        if (size.x != n.x || size.y != n.y)
            at = three{index % size.x, index / size.x % size.y, index / (size.x * size.y)};
    }
};

} // namespace assay
