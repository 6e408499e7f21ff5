#include "shift_mask.h"

#include <assert.h>
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Where an operand ends: at a comma that is not inside of brackets, or with the line. */
static size_t measure_operand(const char *p, const char *end) {
    int depth = 0;
    const char *q = p;
    for (; q < end && (depth > 0 || *q != ','); q++)
        depth += (*q == '(') - (*q == ')');
    return (size_t)(q - p);
}

/* "%r = shl i32 %a, %b, !dbg !7", or false. number: of masked counts so far. */
static bool print_shift(FILE *out, const char *line, const char *end, int *number) {
    static const char *const names[] = {"shl ", "lshr ", "ashr "};
    const char *p = line + strspn(line, " "), *name = NULL;
    p = *p == '%' ? p + strcspn(p, " \n") : end;
    for (size_t i = 0; i < 3 && strncmp(p, " = ", 3) == 0; i++)
        if (strncmp(p + 3, names[i], strlen(names[i])) == 0)
            name = names[i];
    if (!name)
        return false;
    p += 3 + strlen(name);
    while (strncmp(p, "nuw ", 4) == 0 || strncmp(p, "nsw ", 4) == 0 || strncmp(p, "exact ", 6) == 0)
        p = strchr(p, ' ') + 1;
    char *after;
    const long width = *p == 'i' ? strtol(p + 1, &after, 10) : 0;
    if (width < 8 || width > 64) /* vectors are masked already (shim/vec_ops.h) */
        return false;
    const size_t value = measure_operand(after, end);
    const char *count = after + value + 2;
    const size_t length = measure_operand(count, end);
    if (*count != '%') {
        const long masked = strtol(count, NULL, 10) & (width - 1);
        fprintf(out, "%.*s%ld%.*s\n", (int)(count - line), line, masked,
                (int)(end - count - (ptrdiff_t)length), count + length);
        return true;
    }
    fprintf(out, "  %%assay.count%d = and i%ld %.*s, %ld\n", *number, width, (int)length, count,
            width - 1);
    fprintf(out, "%.*s%%assay.count%d%.*s\n", (int)(count - line), line, (*number)++,
            (int)(end - count - (ptrdiff_t)length), count + length);
    return true;
}

/* Of a constant by a constant nothing is left to mask: the front end has made poison of it. Zero, so
 * that what is stored is the same everywhere. Vectors that are put together begin as poison. */
static void print_without_poison(FILE *out, const char *line, const char *end) {
    static const char poison[] = " poison";
    const size_t length = strlen(poison);
    for (const char *p = line; p < end; p++)
        if (*p == ' ' && strncmp(p, poison, length) == 0 &&
            (isalnum((unsigned char)p[-1]) || p[-1] == ',')) {
            fprintf(out, "%.*s zeroinitializer", (int)(p - line), line);
            line = p + length;
        }
    fprintf(out, "%.*s\n", (int)(end - line), line);
}

char *shift_mask_module(const char *module) {
    char *text = NULL;
    size_t size = 0;
    int number = 0;
    FILE *out = open_memstream(&text, &size);
    assert(out);
    for (const char *line = module; *line;) {
        const char *end = line + strcspn(line, "\n");
        const bool is_code = strncmp(line, "  ", 2) == 0;
        if (!is_code)
            fprintf(out, "%.*s\n", (int)(end - line), line);
        else if (!print_shift(out, line, end, &number))
            print_without_poison(out, line, end);
        line = *end ? end + 1 : end;
    }
    fclose(out);
    return text;
}
