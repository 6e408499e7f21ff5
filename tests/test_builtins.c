/* Every function of MSL whose result is exact, and the operators, with values at the edges of each
 * type, as scalars and as vectors, against models in plain C. ASSAY_DEVICE chooses the device.
 *
 * A kernel per type is generated from the tables. Thread t computes with the t-th combination of three
 * values a, b and c; component k of a vector with the combination k places on; and it stores the bits
 * of component t mod n of each result. o and w are a bit field, the same for all components. */
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

SUITE_EXTERN(builtins_suite);

__extension__ typedef __int128 wide; /* signed and unsigned, and products of what is smaller */
__extension__ typedef unsigned __int128 uwide;

enum { LENGTHS = 4, EDGES = 13, TOTAL = EDGES * EDGES * EDGES };

static const struct {
    const char *name;
    elem type;
} types[] = {{"char", ELEM_I8},  {"uchar", ELEM_U8},    {"short", ELEM_I16}, {"ushort", ELEM_U16},
             {"int", ELEM_I32},  {"uint", ELEM_U32},    {"long", ELEM_I64},  {"ulong", ELEM_U64},
             {"half", ELEM_F16}, {"bfloat", ELEM_BF16}, {"float", ELEM_F32}};
enum { TYPES = sizeof types / sizeof *types };

static bool is_signed(elem type) {
    return type == ELEM_I8 || type == ELEM_I16 || type == ELEM_I32 || type == ELEM_I64;
}
static int count_bits(elem type) {
    return 8 * (int)elem_get_bytes(type);
}

/* Integers --------------------------------------------------------------------------------------- */

typedef struct {
    wide a, b, c, least, most;
    int bits, o, w, n; /* n: components */
    bool is_signed;
} integers;

static uint64_t cut(wide x, int bits) {
    return (uint64_t)x & (~0ull >> (64 - bits));
}
static wide larger(wide x, wide y) {
    return x > y ? x : y;
}
static wide smaller(wide x, wide y) {
    return x < y ? x : y;
}
static wide saturated(const integers *x, wide value) {
    return smaller(larger(value, x->least), x->most);
}
/* Product and sum of 64 bits that are unsigned have 128 of them. */
static wide product_sum(const integers *x, wide c) {
    return x->is_signed ? x->a * x->b + c : (wide)((uwide)x->a * (uwide)x->b + (uwide)c);
}
static wide product_saturated(const integers *x, wide value) {
    return !x->is_signed && (uwide)value > (uwide)x->most ? x->most : saturated(x, value);
}
static wide median(wide x, wide y, wide z) {
    return larger(smaller(x, y), smaller(larger(x, y), z));
}
/* Scalars are promoted, components of vectors are not. */
static int count_of_shift(const integers *x, wide count) {
    const int bits = x->n == 1 && x->bits < 32 ? 32 : x->bits;
    return (int)(cut(count, 64) & 0xff) & (bits - 1);
}
static wide times_2_to(wide x, int count) {
    return (wide)((uwide)x << count);
}

static wide model_reverse(const integers *x) {
    wide y = 0;
    for (int i = 0; i < x->bits; i++)
        y |= (wide)(cut(x->a, x->bits) >> i & 1) << (x->bits - 1 - i);
    return y;
}
static wide model_rotate(const integers *x) {
    const int count = (int)(cut(x->b, x->bits) & (uint64_t)(x->bits - 1));
    const uwide u = cut(x->a, x->bits);
    return (wide)(u << count | u >> (x->bits - count));
}
static wide model_extract(const integers *x) {
    const wide field = x->w ? (wide)(cut(x->a, x->bits) >> x->o) & (((wide)1 << x->w) - 1) : 0;
    return x->is_signed && x->w && field >> (x->w - 1) ? field - ((wide)1 << x->w) : field;
}
static wide model_insert(const integers *x) {
    const wide mask = times_2_to(((wide)1 << x->w) - 1, x->o);
    return (x->a & ~mask) | (times_2_to(x->b, x->o) & mask);
}

/* What is computed, its model, and for which types: WORDS have 32 bits. */
enum { ALL, UNSIGNED, WORDS };
/* clang-format off */
#define INTEGERS(X)                                                                                \
    X("abs(a)", a < 0 ? -a : a, ALL)                                                               \
    X("absdiff(a, b)", a > b ? a - b : b - a, ALL)                                                 \
    X("addsat(a, b)", saturated(x, a + b), ALL)                                                    \
    X("subsat(a, b)", saturated(x, a - b), ALL)                                                    \
    X("clamp(a, min(b, c), max(b, c))", smaller(larger(a, smaller(b, c)), larger(b, c)), ALL)      \
    X("clz(a)", cut(a, x->bits) ? __builtin_clzll(cut(a, x->bits)) - 64 + x->bits : x->bits, ALL)  \
    X("ctz(a)", cut(a, x->bits) ? __builtin_ctzll(cut(a, x->bits)) : x->bits, ALL)                 \
    X("popcount(a)", __builtin_popcountll(cut(a, x->bits)), ALL)                                   \
    X("hadd(a, b)", (a + b) >> 1, ALL)                                                             \
    X("rhadd(a, b)", (a + b + 1) >> 1, ALL)                                                        \
    X("max(a, b)", larger(a, b), ALL)                                                              \
    X("min(a, b)", smaller(a, b), ALL)                                                             \
    X("max3(a, b, c)", larger(a, larger(b, c)), ALL)                                               \
    X("min3(a, b, c)", smaller(a, smaller(b, c)), ALL)                                             \
    X("median3(a, b, c)", median(a, b, c), ALL)                                                    \
    X("mulhi(a, b)", (wide)((uwide)product_sum(x, 0) >> x->bits), ALL)                             \
    X("madhi(a, b, c)", (wide)((uwide)product_sum(x, 0) >> x->bits) + c, ALL)                      \
    X("madsat(a, b, c)", product_saturated(x, product_sum(x, c)), ALL)                             \
    X("reverse_bits(a)", model_reverse(x), ALL)                                                    \
    X("rotate(a, b)", model_rotate(x), ALL)                                                        \
    X("extract_bits(a, o, w)", model_extract(x), ALL)                                              \
    X("insert_bits(a, b, o, w)", model_insert(x), ALL)                                             \
    X("a / ((b & T(MOST / 2)) | T(1))", a / ((b & (x->most >> 1)) | 1), ALL)                       \
    X("a % ((b & T(MOST / 2)) | T(1))", a % ((b & (x->most >> 1)) | 1), ALL)                       \
    X("a << b", times_2_to(a, count_of_shift(x, b)), ALL)                                          \
    X("a >> b", a >> count_of_shift(x, b), ALL)                                                    \
    X("a << 33", times_2_to(a, count_of_shift(x, 33)), ALL)                                        \
    X("a >> 67", a >> count_of_shift(x, 67), ALL)                                                  \
    X("select(a, b, b < c)", b < c ? b : a, ALL)                                                   \
    X("a < b", a < b, ALL)                                                                         \
    X("a + b", a + b, UNSIGNED)                                                                    \
    X("a - b", a - b, UNSIGNED)                                                                    \
    X("a * b", product_sum(x, 0), UNSIGNED)                                                        \
    X("mul24(a >> T(8), b >> T(8))", (a >> 8) * (b >> 8), WORDS)                                   \
    X("mad24(a >> T(8), b >> T(8), c)", (a >> 8) * (b >> 8) + c, WORDS)
/* clang-format on */
static const struct {
    const char *text;
    int only;
} integer_rows[] = {
#define ROW(text, model, only) {text, only},
    INTEGERS(ROW)
#undef ROW
};
enum { INTEGER_ROWS = sizeof integer_rows / sizeof *integer_rows };

static wide model_integer(size_t row, const integers *x) {
    const wide a = x->a, b = x->b, c = x->c;
    size_t i = 0;
#define MODEL(text, model, only)                                                                   \
    if (i++ == row)                                                                                \
        return model;
    INTEGERS(MODEL)
#undef MODEL
    return 0;
}

static bool has_row(elem type, size_t row) {
    const int only = integer_rows[row].only;
    return only == ALL || (only == UNSIGNED ? !is_signed(type) : count_bits(type) == 32);
}

static void make_integers(elem type, wide *edges) {
    const int bits = count_bits(type);
    const wide top = (wide)1 << (bits - 1);
    const wide half = (wide)1 << bits / 2;
    const wide all[EDGES] = {
        0, 1, 2, 7, -1, -3, top, top + 1, top - 1, half, half - 1, bits - 3, 0x5AC3965A3CA5694B};
    for (int i = 0; i < EDGES; i++) {
        edges[i] = (wide)cut(all[i], bits);
        if (is_signed(type) && edges[i] >= top)
            edges[i] -= 2 * top;
    }
}

/* Floats ----------------------------------------------------------------------------------------- */

/* Only for safe math. -0 is 0 where a row does not say that the sign counts. */
static double split(double x, bool is_whole) {
    double whole, rest = modf(x, &whole);
    return is_whole ? whole : rest;
}
static double fraction(double x) {
    int e;
    return frexp(x, &e);
}
static double exponent(double x) {
    int e = 0;
    frexp(x, &e);
    return isfinite(x) ? e : 0;
}
#define FLOATS(X)                                                                                  \
    X("floor(a)", floor(a), SIGN)                                                                  \
    X("ceil(a)", ceil(a), SIGN)                                                                    \
    X("trunc(a)", trunc(a), SIGN)                                                                  \
    X("rint(a)", rint(a), SIGN)                                                                    \
    X("round(a)", round(a), SIGN)                                                                  \
    X("fabs(a)", fabs(a), SIGN)                                                                    \
    X("abs(a)", fabs(a), SIGN)                                                                     \
    X("copysign(a, b)", copysign(a, b), SIGN)                                                      \
    X("sign(a)", isnan(a) ? 0 : a > 0 ? 1 : a < 0 ? -1 : a, SIGN)                                  \
    X("fract(a)", isfinite(a) ? fmin(a - floor(a), f32 ? 0x1.fffffep-1 : 0x1.ffcp-1) : SKIPPED, 0) \
    X("fmax(a, b)", fmax(a, b), 0)                                                                 \
    X("fmin(a, b)", fmin(a, b), 0)                                                                 \
    X("max(a, b)", fmax(a, b), 0)                                                                  \
    X("min(a, b)", fmin(a, b), 0)                                                                  \
    X("fmax3(a, b, c)", fmax(a, fmax(b, c)), 0)                                                    \
    X("fmin3(a, b, c)", fmin(a, fmin(b, c)), 0)                                                    \
    X("max3(a, b, c)", fmax(a, fmax(b, c)), 0)                                                     \
    X("min3(a, b, c)", fmin(a, fmin(b, c)), 0)                                                     \
    X("fmedian3(a, b, c)", isnan(a + b + c) ? SKIPPED : fmax(fmin(a, b), fmin(fmax(a, b), c)), 0)  \
    X("clamp(a, b, c)", b <= c ? fmin(fmax(a, b), c) : SKIPPED, 0)                                 \
    X("saturate(a)", fmin(fmax(a, 0), 1), 0)                                                       \
    X("fdim(a, b)", fdim(a, b), 0)                                                                 \
    X("fmod(a, b)", fmod(a, b), 0)                                                                 \
    X("step(a, b)", b < a ? 0 : 1, 0)                                                              \
    X("fma(a, b, c)", f32 ? fmaf((float)a, (float)b, (float)c) : fma(a, b, c), 0)                  \
    X("a * b", a *b, SIGN)                                                                         \
    X("a + b", a + b, SIGN)                                                                        \
    X("a - b", a - b, SIGN)                                                                        \
    X("a / b", a / b, SIGN)                                                                        \
    X("sqrt(a)", sqrt(a), 0)                                                                       \
    X("fraction(a)", isfinite(a) ? fraction(a) : SKIPPED, SIGN)                                    \
    X("exponent(a)", exponent(a), FINITE)                                                          \
    X("rest(a)", split(a, false), SIGN)                                                            \
    X("whole(a)", split(a, true), SIGN)                                                            \
    X("ldexp(a, 3)", ldexp(a, 3), SIGN)                                                            \
    X("ldexp(a, -2)", ldexp(a, -2), SIGN)                                                          \
    X("ilogb(a)", ilogb(a), FINITE)                                                                \
    X("isnan(a)", isnan(a), 0)                                                                     \
    X("isinf(a)", isinf(a) ? 1 : 0, 0)                                                             \
    X("isfinite(a)", isfinite(a), 0)                                                               \
    X("isnormal(a)", isfinite(a) && a != 0, 0)                                                     \
    X("signbit(a)", isnan(a) ? SKIPPED : signbit(a) ? 1 : 0, 0)                                    \
    X("isordered(a, b)", !isunordered(a, b), 0)                                                    \
    X("isunordered(a, b)", isunordered(a, b), 0)                                                   \
    X("a < b", a < b, 0)

/* The sign of 0 counts; only for numbers that are neither 0 nor NaN. */
enum { SIGN = 1, FINITE = 2 };
#define SKIPPED 12345.0 /* MSL does not say */
#define TEXT(text, model, how) text,
static const char *const float_rows[] = {FLOATS(TEXT)};
#undef TEXT
enum { FLOAT_ROWS = sizeof float_rows / sizeof *float_rows };

static double model_float(size_t row, double a, double b, double c, bool f32, int *how) {
    size_t i = 0;
#define MODEL_OF(text, model, flags)                                                               \
    if (i++ == row) {                                                                              \
        *how = flags;                                                                              \
        return (flags & FINITE) && (a == 0 || !isfinite(a)) ? SKIPPED : (double)(model);           \
    }
    FLOATS(MODEL_OF)
#undef MODEL_OF
    return NAN;
}

static void make_floats(elem type, double *edges) {
    const bool is_half = type == ELEM_F16, is_bfloat = type == ELEM_BF16;
    const double most = is_half ? 65504 : is_bfloat ? 0x1.fep127 : FLT_MAX;
    const double all[EDGES] = {0,        -0.0,      1,    -1,   0.5,
                               -2.5,     1.5,       3.25, most, is_half ? -0x1p-14 : -FLT_MIN,
                               INFINITY, -INFINITY, NAN};
    memcpy(edges, all, sizeof all);
}

/* Running ---------------------------------------------------------------------------------------- */

static const char preamble[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "#define SECOND(name, result, function, Second, get)\\\n"
    "    template <typename T, int n> vec<T, n> name(vec<T, n> a) {\\\n"
    "        vec<Second, n> s;\\\n"
    "        vec<T, n> f = function(a, s);\\\n"
    "        return vec<T, n>(get);\\\n"
    "    }\\\n"
    "    inline float name(float a) { return name(float2(a)).x; }\\\n"
    "    inline half name(half a) { return name(half2(a)).x; }\n"
    "SECOND(fraction, T, frexp, int, f)\n"
    "SECOND(exponent, T, frexp, int, s)\n"
    "SECOND(rest, T, modf, T, f)\n"
    "SECOND(whole, T, modf, T, s)\n"
    "template <typename V> ulong bits(V x) {\n"
    "    if constexpr (sizeof(V) == 1) return as_type<uchar>(x);\n"
    "    else if constexpr (sizeof(V) == 2) return as_type<ushort>(x);\n"
    "    else if constexpr (sizeof(V) == 4) return as_type<uint>(x);\n"
    "    else return as_type<ulong>(x);\n"
    "}\n"
    "#define MOST numeric_limits<T>::max()\n"
    "#define AT(k, p) in[(t + k) % 2197 / (p) % 13]\n"
    "#define A1(p) AT(0, p)\n"
    "#define A2(p) AT(0, p), AT(1, p)\n"
    "#define A3(p) AT(0, p), AT(1, p), AT(2, p)\n"
    "#define A4(p) AT(0, p), AT(1, p), AT(2, p), AT(3, p)\n"
    "kernel void builtins(device const T *in [[buffer(0)]], device ulong *out [[buffer(1)]],\n"
    "                uint t [[thread_position_in_grid]]) {\n"
    "    if (t >= 2197)\n"
    "        return;\n"
    "    const uint o = t % BITS, w = min(t / BITS % (BITS + 1), BITS - o);\n";

/* Row r of a type: a function, or after the last one a conversion. */
static size_t count_functions(elem type) {
    return type == ELEM_BF16 ? 0 : elem_is_float(type) ? FLOAT_ROWS : INTEGER_ROWS;
}
static const char *get_text(elem type, size_t row) {
    return row >= count_functions(type) ? types[row - count_functions(type)].name
           : elem_is_float(type)        ? float_rows[row]
                                        : integer_rows[row].text;
}

static void print_row(FILE *f, elem type, size_t row, int n) {
    const bool is_conversion = row >= count_functions(type);
    const char *text = get_text(type, row);
    if (!is_conversion && !elem_is_float(type) && !has_row(type, row))
        return;
    fprintf(f, "        out[%d + t] = bits((", ((int)row * LENGTHS + n - 1) * TOTAL);
    if (!is_conversion)
        fprintf(f, "V(%s)", text);
    else if (n == 1)
        fprintf(f, "static_cast<%s>(a)", text);
    else
        fprintf(f, "vec<%s, %d>(a)", text, n);
    fprintf(f, n > 1 ? ")[t %% %d]);\n" : "));\n", n);
}

static bool write_kernel(const char *path, size_t which) {
    const elem type = types[which].type;
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fprintf(f, "typedef %s T;\n#define BITS %du\n%s", types[which].name, count_bits(type),
            preamble);
    for (int n = 1; n <= LENGTHS; n++) {
        fprintf(f,
                n > 1 ? "    {\n        typedef vec<T, %d> V;\n" : "    {\n        typedef T V;\n",
                n);
        fprintf(f, "        const V a = V(A%d(1)), b = V(A%d(13)), c = V(A%d(169));\n", n, n, n);
        for (size_t row = 0; row < count_functions(type) + TYPES; row++)
            print_row(f, type, row, n);
        fprintf(f, "    }\n");
    }
    fprintf(f, "}\n");
    return fclose(f) == 0;
}

/* What conversion gives, as bits; false: MSL does not say. */
static bool convert(elem from, wide whole, double number, elem to, int n, uint64_t *bits) {
    const int width = count_bits(to);
    const double above = ldexp(1, is_signed(to) ? width - 1 : width),
                 below = is_signed(to) ? -above : 0;
    *bits = 0;
    if (elem_is_float(to))
        elem_write(to, bits, 0, elem_is_float(from) ? number : (double)whole);
    else if (!elem_is_float(from))
        *bits = cut(whole, width);
    else if (number > below - 1 && number < above)
        *bits = cut((wide)number, width);
    else if (n == 1)
        return false;
    else if (!isnan(number)) /* saturates */
        *bits = cut(number < 0 ? (wide)below : ((wide)1 << (is_signed(to) ? width - 1 : width)) - 1,
                    width);
    return true;
}

typedef struct {
    wide whole[EDGES];
    double number[EDGES];
} edge_values;

/* The bits that row `row` should give with combination t. */
static bool find_wanted(elem type, const edge_values *v, size_t row, int n, int t, uint64_t *bits,
                        int *how) {
    const int u = (t + t % n) % TOTAL, a = u % EDGES, b = u / EDGES % EDGES, c = u / EDGES / EDGES;
    const int width = count_bits(type);
    *how = SIGN;
    if (row >= count_functions(type))
        return convert(type, v->whole[a], v->number[a], types[row - count_functions(type)].type, n,
                       bits);
    *bits = 0;
    if (elem_is_float(type)) {
        double want =
            model_float(row, v->number[a], v->number[b], v->number[c], type == ELEM_F32, how);
        elem_write(type, bits, 0, want);
        return want != SKIPPED;
    }
    const int o = t % width, left = width - o, w = t / width % (width + 1);
    const wide least = is_signed(type) ? -((wide)1 << (width - 1)) : 0;
    const integers x = {
        v->whole[a], v->whole[b], v->whole[c],         least, least + ((wide)1 << width) - 1,
        width,       o,           w < left ? w : left, n,     is_signed(type)};
    *bits = cut(model_integer(row, &x), width);
    return has_row(type, row);
}

static bool is_same(elem type, uint64_t want, uint64_t got, int how) {
    if (want == got || !elem_is_float(type))
        return want == got;
    const double w = elem_read(type, &want, 0), g = elem_read(type, &got, 0);
    return (isnan(w) && isnan(g)) || (w == g && !(how & SIGN));
}

static uint64_t out[(FLOAT_ROWS + TYPES) * LENGTHS * TOTAL];

/* Fills `out` with what the kernel of a type makes of the edges. */
static bool run_kernel(size_t which, const edge_values *v, err *e) {
    const elem type = types[which].type;
    const size_t bytes = (count_functions(type) + TYPES) * LENGTHS * TOTAL * sizeof *out;
    uint64_t in[EDGES];
    char folder[200], path[256];
    for (size_t i = 0; i < EDGES; i++)
        if (elem_is_float(type))
            elem_write(type, in, i, v->number[i]);
        else
            memcpy((char *)in + i * elem_get_bytes(type), &v->whole[i], elem_get_bytes(type));
    snprintf(folder, sizeof folder, "%s", getenv("TMPDIR"));
    snprintf(path, sizeof path, "%s/builtins_%s.metal", folder, types[which].name);
    library *lib = write_kernel(path, which) ? library_new(support_get_device(), folder, e) : NULL;
    tape *tp = lib ? tape_new(lib) : NULL;
    launch *l = tp ? tape_add(tp, strrchr(path, '/') + 1, "builtins", e) : NULL;
    slice from = support_buffer(in, EDGES * elem_get_bytes(type)), to = support_buffer(NULL, bytes);
    if (l) {
        launch_bind(l, 0, from, ACCESS_READ, type);
        launch_bind(l, 1, to, ACCESS_WRITE, ELEM_U64);
        launch_set_groups(l, (size3){(TOTAL + 63) / 64, 1, 1}, (size3){64, 1, 1});
    }
    bool ok = l && tape_play(tp, PLAY_WHOLE, NULL, NULL, e);
    if (ok)
        memcpy(out, support_read(to), bytes);
    tape_free(tp);
    library_free(lib);
    support_end();
    return ok;
}

TEST functions_agree_with_models_at_the_edges(size_t which) {
    static err e;
    static char text[200];
    const elem type = types[which].type;
    const size_t functions = count_functions(type);
    edge_values v;
    make_integers(type, v.whole);
    make_floats(type, v.number);
    ASSERTm(e.detail[0] ? e.detail : e.text, run_kernel(which, &v, &e));
    for (size_t i = 0; i < (functions + TYPES) * LENGTHS * TOTAL; i++) {
        const size_t row = i / TOTAL / LENGTHS;
        const int n = (int)(i / TOTAL % LENGTHS) + 1, t = (int)(i % TOTAL);
        const elem result = row < functions ? type : types[row - functions].type;
        uint64_t want;
        int how;
        if (!find_wanted(type, &v, row, n, t, &want, &how) || is_same(result, want, out[i], how))
            continue;
        snprintf(text, sizeof text, "%s of %s%d, combination %d: want %llx, got %llx",
                 get_text(type, row), types[which].name, n, t, (unsigned long long)want,
                 (unsigned long long)out[i]);
        FAILm(text);
    }
    PASS();
}

SUITE(builtins_suite) {
    for (size_t i = 0; i < TYPES; i++)
        RUN_TESTp(functions_agree_with_models_at_the_edges, i);
}
