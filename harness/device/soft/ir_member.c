/* ir_member: see ir_member.h. In the module such a pointer is made in two steps,
 *     %a = getelementptr inbounds %struct.S, ptr %s, i32 0, i32 1
 *     %arraydecay = getelementptr inbounds [4 x float], ptr %a, i64 0, i64 0
 * and then stored in a variable. A variable that is stored to once, and whose address is not taken,
 * points there wherever it is loaded. */
#include "ir_member.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

/* What is known of the pointer variables of a function. */
typedef struct {
    int stores;
    bool is_taken; /* its address goes elsewhere */
    const ir_pointer *value;
} holder;

static const ir_pointer *find_pointer(const ir_pointers *p, span name) {
    for (size_t i = 0; i < p->count; i++)
        if (ir_is_same(p->list[i].name, name))
            return &p->list[i];
    return NULL;
}

/* The operand that a getelementptr or a load begins from. */
static span find_base(span value) {
    const char *comma = ir_find(value, "* %");
    comma = comma ? comma : ir_find(value, "ptr %");
    span rest = {comma, comma ? (size_t)(value.at + value.bytes - comma) : 0};
    return comma ? ir_take_local(&rest) : rest;
}

/* `getelementptr inbounds %struct.S, ptr %s, i32 0, i32 1`, where member 1 is an array. */
static bool is_member(const ir_function *f, span value, span *array) {
    static const char start[] = "getelementptr inbounds ";
    const char *path = ir_find(value, ", i32 0, i32 ");
    if (!ir_begins(value, start) || !path)
        return false;
    const span text = {value.at + strlen(start), value.bytes - strlen(start)};
    return ir_get_member(f->types, ir_get_type(f->types, text),
                         strtoull(path + strlen(", i32 0, i32 "), NULL, 10), array) &&
           array->at[0] == '[';
}

/* Adds what the line defines, if it is a member array or a pointer to its first element. */
static void read_line(const ir_function *f, span line, ir_pointers *members, ir_pointers *firsts) {
    span name, value, array;
    if (!ir_split_definition(line, &name, &value))
        return;
    if (is_member(f, value, &array)) {
        *ARRAY_ADD(members->list, members->count, members->room) = (ir_pointer){name, array, 0};
        return;
    }
    const ir_pointer *member = ir_begins(value, "getelementptr ") && members->count
                                   ? find_pointer(members, find_base(value))
                                   : NULL;
    if (!member || !ir_find(value, ", i64 0, i64 0,"))
        return;
    const char *x = strstr(member->element.at, " x ") + 3;
    const span element = {x, (size_t)(member->element.at + member->element.bytes - 1 - x)};
    *ARRAY_ADD(firsts->list, firsts->count, firsts->room) =
        (ir_pointer){name, element, strtoull(member->element.at + 1, NULL, 10)};
}

static void read_use(const ir_function *f, span line, const ir_pointers *firsts, holder *holders) {
    const address *a = ir_find_target(f, line);
    span name, value, rest = line;
    if (ir_begins(line, "  store ") && a) {
        const ir_pointer *first = find_pointer(firsts, ir_take_local(&rest));
        holders[a->variable].stores++;
        if (first && !a->path.bytes)
            holders[a->variable].value = first;
    }
    const bool is_known = ir_find(line, f->note) || ir_find(line, "@llvm.lifetime.") ||
                          ir_begins(line, "  store ") ||
                          (ir_split_definition(line, &name, &value) &&
                           (ir_begins(value, "load ") || ir_begins(value, "alloca ") ||
                            ir_begins(value, "bitcast ")));
    while (rest.bytes) {
        const address *used = ir_find_address(f, ir_take_local(&rest));
        if (used && (!is_known || (ir_begins(line, "  store ") && used != a)))
            holders[used->variable].is_taken = true;
    }
}

void ir_find_members(const ir_function *f, ir_pointers *out) {
    ir_pointers members = {0}, firsts = {0};
    out->count = 0;
    for (size_t i = 0; i < f->line_count; i++)
        read_line(f, f->lines[i], &members, &firsts);
    holder *holders = array_new(f->count + 1, sizeof *holders);
    for (size_t i = 0; i < f->line_count && firsts.count; i++)
        if (!ir_find(f->lines[i], f->note))
            read_use(f, f->lines[i], &firsts, holders);
    for (size_t i = 0; i < f->line_count && firsts.count; i++) {
        span name, value;
        if (!ir_split_definition(f->lines[i], &name, &value) || !ir_begins(value, "load "))
            continue;
        const address *a = ir_find_address(f, find_base(value));
        const holder *h = a && !a->path.bytes ? &holders[a->variable] : NULL;
        if (h && h->value && h->stores == 1 && !h->is_taken)
            *ARRAY_ADD(out->list, out->count, out->room) =
                (ir_pointer){name, h->value->element, h->value->count};
    }
    free(holders);
    free(members.list);
    free(firsts.list);
}

/* Is what line n defines kept as an address, as in `end = &p[4]`? That is no access. */
static bool is_kept(const ir_function *f, size_t n, span name) {
    for (size_t i = n + 1; i < f->line_count; i++) {
        span rest = f->lines[i];
        if (ir_begins(rest, "  store ") && ir_is_same(ir_take_local(&rest), name))
            return true;
    }
    return false;
}

bool ir_is_element(const ir_function *f, const ir_pointers *p, size_t n, span *index,
                   uint64_t *count) {
    static const char start[] = "getelementptr inbounds ";
    span name, value;
    if (!p->count || !ir_split_definition(f->lines[n], &name, &value) || !ir_begins(value, start) ||
        !ir_begins(name, "%arrayidx"))
        return false;
    const ir_pointer *from = find_pointer(p, find_base(value));
    const span type = {value.at + strlen(start), from ? from->element.bytes : 0};
    const char *operand = ir_find(value, ", i64 "), *end = ir_find(value, ", !dbg ");
    if (!from || !operand || !end || end < operand || !ir_is_same(type, from->element) ||
        type.at[type.bytes] != ',')
        return false;
    *index = (span){operand + 2, (size_t)(end - operand - 2)};
    *count = from->count;
    return !memchr(index->at, ',', index->bytes) && !is_kept(f, n, name);
}

/* `%bf.clear = and i32 %bf.load, -32`, `%bf.set = or i32 %bf.clear, %bf.value` */
static bool is_made_of(span value, span from) {
    return (ir_begins(value, "and i") || ir_begins(value, "or i")) &&
           ir_is_same(ir_take_local(&value), from);
}

bool ir_is_bit_field_store(const ir_function *f, size_t n, span *place, unsigned long *bits) {
    const size_t most = 40; /* lines of the value between the load and the store */
    span loaded, value;
    if (!ir_split_definition(f->lines[n], &loaded, &value) || !ir_begins(loaded, "%bf.load") ||
        !ir_begins(value, "load i"))
        return false;
    *bits = strtoul(value.at + strlen("load i"), NULL, 10);
    *place = ir_take_local(&value);
    span kept = loaded;
    for (size_t i = n + 1; place->bytes && i < f->line_count && i <= n + most; i++) {
        span line = f->lines[i], name;
        if (ir_split_definition(line, &name, &value)) {
            if (is_made_of(value, kept))
                kept = name;
        } else if (ir_begins(line, "  store i") && ir_is_same(ir_take_local(&line), kept) &&
                   ir_is_same(ir_take_local(&line), *place))
            return true;
    }
    return false;
}
