/* rules: mistakes that are visible in the tokens of a file and that neither compiler reports.
 *
 * A rule never guesses at an error: cases it cannot decide (a template parameter as a type, a size
 * that only the compiler knows) pass. The one rule that does guess, the missing guard, is a
 * warning. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const msl_unit *unit;
    remark_list *out;
} checker;

#define TELL(kind, c, i, rule, ...)                                                                \
    remark_add((c)->out, kind, TOKEN_PLACE(&(c)->unit->tokens, i),                                 \
               token_column(&(c)->unit->tokens, i), rule, __VA_ARGS__)
#define REFUSE(c, i, rule, ...) TELL(REMARK_ERROR, c, i, rule, __VA_ARGS__)
#define WARN(c, i, rule, ...) TELL(REMARK_WARNING, c, i, rule, __VA_ARGS__)

/* The token of a parameter's name. */
static at find_param(const tokens *t, const kernel *k, const char *name) {
    at close = t->list[k->where.open].pair;
    at found = k->where.open;
    for (at i = k->where.open + 1; i < close && found == k->where.open; i++) {
        if (attribute_begins(t, i))
            i = t->list[i].pair;
        else if (token_is(t, i, name) && !token_is_one_of(t, i + 1, "* &"))
            found = i;
    }
    return found;
}

/* Parameters -------------------------------------------------------------------------------- */

/* Positions and sizes, whose number of components the kernel chooses. */
static bool is_shaped(msl_kind kind) {
    return (kind >= MSL_THREAD_POSITION_IN_GRID && kind <= MSL_THREADS_PER_GRID) ||
           kind == MSL_GRID_ORIGIN || kind == MSL_GRID_SIZE;
}

/* -1 for a type that is not one of the language: a template parameter may become the right one. */
static int get_shape(const char *type, bool *is_index) {
    uint32_t alignment;
    char plain[sizeof((msl_param *)0)->type];
    snprintf(plain, sizeof plain, "%s", strncmp(type, "const ", 6) == 0 ? type + 6 : type);
    if (!type_size(plain, &alignment))
        return -1;
    size_t n = strlen(plain);
    bool is_vector = n > 1 && plain[n - 1] >= '2' && plain[n - 1] <= '4' && plain[n - 2] != '3' &&
                     plain[n - 2] != '1' && plain[n - 2] != '6';
    int shape = is_vector ? plain[n - 1] - '0' : 1;
    plain[n - is_vector] = 0;
    *is_index = shape <= 3 && (strcmp(plain, "unsigned int") == 0 ||
                               word_is_one_of(plain, strlen(plain),
                                              "uint ushort int short uint32_t uint16_t unsigned "
                                              "int32_t int16_t"));
    return shape;
}

static void check_positions(const checker *c, const kernel *k) {
    const tokens *t = &c->unit->tokens;
    const msl_param *first = NULL;
    int shape = 0;
    for (size_t i = 0; i < k->count; i++) {
        const msl_param *p = &k->params[i];
        bool is_index = true;
        bool is_position = p->kind > MSL_THREADGROUP;
        bool is_place = is_position && strpbrk(p->type, "*&"); /* they are values */
        int own = is_position ? get_shape(p->type, &is_index) : -1;
        if (own < 0 && !is_place)
            continue;
        at place = find_param(t, k, p->name);
        if (is_place || !is_index || (!is_shaped(p->kind) && own != 1))
            REFUSE(c, place, "position-type", "kernel %s: %s is %s, and [[%s]] is uint or ushort%s",
                   k->name, p->name, p->type, param_spell_kind(p->kind),
                   is_shaped(p->kind) ? ", or a vector of 2 or 3" : "");
        else if (is_shaped(p->kind) && first && own != shape)
            REFUSE(c, place, "position-shape",
                   "kernel %s: %s (%s) and %s (%s) differ in their number of components; MSL wants "
                   "all positions and sizes of a kernel to have the same",
                   k->name, p->name, p->type, first->name, first->type);
        else if (is_shaped(p->kind) && !first) {
            first = p;
            shape = own;
        }
    }
}

/* Buffers are counted where they have no attribute. */
static void check_threadgroups(const checker *c, const kernel *k) {
    const tokens *t = &c->unit->tokens;
    for (size_t i = 0; i < k->count; i++)
        if (k->params[i].kind == MSL_THREADGROUP && !k->params[i].is_numbered)
            REFUSE(c, find_param(t, k, k->params[i].name), "threadgroup-index",
                   "%s parameter must have threadgroup attribute", k->params[i].name);
}

/* With a gate on either, only one of them may be there. */
static void check_indices(const checker *c, const kernel *k) {
    const tokens *t = &c->unit->tokens;
    for (size_t i = 0; i < k->count; i++)
        for (size_t n = 0; n < i; n++) {
            const msl_param *a = &k->params[n], *b = &k->params[i];
            if (a->kind != b->kind || a->index < 0 || a->index != b->index || a->gate[0] ||
                b->gate[0])
                continue;
            REFUSE(c, find_param(t, k, b->name), "buffer-index",
                   "kernel %s: %s and %s are both [[%s(%d)]]", k->name, a->name, b->name,
                   param_spell_kind(b->kind), b->index);
        }
}

static void check_support(const checker *c, const kernel *k) {
    /* An index that MSL does not have is wrong on every device. */
    if (k->problem && strstr(k->problem, "index that is not within"))
        REFUSE(c, k->where.name, "buffer-index", "%s", k->problem);
    else if (k->problem)
        WARN(c, k->where.name, "unsupported", "%s; assay cannot run this kernel", k->problem);
}

/* Threadgroup memory ------------------------------------------------------------------------ */

static void check_memory(const checker *c, const kernel *k) {
    const tokens *t = &c->unit->tokens;
    uint64_t bytes = 0;
    for (at i = k->where.body, next; i < k->where.end; i = next) {
        next = i + 1;
        uint64_t more = token_is(t, i, "threadgroup") ? storage_measure(c->unit, i, &next) : 0;
        if (bytes <= MSL_THREADGROUP_BYTES && bytes + more > MSL_THREADGROUP_BYTES)
            REFUSE(c, i, "threadgroup-memory",
                   "kernel %s has %llu bytes of threadgroup memory with this, and a threadgroup "
                   "has %d",
                   k->name, (unsigned long long)(bytes + more), MSL_THREADGROUP_BYTES);
        bytes += more;
    }
}

/* Names ------------------------------------------------------------------------------------- */

static const char reserved[] = "kernel vertex fragment device constant thread half bfloat "
                               "threadgroup ray_data object_data";

/* A keyword where only a name can be. In `f() const device;` and `coherent(device)` it is none. */
static bool is_used_as_name(const tokens *t, at i) {
    at last = token_before(i);
    if (token_is_one_of(t, last, ") const volatile :: . ->"))
        return false;
    if (token_is_one_of(t, i + 1, "= ; [ . ++ -- += -= *= /= + - / % < <= >= == !="))
        return true;
    bool is_typed = token_is_word(t, last) && !token_is_one_of(t, last, reserved);
    return is_typed && token_is_one_of(t, i + 1, ", )");
}

/* A name that is declared here: after a type, or after the marks that make it a pointer. */
static bool is_declared(const tokens *t, at i) {
    at last = token_before(i);
    return token_is_one_of(t, i + 1, "= ; , ) [ ( {") && token_is_word(t, last) &&
           !token_is_one_of(t, last, "return else case goto typename");
}

static void check_names(const checker *c) {
    const tokens *t = &c->unit->tokens;
    for (at i = 0; i < t->count; i++) {
        if (attribute_begins(t, i))
            i = t->list[i].pair;
        else if (token_is_one_of(t, i, reserved) && is_used_as_name(t, i))
            REFUSE(c, i, "reserved-name", "'%.*s' is a keyword of MSL and cannot be a name",
                   TOKEN_SPELL(t, i));
        else if (token_is_one_of(t, i, "__*") &&
                 !token_is_one_of(t, i, "__attribute* __builtin*") && is_declared(t, i))
            WARN(c, i, "reserved-name",
                 "'%.*s' begins with two underscores: such names belong to the compiler",
                 TOKEN_SPELL(t, i));
        else if (token_is_one_of(t, i, "asm __asm __asm__"))
            REFUSE(c, i, "unsupported",
                   "assembly (and the names air.* of the compiler) is not part of MSL");
    }
}

/* Guards: kernels that store at an index made from their thread's position in the grid, and never
 * check whether it is in range. A grid is usually rounded up to whole threadgroups, so such a kernel
 * writes past the end. Whether it does depends on the launch, and tokens do not tell what an
 * expression means: this is a warning. A check is any comparison, min, clamp, % or & that has the
 * position, or a variable made from it, in it. ------------------------------------------------ */

enum { MOST_NAMES = 64 };

/* Names that hold the position, or something computed from it. */
typedef struct {
    const tokens *t;
    const kernel *kernel;
    at names[MOST_NAMES];
    size_t count;
} taint;

static bool is_tainted(const taint *n, at i) {
    const tokens *t = n->t;
    if (!token_is_word(t, i) || token_is_one_of(t, token_before(i), ". ->"))
        return false;
    for (size_t k = 0; k < n->count; k++)
        if (token_is_same(t, n->names[k], i))
            return true;
    return false;
}

static bool has_taint(const taint *n, at begin, at end) {
    for (at i = begin; i < end; i++)
        if (is_tainted(n, i))
            return true;
    return false;
}

static void add_name(taint *n, at i) {
    if (n->count < MOST_NAMES && !is_tainted(n, i))
        n->names[n->count++] = i;
}

static void add_positions(taint *n) {
    const tokens *t = n->t;
    at open = n->kernel->where.open, close = t->list[open].pair;
    for (size_t p = 0; p < n->kernel->count; p++) {
        const msl_param *param = &n->kernel->params[p];
        for (at i = open + 1; i < close; i++)
            if (param->kind == MSL_THREAD_POSITION_IN_GRID && token_is(t, i, param->name))
                add_name(n, i);
    }
}

/* `uint row = gid.y * 4;` taints row. */
static void add_variables(taint *n) {
    const tokens *t = n->t;
    for (at i = n->kernel->where.body; i < n->kernel->where.end; i++)
        if (token_is(t, i, "=") && token_is_word(t, i - 1) && token_is_word(t, i - 2)) {
            const at end = tokens_find(t, i, n->kernel->where.end, "; }");
            if (has_taint(n, i + 1, tokens_end_item(t, i + 1, end)))
                add_name(n, i - 1);
        }
}

/* The operands around i: up to the brackets, commas and semicolons on both sides. */
static range find_operands(const tokens *t, at i, at first, at last) {
    static const char stops[] = "; , { } ? && || = return";
    range r = {i, i};
    while (r.begin > first && !token_is_one_of(t, r.begin - 1, stops) &&
           (t->list[r.begin - 1].pair == NOT_FOUND || t->list[r.begin - 1].pair < r.begin - 1))
        r.begin = t->list[r.begin - 1].pair != NOT_FOUND ? t->list[r.begin - 1].pair : r.begin - 1;
    while (r.end < last && !token_is_one_of(t, r.end, stops) &&
           (t->list[r.end].pair == NOT_FOUND || t->list[r.end].pair > r.end))
        r.end = t->list[r.end].pair != NOT_FOUND ? t->list[r.end].pair + 1 : r.end + 1;
    return r;
}

static bool has_guard(const taint *n) {
    const tokens *t = n->t;
    at body = n->kernel->where.body, end = n->kernel->where.end;
    for (at i = body; i < end; i++) {
        if (token_is_one_of(t, i, "< <= > >= == != % &")) {
            range r = find_operands(t, i, body, end);
            if (has_taint(n, r.begin, r.end))
                return true;
        } else if (token_is_one_of(t, i, "min clamp select any all") && token_is(t, i + 1, "(") &&
                   has_taint(n, i + 1, t->list[i + 1].pair)) {
            return true;
        }
    }
    return false;
}

static bool is_device_output(const kernel *k, const tokens *t, at i) {
    for (size_t p = 0; p < k->count; p++)
        if (k->params[p].kind == MSL_BUFFER && k->params[p].space == MSL_SPACE_DEVICE &&
            !k->params[p].is_const && token_is(t, i, k->params[p].name))
            return true;
    return false;
}

/* `out[i] = ` and `out[i].x += `: the token of `out`, or NOT_FOUND. */
static at find_store(const taint *n) {
    const tokens *t = n->t;
    for (at i = n->kernel->where.body; i < n->kernel->where.end; i++) {
        if (!is_device_output(n->kernel, t, i) || !token_is(t, i + 1, "["))
            continue;
        at after = t->list[i + 1].pair + 1;
        if (token_is(t, after, "."))
            after += 2;
        if (token_is_one_of(t, after, "= += -= *= /= %= &= |= ^= ++ <<= >>= --") &&
            has_taint(n, i + 2, t->list[i + 1].pair))
            return i;
    }
    return NOT_FOUND;
}

static void check_guard(const checker *c, const kernel *k) {
    taint n = {.t = &c->unit->tokens, .kernel = k};
    if (k->where.body == NOT_FOUND || k->problem)
        return;
    add_positions(&n);
    add_variables(&n);
    at store = n.count > 0 ? find_store(&n) : NOT_FOUND;
    if (store != NOT_FOUND && !has_guard(&n))
        WARN(c, store, "missing-guard",
             "kernel %s stores to %.*s by thread_position_in_grid and compares it with "
             "nothing: a grid that is rounded up to whole threadgroups writes past the end",
             k->name, TOKEN_SPELL(n.t, store));
}

/* Fast math ----------------------------------------------------------------------------------- */

/* isnan(x), and INFINITY or numeric_limits<float>::infinity() beside a comparison; as values, such as the
 * first of a running maximum, they do what they should. */
static bool asks_for_nan(const tokens *t, at i) {
    static const char comparisons[] = "== != < > <= >=";
    at before = token_before(i);
    if (before == NOT_FOUND)
        return false;
    if (token_is_one_of(t, i, "isnan isinf isfinite isnormal isordered isunordered"))
        return token_is(t, i + 1, "(") &&
               (!token_is_word(t, before) || token_is(t, before, "return"));
    bool is_method = token_is_one_of(t, i, "infinity quiet_NaN") && token_is(t, before, "::");
    if (!is_method && !token_is_one_of(t, i, "INFINITY NAN HUGE_VALF"))
        return false;
    while (is_method && before > 0 && !token_is(t, before, "numeric_limits"))
        before--;
    before -= is_method && before > 0;
    before -= is_method && token_is(t, before, "::") && before > 1 ? 2 : 0;
    before -= token_is(t, before, "-") && before > 0;
    return token_is_one_of(t, before, comparisons) ||
           token_is_one_of(t, is_method ? i + 3 : i + 1, comparisons);
}

/* x != x */
static bool differs_from_itself(const tokens *t, at i) {
    return token_is(t, i, "!=") && i > 1 && token_is_word(t, i - 1) &&
           token_is_same(t, i - 1, i + 1) && !token_is_one_of(t, i - 2, ". -> ::") &&
           !token_is_one_of(t, i + 2, ". -> :: [ (");
}

/* The compiler may leave such a test out. A text that chooses its own mode is left alone. */
void msl_check_fast_math(const msl_unit *u, remark_list *out) {
    const checker checked = {u, out}, *c = &checked;
    const tokens *t = &u->tokens;
    for (size_t i = 0; i < t->directive_count; i++)
        if (directive_has(t, &t->directives[i], "math_mode"))
            return;
    for (at i = 0; i < t->count; i++)
        if (asks_for_nan(t, i) || differs_from_itself(t, i))
            WARN(c, i, "fast-math",
                 "fast math, which is Metal's default, assumes that there is no NaN and no "
                 "infinity, and may leave this test out: test the bits, or use safe math");
}

void msl_check_rules(const msl_unit *u, remark_list *out) {
    static void (*const of_kernels[])(const checker *, const kernel *) = {
        check_support,      check_positions, check_indices,
        check_threadgroups, check_memory,    check_guard};
    checker c = {u, out};
    for (size_t i = 0; i < u->kernel_count; i++)
        for (size_t k = 0; k < sizeof of_kernels / sizeof *of_kernels; k++)
            of_kernels[k](&c, &u->kernels[i]);
    check_names(&c);
    msl_check_fast_math(u, out);
    language_check(u, out);
    msl_check_refused(u, out);
}
