/* ir: see ir.h. Sizes of types are those of 64-bit machines, where every scalar is aligned to its own
 * size. */
#include "ir.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "soft/abi.h"

const char *ir_find(span s, const char *word) {
    size_t n = strlen(word);
    for (const char *p = s.at, *end = s.at + s.bytes; p + n <= end; p++) {
        p = memchr(p, word[0], (size_t)(end - p) - n + 1);
        if (!p)
            return NULL;
        if (memcmp(p, word, n) == 0)
            return p;
    }
    return NULL;
}

bool ir_begins(span s, const char *word) {
    return s.bytes >= strlen(word) && memcmp(s.at, word, strlen(word)) == 0;
}

bool ir_is_same(span a, span b) {
    return a.bytes == b.bytes && memcmp(a.at, b.at, a.bytes) == 0;
}

uint64_t ir_hash(span name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.bytes; i++)
        h = (h ^ (unsigned char)name.at[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

span ir_cut(span s, const char *from) {
    const char *end = s.at + s.bytes;
    return from ? (span){from, (size_t)(end - from)} : (span){end, 0};
}

span ir_skip(span s, const char *word) {
    return ir_cut(s, ir_begins(s, word) ? s.at + strlen(word) : NULL);
}

span ir_find_after(span s, const char *word) {
    const char *p = ir_find(s, word);
    return ir_cut(s, p ? p + strlen(word) : NULL);
}

span ir_take_line(const char **p) {
    const span line = {*p, strcspn(*p, "\n")};
    *p += line.bytes + ((*p)[line.bytes] == '\n');
    return line;
}

static const char *skip_name(const char *p, const char *end) {
    while (p < end && (isalnum((unsigned char)*p) || strchr("-$._", *p)))
        p++;
    return p;
}

span ir_take_local(span *s) {
    const char *p = memchr(s->at, '%', s->bytes), *end = s->at + s->bytes;
    const char *q = p ? p + 1 : end;
    if (q < end && *q == '"')
        for (q++; q < end && *q++ != '"';)
            ;
    else
        q = skip_name(q, end);
    *s = ir_cut(*s, q);
    return p ? (span){p, (size_t)(q - p)} : *s;
}

span ir_take_callee(span *s) {
    for (const char *p = s->at, *end = p + s->bytes; (p = memchr(p, '@', (size_t)(end - p))); p++) {
        const char *q = skip_name(p + 1, end);
        if (q == end || *q != '(')
            continue;
        *s = ir_cut(*s, q);
        return (span){p, (size_t)(q - p)};
    }
    return *s = ir_cut(*s, NULL);
}

bool ir_split_definition(span line, span *name, span *value) {
    span rest = line;
    if (!ir_begins(line, "  %"))
        return false;
    *name = ir_take_local(&rest);
    *value = ir_skip(rest, " = ");
    return ir_begins(rest, " = ");
}

span ir_get_instruction(span line) {
    span name, value;
    return ir_split_definition(line, &name, &value) ? value : ir_skip(line, "  ");
}

bool ir_is_call(span line) {
    return ir_begins(ir_get_instruction(line), "call ");
}

bool ir_is_label(span line) {
    return line.bytes > 1 && skip_name(line.at, line.at + 1) > line.at && ir_find(line, ":");
}

span ir_get_debug(span line) {
    const char *debug = ir_find(line, ", !dbg ");
    return (span){debug ? debug : line.at, debug ? strcspn(debug + 2, ",\n") + 2 : 0};
}

span ir_get_operand(span text) {
    size_t depth = 0, n = 0;
    for (; n < text.bytes && !(depth == 0 && strchr(",)", text.at[n])); n++)
        depth += (size_t)(text.at[n] == '(') - (size_t)(text.at[n] == ')');
    return (span){text.at, n};
}

/* Types ---------------------------------------------------------------------------------------- */

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
    for (const char *p = module; *p;) {
        const span line = ir_take_line(&p);
        const char *equals = *line.at == '%' ? ir_find(line, " = type ") : NULL;
        if (equals)
            *ARRAY_ADD(t->list, t->count, t->room) = (ir_named){
                {line.at, (size_t)(equals - line.at)}, ir_cut(line, equals + strlen(" = type "))};
    }
}

static const ir_named *find_named(const ir_types *t, span name) {
    for (size_t i = 0; i < t->count; i++)
        if (ir_is_same(t->list[i].name, name))
            return &t->list[i];
    return NULL;
}

/* Takes the word if it comes next. */
static bool take(cursor *c, const char *word) {
    const bool is_there = ir_begins((span){c->at, (size_t)(c->end - c->at)}, word);
    c->at += is_there ? strlen(word) : 0;
    return is_there;
}

static uint64_t take_number(cursor *c) {
    uint64_t n = 0;
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++)
        n = n < MOST_BYTES ? n * 10 + (uint64_t)(*c->at - '0') : n;
    return n;
}

static span take_name(cursor *c) {
    span rest = {c->at, (size_t)(c->end - c->at)};
    const span name = ir_take_local(&rest);
    c->at = rest.at;
    return name;
}

static bool is_of_shim(span name) {
    static const char *const starts[] = {
        "%\"struct.metal::", "%\"class.metal::", "%\"struct.assay::", "%\"class.assay::"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (ir_begins(name, starts[i]))
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
    const bool ok = read_plain(&ahead, is_shim, out, NULL);
    if (ok && marks)
        read_plain(c, is_shim, out, marks);
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

bool ir_split_array(span type, span *element, uint64_t *count) {
    const span x = ir_find_after(type, " x ");
    if (type.bytes < 3 || type.at[0] != '[' || type.at[type.bytes - 1] != ']')
        return false;
    *count = strtoull(type.at + 1, NULL, 10);
    *element = (span){x.at, x.bytes - 1};
    return true;
}

bool ir_has_array(const ir_types *t, span type) {
    if (type.at[0] == '[')
        return type.at[type.bytes - 1] == ']';
    const ir_named *n = type.at[0] == '%' && !is_of_shim(type) ? find_named(t, type) : NULL;
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

bool ir_find_member(const ir_types *t, span type, uint64_t n, ir_part *out) {
    const ir_named *named = find_named(t, type);
    const span body = named ? named->body : type;
    cursor c = {t, body.at, body.at + body.bytes, 0};
    const bool is_packed = take(&c, "<{ ");
    if (!is_packed && !take(&c, "{ "))
        return false;
    for (uint64_t end = 0, i = 0;; i++) {
        const char *start = c.at;
        layout l;
        if (!read_type(&c, false, &l, NULL))
            return false;
        const span member = {start, (size_t)(c.at - start)};
        const uint64_t align = is_packed ? 1 : l.align, at = (end + align - 1) / align * align;
        const bool is_last = !take(&c, ", ");
        if (i == n) {
            *out = (ir_part){member, at, is_packed,
                             !is_last && !is_padding(c.at, l.bytes, 0, 0, true, true)};
            return true;
        }
        if (is_last)
            return false;
        end = at + l.bytes;
    }
}

/* Metadata ------------------------------------------------------------------------------------- */

void ir_metadata_read(ir_metadata *m, const char *module) {
    for (int pass = 0; pass < 2; pass++) {
        for (const char *p = strstr(module, "\n!"); p; p = strstr(p + 1, "\n!")) {
            char *end;
            unsigned long n = isdigit((unsigned char)p[2]) ? strtoul(p + 2, &end, 10) : 0;
            if (!isdigit((unsigned char)p[2]) || strncmp(end, " = ", 3) != 0)
                continue;
            if (pass == 0)
                m->count = n >= m->count ? n + 1 : m->count;
            else
                m->lines[n] = end + 3;
        }
        if (pass == 0)
            m->lines = array_new(m->count + 1, sizeof *m->lines);
    }
}

long ir_read_number(const char *text, const char *word) {
    const span number = ir_find_after((span){text, strcspn(text, "\n")}, word);
    return number.bytes ? strtol(number.at, NULL, 10) : -1;
}

const char *ir_follow(const ir_metadata *m, const char *text, const char *word) {
    const long n = ir_read_number(text, word);
    return n >= 0 && (size_t)n < m->count && m->lines[n] ? m->lines[n] : "";
}

bool ir_is_shim_file(span file) {
    return ir_find(file, "/device/shim/") || ir_find(file, "entry of ") ||
           ir_find(file, "/soft/abi.h");
}

bool ir_change_file(ir_pass *pass, const char *path, const char *problem, err *e) {
    char *module = os_read_file(path, NULL, e), *changed = module ? pass(module) : NULL;
    bool ok = changed && os_write_own(path, changed, strlen(changed), e);
    if (module && !changed)
        err_set(e, EXIT_CANNOT, "%s", problem);
    free(changed);
    free(module);
    return ok;
}

/* Shifts --------------------------------------------------------------------------------------- */

/* A literal that the expression after the operator consists of, up to what binds looser; or -1. */
static long read_count(const char *p) {
    char *end;
    p += strspn(p, "= ");
    long count = isdigit((unsigned char)*p) ? strtol(p, &end, 0) : -1;
    if (count < 0)
        return -1;
    end += strspn(end, "uUlL");
    end += strspn(end, " \t");
    return *end && strchr(");,]}&|^?:<>=!\\\n", *end) ? count : -1;
}

bool shift_mask_is_needed(const char *msl) {
    for (const char *p = msl; (p = strpbrk(p, "<>")); p++)
        if (p[1] == *p) {
            long count = read_count(p + 2);
            if (count < 0 || count >= 32)
                return true;
            p++;
        }
    return false;
}

/* "%r = shl i32 %a, %b, !dbg !7", or false. number: of masked counts so far. */
static bool print_shift(FILE *out, span line, int *number) {
    static const char *const names[] = {"shl ", "lshr ", "ashr "};
    span name, value, rest = {NULL, 0};
    if (!ir_split_definition(line, &name, &value))
        return false;
    for (size_t i = 0; i < 3 && !rest.bytes; i++)
        rest = ir_skip(value, names[i]);
    while (ir_begins(rest, "nuw ") || ir_begins(rest, "nsw ") || ir_begins(rest, "exact "))
        rest = ir_find_after(rest, " ");
    char *after = NULL;
    const long width = ir_begins(rest, "i") ? strtol(rest.at + 1, &after, 10) : 0;
    if (width < 8 || width > 64) /* vectors are masked already (shim/vec.h) */
        return false;
    const span operand = ir_get_operand(ir_cut(line, after));
    const span count = ir_get_operand(ir_cut(line, operand.at + operand.bytes + 2));
    const span before = {line.at, (size_t)(count.at - line.at)};
    const span end = ir_cut(line, count.at + count.bytes);
    if (ir_begins(count, "%")) {
        fprintf(out, "  %%assay.count%d = and i%ld %.*s, %ld\n", *number, width, SPELL(count),
                width - 1);
        fprintf(out, "%.*s%%assay.count%d%.*s\n", SPELL(before), (*number)++, SPELL(end));
    } else {
        fprintf(out, "%.*s%ld%.*s\n", SPELL(before), strtol(count.at, NULL, 10) & (width - 1),
                SPELL(end));
    }
    return true;
}

/* Of a constant by a constant nothing is left to mask: the front end has made poison of it. Zero, so
 * that what is stored is the same everywhere. Vectors that are put together begin as poison. */
static void print_without_poison(FILE *out, span line) {
    static const char poison[] = " poison";
    for (const char *p = line.at; (p = ir_find(ir_cut(line, p), poison)); p += strlen(poison))
        if (isalnum((unsigned char)p[-1]) || p[-1] == ',') {
            fprintf(out, "%.*s zeroinitializer", (int)(p - line.at), line.at);
            line = ir_cut(line, p + strlen(poison));
        }
    fprintf(out, "%.*s\n", SPELL(line));
}

char *shift_mask_module(const char *module) {
    char *text = NULL;
    size_t size = 0;
    int number = 0;
    FILE *out = open_memstream(&text, &size);
    assert(out);
    while (*module) {
        const span line = ir_take_line(&module);
        if (!ir_begins(line, "  "))
            fprintf(out, "%.*s\n", SPELL(line));
        else if (!print_shift(out, line, &number))
            print_without_poison(out, line);
    }
    fclose(out);
    return text;
}
