/* ptx_step: what one instruction makes of values, what it does to one thread, and what the lanes of a warp, or of
 * four, make of small matrices together (mma, movmatrix, wgmma). Where else threads meet is in ptx_run.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"
#include "harness/device/elem.h"

/* Values ---------------------------------------------------------------------------------------- */

static uint64_t mask(uint64_t v, unsigned bits) {
    return bits >= 64 ? v : v & ((1ull << bits) - 1);
}
static int64_t extend(uint64_t v, unsigned bits) {
    return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* The float in the lowest bits of a register. */
static double to_float(uint64_t v, ptx_type t) {
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

static uint64_t multiply_high(uint64_t a, uint64_t b, ptx_type t) {
    __extension__ typedef __int128 wide;
    __extension__ typedef unsigned __int128 unsigned_wide;
    if (t.kind == 's')
        return (uint64_t)(((wide)extend(a, t.bits) * extend(b, t.bits)) >> t.bits);
    return (uint64_t)(((unsigned_wide)mask(a, t.bits) * mask(b, t.bits)) >> t.bits);
}

static uint64_t multiply(const ptx_insn *i, uint64_t a, uint64_t b) {
    ptx_type t = i->type;
    if (i->is_high)
        return multiply_high(a, b, t);
    if (i->is_wide && t.kind == 's')
        return (uint64_t)(extend(a, t.bits) * extend(b, t.bits));
    return i->is_wide ? mask(a, t.bits) * mask(b, t.bits) : a * b;
}

static uint64_t divide(const ptx_insn *i, uint64_t a, uint64_t b) {
    ptx_type t = i->type;
    bool rest = i->op == OP_REM;
    if (mask(b, t.bits) == 0)
        return ~0ull;
    if (t.kind == 's') {
        int64_t x = extend(a, t.bits), y = extend(b, t.bits);
        if (y == -1)
            return rest ? 0 : -(uint64_t)x;
        return (uint64_t)(rest ? x % y : x / y);
    }
    return rest ? mask(a, t.bits) % mask(b, t.bits) : mask(a, t.bits) / mask(b, t.bits);
}

static uint64_t shift(const ptx_insn *i, uint64_t a, uint64_t by) {
    unsigned bits = i->type.bits;
    by = mask(by, 32);
    if (i->op == OP_SHL)
        return by >= bits ? 0 : a << by;
    if (i->type.kind == 's')
        return (uint64_t)(extend(a, bits) >> (by >= bits ? bits - 1 : by));
    return by >= bits ? 0 : mask(a, bits) >> by;
}

/* A field of `length` bits from `at`; signed fields are extended. */
static uint64_t extract(ptx_type t, uint64_t a, uint64_t at, uint64_t length) {
    at &= 255;
    length &= 255;
    if (length == 0 || (at >= t.bits && t.kind != 's'))
        return 0;
    uint64_t top = at + length > t.bits ? t.bits : at + length;
    uint64_t field = at >= t.bits ? (uint64_t)(extend(a, t.bits) >> 63)
                                  : mask(mask(a, t.bits) >> at, (unsigned)(top - at));
    return t.kind == 's' && at < t.bits ? (uint64_t)extend(field, (unsigned)(top - at)) : field;
}

static uint64_t insert(ptx_type t, uint64_t field, uint64_t into, uint64_t at, uint64_t length) {
    at &= 255;
    length &= 255;
    if (at >= t.bits || length == 0)
        return into;
    uint64_t bits = mask(~0ull, (unsigned)(length > 64 ? 64 : length)) << at;
    return (into & ~bits) | (field << at & bits);
}

static uint64_t permute(uint64_t a, uint64_t b, uint64_t selector) {
    uint64_t all = mask(a, 32) | b << 32, r = 0;
    for (int n = 0; n < 4; n++) {
        uint64_t s = selector >> 4 * n & 15, byte = all >> 8 * (s & 7) & 255;
        if (s & 8)
            byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * n;
    }
    return r;
}

static uint64_t funnel(const ptx_insn *i, uint64_t low, uint64_t high, uint64_t by) {
    uint64_t both = mask(low, 32) | high << 32, n = i->wraps ? by & 31 : by > 32 ? 32 : by;
    return i->how[0] == 'l' ? (n == 0 ? high : both >> (32 - n)) : both >> n;
}

static uint64_t reverse(uint64_t a, unsigned bits) {
    uint64_t r = 0;
    for (unsigned n = 0; n < bits; n++)
        r |= (a >> n & 1) << (bits - 1 - n);
    return r;
}

static bool is_less(ptx_type t, uint64_t a, uint64_t b) {
    return t.kind == 's' ? extend(a, t.bits) < extend(b, t.bits)
                         : mask(a, t.bits) < mask(b, t.bits);
}

/* What instructions make of integers, the operands v of type t, and of floats, the operands a, b and c. */
/* clang-format off */
#define ARITHMETIC(X) \
    X(ABS, extend(v[0], t.bits) < 0 ? -v[0] : v[0], fabs(a)) \
    X(ADD, v[0] + v[1], a + b) \
    X(AND, v[0] & v[1], 0) \
    X(BFE, extract(t, v[0], v[1], v[2]), 0) \
    X(BFI, insert(t, v[0], v[1], v[2], v[3]), 0) \
    X(BREV, reverse(v[0], t.bits), 0) \
    X(CLZ, x ? (uint64_t)__builtin_clzll(x) - 64 + t.bits : t.bits, 0) \
    X(DIV, divide(i, v[0], v[1]), a / b) \
    X(EX2, 0, exp2(a)) \
    X(FMA, 0, multiply_add(a, b, c, t)) \
    X(LG2, 0, log2(a)) \
    X(MAD, multiply(i, v[0], v[1]) + v[2], multiply_add(a, b, c, t)) \
    X(MAX, is_less(t, v[0], v[1]) ? v[1] : v[0], fmax(a, b)) \
    X(MIN, is_less(t, v[0], v[1]) ? v[0] : v[1], fmin(a, b)) \
    X(MUL, multiply(i, v[0], v[1]), a * b) \
    X(NEG, -v[0], 0) \
    X(NOT, t.kind == 'p' ? !v[0] : ~v[0], 0) \
    X(OR, v[0] | v[1], 0) \
    X(POPC, (uint64_t)__builtin_popcountll(x), 0) \
    X(PRMT, permute(v[0], v[1], v[2]), 0) \
    X(RCP, 0, 1 / a) \
    X(REM, divide(i, v[0], v[1]), 0) \
    X(RSQRT, 0, 1 / sqrt(a)) \
    X(SHF, funnel(i, v[0], v[1], v[2]), 0) \
    X(SHL, shift(i, v[0], v[1]), 0) \
    X(SHR, shift(i, v[0], v[1]), 0) \
    X(SQRT, 0, sqrt(a)) \
    X(SUB, v[0] - v[1], a - b) \
    X(XOR, v[0] ^ v[1], 0)
#define OF_INTEGERS(op, whole, real) case OP_##op: return whole;
#define OF_FLOATS(op, whole, real) case OP_##op: r = real; break;
/* clang-format on */

static double multiply_add(double a, double b, double c, ptx_type t) {
    return t.bits == 32 ? (double)fmaf((float)a, (float)b, (float)c) : fma(a, b, c);
}

static uint64_t compute_integer(const ptx_insn *i, const uint64_t *v) {
    const ptx_type t = i->type;
    const uint64_t x = mask(v[0], t.bits);
    switch (i->op) {
        ARITHMETIC(OF_INTEGERS)
    default:
        abort();
    }
}

/* Floats as doubles, rounded once at the end: right for float and half, where a double holds every
 * sum and product of two exactly enough; fma has its own. Signs are changed in any NaN, too. */
static uint64_t compute_float(const ptx_insn *i, const uint64_t *v) {
    const ptx_type t = i->type;
    const double a = to_float(v[0], t), b = to_float(v[1], t), c = to_float(v[2], t);
    const uint64_t sign = 1ull << (t.bits - 1);
    double r;
    if (i->op == OP_ABS || i->op == OP_NEG)
        return i->op == OP_ABS ? v[0] & ~sign : mask(v[0] ^ sign, t.bits);
    switch (i->op) {
        ARITHMETIC(OF_FLOATS)
    default:
        abort();
    }
    if (i->saturates)
        r = isnan(r) ? 0 : fmin(fmax(r, 0), 1);
    if (i->rounding == ROUND_DOWN && t.bits == 32 && (double)(float)r > r)
        r = (double)nextafterf((float)r, -INFINITY);
    if (i->rounding == ROUND_ZERO && t.bits == 32 && fabs((double)(float)r) > fabs(r))
        r = (double)nextafterf((float)r, 0);
    return from_float(r, t);
}

static uint64_t compute_halves(const ptx_insn *i, const uint64_t *v) {
    ptx_insn one = *i;
    one.type = (ptx_type){'f', 16};
    uint64_t low[3] = {v[0] & 0xFFFF, v[1] & 0xFFFF, v[2] & 0xFFFF};
    uint64_t high[3] = {v[0] >> 16 & 0xFFFF, v[1] >> 16 & 0xFFFF, v[2] >> 16 & 0xFFFF};
    return compute_float(&one, high) << 16 | compute_float(&one, low);
}

/* Sums and products with the carry of the one before. */
static uint64_t compute_carry(const ptx_insn *i, ptx_thread *t, const uint64_t *v) {
    __extension__ typedef unsigned __int128 wide;
    const unsigned bits = i->type.bits;
    const wide a = mask(v[0], bits), b = mask(v[1], bits);
    wide sum = (i->op == OP_ADDC || i->op == OP_MADC) && t->carry;
    if (i->op == OP_SUB)
        sum = a - b;
    else if (i->op == OP_ADD || i->op == OP_ADDC)
        sum += a + b;
    else
        sum += mask((uint64_t)(i->is_high ? a * b >> bits : a * b), bits) + (wide)mask(v[2], bits);
    if (i->sets_carry)
        t->carry = sum >> bits & 1;
    return mask((uint64_t)sum, bits);
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
        return mask(t.kind == 's' ? (1ull << (t.bits - 1)) - 1 : ~0ull, t.bits);
    return t.kind == 's' ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static uint64_t convert(const ptx_insn *i, uint64_t v) {
    if (!is_float(i->from)) {
        if (is_float(i->type)) {
            double x = i->from.kind == 's' ? (double)extend(v, i->from.bits)
                                           : (double)mask(v, i->from.bits);
            float f =
                i->from.kind == 's' ? (float)extend(v, i->from.bits) : (float)mask(v, i->from.bits);
            return from_float(i->type.bits == 32 ? (double)f : x, i->type);
        }
        return i->from.kind == 's' ? (uint64_t)extend(v, i->from.bits) : mask(v, i->from.bits);
    }
    double x = to_float(v, i->from);
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
        double x = to_float(a, i->type), y = to_float(b, i->type);
        unordered = isnan(x) || isnan(y);
        less = x < y;
        equal = x == y;
    } else {
        less = is_less(i->type, a, b);
        equal = mask(a, i->type.bits) == mask(b, i->type.bits);
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

static bool has_carry(const ptx_insn *i) {
    return i->sets_carry || i->op == OP_ADDC || i->op == OP_MADC;
}

/* The result of an instruction that only computes; v are the values of its operands. */
static uint64_t compute(const ptx_insn *i, ptx_thread *t, const uint64_t *v) {
    switch (i->op) {
    case OP_CVTA:
        return v[0];
    case OP_SETP:
        return compare(i, v[0], v[1]);
    case OP_SELP:
        return mask(v[2] & 1 ? v[0] : v[1], i->type.bits);
    case OP_CVT: { /* the register may be wider, and holds the sign too */
        if (i->type.kind == 'h')
            return convert_pair(i, v);
        uint64_t r = convert(i, v[0]);
        return i->type.kind == 's' ? (uint64_t)extend(r, i->type.bits) : mask(r, i->type.bits);
    }
    default:
        break;
    }
    if (has_carry(i))
        return compute_carry(i, t, v);
    if (i->type.kind == 'h')
        return compute_halves(i, v);
    return mask(is_float(i->type) ? compute_float(i, v) : compute_integer(i, v),
                i->is_wide ? 2u * i->type.bits : i->type.bits);
}

/* Operands -------------------------------------------------------------------------------------- */

/* Where dynamic memory begins. */
static size_t get_fixed_bytes(const ptx_launch *l) {
    return (l->program->shared_bytes + 15) / 16 * 16;
}

size_t ptx_get_shared_bytes(const ptx_launch *l) {
    return get_fixed_bytes(l) + l->dynamic_bytes;
}

static uint8_t *find_memory(const ptx_block *b, const ptx_thread *t, const ptx_symbol *s) {
    switch (s->space) {
    case SPACE_SHARED:
        return b->shared + s->at;
    case SPACE_DYNAMIC:
        return b->shared + get_fixed_bytes(b->launch);
    case SPACE_LOCAL:
        return t->local + s->at;
    case SPACE_PARAM:
        return (uint8_t *)(uintptr_t)b->launch->params + s->at;
    default:
        return b->launch->program->data + s->at;
    }
}

static uint32_t read_special(const ptx_block *b, const ptx_thread *t, uint32_t n) {
    const uint32_t *rows[] = {t->position, b->launch->block, b->block_position, b->launch->grid};
    if (n == SPECIAL_CLOCK)
        return (uint32_t)b->steps;
    return n == SPECIAL_LANE ? (uint32_t)(t - b->threads) % 32 : rows[n / 3][n % 3];
}

uint64_t ptx_read(const ptx_block *b, const ptx_thread *t, const ptx_arg *a) {
    switch (a->kind) {
    case ARG_REGISTER:
        return t->registers[a->index] + (uint64_t)a->value;
    case ARG_VALUE:
        return (uint64_t)a->value;
    case ARG_SPECIAL:
        return read_special(b, t, a->index);
    default:
        return (uint64_t)(uintptr_t)find_memory(b, t, &b->launch->program->symbols[a->index]) +
               (uint64_t)a->value;
    }
}

/* Memory ---------------------------------------------------------------------------------------- */

static bool is_inside(const uint8_t *at, size_t bytes, const uint8_t *base, size_t room) {
    return at >= base && bytes <= room && (size_t)(at - base) <= room - bytes;
}

static bool is_shared(const ptx_block *b, const uint8_t *at, size_t bytes) {
    return is_inside(at, bytes, b->shared, ptx_get_shared_bytes(b->launch));
}

static bool is_global(const ptx_block *b, const uint8_t *at, size_t bytes) {
    const ptx_program *p = b->launch->program;
    return is_inside(at, bytes, p->data, p->data_bytes) || double_has_memory(at, bytes);
}

static bool may_touch(const ptx_block *b, const ptx_thread *t, const uint8_t *at, size_t bytes) {
    const ptx_program *p = b->launch->program;
    return is_shared(b, at, bytes) || is_inside(at, bytes, t->local, p->local_bytes) ||
           is_inside(at, bytes, b->launch->params, p->param_bytes) || is_global(b, at, bytes);
}

uint8_t *ptx_find(const ptx_block *b, const ptx_thread *t, const ptx_arg *a, ptx_place where,
                  size_t bytes, size_t align, CUresult *fault) {
    uint8_t *at = (uint8_t *)(uintptr_t)ptx_read(b, t, a);
    bool is_there = where == PLACE_SHARED   ? is_shared(b, at, bytes)
                    : where == PLACE_GLOBAL ? is_global(b, at, bytes)
                                            : where == PLACE_ANY && may_touch(b, t, at, bytes);
    for (uint32_t n = 0; where == PLACE_REMOTE && n < b->cluster->count; n++)
        is_there = is_there || is_shared(&b->cluster->blocks[n], at, bytes);
    if ((uintptr_t)at % align != 0)
        *fault = CUDA_ERROR_MISALIGNED_ADDRESS;
    if (!*fault && !is_there)
        *fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    return at;
}

static void load(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    size_t each = i->type.bits / 8;
    const uint8_t *at =
        ptx_find(b, t, &i->args[i->width], PLACE_ANY, each * i->width, each * i->width, fault);
    for (int n = 0; n < i->width && !*fault; n++) {
        uint64_t v = 0;
        memcpy(&v, at + (size_t)n * each, each);
        t->registers[i->args[n].index] =
            i->type.kind == 's' ? (uint64_t)extend(v, i->type.bits) : v;
    }
}

static void store(const ptx_block *b, const ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    size_t each = i->type.bits / 8;
    uint8_t *at = ptx_find(b, t, &i->args[0], PLACE_ANY, each * i->width, each * i->width, fault);
    for (int n = 0; n < i->width && !*fault; n++) {
        uint64_t v = ptx_read(b, t, &i->args[n + 1]);
        memcpy(at + (size_t)n * each, &v, each);
    }
}

static void update(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    size_t bytes = i->type.bits / 8;
    uint8_t *at = ptx_find(b, t, &i->args[1], PLACE_ANY, bytes, bytes, fault);
    if (*fault)
        return;
    uint64_t old = 0, x = ptx_read(b, t, &i->args[2]), made = x;
    memcpy(&old, at, bytes);
    ptx_insn same = *i;
    same.op = strcmp(i->how, "add") == 0   ? OP_ADD
              : strcmp(i->how, "min") == 0 ? OP_MIN
              : strcmp(i->how, "max") == 0 ? OP_MAX
              : strcmp(i->how, "and") == 0 ? OP_AND
              : strcmp(i->how, "or") == 0  ? OP_OR
              : strcmp(i->how, "xor") == 0 ? OP_XOR
                                           : OP_MOV;
    const uint64_t v[4] = {old, x};
    if (strcmp(i->how, "cas") == 0)
        made = mask(old, i->type.bits) == mask(x, i->type.bits) ? ptx_read(b, t, &i->args[3]) : old;
    else if (same.op != OP_MOV)
        made = compute(&same, t, v);
    memcpy(at, &made, bytes);
    t->registers[i->args[0].index] = old;
}

/* mapa: where another block of the cluster has what is at an address of this one. */
static void map_address(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    const uint8_t *at = ptx_find(b, t, &i->args[1], PLACE_SHARED, 1, 1, fault);
    uint32_t n = (uint32_t)ptx_read(b, t, &i->args[2]);
    if (n >= b->cluster->count)
        *fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (!*fault)
        t->registers[i->args[0].index] =
            (uint64_t)(uintptr_t)(b->cluster->blocks[n].shared + (at - b->shared));
}

/* mov packs and unpacks: {a, b} to one register and back. */
static void move(const ptx_block *b, ptx_thread *t, const ptx_insn *i) {
    unsigned bits = i->type.bits;
    uint64_t whole = 0;
    if (i->count == 2) {
        t->registers[i->args[0].index] = mask(ptx_read(b, t, &i->args[1]), bits < 8 ? 64 : bits);
        return;
    }
    unsigned parts = i->count - 1u, each = bits / parts;
    if (i->unpacks) {
        whole = ptx_read(b, t, &i->args[parts]);
        for (unsigned n = 0; n < parts; n++)
            t->registers[i->args[n].index] = mask(whole >> n * each, each);
        return;
    }
    for (unsigned n = 0; n < parts; n++)
        whole |= mask(ptx_read(b, t, &i->args[n + 1]), each) << n * each;
    t->registers[i->args[0].index] = whole;
}

void ptx_step(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    uint64_t v[5] = {0};
    t->pc++;
    switch (i->op) {
    case OP_TRAP:
        *fault = CUDA_ERROR_LAUNCH_FAILED;
        return;
    case OP_CALL:
        if (t->calls == PTX_CALLS)
            *fault = CUDA_ERROR_LAUNCH_FAILED;
        else
            t->back[t->calls++] = t->pc;
        t->pc = i->target;
        return;
    case OP_EXIT:
    case OP_RET:
        t->has_ended = i->op == OP_EXIT || t->calls == 0;
        if (!t->has_ended)
            t->pc = t->back[--t->calls];
        return;
    case OP_BRA:
        t->pc = i->target;
        return;
    case OP_LD:
        load(b, t, i, fault);
        return;
    case OP_ST:
        store(b, t, i, fault);
        return;
    case OP_ATOM:
        update(b, t, i, fault);
        return;
    case OP_MOV:
        move(b, t, i);
        return;
    case OP_MAPA:
        map_address(b, t, i, fault);
        return;
    case OP_CLUSTER_ARRIVE:
        b->cluster->arrivals++;
        return;
    case OP_ASYNC_COPY:
    case OP_ASYNC_CLOSE:
    case OP_ASYNC_LEAVE:
    case OP_ASYNC_WAIT:
    case OP_BARRIER_ARRIVE:
    case OP_BARRIER_INIT:
    case OP_BULK_COPY:
    case OP_SEND:
        ptx_step_copy(b, t, i, fault);
        return;
    case OP_FENCE:
        return;
    default:
        break;
    }
    for (int n = 1; n < i->count && n < 5; n++)
        v[n - 1] = ptx_read(b, t, &i->args[n]);
    t->registers[i->args[0].index] = compute(i, t, v);
}

/* Products -------------------------------------------------------------------------------------- */

enum { ROWS = 16, COLUMNS = 8, MOST_DEPTH = 32, LANES = 32, SUMS = 4 };

/* The nth element of a register, from its lowest bits. Of a tf32, a tensor core takes the upper 19
 * bits. */
static double read_element(uint64_t v, ptx_type t, uint32_t n) {
    uint32_t bits = (uint32_t)(v >> n * t.bits);
    if (t.kind == 'u')
        return (double)(uint8_t)bits;
    if (t.kind == 's')
        return t.bits == 8 ? (double)(int8_t)bits : (double)(int32_t)bits;
    if (t.kind == 't')
        return to_float(bits & 0xFFFFE000u, (ptx_type){'f', 32});
    return to_float(bits, t);
}

/* Integers wrap at 32 bits; a float is rounded here and nowhere else. */
static uint32_t write_sum(double sum, ptx_type t) {
    float rounded = (float)sum;
    uint32_t bits;
    if (t.kind == 's')
        return (uint32_t)(int64_t)sum;
    memcpy(&bits, &rounded, sizeof bits);
    return bits;
}

/* d = a b + c with operands d, a, b, c; a has 16 rows, b 8 columns, and both a depth of i->width.
 * A register has 32 bits: `each` neighbours in the depth. Registers of a lane: of a, row lane / 4
 * and that 8 below it, then both again 4 * each further in the depth; of b, column lane / 4 at the
 * same depths, always with a sign; of c and d, columns 2 * (lane % 4) and the next of the same two rows. A double
 * holds every sum of integers exactly. */
void ptx_multiply(const ptx_block *block, ptx_thread *lanes, const ptx_insn *i) {
    double a[ROWS][MOST_DEPTH], b[MOST_DEPTH][COLUMNS];
    const uint32_t each = 32u / i->from.bits, step = 4 * each, steps = i->width / step;
    const ptx_type other = {i->from.kind == 'u' ? 's' : i->from.kind, i->from.bits};
    const ptx_arg *first = &i->args[SUMS], *second = first + 2 * steps, *third = second + steps;
    for (uint32_t n = 0; n < LANES; n++)
        for (uint32_t k = 0; k < steps * step / 4; k++) {
            uint32_t at = k / each, depth = at * step + n % 4 * each + k % each;
            for (uint32_t half = 0; half < 2; half++)
                a[n / 4 + 8 * half][depth] = read_element(
                    ptx_read(block, &lanes[n], &first[2 * at + half]), i->from, k % each);
            b[depth][n / 4] =
                read_element(ptx_read(block, &lanes[n], &second[at]), other, k % each);
        }
    for (uint32_t n = 0; n < LANES; n++) {
        uint32_t made[SUMS];
        for (uint32_t k = 0; k < SUMS; k++) {
            uint32_t row = n / 4 + k / 2 * 8, column = n % 4 * 2 + k % 2;
            double sum = read_element(ptx_read(block, &lanes[n], &third[k]), i->type, 0);
            for (uint32_t m = 0; m < i->width; m++)
                sum += a[row][m] * b[m][column];
            made[k] = write_sum(sum, i->type);
        }
        for (uint32_t k = 0; k < SUMS; k++) /* after all reads: d may be c */
            lanes[n].registers[i->args[k].index] = made[k];
    }
}

/* An 8 x 8 of 16 bits each: a lane has columns 2 * (lane % 4) and the next of row lane / 4. */
void ptx_transpose(const ptx_block *block, ptx_thread *lanes, const ptx_insn *i) {
    uint32_t from[LANES];
    for (uint32_t n = 0; n < LANES; n++)
        from[n] = (uint32_t)ptx_read(block, &lanes[n], &i->args[1]);
    for (uint32_t n = 0; n < LANES; n++) {
        const uint32_t *row = &from[n % 4 * 8 + n / 8], shift = n / 4 % 2 * 16;
        lanes[n].registers[i->args[0].index] =
            (row[0] >> shift & 0xFFFF) | (row[4] >> shift & 0xFFFF) << 16;
    }
}

/* Where a descriptor's matrix has byte `byte` of row `row`: rows of 128 or 32 bytes, swizzled by the bits of
 * the address, and groups of eight that are a stride apart. The address of shared memory that it has are
 * the lower bits of one here. */
static const uint8_t *find_element(const ptx_block *b, uint64_t descriptor, uint32_t row,
                                   uint32_t byte, CUresult *fault) {
    enum { SWIZZLE_128 = 1, SWIZZLE_32 = 3, KNOWN = 0x3FFFF };
    const uint64_t swizzle = descriptor >> 62;
    const size_t row_bytes = swizzle == SWIZZLE_32 ? 32 : 128;
    size_t first = (descriptor & 0x3FFF) << 4, stride = (descriptor >> 32 & 0x3FFF) << 4,
           base = (uintptr_t)b->shared;
    if (swizzle != SWIZZLE_128 && swizzle != SWIZZLE_32)
        *fault = CUDA_ERROR_LAUNCH_FAILED;
    size_t at = base + ((first - base) & KNOWN) + row / 8 * stride + row % 8 * row_bytes + byte;
    at ^= (at >> 7 & (row_bytes / 16 - 1)) << 4;
    if (at < base || at + 2 > base + ptx_get_shared_bytes(b->launch))
        *fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    return (const uint8_t *)at;
}

/* The 16 rows of a warp of d = a b, or d += a b if the predicate is set; operands d, four registers of
 * a as in mma, the descriptor of b and the predicate. */
void ptx_multiply_group(const ptx_block *block, ptx_thread *lanes, const ptx_insn *i,
                        CUresult *fault) {
    enum { DEPTH = 16, MOST_COLUMNS = 128 };
    static double a[ROWS][DEPTH], b[DEPTH][MOST_COLUMNS];
    const ptx_type half = {'f', 16}, sum_type = {'f', 32};
    const uint32_t count = i->width / 2u;
    const ptx_arg *first = &i->args[count];
    for (uint32_t n = 0; n < LANES; n++)
        for (uint32_t k = 0; k < 8; k++)
            a[n / 4 + k / 2 % 2 * 8][k / 4 * 8 + n % 4 * 2 + k % 2] =
                read_element(ptx_read(block, &lanes[n], &first[k / 2]), half, k % 2);
    for (uint32_t k = 0; k < DEPTH && !*fault; k++)
        for (uint32_t n = 0; n < i->width && !*fault; n++) {
            uint16_t bits = 0;
            const uint8_t *at =
                find_element(block, ptx_read(block, lanes, &first[4]), n, 2 * k, fault);
            if (!*fault)
                memcpy(&bits, at, sizeof bits);
            b[k][n] = to_float(bits, half);
        }
    for (uint32_t n = 0; n < LANES && !*fault; n++)
        for (uint32_t k = 0; k < count; k++) {
            uint32_t row = n / 4 + k / 2 % 2 * 8, column = k / 4 * 8 + n % 4 * 2 + k % 2;
            bool adds = ptx_read(block, &lanes[n], &first[5]) & 1;
            double sum =
                adds ? read_element(ptx_read(block, &lanes[n], &i->args[k]), sum_type, 0) : 0;
            for (uint32_t m = 0; m < DEPTH; m++)
                sum += a[row][m] * b[m][column];
            lanes[n].registers[i->args[k].index] = write_sum(sum, sum_type);
        }
}
