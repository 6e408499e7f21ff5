/* strict: MSL text to C++ for OpenCL, for a compiler that only checks it.
 *
 * Both languages have the same address spaces under other names, so a compiler for the one finds
 * the address-space mistakes of the other. Vectors are the compiler's own there, and it lacks two
 * things that MSL has: constructors, float4(a, b), and casts between vector types, (half4)x.
 *
 * (half4)x becomes assay_to<half4>() ->* x. That operator can be overloaded, and its right operand
 * is exactly the operand of a cast, so no expression has to be parsed. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* float4, metal::uchar2 without its namespace; not packed_float3, which is a class. */
static bool is_vector(const tokens *t, at i) {
    if (!token_is_word(t, i))
        return false;
    const uint32_t stem = t->list[i].bytes - 1;
    const char *p = token_text(t, i);
    return p[stem] >= '2' && p[stem] <= '4' &&
           word_is_one_of(p, stem, "bool char uchar short ushort int uint long ulong half float");
}

static void rewrite_spaces(edits *d) {
    static const struct {
        const char *msl, *opencl;
    } words[] = {{"device", "__global"},
                 {"threadgroup", "__local"},
                 {"thread", "__private"},
                 {"global", "global_"},
                 {"local", "local_"},
                 {"generic", "generic_"},
                 {"pipe", "pipe_"},
                 {"read_only", "read_only_"},
                 {"write_only", "write_only_"},
                 {"read_write", "read_write_"},
                 {"coherent", ""}};
    const tokens *t = &d->unit->tokens;
    edits_drop_attributes(d);
    for (at i = 0; i < t->count; i++) {
        if (token_is_one_of(t, i, "_Pragma coherent") && token_is(t, i + 1, "(")) {
            edits_drop(d, i, t->list[i + 1].pair + 1);
            i = t->list[i + 1].pair;
            continue;
        }
        for (size_t n = 0; n < sizeof words / sizeof *words && !d->edit[i]; n++)
            if (token_is(t, i, words[n].msl))
                d->edit[i] = words[n].opencl;
        /* constant means const, but a constructor cannot be const. */
        if (token_is(t, i, "constant") && !d->edit[i])
            d->edit[i] = token_is(t, token_before(i), ")") ? "__constant" : "__constant const";
    }
}

/* `kernel` or [[kernel]] becomes __kernel; OpenCL has no templates of kernels. */
static void rewrite_kernels(edits *d) {
    const msl_unit *u = d->unit;
    const tokens *t = &u->tokens;
    for (size_t n = 0; n < u->kernel_count; n++) {
        const kernel *k = &u->kernels[n];
        if (k->problem) {
            edits_drop(d, k->where.begin, k->where.end);
            continue;
        }
        const char *mark = k->template_open == NOT_FOUND ? "__kernel" : "";
        edits_mark_kernel(d, k, mark);
        for (at i = k->where.begin; i < k->where.open; i++)
            if (token_is_one_of(t, i, "static inline"))
                d->edit[i] = "";
    }
}

/* Their values come after the compiler: an array cannot have such a size. */
static void rewrite_function_constants(edits *d) {
    for (size_t n = 0; n < d->unit->constant_count; n++) {
        const function_constant *c = &d->unit->constants[n];
        edits_replace(d, c->attribute, text_format("= assay_given<%s>()", c->constant.type));
    }
    const tokens *t = &d->unit->tokens;
    for (at i = 0; i + 1 < t->count; i++)
        if (token_is(t, i, "is_function_constant_defined") && token_is(t, i + 1, "("))
            d->edit[i] = "assay_is_defined";
}

/* `float4 (&x)[2]` and `float4 (*p)(int)` declare, float4(*p) constructs. */
static bool is_declarator(const tokens *t, at open) {
    at close = t->list[open].pair;
    return token_is_one_of(t, open + 1, "* &") && token_is_one_of(t, close + 1, "[ (");
}

/* `( float4 )` at i, before the operand of the cast. */
static bool is_cast(const tokens *t, at i) {
    at type = token_is(t, i + 1, "const") ? i + 2 : i + 1, before = token_before(i);
    if (token_is(t, type + 1, "::"))
        type += 2;
    if (!token_is(t, i, "(") || t->list[i].pair != type + 1 || !is_vector(t, type))
        return false;
    bool follows = token_is_word(t, before) ? token_is_one_of(t, before, "return case else do")
                                            : !token_is_one_of(t, before, "] >");
    at next = type + 2;
    return follows &&
           (token_is_word(t, next) || (next < t->count && t->list[next].kind == TOKEN_NUMBER) ||
            token_is_one_of(t, next, "( - + ~ ! * &"));
}

static void rewrite_vectors(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (at i = 0; i + 2 < t->count; i++) {
        if (d->edit[i])
            continue;
        if (is_cast(t, i)) {
            at close = t->list[i].pair;
            d->edit[i] = "assay_to<";
            d->edit[close] = ">()->*";
            i = close;
        } else if (is_vector(t, i) && token_is(t, i + 1, "(") && !is_declarator(t, i + 1) &&
                   !token_is(t, token_before(i), "operator")) {
            edits_replace(d, i, text_format("assay_make<%.*s>", TOKEN_SPELL(t, i)));
            if (token_is(t, token_before(i), "::") && i >= 2)
                edits_drop(d, i - 2, i);
        } else if (token_is(t, i, "static_cast") && token_is(t, i + 1, "<") &&
                   is_vector(t, i + 2) && token_is(t, i + 3, ">")) {
            d->edit[i] = "assay_make";
        }
    }
}

/* 0.5bf: bfloat is a class there. */
static void rewrite_bfloats(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (at i = 0; i < t->count; i++) {
        uint32_t digits = d->edit[i] ? 0 : token_measure_float(t, i);
        if (digits > 0 && t->list[i].bytes == digits + 2)
            edits_replace(d, i, text_format("bfloat(%.*sf)", (int)digits, token_text(t, i)));
    }
}

/* The compiler deduces template arguments of variables, not of temporaries: tensor(p, e) is a function
 * there. */
static void rewrite_tensors(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (at i = 1; i + 1 < t->count; i++)
        if (token_is(t, i, "tensor") && token_is(t, i + 1, "(") && !token_is_word(t, i - 1))
            d->edit[i] = "assay_tensor";
}

char *msl_rewrite_strict(const msl_unit *u) {
    edits d = edits_new(u);
    for (size_t i = 0; i < u->dropped_count; i++)
        edits_drop(&d, u->dropped[i].begin, u->dropped[i].end);
    rewrite_spaces(&d);
    rewrite_kernels(&d);
    rewrite_function_constants(&d);
    rewrite_vectors(&d);
    rewrite_bfloats(&d);
    if (msl_text_has_tensors(u->source))
        rewrite_tensors(&d);
    text out = {0};
    edits_print(&d, &out);
    edits_free(&d);
    return text_take(&out);
}
