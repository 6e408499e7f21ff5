/* count_line: see count_line.h. */
#include "count_line.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

enum { MOST_INLINED = 64 };

void count_lines_read(count_lines *l, const char *module) {
    for (int pass = 0; pass < 2; pass++) {
        for (const char *p = strstr(module, "\n!"); p; p = strstr(p + 1, "\n!")) {
            char *end;
            unsigned long n = isdigit((unsigned char)p[2]) ? strtoul(p + 2, &end, 10) : 0;
            if (!isdigit((unsigned char)p[2]) || strncmp(end, " = ", 3) != 0)
                continue;
            if (pass == 0)
                l->count = n >= l->count ? n + 1 : l->count;
            else
                l->metadata[n] = end + 3;
        }
        if (pass == 0)
            l->metadata = array_new(l->count + 1, sizeof *l->metadata);
    }
}

void count_lines_free(count_lines *l) {
    free(l->metadata);
}

/* The metadata that a field refers to; "" if there is none. */
static const char *follow(const count_lines *l, const char *text, const char *field) {
    span line = {text, strcspn(text, "\n")};
    const char *p = ir_find(line, field);
    unsigned long n = p ? strtoul(p + strlen(field), NULL, 10) : l->count;
    return n < l->count && l->metadata[n] ? l->metadata[n] : "";
}

static bool is_of_shim(span name) {
    return ir_find(name, "/device/shim/") || ir_find(name, "entry of ") ||
           ir_find(name, "/soft/abi.h");
}

count_place count_find_place(const count_lines *l, span line) {
    const char *debug = ir_find(line, "!dbg !");
    unsigned long n = debug ? strtoul(debug + 6, NULL, 10) : l->count;
    const char *at = n < l->count && l->metadata[n] ? l->metadata[n] : "";
    for (int i = 0; i < MOST_INLINED && *at; i++, at = follow(l, at, "inlinedAt: !")) {
        const char *file = follow(l, follow(l, at, "scope: !"), "file: !");
        const char *name = strstr(file, "filename: \"");
        const char *number = strstr(at, "line: ");
        if (!name || !number)
            continue;
        name += strlen("filename: \"");
        span whole = {name, strcspn(name, "\"\n")};
        if (is_of_shim(whole))
            continue;
        return (count_place){
            .line = atoi(number + 6), .file = whole, .is_moved = !atoi(number + 6)};
    }
    return (count_place){.file = {"-", 1}, .is_moved = !debug};
}

char count_find_meeting(span line) {
    const char *name = ir_find(line, "@_ZN5assay4meet");
    if (name)
        return ir_find(line, "multiply_add") ? 'X' : 'M';
    return ir_find(line, "@_ZN5assay4park") ? 'W' : 0;
}

/* Work ----------------------------------------------------------------------------------------- */

enum { FLOPS, INTEGERS, CONVERSIONS, SPECIALS, ALL, WORKS };

typedef struct {
    count_place at;
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
        work[FLOPS] += 2 * n;
    else if (is_intrinsic &&
             is_one_of(word, "minnum maxnum minimum maximum fabs copysign floor "
                             "ceil trunc rint round roundeven nearbyint canonicalize"))
        work[FLOPS] += n;
    else if (is_intrinsic && is_one_of(word, "ctpop ctlz cttz umin umax smin smax abs fshl fshr "
                                             "bswap bitreverse sadd uadd ssub usub umul smul"))
        work[INTEGERS] += n;
    else if (is_intrinsic &&
             is_one_of(word, "sqrt exp exp2 exp10 log log2 log10 pow powi sin cos tan "
                             "ldexp sincos tanh"))
        work[SPECIALS] += n;
    else if (!is_intrinsic && word.bytes > 1 && name[0] != '_' && name[word.bytes - 1] == 'f')
        work[SPECIALS]++;
    else
        work[ALL] -= is_intrinsic; /* assumptions, lifetimes, debugging */
    work[ALL]++;
}

static void add_work(span line, unsigned work[WORKS]) {
    span name, value = line;
    if (!ir_split_definition(line, &name, &value))
        value = (span){line.at + 2, line.bytes > 2 ? line.bytes - 2 : 0};
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
        work[FLOPS] += n;
    else if (is_one_of(word, "fdiv frem"))
        work[SPECIALS] += n;
    else if (is_one_of(word,
                       "add sub mul and or xor shl lshr ashr icmp fcmp select udiv sdiv urem srem"))
        work[INTEGERS] += n;
    else if (is_one_of(word, "sitofp uitofp fptosi fptoui fpext fptrunc"))
        work[CONVERSIONS] += n;
    else if (is_one_of(word,
                       "phi bitcast alloca unreachable inttoptr ptrtoint addrspacecast freeze") ||
             (is_one_of(word, "br") && !ir_find(value, "br i1")))
        return;
    work[ALL]++;
}

bool count_print_block(const count_lines *l, const span *body, size_t count, int site, FILE *out) {
    row *rows = NULL;
    size_t used = 0, room = 0;
    for (size_t i = 0; i < count; i++) {
        const count_place at = count_find_place(l, body[i]);
        size_t k = 0;
        if (!at.line)
            continue;
        while (k < used && !(rows[k].at.line == at.line && ir_is_same(rows[k].at.file, at.file)))
            k++;
        if (k == used)
            *ARRAY_ADD(rows, used, room) = (row){.at = at};
        add_work(body[i], rows[k].work);
    }
    for (size_t k = 0; k < used; k++) {
        const unsigned *w = rows[k].work;
        fprintf(out, "%d B %d %u %u %u %u %u %.*s\n", site, rows[k].at.line, w[FLOPS], w[INTEGERS],
                w[CONVERSIONS], w[SPECIALS], w[ALL], (int)rows[k].at.file.bytes,
                rows[k].at.file.at);
    }
    free(rows);
    return used > 0;
}
