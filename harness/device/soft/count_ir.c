/* count_ir: see count_ir.h.
 *
 * GPUs' compilers make one access of neighbouring ones where they know that it is aligned (LLVM's
 * LoadStoreVectorizer): the members of a float4 are one load of 16 bytes. The CPU's does not, so it is
 * done here: accesses of a block with the same base, between which nothing is written or called, are
 * told as one. */
#include "count_ir.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count_line.h"
#include "harness/base/array.h"
#include "ir_function.h"

enum { WIDEST = 16, WIDEST_COPY = 8, MOST_PIECES = 128 };

/* Where a pointer is: a value and a number of bytes after it. */
typedef struct {
    span name, base;
    int64_t offset;
    bool is_alloca, is_private; /* a variable in memory; one that holds an array */
} pointer;

typedef struct {
    size_t line;
    char kind; /* as in count_ir.h */
    span at;   /* the operand, as it is written */
    span base;
    int64_t offset;
    uint64_t bytes, align;
    uint64_t shared; /* bytes in threadgroup memory; 0: the one before has them */
    bool is_copy, is_told;
} access;

typedef struct {
    FILE *out, *sites;
    count_lines lines;
    ir_types types;
    int site_count, made;
    span *body; /* lines of the function */
    size_t body_count, body_room;
    pointer *pointers; /* a hash table */
    size_t capacity;
    access *accesses; /* of the block */
    size_t access_count, access_room;
} counter;

/* Pointers ------------------------------------------------------------------------------------- */

static pointer *find_slot(const counter *c, span name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.bytes; i++)
        h = (h ^ (unsigned char)name.at[i]) * 0x100000001b3u;
    for (h ^= h >> 29;; h++) {
        pointer *p = &c->pointers[h & (c->capacity - 1)];
        if (!p->name.bytes || ir_is_same(p->name, name))
            return p;
    }
}

static pointer find_pointer(const counter *c, span name) {
    const pointer *p = find_slot(c, name);
    return p->name.bytes ? *p : (pointer){.name = name, .base = name};
}

/* `i64 4`, after the comma: false if it is not a constant. */
static bool take_index(span *rest, int64_t *out) {
    const char *p = memchr(rest->at, ' ', rest->bytes), *end = rest->at + rest->bytes;
    char *after;
    if (!p || p + 1 >= end || !(isdigit((unsigned char)p[1]) || p[1] == '-'))
        return false;
    *out = strtoll(p + 1, &after, 10);
    bool has_more = after + 2 < end && after[0] == ',' && after[2] == 'i';
    *rest = has_more ? (span){after + 2, (size_t)(end - after - 2)} : (span){end, 0};
    return true;
}

/* `getelementptr inbounds T, ptr %p, i64 1, i32 2`, all numbers: base and offset. */
static bool read_element(const counter *c, span value, pointer *out) {
    const char *p = value.at + strlen("getelementptr ");
    while (isalpha((unsigned char)*p) && p < value.at + value.bytes &&
           (!strncmp(p, "inbounds ", 9) || !strncmp(p, "nuw ", 4) || !strncmp(p, "nusw ", 5)))
        p = strchr(p, ' ') + 1;
    span rest = {p, (size_t)(value.at + value.bytes - p)}, type = ir_get_type(&c->types, rest);
    const char *comma = type.bytes ? type.at + type.bytes : NULL;
    if (!comma || strncmp(comma, ", ptr %", 7) != 0)
        return false;
    rest = (span){comma + 6, (size_t)(value.at + value.bytes - comma - 6)};
    const pointer base = find_pointer(c, ir_take_local(&rest));
    if (rest.bytes < 3)
        return false;
    rest = (span){rest.at + 2, rest.bytes - 2};
    int64_t offset = base.offset, index, member;
    bool is_first = true;
    while (rest.bytes > 0) {
        if (!take_index(&rest, &index))
            return false;
        if (!is_first && type.at[0] == '[') {
            const char *x = ir_find(type, " x ");
            type = (span){x + 3, type.bytes - (size_t)(x + 4 - type.at)};
        } else if (!is_first) {
            if (!ir_find_member(&c->types, type, (uint64_t)index, &type, &member))
                return false;
            index = 0;
            offset += member;
        }
        offset += index * (int64_t)ir_measure(&c->types, type, NULL);
        is_first = false;
    }
    *out = base;
    out->offset = offset;
    return true;
}

/* A pointer that is not at a known distance still is one into its variable. */
static void read_pointers(counter *c) {
    for (c->capacity = 16; c->capacity < 2 * c->body_count;)
        c->capacity *= 2;
    c->pointers = array_new(c->capacity, sizeof *c->pointers);
    for (size_t i = 0; i < c->body_count; i++) {
        span name, value;
        if (!ir_split_definition(c->body[i], &name, &value))
            continue;
        pointer p = {.base = name};
        if (ir_begins(value, "alloca ")) {
            span type = ir_get_type(&c->types, (span){value.at + 7, value.bytes - 7});
            p.is_alloca = true;
            p.is_private = ir_has_array(&c->types, type);
            if (p.is_private)
                fprintf(c->sites, "%d P 0 %llu 0 0 0 0 -\n", c->site_count,
                        (unsigned long long)ir_measure(&c->types, type, NULL));
        } else if (!ir_begins(value, "getelementptr ")) {
            continue;
        } else if (!read_element(c, value, &p)) {
            span rest = value;
            const char *from = ir_find(value, ", ptr %");
            rest =
                from ? (span){from, (size_t)(value.at + value.bytes - from)} : (span){value.at, 0};
            const pointer base = find_pointer(c, ir_take_local(&rest));
            p.is_alloca = base.is_alloca;
            p.is_private = base.is_private;
        }
        p.name = name;
        *find_slot(c, name) = p;
    }
}

/* Accesses ------------------------------------------------------------------------------------- */

/* The operand after "ptr ": a name, or an expression in parentheses. */
static span take_operand(span text) {
    size_t depth = 0, n = 0;
    for (; n < text.bytes; n++) {
        char x = text.at[n];
        depth += x == '(';
        if (x == ')' && depth-- == 0)
            break;
        if (x == ',' && depth == 0)
            break;
    }
    return (span){text.at, n};
}

static uint64_t read_align(span text) {
    const char *p = ir_find(text, "align ");
    return p ? strtoull(p + 6, NULL, 10) : 1;
}

static void add_access(counter *c, size_t line, char kind, span at, uint64_t bytes,
                       uint64_t align) {
    pointer p = at.bytes && at.at[0] == '%' ? find_pointer(c, at) : (pointer){.base = at};
    if (!at.bytes || !bytes || (p.is_alloca && !p.is_private))
        return;
    *ARRAY_ADD(c->accesses, c->access_count, c->access_room) = (access){.line = line,
                                                                        .kind = kind,
                                                                        .at = at,
                                                                        .base = p.base,
                                                                        .offset = p.offset,
                                                                        .bytes = bytes,
                                                                        .shared = bytes,
                                                                        .align = align};
}

/* As GPUs do it: in pieces of its alignment, of 16 bytes at most. What is copied or filled as a whole goes in
 * pieces of 8, as LLVM does it for NVIDIA's GPUs after it has joined accesses; in threadgroup memory, whose
 * alignment it knows, ptxas joins two of these. */
static void add_pieces(counter *c, size_t line, char kind, span at, uint64_t bytes, uint64_t align,
                       bool is_copy) {
    const uint64_t widest = is_copy ? WIDEST_COPY : WIDEST, piece = align < widest ? align : widest;
    for (uint64_t i = 0; i * piece < bytes && i < MOST_PIECES; i++) {
        const size_t before = c->access_count;
        const uint64_t from = i * piece, left = bytes - from;
        add_access(c, line, kind, at, left < piece ? left : piece, i == 0 ? align : piece);
        if (c->access_count == before)
            return;
        access *a = &c->accesses[before];
        a->offset += (int64_t)from;
        a->is_copy = is_copy;
        if (is_copy && align >= WIDEST && bytes - from / WIDEST * WIDEST >= WIDEST)
            a->shared = from % WIDEST ? 0 : WIDEST;
    }
}

/* `(ptr align 4 %to, ptr align 4 %from, i64 32, i1 false)`: which = 0 or 1. */
static void add_copy(counter *c, size_t line, int which, char kind) {
    const span text = c->body[line];
    const char *open = ir_find(text, "(ptr "), *end = text.at + text.bytes;
    const char *size = open ? ir_find((span){open, (size_t)(end - open)}, ", i64 ") : NULL;
    if (!size)
        return;
    span rest = {open + 1, (size_t)(end - open - 1)}, part = take_operand(rest);
    if (which == 1) {
        rest = (span){part.at + part.bytes + 2, (size_t)(end - part.at - (long)part.bytes - 2)};
        part = take_operand(rest);
    }
    const char *name = memchr(part.at, '%', part.bytes);
    if (name)
        add_pieces(c, line, kind, (span){name, (size_t)(part.at + part.bytes - name)},
                   strtoull(size + 6, NULL, 10), read_align(part), true);
}

static void read_access(counter *c, size_t n) {
    const span line = c->body[n];
    span name, value = line;
    if (!ir_split_definition(line, &name, &value))
        value = (span){line.at + 2, line.bytes > 2 ? line.bytes - 2 : 0};
    const bool loads = ir_begins(value, "load "), stores = ir_begins(value, "store ");
    const bool updates = ir_begins(value, "atomicrmw ") || ir_begins(value, "cmpxchg ");
    if (ir_find(value, "@llvm.memcpy.") || ir_find(value, "@llvm.memmove.")) {
        add_copy(c, n, 1, 'L');
        add_copy(c, n, 0, 'S');
    } else if (ir_find(value, "@llvm.memset.")) {
        add_copy(c, n, 0, 'S');
    }
    if (!loads && !stores && !updates)
        return;
    const char *at = updates ? ir_find(value, "ptr ") : ir_find(value, ", ptr ");
    if (!at)
        return;
    at += updates ? 4 : 6;
    const char *end = value.at + value.bytes;
    const span operand = take_operand((span){at, (size_t)(end - at)});
    const char *type = value.at + (loads ? 5 : stores ? 6 : 0);
    if (updates)
        type = operand.at + operand.bytes + 2;
    bool is_atomic = updates;
    for (bool more = true; more;) {
        more = !strncmp(type, "atomic ", 7) || !strncmp(type, "volatile ", 9);
        is_atomic = is_atomic || !strncmp(type, "atomic ", 7);
        type = more ? strchr(type, ' ') + 1 : type;
    }
    const span of = ir_get_type(&c->types, (span){type, (size_t)(end - type)});
    const uint64_t bytes = ir_measure(&c->types, of, NULL),
                   align = read_align((span){at, (size_t)(end - at)});
    if (is_atomic)
        add_access(c, n, 'A', operand, bytes, align);
    else
        add_pieces(c, n, loads ? 'L' : 'S', operand, bytes, align, false);
}

/* May the line write what others read? */
static bool is_barrier_to_merging(span line, char kind) {
    span name, value = line;
    if (!ir_split_definition(line, &name, &value))
        value = (span){line.at + 2, line.bytes > 2 ? line.bytes - 2 : 0};
    if (ir_begins(value, "atomicrmw ") || ir_begins(value, "cmpxchg ") ||
        ir_begins(value, "fence ") || ir_begins(value, kind == 'L' ? "store " : "load "))
        return true;
    const char *call = ir_find(value, "call ");
    return call && !ir_find(value, "@llvm.") && (ir_find(value, "asm ") || ir_find(value, "@_Z"));
}

/* The last line up to which an access may move together with the one of line n. */
static size_t find_reach(const counter *c, size_t n, size_t end, char kind) {
    for (size_t i = n + 1; i < end; i++)
        if (is_barrier_to_merging(c->body[i], kind))
            return i;
    return end;
}

/* How many bytes from `lo` on are one access, the first one among them, with the accesses that it is made
 * of marked. */
static uint64_t merge(counter *c, size_t first, size_t reach, int64_t lo) {
    const access *a = &c->accesses[first];
    const uint64_t least = (uint64_t)(a->offset - lo) + a->bytes;
    for (uint64_t wide = WIDEST; wide > a->bytes && wide >= least; wide /= 2) {
        uint64_t found = 0;
        bool is_aligned = false;
        for (int pass = 0; pass < 2; pass++)
            for (size_t i = first;
                 i < c->access_count && (pass == 0 || (found == wide && is_aligned)); i++) {
                access *b = &c->accesses[i];
                if (b->is_told || b->is_copy || b->kind != a->kind || b->line > reach ||
                    b->bytes != a->bytes || !ir_is_same(b->base, a->base))
                    continue;
                if (b->align >= wide && (b->offset - lo) % (int64_t)wide == 0)
                    is_aligned = true;
                if (b->offset < lo || b->offset + (int64_t)b->bytes > lo + (int64_t)wide ||
                    (b->offset - lo) % (int64_t)b->bytes != 0)
                    continue;
                if (pass == 0)
                    found += b->bytes;
                else
                    b->is_told = true;
            }
        if (found == wide && is_aligned)
            return wide;
    }
    return a->bytes;
}

/* What the optimiser has moved out of a loop has no line any more: it gets the next one that there is. */
static count_place find_place(const counter *c, size_t n) {
    count_place at = count_find_place(&c->lines, c->body[n]);
    const bool is_moved = at.is_moved;
    for (size_t i = n + 1; i < c->body_count && is_moved && !at.line; i++)
        at = count_find_place(&c->lines, c->body[i]);
    return at;
}

static int add_site(counter *c, char kind, uint64_t bytes, uint64_t shared, size_t line) {
    count_place at = find_place(c, line);
    fprintf(c->sites, "%d %c %d %llu %llu 0 0 0 %.*s\n", c->site_count, kind, at.line,
            (unsigned long long)bytes, (unsigned long long)shared, (int)at.file.bytes, at.file.at);
    return c->site_count++;
}

/* The calls for the accesses of a line, those that are told with it included. */
static void print_accesses(counter *c, size_t line, size_t block_end) {
    for (size_t i = 0; i < c->access_count; i++) {
        access *a = &c->accesses[i];
        if (a->line != line || a->is_told || !find_place(c, line).line)
            continue;
        size_t reach = find_reach(c, line, block_end, a->kind);
        int64_t lo = a->offset;
        uint64_t bytes = a->bytes;
        if (a->kind != 'A' && bytes < WIDEST && a->at.at[0] == '%' && !a->is_copy) {
            for (int64_t back = WIDEST - (int64_t)bytes; back >= 0 && bytes == a->bytes;
                 back -= (int64_t)a->bytes) {
                bytes = merge(c, i, reach, a->offset - back);
                lo = bytes > a->bytes ? a->offset - back : a->offset;
            }
        }
        a->is_told = true;
        int site = add_site(c, a->kind, bytes, a->is_copy ? a->shared : bytes, line);
        if (a->at.at[0] == '%')
            fprintf(c->out,
                    "  %%assay.at.%d = getelementptr i8, ptr %.*s, i64 %lld\n"
                    "  call void @__assay_access(ptr %%assay.at.%d, i32 %d)\n",
                    c->made, (int)a->base.bytes, a->base.at, (long long)lo, c->made, site);
        else
            fprintf(c->out, "  call void @__assay_access(ptr %.*s, i32 %d)\n", (int)a->at.bytes,
                    a->at.at, site);
        c->made++;
    }
}

/* Functions ------------------------------------------------------------------------------------ */

static bool is_label(span line) {
    return line.bytes > 1 && line.at[0] != ' ' && line.at[0] != ';' && line.at[0] != '}' &&
           ir_find(line, ":");
}

static bool is_phi(span line) {
    span name, value;
    return ir_split_definition(line, &name, &value) && ir_begins(value, "phi ");
}

static void print_block(counter *c, size_t begin, size_t end) {
    size_t i = begin;
    c->access_count = 0;
    for (; i < end && (is_phi(c->body[i]) || is_label(c->body[i])); i++)
        fprintf(c->out, "%.*s\n", (int)c->body[i].bytes, c->body[i].at);
    if (count_print_block(&c->lines, c->body + i, end - i, c->site_count, c->sites))
        fprintf(c->out, "  call void @__assay_block(i32 %d)\n", c->site_count++);
    for (size_t k = i; k < end; k++)
        read_access(c, k);
    for (; i < end; i++) {
        const span line = c->body[i];
        print_accesses(c, i, end);
        char meeting = count_find_meeting(line);
        if (meeting)
            fprintf(c->out, "  call void @__assay_block(i32 %d)\n", add_site(c, meeting, 0, 0, i));
        fprintf(c->out, "%.*s\n", (int)line.bytes, line.at);
    }
}

static void print_function(counter *c) {
    read_pointers(c);
    fprintf(c->out, "%.*s\n", (int)c->body[0].bytes, c->body[0].at);
    for (size_t i = 1, next; i < c->body_count; i = next) {
        for (next = i + 1; next < c->body_count && !is_label(c->body[next]);)
            next++;
        bool is_last = next == c->body_count;
        print_block(c, i, is_last ? next - 1 : next);
        if (is_last)
            fputs("}\n", c->out);
    }
    free(c->pointers);
}

static void print_text(FILE *out, const char *text, size_t bytes) {
    fprintf(out, "@assay_sites = constant [%zu x i8] c\"", bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        if (isalnum((unsigned char)text[i]) || text[i] == ' ')
            fputc(text[i], out);
        else
            fprintf(out, "\\%02X", (unsigned char)text[i]);
    fputs("\\00\"\n", out);
}

static void print_module(counter *c, const char *module) {
    bool is_inside = false;
    for (const char *p = module; *p;) {
        const span line = {p, strcspn(p, "\n")};
        p += line.bytes + (p[line.bytes] == '\n');
        if (!is_inside && (!ir_begins(line, "define ") || ir_find(line, "@_ZN5assay"))) {
            fprintf(c->out, "%.*s\n", (int)line.bytes, line.at);
            continue;
        }
        is_inside = true;
        *ARRAY_ADD(c->body, c->body_count, c->body_room) = line;
        if (line.at[0] == '}') {
            print_function(c);
            c->body_count = 0;
            is_inside = false;
        }
    }
}

char *count_module(const char *module) {
    counter c = {.site_count = 0};
    char *text = NULL, *sites = NULL, *table = NULL;
    size_t bytes, site_bytes, table_bytes;
    if (!strstr(module, "ptr "))
        return NULL;
    c.out = open_memstream(&text, &bytes);
    c.sites = open_memstream(&sites, &site_bytes);
    FILE *all = open_memstream(&table, &table_bytes);
    if (!c.out || !c.sites || !all)
        abort();
    count_lines_read(&c.lines, module);
    ir_types_read(&c.types, module);
    print_module(&c, module);
    fclose(c.sites);
    fprintf(all, SITES_HEAD "%d\n%s", c.site_count, sites);
    fclose(all);
    print_text(c.out, table, table_bytes);
    fputs("declare hidden void @__assay_access(ptr, i32)\n"
          "declare hidden void @__assay_block(i32)\n",
          c.out);
    fclose(c.out);
    free(sites);
    free(table);
    free(c.body);
    free(c.accesses);
    free(c.types.list);
    count_lines_free(&c.lines);
    return text;
}
