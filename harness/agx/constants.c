/* constants: see agx.h. Numbers of address spaces have one digit, so nothing changes its length. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agx.h"
#include "harness/base/array.h"

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
