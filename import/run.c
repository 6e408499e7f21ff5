/* run: statements, in order, with what is known. A condition that is not known is taken; if its block
 * returns, as guards do, the function goes on as if it had not been. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Statements are counted for each function that is run by itself, so that a long one does not keep the
 * others from being read. */
enum { DEEPEST_CALL = 24, MOST_TURNS = 512, MOST_STEPS = 20000 };

static const py_token *now(const reader *r) {
    return &r->tokens->items[r->at];
}

/* Past the end of a simple statement. */
static void skip_line(reader *r) {
    while (now(r)->kind != PY_NEWLINE && now(r)->kind != PY_END && !is_mark(r, ";"))
        r->at = now(r)->pair > r->at ? now(r)->pair + 1 : r->at + 1;
    r->at += now(r)->kind != PY_END;
}

/* The block after a colon: first and end are its statements; the reader is then after it. */
static void take_block(reader *r, uint32_t *first, uint32_t *end) {
    while (!is_mark(r, ":") && now(r)->kind != PY_NEWLINE && now(r)->kind != PY_END)
        r->at = now(r)->pair > r->at ? now(r)->pair + 1 : r->at + 1;
    take_mark(r, ":");
    if (now(r)->kind != PY_NEWLINE) { /* on the same line */
        *first = r->at;
        while (now(r)->kind != PY_NEWLINE && now(r)->kind != PY_END)
            r->at = now(r)->pair > r->at ? now(r)->pair + 1 : r->at + 1;
        r->at += now(r)->kind != PY_END;
        *end = r->at;
        return;
    }
    r->at++;
    *first = r->at + 1;
    *end = now(r)->kind == PY_INDENT ? now(r)->pair : *first;
    r->at = now(r)->kind == PY_INDENT ? *end + 1 : r->at;
}

static void run_part(reader *r, uint32_t first, uint32_t end) {
    uint32_t after = r->at;
    r->at = first;
    run_block(r, end);
    r->at = after;
}

/* Assignments ---------------------------------------------------------------------------------- */

/* The end of a target that begins here: a comma or mark outside of brackets. */
static uint32_t find_end(const reader *r, uint32_t at, uint32_t to, const char *mark) {
    reader p = *r;
    for (p.at = at; p.at < to && !is_mark(&p, mark);)
        p.at = now(&p)->pair > p.at ? now(&p)->pair + 1 : p.at + 1;
    return p.at;
}

static void unpack(reader *r, uint32_t from, uint32_t to, value *v) {
    size_t count = 0, index = 0;
    for (uint32_t at = from; at < to; at = find_end(r, at, to, ",") + 1)
        count++;
    if (v->kind == V_UNKNOWN && v->op)
        v->op = NULL;
    if (v->kind == V_SHAPE)
        v = array_shape_list(r->im, v, (int)count);
    for (uint32_t at = from; at < to; index++) {
        uint32_t end = find_end(r, at, to, ",");
        reader p = *r;
        p.at = at;
        bool is_rest = take_mark(&p, "*");
        bool has_item = v->kind == V_LIST && index < v->list.count && !is_rest;
        bind_target(r, p.at, end, has_item ? v->list.items[index] : value_unknown(r->im, v->name));
        at = end + 1;
    }
}

/* `a`, `a.b`, `a[i]`, `(a, b)` or `a, b` between two tokens. */
void bind_target(reader *r, uint32_t from, uint32_t to, value *v) {
    const py_token *t = &r->tokens->items[from];
    reader p = *r;
    p.at = from;
    if ((is_mark(&p, "(") || is_mark(&p, "[")) && t->pair + 1 == to)
        unpack(r, from + 1, t->pair, v);
    else if (find_end(r, from, to, ",") < to)
        unpack(r, from, to, v);
    else if (to == from + 1 && t->kind == PY_NAME)
        scope_bind(r->im, r->scope, keep_text(r->im, t->begin, t->bytes), v);
    else if (to > from + 2 && r->tokens->items[to - 2].begin[0] == '.') {
        const py_token *last = &r->tokens->items[to - 1];
        value *of =
            to == from + 3 ? scope_find(r->scope, keep_text(r->im, t->begin, t->bytes)) : NULL;
        if (of && !of->home)
            of->home = scope_new(r->im, NULL);
        if (of)
            scope_bind(r->im, of->home, keep_text(r->im, last->begin, last->bytes), v);
    } else if (t->kind == PY_NAME && to > from + 2 && r->tokens->items[from + 1].begin[0] == '[') {
        value *of = scope_find(r->scope, keep_text(r->im, t->begin, t->bytes));
        p.at = from + 2;
        value *key = read_list_expression(&p);
        if (of && of->kind == V_DICT)
            list_add(r->im, &of->list, key, v);
    }
}

static void run_assignment(reader *r, uint32_t end) {
    static const char *const updates[] = {"+=", "-=", "*=", "//=", "/=", "%=", "|=", "&=", "<<="};
    uint32_t from = r->at, equals = find_end(r, from, end, "=");
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        uint32_t at = find_end(r, from, end, updates[i]);
        if (at == end)
            continue;
        value *old = read_expression(r);
        r->at = at + 1;
        value *more = read_list_expression(r);
        const char *op = keep_text(r->im, updates[i], strlen(updates[i]) - 1);
        if (old->kind == V_LIST && more->kind == V_LIST)
            for (size_t k = 0; k < more->list.count; k++)
                list_add(r->im, &old->list, NULL, more->list.items[k]);
        else
            bind_target(r, from, at, value_operate(r->im, op, old, more));
        return;
    }
    if (equals == end) {
        if (find_end(r, from, end, ":") == end)
            read_list_expression(r);
        return;
    }
    /* a = b = value: the value is after the last sign */
    uint32_t last = equals;
    for (uint32_t at = equals; at < end; at = find_end(r, at + 1, end, "="))
        last = at;
    r->at = last + 1;
    value *v = read_list_expression(r);
    for (uint32_t at = from; at <= last; at = find_end(r, at, end, "=") + 1) {
        uint32_t stop = find_end(r, at, last, "="), colon = find_end(r, at, stop, ":");
        bind_target(r, at, colon < stop ? colon : stop, v);
    }
}

/* Compound statements -------------------------------------------------------------------------- */

static void run_if(reader *r) {
    bool is_done = false, first_time = true;
    for (;;) {
        uint32_t first, end;
        int truth = TRUE_VALUE;
        if (first_time || take_word(r, "elif"))
            truth = is_done ? FALSE_VALUE : value_truth(read_expression(r));
        else if (!take_word(r, "else"))
            return;
        first_time = false;
        take_block(r, &first, &end);
        if (is_done || truth == FALSE_VALUE || r->flow != FLOW_ON)
            continue;
        run_part(r, first, end);
        is_done = true;
        if (truth == MAYBE_VALUE && r->flow != FLOW_ON) {
            r->flow = FLOW_ON;
            is_done = false;
        }
    }
}

static void run_for(reader *r) {
    uint32_t target = r->at, first, end;
    while (!is_word(r, "in") && now(r)->kind != PY_NEWLINE)
        r->at++;
    uint32_t target_end = r->at++;
    value *over = read_list_expression(r);
    if (over->kind == V_SHAPE)
        over = array_shape_list(r->im, over, -1);
    take_block(r, &first, &end);
    size_t count = over->kind == V_LIST || over->kind == V_DICT ? over->list.count : 1;
    for (size_t i = 0; i < count && i < MOST_TURNS && r->im->steps > 0; i++) {
        value *item = over->kind == V_LIST   ? over->list.items[i]
                      : over->kind == V_DICT ? over->list.keys[i]
                                             : value_unknown(r->im, over->name);
        bind_target(r, target, target_end, item);
        run_part(r, first, end);
        bool stops = r->flow == FLOW_BREAK;
        if (r->flow == FLOW_BREAK || r->flow == FLOW_CONTINUE)
            r->flow = FLOW_ON;
        if (stops || r->flow == FLOW_RETURN)
            break;
    }
    if (is_word(r, "else"))
        take_block(r, &first, &end);
}

static void run_while(reader *r) {
    uint32_t condition = r->at, first, end;
    take_block(r, &first, &end);
    uint32_t after = r->at;
    for (int i = 0; i < MOST_TURNS && r->flow == FLOW_ON && r->im->steps > 0; i++) {
        r->at = condition;
        int truth = value_truth(read_expression(r));
        if (truth == FALSE_VALUE)
            break;
        run_part(r, first, end);
        bool stops = r->flow == FLOW_BREAK || truth == MAYBE_VALUE;
        if (r->flow == FLOW_BREAK || r->flow == FLOW_CONTINUE)
            r->flow = FLOW_ON;
        if (stops)
            break;
    }
    r->at = after;
}

/* def NAME(parameters): block; the reader is at the name. */
static void run_def(reader *r) {
    const py_token *t = now(r);
    value *f = value_new(r->im, V_FUNCTION);
    uint32_t end;
    f->name = keep_text(r->im, t->begin, t->bytes);
    f->tokens = r->tokens;
    f->at = r->at + 1;
    f->home = r->scope;
    r->at++;
    take_block(r, &f->body, &end);
    f->i = end;
    scope_bind(r->im, r->scope, f->name, f);
    list_add(r->im, &r->im->functions, NULL, f);
}

static void run_class(reader *r) {
    const py_token *t = now(r);
    uint32_t first, end;
    value *self = value_unknown(r->im, "self");
    reader inside = *r;
    take_block(r, &first, &end);
    inside.at = first;
    self->home = inside.scope = scope_new(r->im, r->scope);
    run_block(&inside, end);
    scope_bind(r->im, inside.scope, "self", self);
    scope_bind(r->im, r->scope, keep_text(r->im, t->begin, t->bytes), value_unknown(r->im, NULL));
    scope_find(r->scope, keep_text(r->im, t->begin, t->bytes))->home = inside.scope;
}

static void run_import(reader *r, bool is_from) {
    if (is_from) /* from m import a as b, c: the names are unknown, except the two we look for */
        while (!is_word(r, "import") && now(r)->kind != PY_NEWLINE)
            r->at++;
    r->at += is_from;
    take_mark(r, "(");
    while (now(r)->kind == PY_NAME) {
        reader probe = *r;
        value *v = is_from ? get_attribute(r->im, value_unknown(r->im, NULL),
                                           keep_text(r->im, now(r)->begin, now(r)->bytes))
                           : NULL;
        do
            r->at++;
        while (take_mark(r, "."));
        const py_token *as = take_word(r, "as") ? now(r) : NULL;
        if (as)
            r->at++;
        const py_token *name = as ? as : now(&probe);
        const char *bound = keep_text(r->im, name->begin, name->bytes);
        bool is_maker = v && v->kind == V_MAKER;
        if (is_maker || (as && v))
            scope_bind(r->im, r->scope, bound, v);
        if (!take_mark(r, ","))
            break;
    }
    skip_line(r);
}

static void run_statement(reader *r) {
    uint32_t first, end;
    r->im->steps--;
    take_word(r, "async");
    if (take_mark(r, "@"))
        skip_line(r);
    else if (take_word(r, "def"))
        run_def(r);
    else if (take_word(r, "class"))
        run_class(r);
    else if (take_word(r, "if"))
        run_if(r);
    else if (take_word(r, "for"))
        run_for(r);
    else if (take_word(r, "while"))
        run_while(r);
    else if (is_word(r, "try") || is_word(r, "with") || is_word(r, "finally")) {
        take_block(r, &first, &end);
        run_part(r, first, end);
    } else if (is_word(r, "except") || is_word(r, "else"))
        take_block(r, &first, &end);
    else if (is_word(r, "import") || is_word(r, "from")) {
        bool is_from = is_word(r, "from");
        r->at++;
        run_import(r, is_from);
    } else if (is_word(r, "break") || is_word(r, "continue")) {
        r->flow = is_word(r, "break") ? FLOW_BREAK : FLOW_CONTINUE;
        skip_line(r);
    } else if (take_word(r, "return")) {
        value *v = now(r)->kind == PY_NEWLINE ? NULL : read_list_expression(r);
        if (!r->result || (v && v->kind != V_NONE))
            r->result = v;
        r->flow = FLOW_RETURN;
        skip_line(r);
    } else if (is_word(r, "raise")) {
        r->flow = FLOW_RETURN;
        skip_line(r);
    } else {
        uint32_t from = r->at;
        skip_line(r);
        uint32_t after = r->at;
        static const char *const ignored[] = {"pass", "global", "nonlocal", "assert", "del"};
        bool is_ignored = false;
        r->at = from;
        for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
            is_ignored = is_ignored || is_word(r, ignored[i]);
        if (!is_ignored)
            run_assignment(r, after - 1);
        r->at = after;
    }
}

void run_block(reader *r, uint32_t end) {
    while (r->at < end && now(r)->kind != PY_END && r->flow == FLOW_ON && r->im->steps > 0) {
        uint32_t before = r->at;
        if (now(r)->kind == PY_NEWLINE || now(r)->kind == PY_INDENT || now(r)->kind == PY_DEDENT)
            r->at++;
        else
            run_statement(r);
        r->at += r->at == before;
    }
}

/* Functions ------------------------------------------------------------------------------------ */

/* Parameters from arguments, then from their defaults, else unknown. */
static void bind_parameters(reader *r, const value *f, value_list *args, value *named) {
    const py_token *open = &f->tokens->items[f->at];
    size_t index = 0;
    value *self = scope_find(f->home, "self");
    reader p = *r;
    for (p.at = f->at + 1; p.at < open->pair;) {
        uint32_t end = find_end(&p, p.at, open->pair, ",");
        bool is_rest = take_mark(&p, "*") || take_mark(&p, "**") || is_mark(&p, "/");
        const py_token *t = now(&p);
        if (t->kind == PY_NAME) {
            const char *name = keep_text(r->im, t->begin, t->bytes);
            uint32_t equals = find_end(&p, p.at, end, "=");
            bool is_self = index == 0 && strcmp(name, "self") == 0 && self;
            value *v = dict_find(named, name);
            if (is_self)
                v = self;
            else if (!v && !is_rest && index < args->count)
                v = args->items[index++];
            if (!v && equals < end) {
                reader value_reader = p;
                value_reader.at = equals + 1;
                value_reader.scope = f->home;
                v = read_expression(&value_reader);
                if (v->kind == V_NONE && r->im->none_is_given)
                    v = NULL;
            }
            scope_bind(r->im, r->scope, name, v ? v : value_unknown(r->im, name));
        }
        p.at = end + 1;
    }
}

value *run_function(importer *im, value *f, value_list *args, value *named) {
    if (im->depth >= DEEPEST_CALL || im->steps <= 0)
        return value_unknown(im, keep_print(im, "%s()", f->name));
    reader r = {.im = im, .tokens = f->tokens, .scope = scope_new(im, f->home), .at = f->body};
    f->runs++;
    im->depth++;
    bind_parameters(&r, f, args, named);
    run_block(&r, (uint32_t)f->i);
    im->depth--;
    return r.result ? r.result : value_new(im, V_NONE);
}

/* Does a function launch kernels, with `threadgroup=`, or make them? */
static bool mentions(const value *f, const char *word, bool is_keyword) {
    for (uint32_t i = f->body; i < (uint32_t)f->i; i++) {
        const py_token *t = &f->tokens->items[i];
        if (t->kind == PY_NAME && t->bytes == strlen(word) && !memcmp(t->begin, word, t->bytes) &&
            (!is_keyword || t[1].begin[0] == '='))
            return true;
    }
    return false;
}

static bool is_about_kernels(const value *f) {
    return mentions(f, "threadgroup", true) || mentions(f, "metal_kernel", false) ||
           mentions(f, "compile_shader", false);
}

/* A function that nothing has called yet, with arguments that are unknown. */
static void run_alone(importer *im, value *f) {
    value_list none = {.count = 0};
    if ((f->runs > 0 && !im->none_is_given) || !is_about_kernels(f))
        return;
    im->steps = MOST_STEPS;
    run_function(im, f, &none, value_new(im, V_DICT));
    im->steps = MOST_STEPS;
}

void run_file(importer *im, const py_tokens *tokens, scope *module) {
    reader r = {.im = im, .tokens = tokens, .scope = module};
    im->steps = MOST_STEPS;
    im->functions.count = 0;
    run_block(&r, (uint32_t)tokens->count);
    /* Launches first: they call what makes the kernels, with the arguments it is really given. What is
     * still not launched then may need arguments that are None by default. */
    for (int pass = 0; pass < 3; pass++) {
        im->none_is_given = pass == 2;
        for (size_t i = 0; i < im->functions.count && (pass < 2 || kernel_lacks_launch(im, tokens));
             i++)
            if (pass > 0 || mentions(im->functions.items[i], "threadgroup", true))
                run_alone(im, im->functions.items[i]);
    }
    im->none_is_given = false;
}
