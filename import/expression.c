/* expression: evaluates an expression while reading its tokens. Where a part must be skipped or read
 * again (the branches of a conditional, the element of a comprehension), it is first read dry. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const py_token *now(const reader *r) {
    return &r->tokens->items[r->at];
}

static bool matches(const py_token *t, py_kind kind, const char *text) {
    return t->kind == kind && strlen(text) == t->bytes && memcmp(t->begin, text, t->bytes) == 0;
}

bool is_mark(const reader *r, const char *mark) {
    return matches(now(r), PY_MARK, mark);
}

bool is_word(const reader *r, const char *word) {
    return matches(now(r), PY_NAME, word);
}

bool take_mark(reader *r, const char *mark) {
    return is_mark(r, mark) && (r->at++, true);
}

bool take_word(reader *r, const char *word) {
    return is_word(r, word) && (r->at++, true);
}

static value *unknown(reader *r) {
    return value_unknown(r->im, NULL);
}

/* Parts ---------------------------------------------------------------------------------------- */

static value *read_number(reader *r) {
    const py_token *t = now(r);
    char text[80];
    size_t n = 0;
    for (size_t i = 0; i < t->bytes && n + 1 < sizeof text; i++)
        if (t->begin[i] != '_')
            text[n++] = t->begin[i];
    text[n] = 0;
    r->at++;
    bool is_hex = n > 1 && text[0] == '0' && strchr("xXbBoO", text[1]);
    if (is_hex && strchr("bBoO", text[1]))
        return value_int(r->im, strtoll(text + 2, NULL, strchr("bB", text[1]) ? 2 : 8));
    return !is_hex && strpbrk(text, ".eE") ? value_float(r->im, strtod(text, NULL))
                                           : value_int(r->im, strtoll(text, NULL, 0));
}

static value *read_strings(reader *r) {
    value *v = NULL;
    for (; now(r)->kind == PY_STRING; r->at++) {
        if (r->is_dry)
            continue;
        value *part = format_literal(r, now(r));
        v = v ? value_operate(r->im, "+", v, part) : part;
    }
    return v ? v : unknown(r);
}

/* The items of something that a loop goes over; what is unknown has four. */
static value_list list_items(importer *im, value *v) {
    if (v->kind == V_SHAPE)
        v = array_shape_list(im, v, -1);
    value_list out = {.count = 0};
    if (v->kind == V_DICT)
        for (size_t i = 0; i < v->list.count; i++)
            list_add(im, &out, NULL, v->list.keys[i]);
    else if (v->kind == V_LIST)
        return v->list;
    else if (v->kind == V_UNKNOWN)
        for (int i = 0; i < 4; i++)
            list_add(im, &out, NULL, value_unknown(im, v->name));
    return out;
}

/* `element for x in items if condition`, with the reader after the element, which began at from. */
static void read_comprehension(reader *r, uint32_t from, uint32_t colon, uint32_t end, value *out) {
    reader inner = *r;
    inner.scope = scope_new(r->im, r->scope);
    take_word(&inner, "for");
    uint32_t target = inner.at;
    while (!is_word(&inner, "in") && inner.at < end)
        inner.at++;
    uint32_t target_end = inner.at++;
    value *over = read_expression(&inner);
    uint32_t after = inner.at;
    value_list items = list_items(r->im, over);
    for (size_t i = 0; i < items.count && !r->is_dry; i++) {
        inner.at = target;
        bind_target(&inner, target, target_end, items.items[i]);
        inner.at = after;
        bool is_wanted = true;
        while (take_word(&inner, "if"))
            is_wanted = value_truth(read_expression(&inner)) != FALSE_VALUE && is_wanted;
        if (!is_wanted)
            continue;
        if (is_word(&inner, "for")) {
            read_comprehension(&inner, from, colon, end, out);
            continue;
        }
        inner.at = from;
        value *key = colon ? read_expression(&inner) : NULL;
        inner.at = colon ? colon + 1 : from;
        list_add(r->im, &out->list, key, read_expression(&inner));
    }
    r->at = end;
}

/* One element, or a whole comprehension, up to the bracket at end. Was it one? */
static bool read_element(reader *r, uint32_t end, value *out) {
    reader dry = *r;
    dry.is_dry = true;
    uint32_t from = r->at, colon = 0;
    take_mark(&dry, "*");
    take_mark(&dry, "**");
    read_expression(&dry);
    if (is_mark(&dry, ":")) {
        colon = dry.at++;
        read_expression(&dry);
    }
    if (is_word(&dry, "for")) {
        dry.is_dry = r->is_dry;
        out->kind = colon ? V_DICT : V_LIST;
        read_comprehension(&dry, from, colon, end, out);
        r->at = end;
        return true;
    }
    if (take_mark(r, "*") || take_mark(r, "**")) {
        value *more = read_expression(r);
        for (size_t i = 0; i < more->list.count; i++)
            list_add(r->im, &out->list, more->list.keys[i], more->list.items[i]);
    } else {
        value *item = read_expression(r), *key = NULL;
        if (colon && take_mark(r, ":")) {
            key = item;
            item = read_expression(r);
        }
        if (!r->is_dry)
            list_add(r->im, &out->list, key, item);
    }
    return false;
}

/* ( ), [ ] or { }: a value in brackets, a tuple, a list, a dict or a set. */
static value *read_brackets(reader *r) {
    const py_token *open = now(r);
    uint32_t end = open->pair;
    bool is_round = *open->begin == '(', is_plain = true;
    if (r->is_dry) {
        r->at = end + 1;
        return unknown(r);
    }
    value *out = value_new(r->im, V_LIST);
    r->at++;
    while (r->at < end) {
        uint32_t before = r->at;
        bool is_many = read_element(r, end, out) || is_mark(r, ",");
        is_plain = is_plain && !is_many;
        if (!take_mark(r, ",") && r->at == before)
            r->at++;
    }
    r->at = end + 1;
    if (*open->begin == '{' && (out->list.count == 0 || out->list.keys[0]))
        out->kind = V_DICT;
    return is_round && is_plain && out->list.count == 1 ? out->list.items[0] : out;
}

static value *read_name(reader *r) {
    static const char *const functions =
        " range len str int float bool min max abs list tuple dict set enumerate zip sorted "
        "reversed "
        "repr sum any all isinstance hasattr getattr round dedent partial lru_cache ";
    const py_token *t = now(r);
    const char *name = keep_text(r->im, t->begin, t->bytes);
    r->at++;
    if (strcmp(name, "True") == 0 || strcmp(name, "False") == 0)
        return value_bool(r->im, *name == 'T');
    if (strcmp(name, "None") == 0)
        return value_new(r->im, V_NONE);
    value *v = scope_find(r->scope, name);
    if (v)
        return v;
    char wanted[80];
    snprintf(wanted, sizeof wanted, " %.70s ", name);
    bool is_maker = strcmp(name, "metal_kernel") == 0 || strcmp(name, "compile_shader") == 0;
    v = value_new(r->im, is_maker ? V_MAKER : strstr(functions, wanted) ? V_METHOD : V_UNKNOWN);
    v->name = name;
    return v;
}

static void read_arguments(reader *r, uint32_t end, value_list *args, value *named) {
    while (r->at < end) {
        const py_token *t = now(r);
        uint32_t before = r->at;
        if (t->kind == PY_NAME && matches(t + 1, PY_MARK, "=")) {
            r->at += 2;
            value *key = value_string(r->im, t->begin, t->bytes, 0);
            list_add(r->im, &named->list, key, read_expression(r));
        } else if (take_mark(r, "**")) {
            value *more = read_expression(r);
            for (size_t i = 0; i < more->list.count && more->kind == V_DICT; i++)
                list_add(r->im, &named->list, more->list.keys[i], more->list.items[i]);
        } else {
            value *out = value_new(r->im, V_LIST);
            if (read_element(r, end, out))
                list_add(r->im, args, NULL, out);
            else
                for (size_t i = 0; i < out->list.count; i++)
                    list_add(r->im, args, NULL, out->list.items[i]);
        }
        if (!take_mark(r, ",") && r->at < end && r->at == before)
            r->at++;
    }
}

static value *read_slice(reader *r, value *of, uint32_t end) {
    value *low = NULL, *high = NULL;
    bool is_slice = false;
    r->at++;
    if (!is_mark(r, ":"))
        low = read_list_expression(r);
    if (take_mark(r, ":")) {
        is_slice = true;
        if (r->at < end && !is_mark(r, ":"))
            high = read_expression(r);
    }
    r->at = end + 1;
    if (!is_slice)
        return low ? get_item(r->im, of, low) : unknown(r);
    if (of->kind == V_SHAPE)
        of = array_shape_list(r->im, of, -1);
    int64_t n = of->kind == V_STRING ? (int64_t)of->s.bytes : (int64_t)of->list.count;
    int64_t a = low ? value_whole(r->im, low, 0) : 0, b = high ? value_whole(r->im, high, n) : n;
    a = a < 0 ? a + n : a;
    b = b < 0 ? b + n : b > n ? n : b;
    if ((of->kind != V_LIST && of->kind != V_STRING) || a < 0)
        return of->kind == V_ARRAY || of->kind == V_UNKNOWN ? get_item(r->im, of, of) : unknown(r);
    value *out = value_new(r->im, of->kind);
    if (of->kind == V_STRING && a < b) {
        chars part = chars_slice(&of->s, (size_t)a, (size_t)b);
        chars_append(r->im, &out->s, &part);
    } else if (of->kind == V_STRING) {
        chars_add(r->im, &out->s, "", 0, 0);
    }
    for (int64_t i = a; i < b && of->kind == V_LIST; i++)
        list_add(r->im, &out->list, NULL, of->list.items[i]);
    return out;
}

static value *read_trailers(reader *r, value *v) {
    for (;;) {
        uint32_t at = r->at;
        if (is_mark(r, "(")) {
            uint32_t end = now(r)->pair;
            value_list args = {.count = 0};
            value *named = value_new(r->im, V_DICT);
            r->at++;
            if (!r->is_dry) {
                read_arguments(r, end, &args, named);
                v = call_value(r, v, &args, named, at);
            }
            r->at = end + 1;
        } else if (is_mark(r, "[")) {
            uint32_t end = now(r)->pair;
            if (r->is_dry)
                r->at = end + 1;
            else
                v = read_slice(r, v, end);
        } else if (is_mark(r, ".") && now(r)[1].kind == PY_NAME) {
            const py_token *t = now(r) + 1;
            r->at += 2;
            if (!r->is_dry)
                v = get_attribute(r->im, v, keep_text(r->im, t->begin, t->bytes));
        } else {
            return v;
        }
    }
}

static value *read_unary(reader *r);

static value *read_primary(reader *r) {
    value *v;
    const py_token *t = now(r);
    take_word(r, "await");
    if (t->kind == PY_STRING)
        v = read_strings(r);
    else if (t->kind == PY_NUMBER)
        v = read_number(r);
    else if (is_mark(r, "(") || is_mark(r, "[") || is_mark(r, "{"))
        v = read_brackets(r);
    else if (t->kind == PY_NAME)
        v = read_name(r);
    else {
        r->at += is_mark(r, "...");
        return unknown(r);
    }
    v = read_trailers(r, v);
    if (take_mark(r, "**")) {
        value *exponent = read_unary(r);
        v = r->is_dry ? v : value_operate(r->im, "**", v, exponent);
    }
    return v;
}

static value *read_unary(reader *r) {
    if (take_mark(r, "-")) {
        value *v = read_unary(r);
        return r->is_dry ? v : value_operate(r->im, "-", value_int(r->im, 0), v);
    }
    if (take_mark(r, "+") || take_mark(r, "~"))
        return read_unary(r);
    return read_primary(r);
}

/* Binary operators by precedence, weakest first. */
static value *read_binary(reader *r, int level) {
    static const char *const levels[][5] = {{"|"},        {"^"},      {"&"},
                                            {"<<", ">>"}, {"+", "-"}, {"*", "//", "/", "%", "@"}};
    if (level == sizeof levels / sizeof *levels)
        return read_unary(r);
    value *left = read_binary(r, level + 1);
    for (;;) {
        const char *op = NULL;
        for (int i = 0; i < 5 && levels[level][i] && !op; i++)
            op = is_mark(r, levels[level][i]) ? levels[level][i] : NULL;
        if (!op)
            return left;
        r->at++;
        value *right = read_binary(r, level + 1);
        left = r->is_dry ? left : value_operate(r->im, op, left, right);
    }
}

static const char *take_comparison(reader *r) {
    static const char *const marks[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (take_mark(r, marks[i]))
            return marks[i];
    if (take_word(r, "in"))
        return "in";
    if (take_word(r, "is"))
        return take_word(r, "not") ? "is not" : "is";
    if (is_word(r, "not") && matches(now(r) + 1, PY_NAME, "in")) {
        r->at += 2;
        return "not in";
    }
    return NULL;
}

static value *read_comparison(reader *r) {
    if (take_word(r, "not")) {
        value *v = read_comparison(r);
        int truth = value_truth(v);
        return truth == MAYBE_VALUE ? unknown(r) : value_bool(r->im, !truth);
    }
    value *left = read_binary(r, 0);
    const char *op = take_comparison(r);
    value *result = op ? NULL : left;
    for (; op; op = take_comparison(r)) {
        value *right = read_binary(r, 0);
        value *one = r->is_dry ? right : value_compare(r->im, op, left, right);
        result = !result || value_truth(result) == TRUE_VALUE ? one : result;
        left = right;
    }
    return result;
}

/* and, or: the second part is read dry where the first decides. */
static value *read_logic(reader *r, bool is_or) {
    value *v = is_or ? read_logic(r, false) : read_comparison(r);
    while (take_word(r, is_or ? "or" : "and")) {
        int truth = value_truth(v);
        bool was_dry = r->is_dry, decides = truth == (is_or ? TRUE_VALUE : FALSE_VALUE);
        r->is_dry = was_dry || decides;
        value *right = is_or ? read_logic(r, false) : read_comparison(r);
        r->is_dry = was_dry;
        int other = value_truth(right);
        bool settles = truth == MAYBE_VALUE && other == (is_or ? TRUE_VALUE : FALSE_VALUE);
        if (!decides && (truth != MAYBE_VALUE || settles))
            v = right;
    }
    return v;
}

/* One without parameters is a launch that is handed to someone who calls it. */
static value *read_lambda(reader *r) {
    if (take_mark(r, ":")) {
        read_expression(r);
        return unknown(r);
    }
    while (!is_mark(r, ":") && now(r)->kind != PY_NEWLINE && now(r)->kind != PY_END)
        r->at = now(r)->pair > r->at ? now(r)->pair + 1 : r->at + 1;
    take_mark(r, ":");
    bool was_dry = r->is_dry;
    r->is_dry = true;
    read_expression(r);
    r->is_dry = was_dry;
    return unknown(r);
}

value *read_expression(reader *r) {
    if (take_word(r, "lambda"))
        return read_lambda(r);
    if (now(r)->kind == PY_NAME && matches(now(r) + 1, PY_MARK, ":=")) {
        const py_token *t = now(r);
        r->at += 2;
        value *v = read_expression(r);
        if (!r->is_dry)
            scope_bind(r->im, r->scope, keep_text(r->im, t->begin, t->bytes), v);
        return v;
    }
    /* Is it `a if c else b`? A dry look tells. */
    reader dry = *r;
    dry.is_dry = true;
    read_logic(&dry, true);
    if (!is_word(&dry, "if")) {
        if (r->is_dry) {
            r->at = dry.at;
            return unknown(r);
        }
        return read_logic(r, true);
    }
    dry.at++;
    dry.is_dry = r->is_dry;
    value *condition = read_logic(&dry, true);
    bool has_else = take_word(&dry, "else");
    bool takes_first = value_truth(condition) != FALSE_VALUE;
    if (!has_else) { /* the `if` of a comprehension */
        return read_logic(r, true);
    }
    value *v = takes_first ? read_logic(r, true) : NULL;
    r->at = dry.at;
    bool was_dry = r->is_dry;
    r->is_dry = was_dry || takes_first;
    value *other = read_expression(r);
    r->is_dry = was_dry;
    return takes_first ? v : other;
}

value *read_list_expression(reader *r) {
    uint32_t from = r->at;
    take_mark(r, "*");
    value *first = read_expression(r);
    if (!is_mark(r, ","))
        return first;
    value *list = value_new(r->im, V_LIST);
    reader spread = *r;
    spread.at = from;
    if (is_mark(&spread, "*"))
        for (size_t i = 0; i < first->list.count; i++)
            list_add(r->im, &list->list, NULL, first->list.items[i]);
    else
        list_add(r->im, &list->list, NULL, first);
    while (take_mark(r, ",") && now(r)->kind != PY_NEWLINE && !is_mark(r, "=") &&
           !is_mark(r, "]") && !is_mark(r, ":"))
        list_add(r->im, &list->list, NULL, read_expression(r));
    return list;
}
