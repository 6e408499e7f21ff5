/* places: see agx.h. llc writes no lines into a module, but prints its last form of it with them. Both have the
 * same instructions in the same order. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agx.h"
#include "harness/base/array.h"

enum { HEADER = 5, LABEL = 248, FUNCTION_END = 56 };

/* Instructions that llc prints among those of a function, and that a module has outside of them. */
static bool is_outside_functions(const char *name, const char *end) {
    static const char *const heads[] = {
        "OpType",     "OpConstant",   "OpSpecConstant",  "OpName",          "OpMemberName",
        "OpDecorate", "OpEntryPoint", "OpExecutionMode", "OpCapability",    "OpExtension",
        "OpUndef",    "OpLabel",      "OpExtInstImport", "OpMemberDecorate"};
    static const char variable[] = "OpVariable ", call[] = "OpFunctionCall",
                      function[] = "OpFunction";
    if (strncmp(name, variable, strlen(variable)) == 0) { /* 7: in the function */
        const char *space = strstr(name, ", ");
        return !space || space > end || strncmp(space, ", 7", 3) != 0;
    }
    if (strncmp(name, function, strlen(function)) == 0)
        return strncmp(name, call, strlen(call)) != 0;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strncmp(name, heads[i], strlen(heads[i])) == 0)
            return true;
    return false;
}

/* The name of the instruction of a line such as `  %8:iid = nuw OpIAddS %2:type, ...`; NULL: it has none. */
static const char *find_name(const char *line, const char *end) {
    const char *name = strncmp(line, "  ", 2) == 0 ? strstr(line, " Op") : NULL;
    return name && name < end && !is_outside_functions(name + 1, end) ? name + 1 : NULL;
}

/* Of "a.h:13:2" or "a.h:13" the part without the column; "" if the line is 0. */
static agx_place cut_column(const char *at, const char *stop) {
    const char *p = stop;
    while (p > at && isdigit((unsigned char)p[-1]))
        p--;
    const char *line = p;
    if (p > at)
        p--; /* the colon */
    const char *before = p;
    while (p > at && isdigit((unsigned char)p[-1]))
        p--;
    if (p > at && p[-1] == ':' && p < before)
        stop = before, line = p;
    return (agx_place){.text = at, .length = *line == '0' ? 0 : (int)(stop - at)};
}

/* Of `debug-location !9; a.h:13:2 @[ b.metal:7:1 ]` the first that is not of the shim: where Metal's functions are
 * called. */
static agx_place find_place(const char *line, const char *end) {
    static const char mark[] = "debug-location !", between[] = " @[ ", entry[] = "entry of ";
    const char *at = strstr(line, mark);
    at = at && at < end ? strstr(at, "; ") : NULL;
    while (at && at < end) {
        at += at[0] == ';' ? strlen("; ") : strlen(between);
        const char *next = strstr(at, between), *stop = next && next < end ? next : end;
        while (stop > at && (stop[-1] == ']' || stop[-1] == ' '))
            stop--;
        const char *shim = strstr(at, "/shim/");
        if ((!shim || shim > stop) && strncmp(at, entry, strlen(entry)) != 0 && *at != '<')
            return cut_column(at, stop);
        at = next;
    }
    return (agx_place){.length = 0};
}

/* What passes of LLVM moved or merged has lost its line, and what the entry does for the kernel has none: such an
 * instruction is for its first user, or else for what it uses. */
typedef struct {
    const char *line, *name, *end;
} llc_line;

typedef struct {
    size_t *items; /* by number of a value: an instruction + 1 */
    size_t count, room;
} value_list;

static bool find_value(const char **p, const char *end, size_t *value) {
    enum { MOST_VALUES = 1 << 20 };
    const char *found = *p < end ? memchr(*p, '%', (size_t)(end - *p)) : NULL;
    *p = found ? found + 1 : end;
    *value = found ? strtoul(found + 1, NULL, 10) : 0;
    return found != NULL && *value < MOST_VALUES;
}

static size_t *reach(value_list *l, size_t at) {
    while (l->count <= at)
        *ARRAY_ADD(l->items, l->count, l->room) = 0;
    return &l->items[at];
}

static void take_place(agx_places *p, size_t to, size_t from) {
    const uint32_t offset = p->items[to].offset;
    p->items[to] = p->items[from];
    p->items[to].offset = offset;
    p->items[to].is_near = true;
}

static void fill_gaps(agx_places *p, const llc_line *lines) {
    value_list users = {.items = NULL}, makers = {.items = NULL};
    size_t value;
    for (size_t i = p->count; i-- > 0;) {
        const char *at = lines[i].line;
        if (p->items[i].length == 0 && find_value(&at, lines[i].name, &value) &&
            *reach(&users, value))
            take_place(p, i, users.items[value] - 1);
        for (at = lines[i].name; p->items[i].length > 0 && find_value(&at, lines[i].end, &value);)
            *reach(&users, value) = i + 1;
    }
    for (size_t i = 0; i < p->count; i++) {
        const char *at = lines[i].name;
        while (p->items[i].length == 0 && find_value(&at, lines[i].end, &value))
            if (*reach(&makers, value))
                take_place(p, i, makers.items[value] - 1);
        at = lines[i].line;
        if (p->items[i].length > 0 && find_value(&at, lines[i].name, &value))
            *reach(&makers, value) = i + 1;
    }
    free(users.items);
    free(makers.items);
}

/* Whether llc's name can be that of the module's instruction; only a few are known here. */
static bool is_same(const char *name, uint32_t code) {
    static const struct {
        const char *name;
        uint32_t code;
    } known[] = {{"OpLoad", 61},
                 {"OpStore", 62},
                 {"OpPhi", 245},
                 {"OpBranch", 249},
                 {"OpBranchConditional", 250}};
    const size_t length = strcspn(name, " \n");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code ||
            (strlen(known[i].name) == length && strncmp(known[i].name, name, length) == 0))
            return known[i].code == code && strncmp(known[i].name, name, length) == 0;
    return true;
}

/* The next instruction of a function from *at on; false at the end. */
static bool find_next(const uint32_t *words, size_t count, size_t *at, bool *is_inside) {
    for (; *at < count && words[*at] >> 16; *at += words[*at] >> 16) {
        const uint32_t code = words[*at] & 0xFFFF;
        if (code == LABEL || code == FUNCTION_END)
            *is_inside = code == LABEL;
        else if (*is_inside)
            return true;
    }
    return false;
}

bool agx_read_places(const char *printed, const uint32_t *words, size_t count, agx_places *out) {
    size_t at = HEADER;
    bool is_inside = false;
    struct {
        llc_line *items;
        size_t count, room;
    } lines = {.items = NULL};
    bool ok = true;
    *out = (agx_places){.items = NULL};
    for (const char *line = printed, *end; ok && *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        const char *name = find_name(line, end);
        if (!name)
            continue;
        ok = find_next(words, count, &at, &is_inside) && is_same(name, words[at] & 0xFFFF);
        if (!ok)
            break;
        agx_place place = find_place(line, end);
        place.offset = (uint32_t)(at * sizeof *words);
        *ARRAY_ADD(out->items, out->count, out->room) = place;
        *ARRAY_ADD(lines.items, lines.count, lines.room) = (llc_line){line, name, end};
        at += words[at] >> 16;
    }
    ok = ok && !find_next(words, count, &at, &is_inside);
    if (ok)
        fill_gaps(out, lines.items);
    free(lines.items);
    return ok;
}

static int compare_offsets(const void *key, const void *item) {
    const uint32_t a = *(const uint32_t *)key, b = ((const agx_place *)item)->offset;
    return (a > b) - (a < b);
}

const agx_place *agx_find_place(const agx_places *p, uint32_t offset) {
    const agx_place *found =
        p->count ? bsearch(&offset, p->items, p->count, sizeof *p->items, compare_offsets) : NULL;
    return found && found->length > 0 ? found : NULL;
}
