/* ir_layout: see ir_layout.h. Sizes are those of 64-bit machines, where every scalar is aligned to
 * its own size. */
#include "ir_layout.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "harness/base/array.h"

typedef struct {
    uint64_t bytes, align;
} layout;

typedef struct {
    const ir_types *types;
    const char *at, *end;
    int depth;
} cursor;

enum { MOST_DEPTH = 32, MOST_BYTES = 1 << 24 };

void ir_types_read(ir_types *t, const char *module) {
    for (const char *p = module; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const char *equals = *p == '%' ? strstr(p, " = type ") : NULL;
        if (!equals || equals > p + strcspn(p, "\n"))
            continue;
        const char *body = equals + strlen(" = type ");
        *ARRAY_ADD(t->list, t->count, t->room) =
            (ir_named){{p, (size_t)(equals - p)}, {body, strcspn(body, "\n")}};
    }
}

static const ir_named *find_named(const ir_types *t, span name) {
    for (size_t i = 0; i < t->count; i++)
        if (t->list[i].name.bytes == name.bytes &&
            memcmp(t->list[i].name.at, name.at, name.bytes) == 0)
            return &t->list[i];
    return NULL;
}

/* Takes the word if it comes next. */
static bool take(cursor *c, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static uint64_t take_number(cursor *c) {
    uint64_t n = 0;
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++)
        n = n < MOST_BYTES ? n * 10 + (uint64_t)(*c->at - '0') : n;
    return n;
}

static span take_name(cursor *c) {
    span s = {c->at, 1};
    if (s.at + 1 < c->end && s.at[1] == '"')
        for (s.bytes = 2; s.at + s.bytes < c->end && s.at[s.bytes++] != '"';)
            ;
    else
        while (s.at + s.bytes < c->end &&
               (isalnum((unsigned char)s.at[s.bytes]) || strchr("-$._", s.at[s.bytes])))
            s.bytes++;
    c->at += s.bytes;
    return s;
}

static bool is_of_shim(span name) {
    static const char *const starts[] = {
        "%\"struct.metal::", "%\"class.metal::", "%\"struct.assay::", "%\"class.assay::"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (name.bytes > strlen(starts[i]) && memcmp(name.at, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

static bool read_type(cursor *c, bool is_shim, layout *out, unsigned char *marks);

static bool read_scalar(cursor *c, layout *out, unsigned char *marks) {
    static const struct {
        const char *name;
        uint64_t bytes;
    } scalars[] = {{"half", 2}, {"bfloat", 2}, {"float", 4}, {"double", 8}, {"ptr", 8}};
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars && !bytes; i++)
        if (take(c, scalars[i].name))
            bytes = scalars[i].bytes;
    if (!bytes && take(c, "i")) {
        uint64_t bits = take_number(c);
        for (bytes = 1; bytes * 8 < bits;)
            bytes *= 2;
    }
    *out = (layout){bytes, bytes};
    if (marks)
        memset(marks, SOFT_MARK_UNSET, bytes);
    return bytes > 0;
}

/* `[8 x float]` and `<4 x float>`, after the bracket. */
static bool read_row(cursor *c, bool is_vector, bool is_shim, layout *out, unsigned char *marks) {
    uint64_t n = take_number(c);
    layout e;
    if (!take(c, " x ") || !read_type(c, is_shim, &e, n ? marks : NULL) ||
        !take(c, is_vector ? ">" : "]") || (e.bytes && n > MOST_BYTES / e.bytes))
        return false;
    for (uint64_t i = 1; marks && i < n; i++)
        memcpy(marks + i * e.bytes, marks, e.bytes);
    *out = (layout){n * e.bytes, e.align};
    if (is_vector)
        for (out->align = 1; out->align < out->bytes;)
            out->align *= 2;
    return !is_vector || out->align == out->bytes;
}

/* Clang fills gaps that LLVM would not leave with arrays of bytes, which look like members. At the
 * end they make the size a multiple of a larger alignment. */
static bool is_padding(const char *type, uint64_t bytes, uint64_t end, uint64_t align,
                       bool is_packed, bool is_last) {
    if (type[0] != '[' || strncmp(type + 1 + strspn(type + 1, "0123456789"), " x i8]", 6) != 0)
        return false;
    uint64_t multiple = end & (~end + 1);
    return is_packed ? bytes < 16 : is_last && multiple > align && bytes < multiple;
}

/* `{ float, i8 }` after the bracket. */
static bool read_members(cursor *c, bool is_packed, bool is_shim, layout *out,
                         unsigned char *marks) {
    *out = (layout){0, 1};
    uint64_t end = 0;
    while (!take(c, " }") && !take(c, "}")) {
        if (!take(c, " ") && !take(c, ", "))
            return false;
        cursor ahead = *c;
        layout m;
        if (!read_type(&ahead, is_shim, &m, NULL))
            return false;
        uint64_t align = is_packed ? 1 : m.align, at = (end + align - 1) / align * align;
        end = at + m.bytes;
        const bool is_last = ahead.at < ahead.end && *ahead.at == ' ';
        if (end > MOST_BYTES)
            return false;
        if (marks && is_padding(c->at, m.bytes, end, out->align, is_packed, is_last))
            memset(marks + at, is_shim ? 0 : SOFT_MARK_MAYBE, m.bytes);
        else if (marks && !read_type(c, is_shim, &m, marks + at))
            return false;
        c->at = ahead.at;
        out->align = align > out->align ? align : out->align;
    }
    out->bytes = (end + out->align - 1) / out->align * out->align;
    return !is_packed || take(c, ">");
}

static bool read_named(cursor *c, layout *out, unsigned char *marks) {
    const span name = take_name(c);
    const ir_named *n = find_named(c->types, name);
    if (!n)
        return false;
    cursor body = {c->types, n->body.at, n->body.at + n->body.bytes, c->depth};
    if (!read_type(&body, is_of_shim(name), out, marks))
        return false;
    if (marks && strncmp(name.at + 1 + (name.at[1] == '"'), "union.", 6) == 0)
        memset(marks, SOFT_MARK_MAYBE, out->bytes);
    return true;
}

static bool read_plain(cursor *c, bool is_shim, layout *out, unsigned char *marks) {
    return take(c, "<{")   ? read_members(c, true, is_shim, out, marks)
           : take(c, "{")  ? read_members(c, false, is_shim, out, marks)
           : take(c, "[")  ? read_row(c, false, is_shim, out, marks)
           : take(c, "<")  ? read_row(c, true, is_shim, out, marks)
           : *c->at == '%' ? read_named(c, out, marks)
                           : read_scalar(c, out, marks);
}

static bool read_type(cursor *c, bool is_shim, layout *out, unsigned char *marks) {
    if (c->at >= c->end || ++c->depth > MOST_DEPTH)
        return false;
    cursor ahead = *c;
    bool ok = read_plain(&ahead, is_shim, out, NULL);
    if (take(&ahead, "*")) { /* before opaque pointers */
        *out = (layout){8, 8};
        if (marks)
            memset(marks, SOFT_MARK_UNSET, 8);
        while (take(&ahead, "*"))
            ;
    } else if (ok && marks) {
        read_plain(c, is_shim, out, marks);
    }
    c->at = ahead.at;
    c->depth--;
    return ok;
}

uint64_t ir_measure(const ir_types *t, span type, unsigned char *marks) {
    cursor c = {t, type.at, type.at + type.bytes, 0};
    layout l;
    return read_type(&c, false, &l, marks) ? l.bytes : 0;
}

span ir_get_type(const ir_types *t, span text) {
    cursor c = {t, text.at, text.at + text.bytes, 0};
    layout l;
    bool ok = read_type(&c, false, &l, NULL);
    return (span){text.at, ok ? (size_t)(c.at - text.at) : 0};
}

span ir_get_element(span type) {
    while (type.bytes > 2 && type.at[0] == '[' && type.at[type.bytes - 1] == ']') {
        const char *x = strstr(type.at, " x ") + 3;
        type = (span){x, (size_t)(type.at + type.bytes - 1 - x)};
    }
    return type;
}

bool ir_has_array(const ir_types *t, span type) {
    if (type.at[0] == '[')
        return type.at[type.bytes - 1] == ']';
    const ir_named *n = type.at[0] == '%' && type.at[type.bytes - 1] != '*' && !is_of_shim(type)
                            ? find_named(t, type)
                            : NULL;
    for (size_t i = 0; n && i < n->body.bytes; i++) {
        cursor c = {t, n->body.at + i, n->body.at + n->body.bytes, 0};
        if (*c.at == '[' && !is_padding(c.at, strtoull(c.at + 1, NULL, 10), 0, 0, true, true))
            return true;
        if (*c.at == '%') {
            span member = take_name(&c);
            if (ir_has_array(t, member))
                return true;
            i += member.bytes - 1;
        }
    }
    return false;
}

bool ir_get_member(const ir_types *t, span type, uint64_t n, span *member) {
    const ir_named *named = type.bytes && type.at[0] == '%' ? find_named(t, type) : NULL;
    if (!named)
        return false;
    cursor c = {t, named->body.at, named->body.at + named->body.bytes, 0};
    layout l;
    if (!take(&c, "<{ ") && !take(&c, "{ "))
        return false;
    for (uint64_t i = 0;; i++) {
        const char *start = c.at;
        if (!read_type(&c, false, &l, NULL))
            return false;
        if (i == n) {
            *member = (span){start, (size_t)(c.at - start)};
            return take(&c, ", ") && !is_padding(c.at, l.bytes, 0, 0, true, true);
        }
        if (!take(&c, ", "))
            return false;
    }
}

static size_t measure_used(const ir_types *t, span type) {
    uint64_t bytes = ir_measure(t, type, NULL), used = 0;
    unsigned char *marks = array_new(bytes + 1, 1);
    ir_measure(t, type, marks);
    for (uint64_t i = 0; i < bytes; i++)
        used = marks[i] ? i + 1 : used;
    free(marks);
    return used;
}

bool ir_find_member(const ir_types *t, span type, uint64_t n, span *member, int64_t *offset) {
    const ir_named *named = find_named(t, type);
    const span body = named ? named->body : type;
    if (body.bytes < 2 || body.at[0] != '{')
        return false;
    span rest = {body.at + 2, body.bytes - 2};
    for (uint64_t i = 0;; i++) {
        *member = ir_get_type(t, rest);
        if (!member->bytes)
            return false;
        if (i == n)
            break;
        size_t step = member->bytes + 2; /* ", " */
        if (step >= rest.bytes)
            return false;
        rest = (span){rest.at + step, rest.bytes - step};
    }
    char text[1024];
    size_t length = (size_t)(member->at + member->bytes - body.at);
    if (length + 3 > sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s }", (int)length, body.at);
    *offset =
        (int64_t)measure_used(t, (span){text, length + 2}) - (int64_t)measure_used(t, *member);
    return *offset >= 0;
}
