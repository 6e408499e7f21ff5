/* ptx_products: see ptx_products.h.
 *
 * A tensor core multiplies 16 rows by 8 columns, and a simdgroup matrix has 8 rows. A kernel that has several of
 * them multiplies each with the same second matrix, and its compiler writes these products one after the other,
 * in place: the registers of the sums are also those of what is added. So the first of two can move down to the
 * other if nothing between them names its sums, and nothing but a product its other registers. */
#include "ptx_products.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"

enum { REGISTER = 16 };

typedef struct {
    int rows, columns; /* 8 or 16 of the first matrix */
    char type[8];
    char sums[4][REGISTER], a[4][REGISTER], b[2][REGISTER];
} product;

typedef struct {
    const char *text;
    product *product; /* NULL: another instruction */
    bool is_gone, is_changed;
} line;

static product *parse_product(const char *text) {
    product p = {.rows = 8, .columns = 8};
    if (!strstr(text, PTX_UPPER_ROWS) ||
        sscanf(text,
               " mma.sync.aligned.m16n8k8.row.col.f32.%7[bf16].%*[bf16].f32 {%15[^,], %15[^,], "
               "%*[^}]}, {%15[^,], %*[^}]}, {%15[^}]}",
               p.type, p.sums[0], p.sums[1], p.a[0], p.b[0]) != 5)
        return NULL;
    product *made = malloc(sizeof *made);
    assert(made);
    *made = p;
    return made;
}

static bool names(const char *text, const char *reg) {
    size_t length = strlen(reg);
    for (const char *p = strstr(text, reg); length && p; p = strstr(p + 1, reg))
        if (!strspn(p + length, "0123456789"))
            return true;
    return false;
}

static bool names_any(const char *text, char regs[][REGISTER], int count) {
    for (int i = 0; i < count; i++)
        if (names(text, regs[i]))
            return true;
    return false;
}

/* Ends it a run of instructions that are always executed together? */
static bool is_end(const char *text) {
    return strncmp(text, "$L__BB", 6) == 0 || strstr(text, "bra") || strstr(text, "ret;") ||
           strstr(text, "call") || *text == '}';
}

/* May p not move past this line? */
static bool stops(line *l, product *p) {
    if (!l->product)
        return names_any(l->text, p->sums, 4) || names_any(l->text, p->a, 4) ||
               names_any(l->text, p->b, 2);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (*p->sums[i] && strcmp(p->sums[i], l->product->sums[j]) == 0)
                return true;
    return false;
}

/* Two matrices below each other. */
static bool join_rows(const product *p, product *q) {
    if (p->rows != 8 || q->rows != 8 || strcmp(p->type, q->type) != 0 ||
        strcmp(p->b[0], q->b[0]) != 0 || strcmp(p->sums[0], q->sums[0]) == 0)
        return false;
    memcpy(q->sums[2], q->sums[0], sizeof q->sums[0] * 2);
    memcpy(q->sums[0], p->sums[0], sizeof q->sums[0] * 2);
    memcpy(q->a[1], q->a[0], sizeof q->a[0]);
    memcpy(q->a[0], p->a[0], sizeof q->a[0]);
    q->rows = 16;
    return true;
}

/* Two products that are added to the same sums. */
static bool join_columns(const product *p, product *q) {
    if (p->rows != 16 || q->rows != 16 || p->columns != 8 || q->columns != 8 ||
        strcmp(p->type, q->type) != 0 || memcmp(p->sums, q->sums, sizeof p->sums) != 0)
        return false;
    memcpy(q->a[2], q->a[0], sizeof q->a[0] * 2);
    memcpy(q->a[0], p->a[0], sizeof q->a[0] * 2);
    memcpy(q->b[1], q->b[0], sizeof q->b[0]);
    memcpy(q->b[0], p->b[0], sizeof q->b[0]);
    q->columns = 16;
    return true;
}

static void join_all(line *lines, size_t count, bool (*join)(const product *, product *)) {
    for (size_t i = 0; i < count; i++) {
        line *l = &lines[i];
        for (size_t j = i + 1; l->product && !l->is_gone && j < count; j++) {
            line *other = &lines[j];
            if (other->is_gone)
                continue;
            if (other->product && join(l->product, other->product)) {
                l->is_gone = other->is_changed = true;
            } else if (is_end(other->text) || stops(other, l->product)) {
                break;
            }
        }
    }
}

static void print_product(FILE *f, const product *p) {
    fprintf(f, "\tmma.sync.aligned.m16n8k%d.row.col.f32.%s.%s.f32 ", p->columns, p->type, p->type);
    for (int i = 0; i < 2; i++) {
        fprintf(f, "{%s, %s, %s, %s}%s", p->sums[0], p->sums[1], p->sums[2], p->sums[3],
                i ? ";\n" : ", ");
        if (i == 0 && p->columns == 8)
            fprintf(f, "{%s, %s}, {%s}, ", p->a[0], p->a[1], p->b[0]);
        else if (i == 0)
            fprintf(f, "{%s, %s, %s, %s}, {%s, %s}, ", p->a[0], p->a[1], p->a[2], p->a[3], p->b[0],
                    p->b[1]);
    }
}

char *ptx_merge_text(const char *ptx) {
    size_t count = 0, size = 0;
    char *copy = strdup(ptx), *made = NULL;
    assert(copy);
    for (const char *p = ptx; *p; p++)
        count += *p == '\n';
    line *lines = calloc(count + 1, sizeof *lines);
    assert(lines);
    char *at = copy;
    for (size_t i = 0; i <= count; i++) {
        char *end = at + strcspn(at, "\n");
        bool is_last = !*end;
        *end = '\0';
        lines[i].text = at;
        lines[i].product = parse_product(at);
        at = is_last ? end : end + 1;
    }
    join_all(lines, count + 1, join_rows);
    join_all(lines, count + 1, join_columns);
    FILE *f = open_memstream(&made, &size);
    assert(f);
    for (size_t i = 0; i <= count; i++) {
        if (lines[i].is_changed && !lines[i].is_gone)
            print_product(f, lines[i].product);
        else if (!lines[i].is_gone)
            fprintf(f, "%s%s", lines[i].text, i < count ? "\n" : "");
        free(lines[i].product);
    }
    fclose(f);
    free(lines);
    free(copy);
    return made;
}

bool ptx_merge_products(const char *path, err *e) {
    char *ptx = os_read_file(path, NULL, e);
    if (!ptx || !strstr(ptx, PTX_UPPER_ROWS)) {
        free(ptx);
        return ptx != NULL;
    }
    char *merged = ptx_merge_text(ptx);
    bool ok = os_write_file(path, merged, strlen(merged), e);
    free(merged);
    free(ptx);
    return ok;
}
