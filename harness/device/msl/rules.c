/* rules: mistakes that are visible in the tokens of a file and that neither compiler reports.
 *
 * A rule never guesses at an error: cases it cannot decide (a template parameter as a type, a size
 * that only the compiler knows) pass. The one rule that does guess, the missing guard, is a
 * warning. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const msl_unit *unit;
    remark_list *out;
} checker;

static int token_column(const tokens *t, at i) {
    uint32_t begin = t->list[i].begin;
    while (begin > 0 && t->source[begin - 1] != '\n')
        begin--;
    return (int)(t->list[i].begin - begin + 1);
}

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

/* Names that hold the position, or something computed from it. */
typedef struct {
    const tokens *t;
    const kernel *kernel;
    at *names;
    size_t count, room;
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
    if (!is_tainted(n, i))
        *ARRAY_ADD(n->names, n->count, n->room) = i;
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
    free(n.names);
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

/* C++ that is not MSL, as far as tokens show it: recursion, virtual methods, kernels that return a value,
 * have another's name or call kernels, threadgroup variables with a first value, buffers by value, helpers
 * that are declared and never defined. Calls are recognised by name. Of a name that has several functions
 * (overloads, templates, methods) nothing is said: which one is meant only the compiler knows. ---- */

typedef struct {
    at name;
    at body, end; /* of the definition; NOT_FOUND: only declared */
    size_t definitions;
    size_t declarations;
    bool is_plain;    /* no template, kernel or operator */
    bool is_kernel;   /* and nothing else has the name */
    bool is_template; /* of functions that would be plain */
    int state;        /* of the search: 0 new, 1 on the way, 2 done */
} function;

typedef struct {
    const msl_unit *unit;
    remark_list *out;
    function *list;
    size_t count, room;
} functions;

static function *find_function(const functions *f, at name) {
    for (size_t i = 0; i < f->count; i++)
        if (token_is_same(&f->unit->tokens, f->list[i].name, name))
            return &f->list[i];
    return NULL;
}

/* What stands before the name says what it is. */
static bool is_plain_function(const tokens *t, const decl *d) {
    return token_is_word(t, d->name) && !token_is_one_of(t, token_before(d->name), ":: ~") &&
           !tokens_have(t, d->begin, d->name,
                        "kernel operator friend using typedef virtual extern");
}

static void add_function(functions *f, const decl *d) {
    const tokens *t = &f->unit->tokens;
    function *known = find_function(f, d->name);
    if (!known) {
        known = ARRAY_ADD(f->list, f->count, f->room);
        *known = (function){d->name, NOT_FOUND, 0, 0, 0, true, true, true, 0};
    }
    bool is_template = token_is(t, d->begin, "template"), is_plain = is_plain_function(t, d);
    known->declarations++;
    known->is_kernel = known->is_kernel && tokens_have(t, d->begin, d->name, "kernel");
    known->is_plain = known->is_plain && is_plain && !is_template;
    known->is_template = known->is_template && is_plain && is_template;
    if (d->body != NOT_FOUND) {
        known->definitions++;
        known->body = d->body;
        known->end = d->end;
    }
}

/* A word that is no member. */
static bool is_free_word(const tokens *t, at i) {
    return token_is_word(t, i) && !token_is_one_of(t, token_before(i), ". -> ::");
}

static bool is_call(const tokens *t, at i) {
    return is_free_word(t, i) && token_is(t, i + 1, "(");
}

static void tell(const msl_unit *u, remark_list *out, at i, const char *rule, const char *what) {
    const tokens *t = &u->tokens;
    remark_add(out, REMARK_ERROR, TOKEN_PLACE(t, i), 1, rule, "'%.*s' %s", TOKEN_SPELL(t, i), what);
}

/* A template that calls its own name without naming arguments, where the name has one meaning only:
 * no other function, nothing of the language, no choice at compile time that could end it. */
static bool calls_itself(const functions *f, const function *one) {
    static const char library[] = "abs all any ceil clamp cos cross distance dot exp exp2 fabs "
                                  "floor fma fmax fmin fract isnan "
                                  "log log2 max min mix length pow normalize round rsqrt rint sin "
                                  "sqrt sign select tan simd_sum "
                                  "simd_max tanh trunc isinf simd_min";
    const tokens *t = &f->unit->tokens;
    if (!one->is_template || one->definitions != 1 || one->declarations != 1 ||
        token_is_one_of(t, one->name, library) ||
        tokens_have(t, one->name, one->end, "constexpr ..."))
        return false;
    for (at i = one->body + 1; i < one->end; i++)
        if (is_call(t, i) && token_is_same(t, i, one->name))
            return true;
    return false;
}

/* Follows calls; one that leads back to a function on the way is a recursion. */
static void follow(const functions *f, function *from) {
    const tokens *t = &f->unit->tokens;
    from->state = 1;
    for (at i = from->body; i < from->end; i++) {
        function *to = is_call(t, i) ? find_function(f, i) : NULL;
        if (!to || !to->is_plain || to->definitions != 1)
            continue;
        if (to->state == 1)
            tell(f->unit, f->out, i, "recursion",
                 "calls itself in the end, and MSL has no recursion");
        else if (to->state == 0)
            follow(f, to);
    }
    from->state = 2;
}

/* Also with template arguments. */
static void check_calls(const functions *f, const kernel *k) {
    const tokens *t = &f->unit->tokens;
    for (at i = k->where.body + 1; i < k->where.end; i++) {
        at angle = token_is(t, i + 1, "<") ? tokens_close_angle(t, i + 1) : i;
        const function *to = is_free_word(t, i) ? find_function(f, i) : NULL;
        if (to && to->is_kernel && angle != NOT_FOUND && token_is(t, angle + 1, "("))
            tell(f->unit, f->out, i, "kernel-call",
                 "is a kernel, and a kernel cannot call a kernel");
    }
}

static bool is_called(const functions *f, at name) {
    const tokens *t = &f->unit->tokens;
    for (at i = 0; i < t->count; i++)
        if (i != name && is_call(t, i) && token_is_same(t, i, name))
            return true;
    return false;
}

static void check_functions(const msl_unit *u, remark_list *out) {
    functions f = {.unit = u, .out = out};
    const decl *decls = u->tokens.decls;
    for (size_t i = 0; i < u->tokens.decl_count; i++)
        if (decls[i].kind == DECL_FUNCTION && decls[i].name != NOT_FOUND)
            add_function(&f, &decls[i]);
    for (size_t i = 0; i < f.count; i++) {
        function *one = &f.list[i];
        if ((one->is_plain || one->is_template) && one->definitions == 0 &&
            is_called(&f, one->name))
            tell(u, out, one->name, "undefined", "is declared and called, and nothing defines it");
        if (one->is_plain && one->definitions == 1 && one->state == 0)
            follow(&f, one);
        if (calls_itself(&f, one))
            tell(u, out, one->name, "recursion", "calls itself, and MSL has no recursion");
    }
    for (size_t i = 0; i < u->kernel_count; i++)
        check_calls(&f, &u->kernels[i]);
    free(f.list);
}

/* Is it a class of this file? */
static bool is_class(const tokens *t, const char *type) {
    type += strncmp(type, "const ", 6) == 0 ? 6 : 0;
    for (at i = 0; i + 1 < t->count; i++)
        if (token_is_one_of(t, i, "struct class union enum") && token_is(t, i + 1, type))
            return true;
    return false;
}

static void check_kernel(const msl_unit *u, const kernel *k, remark_list *out) {
    const tokens *t = &u->tokens;
    if (!tokens_have(t, k->where.begin, k->where.name, "void"))
        tell(u, out, k->where.name, "kernel-result",
             "is a kernel that returns a value; it must be void");
    for (const kernel *o = u->kernels; o < k; o++)
        if (strcmp(o->name, k->name) == 0 && o->template_open == k->template_open)
            tell(u, out, k->where.name, "language",
                 "is the name of another kernel: kernels cannot be overloaded");
    for (at i = k->where.body; i < k->where.end; i++) {
        at value = token_is(t, i, "threadgroup") ? storage_find_value(u, i) : NOT_FOUND;
        if (value != NOT_FOUND)
            remark_add(
                out, REMARK_WARNING, TOKEN_PLACE(t, i), 1, "threadgroup-value",
                "the first value of a threadgroup variable is taken by Apple's compiler, and "
                "MSL promises none: one thread stores it, then a barrier");
    }
    for (size_t i = 0; i < k->count; i++) {
        const msl_param *p = &k->params[i];
        if (p->kind != MSL_BUFFER)
            continue;
        uint32_t alignment; /* textures and the like are no buffers, and have no size */
        bool is_value = !strpbrk(p->type, "*&[") &&
                        (p->space != MSL_SPACE_NONE || type_size(p->type, &alignment) > 0 ||
                         is_class(t, p->type));
        if (is_value)
            remark_add(out, REMARK_ERROR, TOKEN_PLACE(t, k->where.name), 1, "buffer-value",
                       "kernel %s: %s is a buffer and %s is no pointer or reference", k->name,
                       p->name, p->type);
    }
}

static void check_language(const msl_unit *u, remark_list *out) {
    for (size_t i = 0; i < u->kernel_count; i++)
        check_kernel(u, &u->kernels[i], out);
    for (at i = 0; i < u->tokens.count; i++)
        if (token_is(&u->tokens, i, "virtual"))
            tell(u, out, i, "language", "is not part of MSL: it has no virtual methods");
    check_functions(u, out);
}

/* What Apple's compiler refuses and clang's does not, in Apple's words: lambdas before MSL 3.2, noexcept,
 * long long, goto, labels, names that the language got later, and pointer and reference types without an
 * address space. A type is recognised by its name: one of the language, or a class of the file. Template
 * parameters, auto and typedefs may bring a space along, so of them nothing is said. Nor is anything said
 * of words after `#pragma METAL internals : enable`, with which Apple's own headers are compiled. - */

typedef struct {
    const msl_unit *unit;
    remark_list *out;
    at *classes; /* their names, each once */
    size_t class_count, class_room;
} refusal;

/* `[` that is no index, no array and no attribute, before parameters or a body. */
static bool is_lambda(const tokens *t, at i) {
    at before = token_before(i);
    if (!token_is(t, i, "[") || attribute_begins(t, i))
        return false;
    bool follows_value =
        before != NOT_FOUND &&
        (t->list[before].kind == TOKEN_MARK ? token_is_one_of(t, before, ") ] >")
                                            : !token_is_one_of(t, before, "return else do case"));
    at after = t->list[i].pair + 1;
    return !follows_value && token_is_one_of(t, after, "( {");
}

/* Does the file define the name itself? */
static bool is_defined(const tokens *t, at name) {
    for (at i = 1; i < t->count; i++)
        if (token_is_same(t, i, name) && token_is_word(t, i - 1) &&
            (token_is_one_of(t, i - 1, "struct class using") || token_is(t, i + 1, ";")))
            return true;
    return false;
}

/* Names of the library by the version that brought them. */
static void check_version(const refusal *r, at i) {
    static const struct {
        int since;
        const char *names, *message;
    } rows[] = {{310, "bfloat bfloat2 bfloat3 bfloat4 simdgroup_bfloat8x8", "unknown type name"},
                {320, "atomic_thread_fence", "use of undeclared identifier"}};
    const tokens *t = &r->unit->tokens;
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++)
        if (r->unit->language < rows[n].since && token_is_one_of(t, i, rows[n].names) &&
            !token_is_one_of(t, token_before(i), ". ->") && !is_defined(t, i))
            REFUSE(r, i, "version", "%s '%.*s'", rows[n].message, TOKEN_SPELL(t, i));
}

static void check_word(const refusal *r, at i) {
    const tokens *t = &r->unit->tokens;
    if (token_is_one_of(t, i, "noexcept goto"))
        REFUSE(r, i, "language", "'%.*s' is not supported in Metal", TOKEN_SPELL(t, i));
    else if (token_is(t, i, "long") && token_is(t, i + 1, "long"))
        REFUSE(r, i, "language", "'long long' is not supported in Metal");
    else
        check_version(r, i);
}

/* Pointers and references --------------------------------------------------------------------- */

static const char spaces[] =
    "device constant thread threadgroup threadgroup_imageblock ray_data object_data";

/* A name that a variable has too is no type where it stands before an operator. */
static bool is_named(const tokens *t, at name) {
    static const char heads[] =
        "struct class union enum typename template return const volatile static inline using "
        "typedef "
        "constexpr friend device thread constant case threadgroup else new METAL_FUNC";
    for (at i = 1; i < t->count; i++)
        if (token_is_word(t, i) && token_is_word(t, i - 1) && token_is_same(t, i, name) &&
            !token_is_one_of(t, i - 1, heads))
            return true;
    return false;
}

static void find_classes(refusal *r) {
    const tokens *t = &r->unit->tokens;
    for (at i = 0; i + 2 < t->count; i++)
        if (token_is_one_of(t, i, "struct class union") && token_is_word(t, i + 1) &&
            !token_is_one_of(t, token_before(i), "< ,") && /* template <class T> */
            !is_named(t, i + 1))
            *ARRAY_ADD(r->classes, r->class_count, r->class_room) = i + 1;
}

static bool is_type(const refusal *r, at i) {
    const tokens *t = &r->unit->tokens;
    if (!token_is_word(t, i))
        return false;
    uint32_t alignment;
    char *name = token_copy(t, i);
    bool is_known =
        type_size(name, &alignment) > 0 || token_is_one_of(t, i, "void unsigned signed");
    free(name);
    for (size_t n = 0; n < r->class_count && !is_known; n++)
        is_known = token_is_same(t, r->classes[n], i);
    return is_known;
}

/* `name:` where a statement begins, but for those of a switch and of a class; `uint : 3` is a field. */
static void check_label(const refusal *r, at i) {
    const tokens *t = &r->unit->tokens;
    if (token_is(t, i + 1, ":") && token_is_one_of(t, token_before(i), "; { }") &&
        !token_is_one_of(t, i, "default public private protected enum struct class") &&
        !is_type(r, i))
        REFUSE(r, i, "language", "labeled statements are not supported in Metal");
}

/* The `<` that the `>` at i closes; i if there is none. */
static at open_angle(const tokens *t, at i) {
    int depth = 0;
    for (at k = i; k != NOT_FOUND && i - k < 64; k = token_before(k)) {
        depth += token_is(t, k, ">") - token_is(t, k, "<");
        if (token_is_one_of(t, k, "; { }"))
            break;
        if (depth == 0)
            return k;
    }
    return i;
}

/* `before` is the last token of what may be a type. Is it one, and is no space among its words? */
static bool lacks_space(const refusal *r, at before) {
    const tokens *t = &r->unit->tokens;
    while (token_is_one_of(t, before, "const volatile restrict"))
        before = token_before(before);
    if (before == NOT_FOUND)
        return false;
    at name = token_is(t, before, ">") ? token_before(open_angle(t, before)) : before;
    if (name == NOT_FOUND || !is_type(r, name))
        return false;
    for (at i = name; i != NOT_FOUND; i = token_before(i)) {
        if (token_is_one_of(t, i, spaces))
            return false;
        if (!token_is_word(t, i) && !token_is(t, i, "::"))
            break;
    }
    at room = token_is(t, token_before(name), "::") ? name - 2 : NOT_FOUND;
    return room == NOT_FOUND || token_is(t, room, "metal"); /* T::float2 may be anything */
}

/* `float *` and `float &`; `float (&x)[2]`, but not `float (*f)(float)`: functions have no space. */
static void check_pointer(const refusal *r, at i) {
    const tokens *t = &r->unit->tokens;
    at before = token_before(i);
    if (before != NOT_FOUND && token_is(t, before, "(")) {
        if (!token_is(t, t->list[before].pair + 1, "["))
            return;
        before = token_before(before);
    }
    if (before != NOT_FOUND && lacks_space(r, before))
        REFUSE(r, i, "address-space", "%s type must have explicit address space qualifier",
               token_is(t, i, "*") ? "pointer" : "reference");
}

/* Reads the pragmas in front of token i. */
static void read_pragmas(const tokens *t, at i, size_t *next, bool *is_internal) {
    for (; *next < t->directive_count && t->directives[*next].begin < t->list[i].begin; ++*next) {
        char state[16];
        const directive *d = &t->directives[*next];
        if (directive_is(t, d, "pragma") &&
            sscanf(t->source + d->operand, "METAL internals : %15s", state) == 1)
            *is_internal = strcmp(state, "enable") == 0;
    }
}

void msl_check_refused(const msl_unit *u, remark_list *out) {
    const tokens *t = &u->tokens;
    refusal r = {.unit = u, .out = out};
    size_t pragma = 0;
    bool is_internal = false;
    find_classes(&r);
    for (at i = 0; i < t->count; i++) {
        read_pragmas(t, i, &pragma, &is_internal);
        if (attribute_begins(t, i))
            i = t->list[i].pair;
        else if (token_is_word(t, i) && !is_internal) {
            check_word(&r, i);
            check_label(&r, i);
        } else if (u->language < 320 && !is_internal && is_lambda(t, i))
            REFUSE(&r, i, "language", "lambda expressions are not supported in Metal");
        else if (token_is_one_of(t, i, "* & &&"))
            check_pointer(&r, i);
    }
    free(r.classes);
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
    check_language(u, out);
    msl_check_refused(u, out);
}
