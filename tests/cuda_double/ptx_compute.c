/* ptx_compute: what instructions make of values, without memory and without other threads. */
#include <math.h>
#include <string.h>

#include "double.h"
#include "harness/device/elem.h"

/* Values ---------------------------------------------------------------------------------------- */

double ptx_to_float(uint64_t v, ptx_type t) {
    float f;
    double d;
    uint16_t h = (uint16_t)v;
    uint32_t w = (uint32_t)v;
    if (t.kind == 'x')
        return elem_read(ELEM_BF16, &h, 0);
    if (t.bits == 16)
        return elem_read(ELEM_F16, &h, 0);
    if (t.bits == 64) {
        memcpy(&d, &v, 8);
        return d;
    }
    memcpy(&f, &w, 4);
    return (double)f;
}

static uint64_t from_float(double v, ptx_type t) {
    uint16_t h = 0;
    uint64_t r = 0;
    float f = (float)v;
    if (t.bits == 16) {
        elem_write(t.kind == 'x' ? ELEM_BF16 : ELEM_F16, &h, 0, v);
        return h;
    }
    memcpy(&r, t.bits == 64 ? (void *)&v : (void *)&f, t.bits / 8);
    return r;
}

static bool is_float(ptx_type t) {
    return t.kind == 'f' || t.kind == 'x';
}

/* Arithmetic ------------------------------------------------------------------------------------ */

/* Floats as doubles, rounded once at the end: right for float and half, where a double holds every
 * sum and product of two exactly enough; fma has its own. */
static uint64_t compute_float(const ptx_insn *i, const uint64_t *v) {
    double a = ptx_to_float(v[0], i->type), b = ptx_to_float(v[1], i->type),
           c = ptx_to_float(v[2], i->type), r;
    switch (i->op) {
    case OP_ADD:
        r = a + b;
        break;
    case OP_SUB:
        r = a - b;
        break;
    case OP_MUL:
        r = a * b;
        break;
    case OP_DIV:
        r = a / b;
        break;
    case OP_FMA:
    case OP_MAD:
        r = i->type.bits == 32 ? (double)fmaf((float)a, (float)b, (float)c) : fma(a, b, c);
        break;
    case OP_MIN:
        r = fmin(a, b);
        break;
    case OP_MAX:
        r = fmax(a, b);
        break;
    case OP_ABS:
        return v[0] & ~(1ull << (i->type.bits - 1));
    case OP_NEG:
        return ptx_mask(v[0] ^ 1ull << (i->type.bits - 1), i->type.bits);
    case OP_SQRT:
        r = sqrt(a);
        break;
    case OP_RSQRT:
        r = 1 / sqrt(a);
        break;
    case OP_RCP:
        r = 1 / a;
        break;
    case OP_LG2:
        r = log2(a);
        break;
    default:
        r = exp2(a);
        break;
    }
    if (i->saturates)
        r = isnan(r) ? 0 : fmin(fmax(r, 0), 1);
    if (i->rounding == ROUND_DOWN && i->type.bits == 32 && (double)(float)r > r)
        r = (double)nextafterf((float)r, -INFINITY);
    if (i->rounding == ROUND_ZERO && i->type.bits == 32 && fabs((double)(float)r) > fabs(r))
        r = (double)nextafterf((float)r, 0);
    return from_float(r, i->type);
}

static uint64_t compute_halves(const ptx_insn *i, const uint64_t *v) {
    ptx_insn one = *i;
    one.type = (ptx_type){'f', 16};
    uint64_t low[3] = {v[0] & 0xFFFF, v[1] & 0xFFFF, v[2] & 0xFFFF};
    uint64_t high[3] = {v[0] >> 16 & 0xFFFF, v[1] >> 16 & 0xFFFF, v[2] >> 16 & 0xFFFF};
    return compute_float(&one, high) << 16 | compute_float(&one, low);
}

static uint64_t multiply_high(uint64_t a, uint64_t b, ptx_type t) {
    __extension__ typedef __int128 wide;
    __extension__ typedef unsigned __int128 unsigned_wide;
    if (t.kind == 's')
        return (uint64_t)(((wide)ptx_extend(a, t.bits) * ptx_extend(b, t.bits)) >> t.bits);
    return (uint64_t)(((unsigned_wide)ptx_mask(a, t.bits) * ptx_mask(b, t.bits)) >> t.bits);
}

static uint64_t multiply(const ptx_insn *i, uint64_t a, uint64_t b) {
    ptx_type t = i->type;
    if (i->is_high)
        return multiply_high(a, b, t);
    if (i->is_wide && t.kind == 's')
        return (uint64_t)(ptx_extend(a, t.bits) * ptx_extend(b, t.bits));
    return i->is_wide ? ptx_mask(a, t.bits) * ptx_mask(b, t.bits) : a * b;
}

static uint64_t divide(const ptx_insn *i, uint64_t a, uint64_t b) {
    ptx_type t = i->type;
    bool rest = i->op == OP_REM;
    if (ptx_mask(b, t.bits) == 0)
        return ~0ull;
    if (t.kind == 's') {
        int64_t x = ptx_extend(a, t.bits), y = ptx_extend(b, t.bits);
        if (y == -1)
            return rest ? 0 : -(uint64_t)x;
        return (uint64_t)(rest ? x % y : x / y);
    }
    return rest ? ptx_mask(a, t.bits) % ptx_mask(b, t.bits) : ptx_mask(a, t.bits) / ptx_mask(b, t.bits);
}

static uint64_t shift(const ptx_insn *i, uint64_t a, uint64_t by) {
    unsigned bits = i->type.bits;
    by = ptx_mask(by, 32);
    if (i->op == OP_SHL)
        return by >= bits ? 0 : a << by;
    if (i->type.kind == 's')
        return (uint64_t)(ptx_extend(a, bits) >> (by >= bits ? bits - 1 : by));
    return by >= bits ? 0 : ptx_mask(a, bits) >> by;
}

/* A field of `length` bits from `at`; signed fields are extended. */
static uint64_t extract(ptx_type t, uint64_t a, uint64_t at, uint64_t length) {
    at &= 255;
    length &= 255;
    if (length == 0 || (at >= t.bits && t.kind != 's'))
        return 0;
    uint64_t top = at + length > t.bits ? t.bits : at + length;
    uint64_t field = at >= t.bits ? (uint64_t)(ptx_extend(a, t.bits) >> 63)
                                  : ptx_mask(ptx_mask(a, t.bits) >> at, (unsigned)(top - at));
    return t.kind == 's' && at < t.bits ? (uint64_t)ptx_extend(field, (unsigned)(top - at)) : field;
}

static uint64_t insert(ptx_type t, uint64_t field, uint64_t into, uint64_t at, uint64_t length) {
    at &= 255;
    length &= 255;
    if (at >= t.bits || length == 0)
        return into;
    uint64_t bits = ptx_mask(~0ull, (unsigned)(length > 64 ? 64 : length)) << at;
    return (into & ~bits) | (field << at & bits);
}

static uint64_t permute(uint64_t a, uint64_t b, uint64_t selector) {
    uint64_t all = ptx_mask(a, 32) | b << 32, r = 0;
    for (int n = 0; n < 4; n++) {
        uint64_t s = selector >> 4 * n & 15, byte = all >> 8 * (s & 7) & 255;
        if (s & 8)
            byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * n;
    }
    return r;
}

static uint64_t funnel(const ptx_insn *i, uint64_t low, uint64_t high, uint64_t by) {
    uint64_t both = ptx_mask(low, 32) | high << 32, n = i->wraps ? by & 31 : by > 32 ? 32 : by;
    return i->how[0] == 'l' ? (n == 0 ? high : both >> (32 - n)) : both >> n;
}

static uint64_t reverse(uint64_t a, unsigned bits) {
    uint64_t r = 0;
    for (unsigned n = 0; n < bits; n++)
        r |= (a >> n & 1) << (bits - 1 - n);
    return r;
}

static bool is_less(ptx_type t, uint64_t a, uint64_t b) {
    return t.kind == 's' ? ptx_extend(a, t.bits) < ptx_extend(b, t.bits)
                         : ptx_mask(a, t.bits) < ptx_mask(b, t.bits);
}

static uint64_t compute_integer(const ptx_insn *i, const uint64_t *v) {
    ptx_type t = i->type;
    switch (i->op) {
    case OP_ADD:
        return v[0] + v[1];
    case OP_SUB:
        return v[0] - v[1];
    case OP_MUL:
        return multiply(i, v[0], v[1]);
    case OP_MAD:
        return multiply(i, v[0], v[1]) + v[2];
    case OP_DIV:
    case OP_REM:
        return divide(i, v[0], v[1]);
    case OP_MIN:
        return is_less(t, v[0], v[1]) ? v[0] : v[1];
    case OP_MAX:
        return is_less(t, v[0], v[1]) ? v[1] : v[0];
    case OP_ABS:
        return ptx_extend(v[0], t.bits) < 0 ? -v[0] : v[0];
    case OP_NEG:
        return -v[0];
    case OP_NOT:
        return t.kind == 'p' ? !v[0] : ~v[0];
    case OP_AND:
        return v[0] & v[1];
    case OP_OR:
        return v[0] | v[1];
    case OP_XOR:
        return v[0] ^ v[1];
    case OP_SHL:
    case OP_SHR:
        return shift(i, v[0], v[1]);
    case OP_BFE:
        return extract(t, v[0], v[1], v[2]);
    case OP_BFI:
        return insert(t, v[0], v[1], v[2], v[3]);
    case OP_PRMT:
        return permute(v[0], v[1], v[2]);
    case OP_BREV:
        return reverse(v[0], t.bits);
    case OP_CLZ:
        return ptx_mask(v[0], t.bits) ? (uint64_t)__builtin_clzll(ptx_mask(v[0], t.bits)) - 64 + t.bits
                                  : t.bits;
    case OP_SHF:
        return funnel(i, v[0], v[1], v[2]);
    default:
        return (uint64_t)__builtin_popcountll(ptx_mask(v[0], t.bits));
    }
}

/* Sums and products with the carry of the one before. */
static uint64_t compute_carry(const ptx_insn *i, ptx_thread *t, const uint64_t *v) {
    __extension__ typedef unsigned __int128 wide;
    const unsigned bits = i->type.bits;
    const wide a = ptx_mask(v[0], bits), b = ptx_mask(v[1], bits);
    wide sum = (i->op == OP_ADDC || i->op == OP_MADC) && t->carry;
    if (i->op == OP_SUB)
        sum = a - b;
    else if (i->op == OP_ADD || i->op == OP_ADDC)
        sum += a + b;
    else
        sum += ptx_mask((uint64_t)(i->is_high ? a * b >> bits : a * b), bits) + (wide)ptx_mask(v[2], bits);
    if (i->sets_carry)
        t->carry = sum >> bits & 1;
    return ptx_mask((uint64_t)sum, bits);
}

/* Conversions and comparisons ------------------------------------------------------------------- */

static double round_to_integer(double x, ptx_rounding how) {
    return how == ROUND_NEAREST ? rint(x)
           : how == ROUND_ZERO  ? trunc(x)
           : how == ROUND_DOWN  ? floor(x)
                                : ceil(x);
}

static uint64_t to_integer(double x, ptx_type t) {
    if (isnan(x))
        return 0;
    double low = t.kind == 's' ? -ldexp(1, t.bits - 1) : 0;
    double above = ldexp(1, t.kind == 's' ? t.bits - 1 : t.bits);
    if (x < low)
        return (uint64_t)(int64_t)low;
    if (x >= above)
        return ptx_mask(t.kind == 's' ? (1ull << (t.bits - 1)) - 1 : ~0ull, t.bits);
    return t.kind == 's' ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static uint64_t convert(const ptx_insn *i, uint64_t v) {
    if (!is_float(i->from)) {
        if (is_float(i->type)) {
            double x = i->from.kind == 's' ? (double)ptx_extend(v, i->from.bits)
                                           : (double)ptx_mask(v, i->from.bits);
            float f =
                i->from.kind == 's' ? (float)ptx_extend(v, i->from.bits) : (float)ptx_mask(v, i->from.bits);
            return from_float(i->type.bits == 32 ? (double)f : x, i->type);
        }
        return i->from.kind == 's' ? (uint64_t)ptx_extend(v, i->from.bits) : ptx_mask(v, i->from.bits);
    }
    double x = ptx_to_float(v, i->from);
    if (!is_float(i->type))
        return to_integer(round_to_integer(x, i->rounding), i->type);
    if (i->to_integer)
        x = round_to_integer(x, i->rounding);
    if (i->saturates)
        x = isnan(x) ? 0 : fmin(fmax(x, 0), 1);
    return from_float(x, i->type);
}

/* cvt.rn.f16x2.f32: the second operand is the lower half. */
static uint64_t convert_pair(const ptx_insn *i, const uint64_t *v) {
    ptx_insn one = *i;
    one.type = (ptx_type){'f', 16};
    return convert(&one, v[0]) << 16 | convert(&one, v[1]);
}

static bool compare(const ptx_insn *i, uint64_t a, uint64_t b) {
    const char *how = i->how;
    bool less, equal, unordered = false;
    if (is_float(i->type)) {
        double x = ptx_to_float(a, i->type), y = ptx_to_float(b, i->type);
        unordered = isnan(x) || isnan(y);
        less = x < y;
        equal = x == y;
    } else {
        less = is_less(i->type, a, b);
        equal = ptx_mask(a, i->type.bits) == ptx_mask(b, i->type.bits);
    }
    if (strcmp(how, "num") == 0 || strcmp(how, "nan") == 0)
        return unordered == (how[1] == 'a');
    if (unordered)
        return how[2] == 'u';
    return how[0] == 'e'   ? equal
           : how[0] == 'n' ? !equal
           : how[0] == 'l' ? less || (how[1] == 'e' && equal)
                           : (!less && !equal) || (how[1] == 'e' && equal);
}

/* All of it ------------------------------------------------------------------------------------- */

static bool has_carry(const ptx_insn *i) {
    return i->sets_carry || i->op == OP_ADDC || i->op == OP_MADC;
}

uint64_t ptx_compute(const ptx_insn *i, ptx_thread *t, const uint64_t *v) {
    switch (i->op) {
    case OP_CVTA:
        return v[0];
    case OP_SETP:
        return compare(i, v[0], v[1]);
    case OP_SELP:
        return ptx_mask(v[2] & 1 ? v[0] : v[1], i->type.bits);
    case OP_CVT: { /* the register may be wider, and holds the sign too */
        if (i->type.kind == 'h')
            return convert_pair(i, v);
        uint64_t r = convert(i, v[0]);
        return i->type.kind == 's' ? (uint64_t)ptx_extend(r, i->type.bits) : ptx_mask(r, i->type.bits);
    }
    default:
        break;
    }
    if (has_carry(i))
        return compute_carry(i, t, v);
    if (i->type.kind == 'h')
        return compute_halves(i, v);
    return ptx_mask(is_float(i->type) ? compute_float(i, v) : compute_integer(i, v),
                i->is_wide ? 2u * i->type.bits : i->type.bits);
}
