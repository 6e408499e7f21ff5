/* module: what Mesa needs changed in a module, in LLVM's text form. See agx.h. Numbers of address spaces have one
 * digit, so moving constants changes no length. */
#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agx.h"
#include "harness/base/array.h"

/* Constants ------------------------------------------------------------------------------------- */

static const char device_pointer[] = "ptr addrspace(1)";
enum { DIGIT = sizeof device_pointer - 3 };

/* Names of the module (@ and %) that are in the constant space. */
typedef struct {
    const char **items;
    size_t count, room;
} name_list;

static size_t get_name_length(const char *p) {
    size_t n = 1;
    if (p[1] == '"')
        return 3 + strcspn(p + 2, "\"\n");
    while (isalnum((unsigned char)p[n]) || (p[n] && strchr("-$._", p[n])))
        n++;
    return n;
}

static bool has_name(const name_list *l, const char *p) {
    size_t n = get_name_length(p);
    for (size_t i = 0; i < l->count; i++)
        if (get_name_length(l->items[i]) == n && strncmp(l->items[i], p, n) == 0)
            return true;
    return false;
}

static char *find_in_line(char *p, const char *end, const char *text) {
    char *found = strstr(p, text);
    return found && found < end ? found : NULL;
}

/* `phi ptr addrspace(1) [ %8, %2 ], [ @table, %1 ]`: the type of all is said once. */
static bool has_moved_value(char *phi, const char *end, const name_list *moved) {
    for (char *p = phi; (p = find_in_line(p, end, "[ ")); p++)
        if (has_name(moved, p + 2))
            return true;
    return false;
}

/* `ptr addrspace(1) @table`, also with attributes between the two. */
static bool move_pointers(char *line, const char *end, const name_list *moved) {
    bool any = false, is_phi = find_in_line(line, end, " = phi ");
    for (char *p = line; (p = find_in_line(p, end, device_pointer)); p++) {
        char *name = p + strlen(device_pointer);
        name += strcspn(name, ",%@\n");
        if (is_phi ? has_moved_value(name, end, moved)
                   : (*name == '%' || *name == '@') && has_name(moved, name)) {
            p[DIGIT] = '2';
            any = true;
        }
    }
    return any;
}

/* A line that points to a constant: so does what it computes from the pointer. */
static void follow(char *line, const char *end, name_list *moved) {
    static const char copy[] = "llvm.memcpy.p0.p1.", *const makes[] = {"getelementptr", "phi",
                                                                       "select", "freeze"};
    char *p = line;
    while ((p = find_in_line(p, end, "ptr addrspace(1) getelementptr")))
        p[DIGIT] = '2';
    if ((p = find_in_line(line, end, copy)))
        p[strlen(copy) - 2] = '2';
    line += strspn(line, " ");
    char *equals = *line == '%' ? find_in_line(line, end, " = ") : NULL;
    for (size_t i = 0; equals && i < sizeof makes / sizeof *makes; i++)
        if (strncmp(equals + 3, makes[i], strlen(makes[i])) == 0 && !has_name(moved, line))
            *ARRAY_ADD(moved->items, moved->count, moved->room) = line;
}

static void move_global(char *line, const char *end, name_list *moved) {
    char *space = find_in_line(line, end, "addrspace(1) constant ");
    if (find_in_line(line, end, "llvm.compiler.used") || find_in_line(line, end, "__hip_cuid_"))
        *line = ';';
    else if (space && find_in_line(line, end, " = ")) {
        space[strlen("addrspace(")] = '2';
        *ARRAY_ADD(moved->items, moved->count, moved->room) = line;
    }
}

void agx_move_constants(char *module) {
    name_list moved = {.count = 0};
    for (char *line = module, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        if (*line == '@')
            move_global(line, end, &moved);
    }
    for (bool again = moved.count > 0; again;) { /* a loop's phi comes before what it is made of */
        again = false;
        for (char *line = module, *end; *line; line = end + (*end == '\n')) {
            end = line + strcspn(line, "\n");
            if (*line == '@' || !move_pointers(line, end, &moved))
                continue;
            follow(line, end, &moved);
            again = true;
        }
    }
    free(moved.items);
}

/* Loads ----------------------------------------------------------------------------------------- */

/* `  %v = load i64, ptr addrspace(1) %p, align 8`: of the names how long they are; false: another line. */
static bool find_load(const char *line, int *value, const char **at, int *at_length,
                      unsigned *align) {
    static const char load[] = " = load i64, ptr addrspace(1) ";
    if (strncmp(line, "  %", 3) != 0)
        return false;
    *value = (int)strcspn(line + 2, " \n");
    if (strncmp(line + 2 + *value, load, strlen(load)) != 0)
        return false;
    *at = line + 2 + *value + strlen(load);
    *at_length = (int)strcspn(*at, ", \n");
    return **at == '%' && sscanf(*at + *at_length, ", align %u", align) == 1;
}

char *agx_split_loads(const char *module) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert(out);
    int i = 0; /* loads so far */
    for (const char *line = module, *next; *line; line = next) {
        int value, n;
        unsigned align;
        const char *at;
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        if (!find_load(line, &value, &at, &n, &align)) {
            fwrite(line, 1, (size_t)(next - line), out);
            continue;
        }
        fprintf(out,
                "  %%agx%d.low = load i32, ptr addrspace(1) %.*s, align %u\n"
                "  %%agx%d.at = getelementptr i8, ptr addrspace(1) %.*s, i64 4\n"
                "  %%agx%d.high = load i32, ptr addrspace(1) %%agx%d.at, align %u\n"
                "  %%agx%d.x = zext i32 %%agx%d.low to i64\n"
                "  %%agx%d.y = zext i32 %%agx%d.high to i64\n"
                "  %%agx%d.z = shl i64 %%agx%d.y, 32\n"
                "  %.*s = or i64 %%agx%d.x, %%agx%d.z\n",
                i, n, at, align, i, n, at, i, i, align < 4 ? align : 4, i, i, i, i, i, i, value,
                line + 2, i, i);
        i++;
    }
    fclose(out);
    return text;
}
