// checked: what the compiler's instrumentation calls in a kernel compiled for checked mode.
//
// -fsanitize=thread makes clang call __tsan_read4(address) and friends before every access to
// memory, the small undefined-behaviour checks call __ubsan_handle_..., and no sanitizer runtime is
// linked: these functions are it. They are the same for every kernel, so they are compiled once
// (ASSAY_HOOKS) and linked to each. The obvious loads are let through here; the rest goes to checked.c.
#pragma once

#include "hooks.h"
#include "meet.h"

#define ASSAY_HOOK                                                                                 \
    extern "C" __attribute__((visibility("hidden"), no_sanitize("thread", "undefined"), used))
#define ASSAY_CALLER __builtin_return_address(0)

namespace assay {

#define ASSAY_UNSEEN __attribute__((no_sanitize("thread", "undefined")))

ASSAY_UNSEEN ASSAY_INLINE soft_u64 offset_in_stacks(const soft_worker *w, const void *at) {
    return reinterpret_cast<soft_u64>(at) - reinterpret_cast<soft_u64>(w) - SOFT_STACKS_AT;
}

ASSAY_UNSEEN ASSAY_INLINE bool is_on_stack(const soft_worker *w, const void *at) {
    return offset_in_stacks(w, at) < SOFT_REGION_BYTES - SOFT_STACKS_AT;
}

ASSAY_UNSEEN ASSAY_INLINE soft_u64 find_fiber(const soft_worker *w) {
    return offset_in_stacks(w, __builtin_frame_address(0)) / SOFT_STACK_BYTES;
}

// Among the arrays of the running thread?
ASSAY_UNSEEN ASSAY_INLINE bool is_in_room(const soft_worker *w, const void *at, soft_u64 bytes) {
    const soft_checks *c = w->checks;
    if (reinterpret_cast<soft_u64>(at) - c->rooms >= SOFT_ROOMS_BYTES)
        return false;
    const soft_u64 fiber = find_fiber(w);
    const soft_u64 inside = reinterpret_cast<soft_u64>(at) - c->rooms - fiber * SOFT_ROOM_BYTES;
    return inside < c->room_top[fiber] && bytes <= c->room_top[fiber] - inside;
}

ASSAY_UNSEEN ASSAY_INLINE bool is_private(const soft_worker *w, const void *at, soft_u64 bytes) {
    return is_on_stack(w, at) || is_in_room(w, at, bytes);
}

// The marks of private memory (SOFT_MARK_*): what is known against its bytes.
ASSAY_UNSEEN ASSAY_INLINE unsigned char *marks(const soft_worker *w, const void *at) {
    return is_on_stack(w, at)
               ? w->checks->marks + offset_in_stacks(w, at)
               : static_cast<unsigned char *>(const_cast<void *>(at)) + SOFT_ROOMS_BYTES;
}

// Is anything known against up to 16 bytes?
ASSAY_UNSEEN ASSAY_INLINE bool is_marked(const soft_worker *w, const void *at, soft_u64 bytes) {
    soft_u64 word[2] = {0, 0};
    __builtin_memcpy(word, marks(w, at), bytes);
    return (word[0] | word[1]) != 0;
}

ASSAY_UNSEEN ASSAY_INLINE bool has_mark(const soft_worker *w, const void *at, soft_u64 bytes,
                                        unsigned char mark) {
    const unsigned char *m = marks(w, at);
    for (soft_u64 i = 0; i < bytes; i++)
        if (m[i] == mark || (mark == SOFT_MARK_EDGE && m[i] > mark))
            return true;
    return false;
}

// A load that is obviously right: from memory that no kernel writes and that is fully initialised.
ASSAY_UNSEEN ASSAY_INLINE bool is_plain(const soft_checks *c, const void *at, soft_u64 bytes) {
    const soft_u64 a = reinterpret_cast<soft_u64>(at);
    const soft_u64 small = a - c->inline_begin;
    const soft_region *r = small < SOFT_INLINE_BYTES
                               ? c->inline_region[small / 16]
                               : c->page[a >> SOFT_PAGE_SHIFT & (SOFT_PAGES - 1)];
    return r && r->plain && a - r->begin < r->bytes && bytes <= r->bytes - (a - r->begin);
}

ASSAY_UNSEEN ASSAY_INLINE void touch(void *at, soft_u64 bytes, soft_u32 how, const void *pc) {
    soft_worker *w = soft_here();
    soft_checks *c = w->checks;
    if (__builtin_expect(!c->pending, 1)) {
        if (is_on_stack(w, at)) {
            if (!c->unset || !is_marked(w, at, bytes))
                return;
        } else if (how == SOFT_LOAD && is_plain(c, at, bytes)) {
            return;
        } else if (is_in_room(w, at, bytes) && !is_marked(w, at, bytes)) {
            return;
        }
    }
    c->access(w, at, bytes, how, pc);
}

ASSAY_UNSEEN ASSAY_INLINE void mishap(soft_u32 what, soft_u64 value, const void *pc,
                                      const char *type = nullptr) {
    soft_worker *w = soft_here();
    w->checks->mishap(w, what, value, type, pc);
}

// An object is copied whole: through a pointer that was cast to its type and is not aligned for it?
ASSAY_UNSEEN ASSAY_INLINE void check_copied(const soft_worker *w, const void *at, soft_u64 bytes,
                                            const void *pc) {
    const soft_miscast *m = &w->checks->miscast[find_fiber(w)];
    const soft_u64 a = reinterpret_cast<soft_u64>(at), away = a < m->at ? m->at - a : a - m->at;
    if (m->bytes == bytes && bytes && away % bytes == 0 && a % m->align)
        mishap(SOFT_MISALIGNED, a, pc);
}

// `(device T *)x` and reinterpret_cast in a kernel. A function's result: what the compiler knows of
// x would be taken for the alignment that T needs.
template <class T, class = void> struct layout_of {
    static constexpr soft_u32 bytes = 0, align = 1;
};
template <class T> struct layout_of<T, decltype(static_cast<void>(sizeof(T)))> {
    static constexpr soft_u32 bytes = sizeof(T), align = alignof(T);
};
template <class P> struct pointer_to;
template <class T> struct pointer_to<T *> {
    T *at;
    template <class A> ASSAY_UNSEEN ASSAY_INLINE pointer_to(A &&a) : at((T *)a) {
        using layout = layout_of<T>;
        if (reinterpret_cast<soft_u64>(at) % layout::align) {
            const soft_worker *w = soft_here();
            w->checks->miscast[find_fiber(w)] = {reinterpret_cast<soft_u64>(at), layout::bytes,
                                                 layout::align};
        }
    }
    ASSAY_UNSEEN ASSAY_INLINE operator T *() const { return at; }
};

// A copy of a whole object. Padding is copied too: a copy inside of private memory takes the marks
// along, and one out of it is asked only about bytes that are known to be values.
ASSAY_UNSEEN ASSAY_INLINE void copy(void *to, const void *from, soft_u64 bytes, const void *pc) {
    soft_worker *w = soft_here();
    unsigned char *d = static_cast<unsigned char *>(to);
    const unsigned char *s = static_cast<const unsigned char *>(from);
    const bool is_used = w->checks->unset != 0;
    const bool into =
        is_private(w, to, bytes) && !(is_used && has_mark(w, to, bytes, SOFT_MARK_EDGE));
    const bool out_of =
        is_private(w, from, bytes) && !(is_used && has_mark(w, from, bytes, SOFT_MARK_EDGE));
    check_copied(w, to, bytes, pc);
    check_copied(w, from, bytes, pc);
    if (into && is_used) {
        if (out_of)
            __builtin_memmove(marks(w, to), marks(w, from), bytes);
        else
            __builtin_memset(marks(w, to), 0, bytes);
    }
    if (into && (out_of || (!w->checks->pending && is_plain(w->checks, from, bytes)))) {
        __builtin_memmove(to, from, bytes);
        return;
    }
    for (soft_u64 i = 0; i < bytes;) {
        const soft_u64 both = reinterpret_cast<soft_u64>(d + i) | reinterpret_cast<soft_u64>(s + i);
        const soft_u64 step = !(both & 3) && bytes - i >= 4 ? 4 : 1;
        unsigned char word[4];
        if (!out_of || (is_used && has_mark(w, s + i, step, SOFT_MARK_UNSET)))
            touch(const_cast<unsigned char *>(s + i), step, SOFT_LOAD, pc);
        __builtin_memcpy(word, s + i, step);
        if (!into)
            touch(d + i, step, SOFT_STORE, pc);
        __builtin_memcpy(d + i, word, step);
        i += step;
    }
}

ASSAY_UNSEEN ASSAY_INLINE void fill(void *to, int value, soft_u64 bytes, const void *pc) {
    soft_worker *w = soft_here();
    if (is_private(w, to, bytes) &&
        !(w->checks->unset && has_mark(w, to, bytes, SOFT_MARK_EDGE))) {
        if (w->checks->unset)
            __builtin_memset(marks(w, to), 0, bytes);
        __builtin_memset(to, value, bytes);
        return;
    }
    unsigned char *d = static_cast<unsigned char *>(to);
    for (soft_u64 i = 0; i < bytes; i++) {
        touch(d + i, 1, SOFT_STORE, pc);
        d[i] = static_cast<unsigned char>(value);
    }
}

constexpr soft_u32 describe(atomic_use use) {
    return SOFT_ATOMIC | (use == atomic_use::load ? 0u : SOFT_STORE) |
           (use == atomic_use::update ? SOFT_UPDATE : 0u);
}

// Exported by a kernel that has atomic instructions: it may depend on how its threads take turns.
extern "C" __attribute__((visibility("default"))) inline const char assay_atomics = 1;

// Atomic instructions are not instrumented: they come here by themselves.
__attribute__((noinline, no_sanitize("thread", "undefined"))) static void
touch_atomic(const volatile void *at, soft_u64 bytes, soft_u32 how, const void *pc) {
    if (reinterpret_cast<soft_u64>(at) % bytes)
        mishap(SOFT_MISALIGNED, reinterpret_cast<soft_u64>(at), pc, "atomic");
    soft_checks *c = soft_here()->checks;
    if (c->spins)
        mishap(SOFT_SPIN, reinterpret_cast<soft_u64>(at), pc);
    c->spins = 0;
    __asm__ volatile("" : : "r"(&assay_atomics));
    if (!c->pending) // else what is pending is about this access
        c->turn(soft_here(), pc);
    touch(const_cast<void *>(at), bytes, how, pc);
}
} // namespace assay

// Does the kernel pack structs? A vector in one has not the alignment of its type.
#if defined(ASSAY_HOOKS)
extern "C" __attribute__((visibility("hidden"))) const bool assay_packs;
#elif defined(ASSAY_PACKS)
extern "C" __attribute__((visibility("hidden"))) extern const bool assay_packs = true;
#else
extern "C" __attribute__((visibility("hidden"))) extern const bool assay_packs = false;
#endif

#define ASSAY_SPIN soft_here()->checks->spins = 1
#define ASSAY_CAST(...) (assay::pointer_to<__VA_ARGS__>)
#define ASSAY_CHECK_ATOMIC(at, bytes, use)                                                         \
    do {                                                                                           \
        const char *site;                                                                          \
        SOFT_SITE(site);                                                                           \
        assay::touch_atomic(at, bytes, assay::describe(use), site + 1);                            \
    } while (0)
#define ASSAY_CHECK_SYNC(flags, order, scope)                                                      \
    assay::check_sync(static_cast<soft_u32>(flags), order, scope)

#ifdef ASSAY_HOOKS
// The compiler calls these where the types say that the address is a multiple of n (of 8 where n is
// 16), and the unaligned ones elsewhere.
#define ASSAY_CHECK_ALIGNMENT(p, n)                                                                \
    if (reinterpret_cast<soft_u64>(p) % (n < 8 ? n : 8) && !assay_packs)                           \
    assay::mishap(SOFT_MISALIGNED, reinterpret_cast<soft_u64>(p), ASSAY_CALLER)
#define ASSAY_ACCESS(n)                                                                            \
    ASSAY_HOOK void __tsan_read##n(void *p) {                                                      \
        ASSAY_CHECK_ALIGNMENT(p, n);                                                               \
        assay::touch(p, n, SOFT_LOAD, ASSAY_CALLER);                                               \
    }                                                                                              \
    ASSAY_HOOK void __tsan_write##n(void *p) {                                                     \
        ASSAY_CHECK_ALIGNMENT(p, n);                                                               \
        assay::touch(p, n, SOFT_STORE, ASSAY_CALLER);                                              \
    }                                                                                              \
    ASSAY_HOOK void __tsan_unaligned_read##n(void *p) {                                            \
        assay::check_copied(soft_here(), p, n, ASSAY_CALLER);                                      \
        assay::touch(p, n, SOFT_LOAD, ASSAY_CALLER);                                               \
    }                                                                                              \
    ASSAY_HOOK void __tsan_unaligned_write##n(void *p) {                                           \
        assay::check_copied(soft_here(), p, n, ASSAY_CALLER);                                      \
        assay::touch(p, n, SOFT_STORE, ASSAY_CALLER);                                              \
    }
ASSAY_ACCESS(1)
ASSAY_ACCESS(2)
ASSAY_ACCESS(4)
ASSAY_ACCESS(8)
ASSAY_ACCESS(16)
#undef ASSAY_ACCESS
#undef ASSAY_CHECK_ALIGNMENT

ASSAY_HOOK void __tsan_init(void) {}

// soft/instrument.c makes kernels call these for their variables.
ASSAY_HOOK void *__assay_reserve(soft_u64 bytes, const char *what) {
    soft_worker *w = soft_here();
    return w->checks->reserve(w, bytes, what, ASSAY_CALLER);
}
ASSAY_HOOK void __assay_unset(void *at, soft_u64 bytes, const unsigned char *values,
                              soft_u32 period, const char *what) {
    soft_worker *w = soft_here();
    w->checks->unset_variable(w, at, bytes, values, period, what);
}
ASSAY_HOOK void __assay_store(void *at, soft_u64 bytes) {
    const soft_u64 step = bytes <= 8 && !(bytes & (bytes - 1)) ? bytes : 1;
    for (soft_u64 i = 0; i < bytes; i += step)
        assay::touch(static_cast<char *>(at) + i, soft_u32(step), SOFT_STORE, ASSAY_CALLER);
}
ASSAY_HOOK void __assay_bits(void *at, soft_u64 bytes) {
    assay::touch(at, bytes, SOFT_STORE | SOFT_BITS, ASSAY_CALLER);
}
// A struct goes from one function to another in registers: its marks go this way, and the load that
// follows finds none. A parameter that is given none has a value.
ASSAY_HOOK void __assay_give(void *from, soft_u64 bytes, soft_u32 slot, soft_u64) {
    soft_worker *w = soft_here();
    if (bytes > SOFT_SLOT_BYTES || !assay::is_private(w, from, bytes))
        return;
    __builtin_memcpy(w->checks->given[slot], assay::marks(w, from), bytes);
    __builtin_memset(assay::marks(w, from), 0, bytes);
}
ASSAY_HOOK void __assay_take(void *to, soft_u64 bytes, soft_u32 slot, soft_u64 offset) {
    soft_worker *w = soft_here();
    unsigned char *given = w->checks->given[slot] + offset;
    if (bytes + offset > SOFT_SLOT_BYTES)
        return;
    if (assay::is_private(w, to, bytes))
        __builtin_memcpy(assay::marks(w, to), given, bytes);
    __builtin_memset(given, 0, bytes);
}
ASSAY_HOOK void __assay_name(void *at, const char *what) {
    soft_worker *w = soft_here();
    w->checks->unset_variable(w, at, 0, nullptr, 1, what);
}
// A pointer to an array that is a member of a struct, handed to a function: where it begins and ends.
ASSAY_HOOK void __assay_bound(soft_u32 slot, soft_u64 low, soft_u64 high) {
    soft_u64 *bound = soft_here()->checks->bounds[slot];
    bound[0] = low;
    bound[1] = high;
}
ASSAY_HOOK soft_u64 __assay_low(soft_u32 slot) {
    return soft_here()->checks->bounds[slot][0];
}
ASSAY_HOOK soft_u64 __assay_high(soft_u32 slot) {
    soft_u64 *bound = soft_here()->checks->bounds[slot], high = bound[1];
    bound[1] = 0;
    return high;
}
ASSAY_HOOK void __assay_within(void *at, soft_u64 bytes, soft_u64 low, soft_u64 high) {
    const soft_u64 a = reinterpret_cast<soft_u64>(at);
    if (high && (a < low || a + bytes > high))
        assay::mishap(SOFT_INDEX, soft_u64(static_cast<long long>(a - low) / (long long)bytes),
                      ASSAY_CALLER, "that is a member, into the next one");
}
// A variable that old pointers may point to.
ASSAY_HOOK void __assay_begin(void *at, soft_u64 bytes) {
    __builtin_memset(assay::marks(soft_here(), at), 0, bytes);
}
ASSAY_HOOK void __assay_leave(void *at, soft_u64 bytes) {
    soft_worker *w = soft_here();
    __builtin_memset(assay::marks(w, at), SOFT_MARK_ENDED, bytes);
    w->checks->unset = w->checks->ended = 1;
}
ASSAY_HOOK void __assay_end(void *at, soft_u64 bytes) {
    soft_worker *w = soft_here();
    w->checks->end(w, at, bytes);
}

ASSAY_HOOK void *__tsan_memcpy(void *to, const void *from, soft_u64 bytes) {
    assay::copy(to, from, bytes, ASSAY_CALLER);
    return to;
}
ASSAY_HOOK void *__tsan_memmove(void *to, const void *from, soft_u64 bytes) {
    assay::copy(to, from, bytes, ASSAY_CALLER);
    return to;
}
ASSAY_HOOK void *__tsan_memset(void *to, int value, soft_u64 bytes) {
    assay::fill(to, value, bytes, ASSAY_CALLER);
    return to;
}
#endif

namespace assay {
// What the functions of the shim ask themselves: text names the operation.
#define ASSAY_CHECK(is_wrong, what, value, text)                                                   \
    if (!__builtin_is_constant_evaluated() && (is_wrong)) {                                        \
        const char *site;                                                                          \
        SOFT_SITE(site);                                                                           \
        assay::mishap(what, static_cast<soft_u64>(value), site + 1, text);                         \
    }
// v[i] of a vector: no array to the compiler, so it is asked here.
#define ASSAY_CHECK_COMPONENT(i, n)                                                                \
    ASSAY_CHECK(static_cast<unsigned>(i) >= n, SOFT_INDEX, i, "'vector of " #n "'")

ASSAY_UNSEEN ASSAY_INLINE void check_sync(soft_u32 flags, int order, soft_u32 scope) {
    soft_worker *w = soft_here();
    const soft_u32 both = SOFT_ACQUIRES | SOFT_RELEASES;
    w->checks->sync(w, flags,
                    order == __ATOMIC_RELAXED                               ? 0
                    : order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME ? SOFT_ACQUIRES
                    : order == __ATOMIC_RELEASE                             ? SOFT_RELEASES
                                                                            : both,
                    scope);
}

// A return statement of the kernel.
ASSAY_UNSEEN ASSAY_INLINE void leave() {
    const char *site;
    SOFT_SITE(site);
    soft_worker *w = soft_here();
    w->checks->leave(w, site + 1);
}
#define ASSAY_LEAVE assay::leave()

// What the compiler says about a value: where, and of which types.
struct type_description {
    unsigned short kind, info;
    char name[1];
};
struct description {
    const char *file;
    soft_u32 line, column;
    const type_description *type[2]; // of an index: of the array and the index; of a shift: left and right
};

// An integer as the compiler hands it over: narrow ones are padded with zeros.
ASSAY_UNSEEN ASSAY_INLINE soft_u64 extend(const type_description *type, soft_u64 value) {
    const soft_u32 bits = 1u << (type->info >> 1);
    const bool is_signed = type->info & 1;
    if (type->kind != 0 || !is_signed || bits >= 64)
        return value;
    return static_cast<soft_u64>(static_cast<long long>(value << (64 - bits)) >> (64 - bits));
}
} // namespace assay

#ifdef ASSAY_HOOKS
ASSAY_HOOK void __ubsan_handle_type_mismatch_v1(void *, void *pointer) {
    if (!assay_packs)
        assay::mishap(SOFT_MISALIGNED, reinterpret_cast<soft_u64>(pointer), ASSAY_CALLER);
}
ASSAY_HOOK void __ubsan_handle_divrem_overflow(void *data, soft_u64, soft_u64 by) {
    const assay::description *d = static_cast<assay::description *>(data);
    if (assay::extend(d->type[0], by) == 0)
        assay::mishap(SOFT_DIVIDE, 0, ASSAY_CALLER);
    else
        assay::mishap(SOFT_OVERFLOW, 1, ASSAY_CALLER, "division by -1");
}
ASSAY_HOOK void __ubsan_handle_shift_out_of_bounds(void *data, soft_u64, soft_u64 by) {
    const assay::description *d = static_cast<assay::description *>(data);
    assay::mishap(SOFT_SHIFT, assay::extend(d->type[1], by), ASSAY_CALLER);
}
ASSAY_HOOK void __ubsan_handle_out_of_bounds(void *data, soft_u64 index) {
    const assay::description *d = static_cast<assay::description *>(data);
    assay::mishap(SOFT_INDEX, assay::extend(d->type[1], index), ASSAY_CALLER, d->type[0]->name);
}
ASSAY_HOOK void __assay_index(soft_u64 index, soft_u64 count) {
    if (index >= count)
        assay::mishap(SOFT_INDEX, index, ASSAY_CALLER, "that is a member, into the next one");
}
#define ASSAY_OVERFLOW(name, text, ...)                                                            \
    ASSAY_HOOK void __ubsan_handle_##name##_overflow(void *, __VA_ARGS__) {                        \
        assay::mishap(SOFT_OVERFLOW, 0, ASSAY_CALLER, text);                                       \
    }
ASSAY_OVERFLOW(add, "addition", soft_u64, soft_u64)
ASSAY_OVERFLOW(sub, "subtraction", soft_u64, soft_u64)
ASSAY_OVERFLOW(mul, "multiplication", soft_u64, soft_u64)
ASSAY_OVERFLOW(negate, "negation", soft_u64)
#undef ASSAY_OVERFLOW
ASSAY_HOOK void __ubsan_handle_missing_return(void *) {
    assay::mishap(SOFT_NO_RETURN, 0, ASSAY_CALLER);
}
ASSAY_HOOK void __ubsan_handle_float_cast_overflow(void *, soft_u64 bits) {
    assay::mishap(SOFT_CONVERT, bits, ASSAY_CALLER);
}
#if defined(__x86_64__)
// What traced kernels convert halves with (soft/compile.c). The instructions convert four at a time, and
// leave exceptions of what happens to stand in the other three, which are 0 here.
ASSAY_HOOK __attribute__((target("f16c"))) _Float16 __truncsfhf2(float x) {
    typedef float four __attribute__((vector_size(16)));
    const auto halves = __builtin_ia32_vcvtps2ph(four{x, 0, 0, 0}, 4);
    return __builtin_bit_cast(_Float16, static_cast<short>(halves[0]));
}
ASSAY_HOOK __attribute__((target("f16c"))) float __extendhfsf2(_Float16 x) {
    typedef short eight __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps(eight{__builtin_bit_cast(short, x), 0, 0, 0, 0, 0, 0, 0})[0];
}
#endif
#endif

// The end of a statement, in a kernel that is traced.
namespace assay {
__attribute__((noinline)) ASSAY_UNSEEN static void step() {
    soft_worker *w = soft_here();
    if (w->checks->trace)
        w->checks->access(w, nullptr, 0, SOFT_LOAD, ASSAY_CALLER);
}
struct last_step {
    __attribute__((always_inline, nodebug)) ~last_step() { step(); }
};
} // namespace assay
#define ASSAY_STEP assay::step()
#define ASSAY_LAST_STEP assay::last_step assay_last_step

#undef ASSAY_HOOK
#undef ASSAY_UNSEEN
#undef ASSAY_CALLER
