/* count_ir: see counted.h.
 *
 * GPUs' compilers make one access of neighbouring ones where they know that it is aligned (LLVM's
 * LoadStoreVectorizer): the members of a float4 are one load of 16 bytes. The CPU's does not, so it is
 * done here: accesses of a block with the same base, between which nothing is written or called, are
 * reported as one. */
#include "counted.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/device/ir.h"

enum { WIDEST = 16, WIDEST_COPY = 8, MOST_PIECES = 128, MOST_INLINED = 64 };

/* Where a pointer is: a value and a number of bytes after it. */
typedef struct {
    span name, base;
    int64_t offset;
    bool is_alloca, is_private; /* a variable in memory; one that holds an array */
} pointer;

typedef struct {
    size_t line;
    char kind; /* as in counted.h */
    span at;   /* the operand, as it is written */
    span base;
    int64_t offset;
    uint64_t bytes, align;
    uint64_t shared; /* bytes in threadgroup memory; 0: the one before has them */
    bool is_copy, is_told;
} memory_access;

typedef struct {
    FILE *out, *sites;
    ir_metadata metadata;
    ir_types types;
    int site_count, made;
    span *body; /* lines of the function */
    size_t body_count, body_room;
    pointer *pointers; /* a hash table */
    size_t capacity;
    memory_access *accesses; /* of the block */
    size_t access_count, access_room;
} counter;

/* Pointers ------------------------------------------------------------------------------------- */

static pointer *find_slot(const counter *c, span name) {
    for (uint64_t h = ir_hash(name);; h++) {
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
    span rest = ir_skip(value, "getelementptr ");
    while (ir_begins(rest, "inbounds ") || ir_begins(rest, "nuw ") || ir_begins(rest, "nusw "))
        rest = ir_find_after(rest, " ");
    span type = ir_get_type(&c->types, rest);
    rest = ir_cut(rest, type.at + type.bytes);
    if (!type.bytes || !ir_begins(rest, ", ptr %"))
        return false;
    const pointer base = find_pointer(c, ir_take_local(&rest));
    rest = ir_skip(rest, ", ");
    if (!rest.bytes)
        return false;
    int64_t offset = base.offset, index;
    uint64_t length;
    bool is_first = true;
    while (rest.bytes > 0) {
        ir_part member;
        if (!take_index(&rest, &index))
            return false;
        if (!is_first && !ir_split_array(type, &type, &length)) {
            if (!ir_find_member(&c->types, type, (uint64_t)index, &member) || member.is_packed)
                return false;
            type = member.type;
            index = 0;
            offset += (int64_t)member.offset;
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
            span type = ir_get_type(&c->types, ir_skip(value, "alloca "));
            p.is_alloca = true;
            p.is_private = ir_has_array(&c->types, type);
            if (p.is_private)
                fprintf(c->sites, "%d P 0 %llu 0 0 0 0 -\n", c->site_count,
                        (unsigned long long)ir_measure(&c->types, type, NULL));
        } else if (!ir_begins(value, "getelementptr ")) {
            continue;
        } else if (!read_element(c, value, &p)) {
            span rest = ir_cut(value, ir_find(value, ", ptr %"));
            const pointer base = find_pointer(c, ir_take_local(&rest));
            p.is_alloca = base.is_alloca;
            p.is_private = base.is_private;
        }
        p.name = name;
        *find_slot(c, name) = p;
    }
}

/* Accesses ------------------------------------------------------------------------------------- */

static uint64_t read_align(span text) {
    const char *p = ir_find(text, "align ");
    return p ? strtoull(p + 6, NULL, 10) : 1;
}

static void add_access(counter *c, size_t line, char kind, span at, uint64_t bytes,
                       uint64_t align) {
    pointer p = at.bytes && at.at[0] == '%' ? find_pointer(c, at) : (pointer){.base = at};
    if (!at.bytes || !bytes || (p.is_alloca && !p.is_private))
        return;
    *ARRAY_ADD(c->accesses, c->access_count, c->access_room) = (memory_access){.line = line,
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
        memory_access *a = &c->accesses[before];
        a->offset += (int64_t)from;
        a->is_copy = is_copy;
        if (is_copy && align >= WIDEST && bytes - from / WIDEST * WIDEST >= WIDEST)
            a->shared = from % WIDEST ? 0 : WIDEST;
    }
}

/* `(ptr align 4 %to, ptr align 4 %from, i64 32, i1 false)`: which = 0 or 1. */
static void add_copy(counter *c, size_t line, int which, char kind) {
    const char *open = ir_find(c->body[line], "(ptr ");
    span rest = ir_cut(c->body[line], open ? open + 1 : NULL), part = ir_get_operand(rest);
    const span size = ir_find_after(rest, ", i64 ");
    if (which == 1)
        part = ir_get_operand(ir_cut(rest, part.at + part.bytes + 2));
    const char *name = size.bytes ? memchr(part.at, '%', part.bytes) : NULL;
    if (name)
        add_pieces(c, line, kind, ir_cut(part, name), strtoull(size.at, NULL, 10), read_align(part),
                   true);
}

static void read_access(counter *c, size_t n) {
    const span value = ir_get_instruction(c->body[n]);
    const bool loads = ir_begins(value, "load "), stores = ir_begins(value, "store ");
    const bool updates = ir_begins(value, "atomicrmw ") || ir_begins(value, "cmpxchg ");
    if (ir_find(value, "@llvm.memcpy.") || ir_find(value, "@llvm.memmove.")) {
        add_copy(c, n, 1, 'L');
        add_copy(c, n, 0, 'S');
    } else if (ir_find(value, "@llvm.memset.")) {
        add_copy(c, n, 0, 'S');
    }
    const span rest = ir_find_after(value, updates ? "ptr " : ", ptr ");
    if ((!loads && !stores && !updates) || !rest.bytes)
        return;
    const span operand = ir_get_operand(rest);
    span type = updates ? ir_cut(value, operand.at + operand.bytes + 2) : ir_find_after(value, " ");
    bool is_atomic = updates;
    while (ir_begins(type, "atomic ") || ir_begins(type, "volatile ")) {
        is_atomic = is_atomic || ir_begins(type, "atomic ");
        type = ir_find_after(type, " ");
    }
    const uint64_t bytes = ir_measure(&c->types, type, NULL), align = read_align(rest);
    if (is_atomic)
        add_access(c, n, 'A', operand, bytes, align);
    else
        add_pieces(c, n, loads ? 'L' : 'S', operand, bytes, align, false);
}

/* May the line write what others read? */
static bool is_barrier_to_merging(span line, char kind) {
    const span value = ir_get_instruction(line);
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
    const memory_access *a = &c->accesses[first];
    const uint64_t least = (uint64_t)(a->offset - lo) + a->bytes;
    for (uint64_t wide = WIDEST; wide > a->bytes && wide >= least; wide /= 2) {
        uint64_t found = 0;
        bool is_aligned = false;
        for (int pass = 0; pass < 2; pass++)
            for (size_t i = first;
                 i < c->access_count && (pass == 0 || (found == wide && is_aligned)); i++) {
                memory_access *b = &c->accesses[i];
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

/* Where an instruction is from. */
typedef struct {
    int line; /* 0: it is not the kernel's, or it was moved and its line is not known */
    bool is_moved;
    span file; /* as the module names it */
} place;

/* Of an instruction that was inlined: the innermost place outside of the shim. */
static place find_own_place(const ir_metadata *m, span line) {
    const char *at = ir_follow(m, line.at, "!dbg !");
    for (int i = 0; i < MOST_INLINED && *at; i++, at = ir_follow(m, at, "inlinedAt: !")) {
        const char *file = ir_follow(m, ir_follow(m, at, "scope: !"), "file: !");
        const span name = ir_find_after((span){file, strcspn(file, "\n")}, "filename: \"");
        const long number = ir_read_number(at, "line: ");
        const span whole = {name.at, strcspn(name.at, "\"\n")};
        if (name.bytes && number >= 0 && !ir_is_shim_file(whole))
            return (place){.line = (int)number, .file = whole, .is_moved = !number};
    }
    return (place){.file = {"-", 1}, .is_moved = !ir_find(line, "!dbg !")};
}

/* What the optimiser has moved out of a loop has no line any more: it gets the next one that there is. */
static place find_place(const counter *c, size_t n) {
    place at = find_own_place(&c->metadata, c->body[n]);
    const bool is_moved = at.is_moved;
    for (size_t i = n + 1; i < c->body_count && is_moved && !at.line; i++)
        at = find_own_place(&c->metadata, c->body[i]);
    return at;
}

/* A call that is a meeting of lanes: M, X or W as in counted.h; else 0. */
static char find_meeting(span line) {
    if (ir_find(line, "@_ZN5assay4meet"))
        return ir_find(line, "multiply_add") ? 'X' : 'M';
    return ir_find(line, "@_ZN5assay4park") ? 'W' : 0;
}

static int add_site(counter *c, char kind, uint64_t bytes, uint64_t shared, size_t line) {
    const place at = find_place(c, line);
    fprintf(c->sites, "%d %c %d %llu %llu 0 0 0 %.*s\n", c->site_count, kind, at.line,
            (unsigned long long)bytes, (unsigned long long)shared, SPELL(at.file));
    return c->site_count++;
}

/* The calls for the accesses of a line, those that are reported with it included. */
static void print_accesses(counter *c, size_t line, size_t block_end) {
    for (size_t i = 0; i < c->access_count; i++) {
        memory_access *a = &c->accesses[i];
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
                    c->made, SPELL(a->base), (long long)lo, c->made, site);
        else
            fprintf(c->out, "  call void @__assay_access(ptr %.*s, i32 %d)\n", SPELL(a->at), site);
        c->made++;
    }
}

/* Work ----------------------------------------------------------------------------------------- */

typedef struct {
    place at;
    unsigned work[WORKS];
} row;

static bool is_one_of(span word, const char *list) {
    for (const char *p = list; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == word.bytes && memcmp(p, word.at, word.bytes) == 0)
            return true;
    return false;
}

/* `<4 x float>` in the instruction: 4. */
static unsigned count_elements(span value) {
    const char *p = ir_find(value, "<");
    unsigned long n = p && isdigit((unsigned char)p[1]) ? strtoul(p + 1, NULL, 10) : 1;
    return n ? (unsigned)n : 1;
}

/* A call of a function of the shim or of libm: `@llvm.exp2.f32(`, `@expf(`. */
static void add_call(span value, unsigned work[WORKS]) {
    const char *at = ir_find(value, "@");
    if (!at)
        return;
    const char *name = at + 1, *end = value.at + value.bytes;
    bool is_intrinsic = strncmp(name, "llvm.", 5) == 0;
    name += is_intrinsic ? 5 : 0;
    span word = {name, 0};
    while (name + word.bytes < end && isalnum((unsigned char)name[word.bytes]))
        word.bytes++;
    const unsigned n = count_elements(value);
    if (is_intrinsic && is_one_of(word, "fma fmuladd"))
        work[WORK_FLOPS] += 2 * n;
    else if (is_intrinsic &&
             is_one_of(word, "minnum maxnum minimum maximum fabs copysign floor "
                             "ceil trunc rint round roundeven nearbyint canonicalize"))
        work[WORK_FLOPS] += n;
    else if (is_intrinsic && is_one_of(word, "ctpop ctlz cttz umin umax smin smax abs fshl fshr "
                                             "bswap bitreverse sadd uadd ssub usub umul smul"))
        work[WORK_INTEGERS] += n;
    else if (is_intrinsic &&
             is_one_of(word, "sqrt exp exp2 exp10 log log2 log10 pow powi sin cos tan "
                             "ldexp sincos tanh"))
        work[WORK_SPECIALS] += n;
    else if (!is_intrinsic && word.bytes > 1 && name[0] != '_' && name[word.bytes - 1] == 'f')
        work[WORK_SPECIALS]++;
    else
        work[WORK_ALL] -= is_intrinsic; /* assumptions, lifetimes, debugging */
    work[WORK_ALL]++;
}

static void add_work(span line, unsigned work[WORKS]) {
    const span value = ir_get_instruction(line);
    span word = {value.at, 0};
    while (word.bytes < value.bytes && isalpha((unsigned char)word.at[word.bytes]))
        word.bytes++;
    if (is_one_of(word, "tail musttail notail call")) {
        if (!ir_find(value, " asm "))
            add_call(value, work);
        return;
    }
    const unsigned n = count_elements(value);
    if (is_one_of(word, "fadd fsub fmul"))
        work[WORK_FLOPS] += n;
    else if (is_one_of(word, "fdiv frem"))
        work[WORK_SPECIALS] += n;
    else if (is_one_of(word,
                       "add sub mul and or xor shl lshr ashr icmp fcmp select udiv sdiv urem srem"))
        work[WORK_INTEGERS] += n;
    else if (is_one_of(word, "sitofp uitofp fptosi fptoui fpext fptrunc"))
        work[WORK_CONVERSIONS] += n;
    else if (is_one_of(word,
                       "phi bitcast alloca unreachable inttoptr ptrtoint addrspacecast freeze") ||
             (is_one_of(word, "br") && !ir_find(value, "br i1")))
        return;
    work[WORK_ALL]++;
}

/* The rows B of a block, for each line of the source; false if there is none. */
static bool print_work(const counter *c, size_t begin, size_t end) {
    row *rows = NULL;
    size_t used = 0, room = 0;
    for (size_t i = begin; i < end; i++) {
        const place at = find_own_place(&c->metadata, c->body[i]);
        size_t k = 0;
        if (!at.line)
            continue;
        while (k < used && !(rows[k].at.line == at.line && ir_is_same(rows[k].at.file, at.file)))
            k++;
        if (k == used)
            *ARRAY_ADD(rows, used, room) = (row){.at = at};
        add_work(c->body[i], rows[k].work);
    }
    for (size_t k = 0; k < used; k++) {
        const unsigned *w = rows[k].work;
        fprintf(c->sites, "%d B %d %u %u %u %u %u %.*s\n", c->site_count, rows[k].at.line,
                w[WORK_FLOPS], w[WORK_INTEGERS], w[WORK_CONVERSIONS], w[WORK_SPECIALS], w[WORK_ALL],
                SPELL(rows[k].at.file));
    }
    free(rows);
    return used > 0;
}

/* Functions ------------------------------------------------------------------------------------ */

static bool is_phi(span line) {
    return ir_begins(ir_get_instruction(line), "phi ");
}

static void print_block(counter *c, size_t begin, size_t end) {
    size_t i = begin;
    c->access_count = 0;
    for (; i < end && (is_phi(c->body[i]) || ir_is_label(c->body[i])); i++)
        fprintf(c->out, "%.*s\n", SPELL(c->body[i]));
    if (print_work(c, i, end))
        fprintf(c->out, "  call void @__assay_block(i32 %d)\n", c->site_count++);
    for (size_t k = i; k < end; k++)
        read_access(c, k);
    for (; i < end; i++) {
        const span line = c->body[i];
        print_accesses(c, i, end);
        char meeting = find_meeting(line);
        if (meeting)
            fprintf(c->out, "  call void @__assay_block(i32 %d)\n", add_site(c, meeting, 0, 0, i));
        fprintf(c->out, "%.*s\n", SPELL(line));
    }
}

static void print_function(counter *c) {
    read_pointers(c);
    fprintf(c->out, "%.*s\n", SPELL(c->body[0]));
    for (size_t i = 1, next; i < c->body_count; i = next) {
        for (next = i + 1; next < c->body_count && !ir_is_label(c->body[next]);)
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
        const span line = ir_take_line(&p);
        if (!is_inside && (!ir_begins(line, "define ") || ir_find(line, "@_ZN5assay"))) {
            fprintf(c->out, "%.*s\n", SPELL(line));
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
    c.out = open_memstream(&text, &bytes);
    c.sites = open_memstream(&sites, &site_bytes);
    FILE *all = open_memstream(&table, &table_bytes);
    if (!c.out || !c.sites || !all)
        abort();
    ir_metadata_read(&c.metadata, module);
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
    free(c.metadata.lines);
    return text;
}

/* Reading what was counted ------------------------------------------------------------------- */

/* The table lies somewhere in the file. Another text that begins like it has no number, or is ours. */
static const char *find_table(const char *data, size_t bytes, unsigned long *count) {
    const size_t n = strlen(SITES_HEAD);
    for (const char *p = data, *end = data + bytes; p + n < end; p++) {
        p = memchr(p, SITES_HEAD[0], (size_t)(end - p) - n);
        if (!p)
            return NULL;
        if (memcmp(p, SITES_HEAD, n) == 0 && sscanf(p + n, "%lu", count) == 1)
            return p;
    }
    return NULL;
}

bool count_read_site(const char *line, size_t *site, count_row *out) {
    char kind = 0;
    uint32_t *w = out->work;
    *out = (count_row){.space = SPACE_DEVICE};
    const int read = sscanf(line, "%zu %c %d %u %u %u %u %u %199[^\n]", site, &kind, &out->line,
                            &w[0], &w[1], &w[2], &w[3], &w[4], out->file);
    out->kind = (place_kind)kind;
    return read == 9;
}

/* For each row of the line's site one of the list. Rows are in the order of sites. */
static void add_rows(const char *line, const counted_row *rows, size_t count, size_t *next,
                     count_list *out) {
    count_row r;
    size_t site;
    if (!count_read_site(line, &site, &r))
        return;
    if (r.kind == PLACE_ARRAY) {
        *ARRAY_ADD(out->rows, out->count, out->room) = r;
        return;
    }
    while (*next < count && rows[*next].site < site)
        ++*next;
    for (size_t i = *next; i < count && rows[i].site == site; i++) {
        if (rows[i].space >= SPACES)
            continue;
        r.space = (count_space)rows[i].space;
        memcpy(r.n, rows[i].n, sizeof r.n);
        *ARRAY_ADD(out->rows, out->count, out->room) = r;
    }
}

bool count_read(const char *object, const counted_row *rows, size_t count, count_list *out,
                err *e) {
    size_t bytes, next = 0;
    unsigned long sites;
    char *data = os_read_file(object, &bytes, e);
    const char *table = data ? find_table(data, bytes, &sites) : NULL;
    if (data && !table)
        err_set(e, EXIT_CANNOT, "%.200s has no table of its sites; `assay cache --clear`", object);
    for (const char *p = table ? strchr(table, '\n') : NULL; p && p[1]; p = strchr(p + 1, '\n'))
        add_rows(p + 1, rows, count, &next, out);
    free(data);
    return table != NULL;
}
