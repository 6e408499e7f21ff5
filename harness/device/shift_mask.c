#include "shift_mask.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/ir.h"

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

/* An operand at the start of the text: it ends at a comma that is not inside of brackets, or with the
 * line. */
static span get_operand(span text) {
    int depth = 0;
    size_t n = 0;
    for (; n < text.bytes && (depth > 0 || text.at[n] != ','); n++)
        depth += (text.at[n] == '(') - (text.at[n] == ')');
    return (span){text.at, n};
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
    const span operand = get_operand(ir_cut(line, after));
    const span count = get_operand(ir_cut(line, operand.at + operand.bytes + 2));
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
