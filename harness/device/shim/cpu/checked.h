// checked: what the compiler's instrumentation calls in a kernel compiled for checked mode.
//
// -fsanitize=thread makes clang call __tsan_read4(address) and friends before every access to
// memory, the small undefined-behaviour checks call __ubsan_handle_..., and no sanitizer runtime is
// linked: these functions are it. The obvious loads are let through here; the rest goes to
// checked.c.
#pragma once

#include "hooks.h"
#include "meet.h"

#define ASSAY_HOOK extern "C" __attribute__((visibility("hidden"), no_sanitize("thread"), used))
#define ASSAY_CALLER __builtin_return_address(0)

namespace assay {

#define ASSAY_UNSEEN __attribute__((no_sanitize("thread")))

ASSAY_UNSEEN ASSAY_INLINE bool is_private(const soft_worker *w, const void *at) {
    const soft_u64 inside = reinterpret_cast<soft_u64>(at) - reinterpret_cast<soft_u64>(w);
    return inside >= SOFT_STACKS_AT && inside < SOFT_REGION_BYTES;
}

// The marks of private memory: one where a variable was given no value.
ASSAY_UNSEEN ASSAY_INLINE unsigned char *marks(const soft_worker *w, const void *at) {
    return w->checks->unset_map +
           (reinterpret_cast<soft_u64>(at) - reinterpret_cast<soft_u64>(w) - SOFT_STACKS_AT);
}

// Is any of it set? A wide load of a struct takes its padding along, which never is.
ASSAY_UNSEEN ASSAY_INLINE bool is_set(const soft_worker *w, const void *at, soft_u64 bytes) {
    const soft_u64 ones = 0x0101010101010101;
    soft_u64 word[2] = {ones, ones};
    __builtin_memcpy(word, marks(w, at), bytes);
    return word[0] != ones || word[1] != ones;
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
        if (is_private(w, at)) {
            if (how == SOFT_STORE && c->unset)
                __builtin_memset(marks(w, at), 0, bytes);
            if (how == SOFT_STORE || !c->unset || is_set(w, at, bytes))
                return;
        } else if (how == SOFT_LOAD && is_plain(c, at, bytes)) {
            return;
        }
    }
    c->access(w, at, bytes, how, pc);
}

// A copy of a whole object. Padding is copied too and has no value: so a copy inside of private
// memory takes the marks along, and one out of it is not asked whether all was set.
ASSAY_UNSEEN ASSAY_INLINE void copy(void *to, const void *from, soft_u64 bytes, const void *pc) {
    soft_worker *w = soft_here();
    unsigned char *d = static_cast<unsigned char *>(to);
    const unsigned char *s = static_cast<const unsigned char *>(from);
    const bool into = is_private(w, to), out_of = is_private(w, from);
    if (into && w->checks->unset) {
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
        if (!out_of)
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
    if (is_private(w, to)) {
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

// A variable that was declared without a value: known as such until its scope ends, unless its
// constructor gave it one. The kernel uses it through a reference whose origin the compiler cannot
// see: accesses to variables that it knows to be private would not be instrumented.
template <class T> class declared {
  public:
    ASSAY_INLINE explicit declared(T &variable) : it(&variable) {
        __asm__ volatile("" : "+r"(it));
        tell(1);
    }
    ASSAY_INLINE ~declared() { tell(0); }
    ASSAY_INLINE T &get() const { return *it; }

  private:
    T *it;

    ASSAY_INLINE void tell(soft_u32 begins) const {
        if constexpr (__is_trivially_constructible(T)) {
            soft_worker *w = soft_here();
            void *at = const_cast<void *>(static_cast<const volatile void *>(it));
            w->checks->declare(w, at, sizeof(T), begins);
        }
    }
};

} // namespace assay

#if !defined(ASSAY_CHECKED_LESS)
#define ASSAY_NAME(variable) assay_##variable
#define ASSAY_BIND(variable)                                                                       \
    assay::declared<decltype(assay_##variable)> assay_life_of_##variable(assay_##variable);        \
    auto &variable = assay_life_of_##variable.get()
#endif

namespace assay {
constexpr soft_u32 describe(atomic_use use) {
    return SOFT_ATOMIC | (use == atomic_use::load ? 0u : SOFT_STORE) |
           (use == atomic_use::update ? SOFT_UPDATE : 0u);
}
// Atomic instructions are not instrumented: they come here by themselves.
__attribute__((noinline, no_sanitize("thread"))) static void
touch_atomic(const volatile void *at, soft_u64 bytes, soft_u32 how, const void *pc) {
    touch(const_cast<void *>(at), bytes, how, pc);
}
} // namespace assay

#define ASSAY_CHECK_ATOMIC(at, bytes, use)                                                         \
    do {                                                                                           \
        const char *site;                                                                          \
        SOFT_SITE(site);                                                                           \
        assay::touch_atomic(at, bytes, assay::describe(use), site);                                \
    } while (0)

#define ASSAY_ACCESS(n)                                                                            \
    ASSAY_HOOK void __tsan_read##n(void *p) {                                                      \
        assay::touch(p, n, SOFT_LOAD, ASSAY_CALLER);                                               \
    }                                                                                              \
    ASSAY_HOOK void __tsan_write##n(void *p) {                                                     \
        assay::touch(p, n, SOFT_STORE, ASSAY_CALLER);                                              \
    }                                                                                              \
    ASSAY_HOOK void __tsan_unaligned_read##n(void *p) {                                            \
        assay::touch(p, n, SOFT_LOAD, ASSAY_CALLER);                                               \
    }                                                                                              \
    ASSAY_HOOK void __tsan_unaligned_write##n(void *p) {                                           \
        assay::touch(p, n, SOFT_STORE, ASSAY_CALLER);                                              \
    }
ASSAY_ACCESS(1)
ASSAY_ACCESS(2)
ASSAY_ACCESS(4)
ASSAY_ACCESS(8)
ASSAY_ACCESS(16)
#undef ASSAY_ACCESS

ASSAY_HOOK void __tsan_init(void) {}

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

namespace assay {
ASSAY_UNSEEN ASSAY_INLINE void mishap(soft_u32 what, soft_u64 value, const void *pc,
                                      const char *type = nullptr) {
    soft_worker *w = soft_here();
    w->checks->mishap(w, what, value, type, pc);
}

// v[i] of a vector: no array to the compiler, so it is asked here.
#define ASSAY_CHECK_COMPONENT(i, n)                                                                \
    if (!__builtin_is_constant_evaluated() && static_cast<unsigned>(i) >= n) {                     \
        const char *site;                                                                          \
        SOFT_SITE(site);                                                                           \
        assay::mishap(SOFT_INDEX, static_cast<soft_u64>(i), site + 1, "'vector of " #n "'");       \
    }

// What the compiler says about an index: where, and of which types.
struct type_description {
    unsigned short kind, info;
    char name[1];
};
struct index_description {
    const char *file;
    soft_u32 line, column;
    const type_description *array, *index;
};
} // namespace assay

ASSAY_HOOK void __ubsan_handle_type_mismatch_v1(void *, void *pointer) {
    assay::mishap(SOFT_MISALIGNED, reinterpret_cast<soft_u64>(pointer), ASSAY_CALLER);
}
ASSAY_HOOK void __ubsan_handle_divrem_overflow(void *, soft_u64, soft_u64) {
    assay::mishap(SOFT_DIVIDE, 0, ASSAY_CALLER);
}
ASSAY_HOOK void __ubsan_handle_shift_out_of_bounds(void *, soft_u64, soft_u64 by) {
    assay::mishap(SOFT_SHIFT, by, ASSAY_CALLER);
}
ASSAY_HOOK void __ubsan_handle_out_of_bounds(void *data, soft_u64 index) {
    const assay::index_description *d = static_cast<assay::index_description *>(data);
    assay::mishap(SOFT_INDEX, index, ASSAY_CALLER, d->array->name);
}
ASSAY_HOOK void __ubsan_handle_float_cast_overflow(void *, soft_u64 bits) {
    assay::mishap(SOFT_CONVERT, bits, ASSAY_CALLER);
}

// The end of a statement, in a kernel that is traced.
namespace assay {
__attribute__((noinline)) ASSAY_UNSEEN static void step() {
    soft_worker *w = soft_here();
    if (w->checks->trace)
        w->checks->access(w, nullptr, 0, SOFT_LOAD, ASSAY_CALLER);
}
} // namespace assay
#define ASSAY_STEP assay::step()

#undef ASSAY_HOOK
#undef ASSAY_UNSEEN
#undef ASSAY_CALLER
