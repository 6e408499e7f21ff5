/* rules: mistakes that are visible in the tokens of a file and that neither compiler reports.
 *
 * A rule never guesses at an error: cases it cannot decide (a template parameter as a type, a size
 * that only the compiler knows) pass. The one rule that does guess, the missing guard, is a
 * warning. */
#include "internal.h"

#include "limits.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const msl_unit *unit;
    remark_list *out;
} checker;

static int find_column(const tokens *t, at i) {
    uint32_t begin = t->list[i].begin, column = 1;
    while (begin > 0 && t->source[begin - 1] != '\n') {
        begin--;
        column++;
    }
    return (int)column;
}

/* The place of token i, as arguments of remark_add. */
#define PLACE(t, i) token_file(t, i), (t)->list[i].line, find_column(t, i)

/* The token of a parameter's name. */
static at find_param(const tokens *t, const kernel *k, const char *name) {
    at close = t->list[k->where.open].pair;
    at found = k->where.open;
    for (at i = k->where.open + 1; i < close && found == k->where.open; i++) {
        if (attribute_begins(t, i))
            i = attribute_skip(t, i) - 1;
        else if (token_is(t, i, name) && !token_is(t, i + 1, "*") && !token_is(t, i + 1, "&"))
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
    static const char *const stems[] = {"uint",     "ushort",   "int",          "short",
                                        "uint32_t", "uint16_t", "unsigned int", "unsigned",
                                        "int32_t",  "int16_t"};
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
    *is_index = false;
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        *is_index = *is_index || strcmp(plain, stems[i]) == 0;
    *is_index = *is_index && shape <= 3;
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
            remark_add(c->out, REMARK_ERROR, PLACE(t, place), "position-type",
                       "kernel %s: %s is %s, and [[%s]] is uint or ushort%s", k->name, p->name,
                       p->type, param_spell_kind(p->kind),
                       is_shaped(p->kind) ? ", or a vector of 2 or 3" : "");
        else if (is_shaped(p->kind) && first && own != shape)
            remark_add(c->out, REMARK_ERROR, PLACE(t, place), "position-shape",
                       "kernel %s: %s (%s) and %s (%s) differ in their number of components; MSL "
                       "wants all positions and sizes of a kernel to have the same",
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
            remark_add(c->out, REMARK_ERROR, PLACE(t, find_param(t, k, k->params[i].name)),
                       "threadgroup-index", "%s parameter must have threadgroup attribute",
                       k->params[i].name);
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
            remark_add(c->out, REMARK_ERROR, PLACE(t, find_param(t, k, b->name)), "buffer-index",
                       "kernel %s: %s and %s are both [[%s(%d)]]", k->name, a->name, b->name,
                       param_spell_kind(b->kind), b->index);
        }
}

static void check_support(const checker *c, const kernel *k) {
    const tokens *t = &c->unit->tokens;
    /* An index that MSL does not have is wrong on every device. */
    bool is_wrong = k->problem && strstr(k->problem, "index that is not within");
    if (is_wrong)
        remark_add(c->out, REMARK_ERROR, PLACE(t, k->where.name), "buffer-index", "%s", k->problem);
    else if (k->problem)
        remark_add(c->out, REMARK_WARNING, PLACE(t, k->where.name), "unsupported",
                   "%s; assay cannot run this kernel", k->problem);
}

/* Threadgroup memory ------------------------------------------------------------------------ */

static void check_memory(const checker *c, const kernel *k) {
    const tokens *t = &c->unit->tokens;
    uint64_t bytes = 0;
    for (at i = k->where.body, next; i < k->where.end; i = next) {
        next = i + 1;
        uint64_t more = token_is(t, i, "threadgroup") ? storage_measure(c->unit, i, &next) : 0;
        if (bytes <= MSL_THREADGROUP_BYTES && bytes + more > MSL_THREADGROUP_BYTES)
            remark_add(c->out, REMARK_ERROR, PLACE(t, i), "threadgroup-memory",
                       "kernel %s has %llu bytes of threadgroup memory with this, and a "
                       "threadgroup has %d",
                       k->name, (unsigned long long)(bytes + more), MSL_THREADGROUP_BYTES);
        bytes += more;
    }
}

/* Names ------------------------------------------------------------------------------------- */

static bool is_reserved(const tokens *t, at i) {
    static const char *const words[] = {"kernel",      "vertex",   "fragment",    "device",
                                        "constant",    "thread",   "half",        "bfloat",
                                        "threadgroup", "ray_data", "object_data", NULL};
    return token_is_one_of(t, i, words);
}

/* A keyword where only a name can be. In `f() const device;` and `coherent(device)` it is none. */
static bool is_used_as_name(const tokens *t, at i) {
    static const char *const after[] = {"=", ";", "[", ".", "++", "--", "+=", "-=", "*=", "/=",
                                        "+", "-", "/", "%", "<",  "<=", ">=", "==", "!=", NULL};
    static const char *const before[] = {")", "const", "volatile", "::", ".", "->", NULL};
    at last = token_before(i);
    if (token_is_one_of(t, last, before))
        return false;
    if (token_is_one_of(t, i + 1, after))
        return true;
    bool is_typed = last != NOT_FOUND && t->list[last].kind == TOKEN_WORD && !is_reserved(t, last);
    return is_typed && (token_is(t, i + 1, ",") || token_is(t, i + 1, ")"));
}

/* A name that is declared here: after a type, or after the marks that make it a pointer. */
static bool is_declared(const tokens *t, at i) {
    static const char *const after[] = {"=", ";", ",", ")", "[", "(", "{", NULL};
    static const char *const not_types[] = {"return", "else", "case", "goto", "typename", NULL};
    at last = token_before(i);
    if (last == NOT_FOUND || !token_is_one_of(t, i + 1, after))
        return false;
    return t->list[last].kind == TOKEN_WORD && !token_is_one_of(t, last, not_types);
}

static bool starts_with(const tokens *t, at i, const char *prefix) {
    size_t n = strlen(prefix);
    return t->list[i].bytes > n && strncmp(token_text(t, i), prefix, n) == 0;
}

static void check_names(const checker *c) {
    const tokens *t = &c->unit->tokens;
    for (at i = 0; i < t->count; i++) {
        if (attribute_begins(t, i)) {
            i = attribute_skip(t, i) - 1;
            continue;
        }
        if (t->list[i].kind != TOKEN_WORD)
            continue;
        if (is_reserved(t, i) && is_used_as_name(t, i))
            remark_add(c->out, REMARK_ERROR, PLACE(t, i), "reserved-name",
                       "'%.*s' is a keyword of MSL and cannot be a name", (int)t->list[i].bytes,
                       token_text(t, i));
        else if (starts_with(t, i, "__") && !starts_with(t, i, "__attribute") &&
                 !starts_with(t, i, "__builtin") && is_declared(t, i))
            remark_add(c->out, REMARK_WARNING, PLACE(t, i), "reserved-name",
                       "'%.*s' begins with two underscores: such names belong to the compiler",
                       (int)t->list[i].bytes, token_text(t, i));
        else if (token_is(t, i, "asm") || token_is(t, i, "__asm") || token_is(t, i, "__asm__"))
            remark_add(c->out, REMARK_ERROR, PLACE(t, i), "unsupported",
                       "assembly (and the names air.* of the compiler) is not part of MSL");
    }
}

static void check_guard(const checker *c, const kernel *k) {
    const tokens *t = &c->unit->tokens;
    at store = guard_find_missing(c->unit, k);
    if (store != NOT_FOUND)
        remark_add(c->out, REMARK_WARNING, PLACE(t, store), "missing-guard",
                   "kernel %s stores to %.*s by thread_position_in_grid and compares it with "
                   "nothing: a grid that is rounded up to whole threadgroups writes past the end",
                   k->name, (int)t->list[store].bytes, token_text(t, store));
}

/* Fast math ----------------------------------------------------------------------------------- */

static bool is_comparison(const tokens *t, at i) {
    static const char *const marks[] = {"==", "!=", "<", ">", "<=", ">=", NULL};
    return token_is_one_of(t, i, marks);
}

/* isnan(x), and INFINITY or numeric_limits<float>::infinity() beside a comparison; as values, such as the
 * first of a running maximum, they do what they should. */
static bool asks_for_nan(const tokens *t, at i) {
    static const char *const tests[] = {"isnan",     "isinf",       "isfinite", "isnormal",
                                        "isordered", "isunordered", NULL};
    static const char *const macros[] = {"INFINITY", "NAN", "HUGE_VALF", NULL};
    static const char *const methods[] = {"infinity", "quiet_NaN", NULL};
    at before = token_before(i);
    if (before == NOT_FOUND)
        return false;
    if (token_is_one_of(t, i, tests))
        return token_is(t, i + 1, "(") &&
               (t->list[before].kind != TOKEN_WORD || token_is(t, before, "return"));
    bool is_method = token_is_one_of(t, i, methods) && token_is(t, before, "::");
    if (!is_method && !token_is_one_of(t, i, macros))
        return false;
    while (is_method && before > 0 && !token_is(t, before, "numeric_limits"))
        before--;
    before -= is_method && before > 0;
    before -= is_method && token_is(t, before, "::") && before > 1 ? 2 : 0;
    before -= token_is(t, before, "-") && before > 0;
    return is_comparison(t, before) || is_comparison(t, is_method ? i + 3 : i + 1);
}

/* x != x */
static bool differs_from_itself(const tokens *t, at i) {
    static const char *const more[] = {".", "->", "::", "[", "(", NULL};
    return token_is(t, i, "!=") && i > 1 && t->list[i - 1].kind == TOKEN_WORD &&
           t->list[i - 1].bytes == t->list[i + 1].bytes &&
           memcmp(token_text(t, i - 1), token_text(t, i + 1), t->list[i - 1].bytes) == 0 &&
           !token_is(t, i - 2, ".") && !token_is(t, i - 2, "->") && !token_is(t, i - 2, "::") &&
           !token_is_one_of(t, i + 2, more);
}

/* The compiler may leave such a test out. A text that chooses its own mode is left alone. */
static void check_fast_math(const checker *c) {
    const tokens *t = &c->unit->tokens;
    for (size_t i = 0; i < t->directive_count; i++) {
        char line[80];
        snprintf(line, sizeof line, "%.*s", (int)t->directives[i].bytes,
                 t->source + t->directives[i].begin);
        if (strstr(line, "math_mode"))
            return;
    }
    for (at i = 0; i < t->count; i++)
        if (asks_for_nan(t, i) || differs_from_itself(t, i))
            remark_add(c->out, REMARK_WARNING, PLACE(t, i), "fast-math",
                       "fast math, which is Metal's default, assumes that there is no NaN and no "
                       "infinity, and may leave this test out: test the bits, or use safe math");
}

void msl_check_rules(const msl_unit *u, remark_list *out) {
    checker c = {u, out};
    for (size_t i = 0; i < u->kernel_count; i++) {
        check_support(&c, &u->kernels[i]);
        check_positions(&c, &u->kernels[i]);
        check_indices(&c, &u->kernels[i]);
        check_threadgroups(&c, &u->kernels[i]);
        check_memory(&c, &u->kernels[i]);
        check_guard(&c, &u->kernels[i]);
    }
    check_names(&c);
    check_fast_math(&c);
    language_check(u, out);
    msl_check_refused(u, out);
}
