/* converge: makes compiled code say where each lane is. What is meant is maximal reconvergence, as SPIR-V has it: lanes rejoin after
 * an if or a switch, at a loop's exit and at the end of each iteration, as the text of the program
 * nests them. soft/abi.h has the rule that gets them there: a lane that stops says its path, and the lanes
 * with the smallest path are served first: by the software device's scheduler, or on NVIDIA GPUs by
 * the lanes themselves (shim/ptx/exchange.h).
 *
 * Clang writes an unoptimised function in the order of its source, a loop from its header to its
 * `.end`. So the number of a call or loop is its position in the text, and a path needs no more than
 * this and the iterations of the loops around it, which are counted here. What the optimiser does
 * afterwards changes no value, and so no path.
 *
 * Only functions that lanes can stop in are changed. One with a single such call, outside of loops,
 * has nothing to say: simd_sum and the functions that it is made of are such. */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "ir.h"
#include "soft/abi.h"

enum { PATH_WORDS = 32 }; /* in arguments, as in shim/ptx/exchange.h */

typedef struct {
    span name;
    const char *at; /* its first line */
    bool is_meeting, meets, branches, is_called;
    bool is_simple; /* nothing but a meeting comes of it */
    unsigned sites; /* calls in which lanes may stop */
} function;

typedef struct {
    size_t caller;
    span callee;
} call;

/* Blocks of a function, in the order of the text. */
typedef struct {
    span label;
    size_t begin, end; /* lines */
    size_t *next, next_count, next_room;
    int loop; /* the innermost one around it; -1: none */
} block;

typedef struct {
    size_t header;
    int outer;
    unsigned order;
    bool has_body; /* a `while.body` that follows is of another loop */
    bool meets;
} loop;

typedef struct {
    FILE *out;
    bool in_state; /* of the simdgroup; else in the memory of the kernel, handed on as arguments */
    function *functions;
    size_t function_count, function_room;
    call *calls;
    size_t call_count, call_room;
    span *lines; /* of one function */
    size_t line_count, line_room;
    block *blocks;
    size_t block_count, block_room;
    loop *loops;
    size_t loop_count, loop_room;
    unsigned made;
    bool has_meetings, is_too_deep;
} converge;

/* Which functions meet ------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b) {
    const span x = ((const function *)a)->name, y = ((const function *)b)->name;
    const int order = memcmp(x.at, y.at, x.bytes < y.bytes ? x.bytes : y.bytes);
    return order ? order : (x.bytes > y.bytes) - (x.bytes < y.bytes);
}

static function *find_function(const converge *c, span name) {
    const function key = {.name = name};
    return c->function_count
               ? bsearch(&key, c->functions, c->function_count, sizeof key, compare_names)
               : NULL;
}

static void find_meetings(converge *c) {
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < c->call_count; i++) {
            const function *callee = find_function(c, c->calls[i].callee);
            function *caller = &c->functions[c->calls[i].caller];
            changed = changed || (callee && callee->meets && !caller->meets);
            caller->meets = caller->meets || (callee && callee->meets);
        }
    }
    for (size_t i = 0; i < c->call_count; i++) {
        function *callee = find_function(c, c->calls[i].callee);
        c->functions[c->calls[i].caller].sites += callee && callee->meets;
        if (callee)
            callee->is_called = true;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < c->call_count; i++) {
            const function *callee = find_function(c, c->calls[i].callee);
            function *caller = &c->functions[c->calls[i].caller];
            if (callee && callee->is_simple && !caller->is_simple && caller->sites == 1 &&
                !caller->branches)
                changed = caller->is_simple = true;
        }
    }
}

static void read_functions(converge *c, const char *module) {
    const char *meeting = c->in_state ? "@_ZN5assay4meetI" : "@_ZN5assay10find_partyEv";
    for (const char *p = module; *p;) {
        const char *at = p;
        span line = ir_take_line(&p);
        if (!ir_begins(line, "define "))
            continue;
        function *f = ARRAY_ADD(c->functions, c->function_count, c->function_room);
        *f = (function){.at = at, .name = ir_take_callee(&line)};
        f->meets = f->is_meeting = f->is_simple = ir_begins(f->name, meeting);
        c->has_meetings = c->has_meetings || f->is_meeting;
    }
    if (c->function_count)
        qsort(c->functions, c->function_count, sizeof *c->functions, compare_names);
    for (size_t i = 0; i < c->function_count; i++) {
        const char *p = c->functions[i].at;
        ir_take_line(&p);
        for (span line = ir_take_line(&p); line.bytes == 0 || line.at[0] != '}';
             line = ir_take_line(&p)) {
            c->functions[i].branches = c->functions[i].branches || ir_begins(line, "  br ");
            for (span rest = line, name;
                 ir_find(rest, "call ") && (name = ir_take_callee(&rest)).bytes;)
                *ARRAY_ADD(c->calls, c->call_count, c->call_room) = (call){i, name};
        }
    }
    find_meetings(c);
}

/* The function that the line calls and that lanes may stop in; NULL if there is none. */
static const function *find_site(const converge *c, span line) {
    if (!ir_find(line, "call "))
        return NULL;
    for (span name; (name = ir_take_callee(&line)).bytes;) {
        const function *f = find_function(c, name);
        if (f && f->meets)
            return f;
    }
    return NULL;
}

/* Blocks and loops ----------------------------------------------------------------------------- */

/* `for.end12` is "for.end", `for.cond.cleanup` is not "for.cond". */
static bool is_called(const block *b, const char *name) {
    size_t n = strlen(name);
    if (!ir_begins(b->label, name))
        return false;
    while (n < b->label.bytes && isdigit((unsigned char)b->label.at[n]))
        n++;
    return n == b->label.bytes;
}

static void read_blocks(converge *c) {
    c->block_count = 0;
    for (size_t i = 1; i + 1 < c->line_count; i++) {
        const span line = c->lines[i];
        if (i == 1 || ir_is_label(line)) {
            block *b = ARRAY_ADD(c->blocks, c->block_count, c->block_room);
            *b = (block){.begin = i + ir_is_label(line), .loop = -1};
            b->label = (span){line.at, ir_is_label(line) ? strcspn(line.at, ":") : 0};
        }
        c->blocks[c->block_count - 1].end = i + 1;
    }
    for (size_t i = 0; i < c->block_count; i++) {
        block *b = &c->blocks[i];
        for (size_t n = b->begin; n < b->end; n++)
            for (span rest = c->lines[n]; (rest = ir_find_after(rest, "label ")).bytes;) {
                const span name = ir_skip(ir_take_local(&rest), "%");
                for (size_t k = 0; k < c->block_count; k++)
                    if (ir_is_same(c->blocks[k].label, name))
                        *ARRAY_ADD(b->next, b->next_count, b->next_room) = k;
            }
    }
}

/* Marks what is reached from the block without the header of the loop. */
static void reach(const converge *c, size_t from, size_t header, bool *reached) {
    if (from == header || reached[from])
        return;
    reached[from] = true;
    for (size_t i = 0; i < c->blocks[from].next_count; i++)
        reach(c, c->blocks[from].next[i], header, reached);
}

/* A while (true) has no `while.cond`: its header is its body. */
static bool begins_loop(const converge *c, size_t n, int innermost) {
    const block *b = &c->blocks[n];
    if (is_called(b, "while.body"))
        return innermost < 0 || !is_called(&c->blocks[c->loops[innermost].header], "while.cond") ||
               c->loops[innermost].has_body;
    return is_called(b, "for.cond") || is_called(b, "while.cond") || is_called(b, "do.body");
}

static bool ends_loop(const block *b) {
    return is_called(b, "for.end") || is_called(b, "while.end") || is_called(b, "do.end");
}

/* Which loop each block is in. One that is only left by return has no `.end`: it ends where blocks
 * begin that are reached in other ways. */
static void find_loops(converge *c) {
    int now = -1;
    bool **around = array_new(c->block_count + 1, sizeof *around);
    c->loop_count = 0;
    for (size_t i = 0; i < c->block_count; i++) {
        while (now >= 0 && around[now][i])
            now = c->loops[now].outer;
        if (now >= 0 && ends_loop(&c->blocks[i]))
            now = c->loops[now].outer;
        if (begins_loop(c, i, now)) {
            around[c->loop_count] = array_new(c->block_count, sizeof **around);
            reach(c, 0, i, around[c->loop_count]);
            *ARRAY_ADD(c->loops, c->loop_count, c->loop_room) = (loop){.header = i, .outer = now};
            now = (int)c->loop_count - 1;
        } else if (now >= 0 && is_called(&c->blocks[i], "while.body")) {
            c->loops[now].has_body = true;
        }
        c->blocks[i].loop = now;
    }
    for (size_t i = 0; i < c->loop_count; i++)
        free(around[i]);
    free(around);
}

static bool is_in(const converge *c, const block *b, int which) {
    int n = b->loop;
    while (n >= 0 && n != which)
        n = c->loops[n].outer;
    return n == which;
}

/* Numbers loops and says which of them matter. */
static bool find_sites(converge *c) {
    bool in_loop = false;
    for (size_t i = 0; i < c->loop_count; i++)
        c->loops[i].order = (unsigned)c->blocks[c->loops[i].header].begin;
    for (size_t i = 0; i < c->block_count; i++) {
        const block *b = &c->blocks[i];
        for (size_t n = b->begin; b->loop >= 0 && n < b->end; n++)
            if (find_site(c, c->lines[n]))
                for (int k = b->loop; k >= 0; k = c->loops[k].outer)
                    in_loop = c->loops[k].meets = true;
    }
    return in_loop;
}

/* Text ----------------------------------------------------------------------------------------- */

/* Large odd numbers without a pattern. */
static int64_t get_weight(uint64_t n) {
    uint64_t weight = SOFT_PATH_FACTOR;
    for (; n > 0; n--)
        weight *= SOFT_PATH_FACTOR;
    return (int64_t)weight;
}

static const char *get_count_type(const converge *c) { /* of iterations */
    return c->in_state ? "i64" : "i32";
}

/* A kernel, which no function calls, begins every path. */
static void print_begin(converge *c, bool is_kernel) {
    if (!c->in_state && is_kernel)
        fprintf(c->out, "  %%assay.path = alloca [%d x i64]\n  %%assay.count = add i32 0, 0\n",
                PATH_WORDS);
    if (c->in_state)
        fputs("  %assay.lane = call i64 @_ZN5assay9find_pathEv()\n", c->out);
    if (c->in_state && is_kernel)
        fprintf(c->out,
                "  %%assay.words = add i64 %%assay.lane, %zu\n  %%assay.sum = add i64 0, 1\n",
                SOFT_PATH_WORDS * SOFT_LANES * sizeof(soft_u64));
    else if (c->in_state)
        fputs("  %assay.words = call i64 @_ZN5assay10find_wordsEy(i64 %assay.lane)\n"
              "  %assay.sum = call i64 @_ZN5assay8find_sumEy(i64 %assay.lane)\n",
              c->out);
    for (size_t i = 0; i < c->loop_count; i++) {
        if (!c->loops[i].meets)
            continue;
        fprintf(c->out, "  %%assay.turn.%zu = alloca %s\n  store %s 0, ptr %%assay.turn.%zu\n", i,
                get_count_type(c), get_count_type(c), i);
        if (c->in_state)
            fprintf(c->out, "  %%assay.sum.%zu = alloca i64\n  store i64 0, ptr %%assay.sum.%zu\n",
                    i, i);
    }
}

/* The sum in a loop, less what the call adds: its name is %assay.s. and the number. */
static unsigned print_sum(converge *c, int which) {
    const unsigned v = ++c->made;
    while (which >= 0 && !c->loops[which].meets)
        which = c->loops[which].outer;
    if (c->in_state && which < 0)
        fprintf(c->out, "  %%assay.s.%u = add i64 %%assay.sum, 0\n", v);
    else if (c->in_state)
        fprintf(c->out, "  %%assay.s.%u = load i64, ptr %%assay.sum.%d\n", v, which);
    return v;
}

/* Word n of this function: a position in the text, and below it %assay.m. and the number, the iteration. In
 * arguments it is two words of 32 bits, so that positions, which are known, need no registers. */
static void print_word(converge *c, unsigned n, unsigned position, unsigned v) {
    if (c->in_state)
        fprintf(
            c->out,
            "  %%assay.w.%u = add i64 %%assay.m.%u, %" PRId64 "\n"
            "  call void @_ZN5assay8set_wordEyjy(i64 %%assay.words, i32 %u, i64 %%assay.w.%u)\n",
            v, v, (int64_t)position << 32, n, v);
    else
        fprintf(c->out,
                "  %%assay.i.%u = add i32 %%assay.count, %u\n"
                "  %%assay.p.%u = getelementptr i64, ptr %%assay.path, i32 %%assay.i.%u\n"
                "  %%assay.h.%u = getelementptr i32, ptr %%assay.p.%u, i32 1\n"
                "  store i32 %%assay.m.%u, ptr %%assay.p.%u\n  store i32 %u, ptr %%assay.h.%u\n",
                v, n, v, v, v, v, v, v, position, v);
}

/* How many words loops have before the next one. */
static unsigned count_words(const converge *c, int which) {
    unsigned n = 0;
    for (; which >= 0; which = c->loops[which].outer)
        n += c->loops[which].meets;
    return n;
}

/* Where the line calls a function in which lanes may stop; with their paths handed to it: the number of
 * %assay.d., how many words they have then. */
static unsigned print_path(converge *c, const block *b, size_t line) {
    const function *callee = find_site(c, c->lines[line]);
    if (!callee)
        return 0;
    const unsigned n = count_words(c, b->loop), v = print_sum(c, b->loop);
    fprintf(c->out, "  %%assay.m.%u = add %s 0, 0\n", v, get_count_type(c));
    print_word(c, n, (unsigned)line, v);
    c->is_too_deep = c->is_too_deep || n + 1 > SOFT_PATH_STEP;
    if (!c->in_state) {
        fprintf(c->out, "  %%assay.d.%u = add i32 %%assay.count, %u\n", v, n + 1);
        return v;
    }
    fprintf(c->out,
            "  %%assay.call.%u = add i64 %%assay.s.%u, %zu\n"
            "  call void @_ZN5assay7set_sumEyy(i64 %%assay.lane, i64 %%assay.call.%u)\n",
            v, v, 2 * line, v);
    if (!callee->is_simple)
        fprintf(c->out,
                "  call void @_ZN5assay7set_endEyyj(i64 %%assay.lane, i64 %%assay.words, i32 %u)\n",
                n + 1);
    return v;
}

/* On the way to a loop's header: the first iteration, or the next one. */
static void print_turn(converge *c, const block *b, int which) {
    const loop *l = &c->loops[which];
    const bool is_next = is_in(c, b, which);
    const unsigned n = count_words(c, l->outer), v = print_sum(c, is_next ? which : l->outer);
    const char *type = get_count_type(c);
    if (is_next)
        fprintf(c->out, "  %%assay.n.%u = load %s, ptr %%assay.turn.%d\n", v, type, which);
    else
        fprintf(c->out, "  %%assay.n.%u = add %s -1, 0\n", v, type);
    fprintf(c->out,
            "  %%assay.m.%u = add %s %%assay.n.%u, 1\n"
            "  store %s %%assay.m.%u, ptr %%assay.turn.%d\n",
            v, type, v, type, v, which);
    print_word(c, n, l->order, v);
    if (c->in_state)
        fprintf(c->out,
                "  %%assay.t.%u = add i64 %%assay.s.%u, %" PRId64 "\n"
                "  store i64 %%assay.t.%u, ptr %%assay.sum.%d\n",
                v, v,
                (int64_t)(2 * (uint64_t)get_weight(is_next ? n : SOFT_PATH + l->order % SOFT_PATH)),
                v, which);
}

static void print_turns(converge *c, const block *b) {
    for (size_t i = 0; i < c->loop_count; i++) {
        bool goes_there = false;
        for (size_t k = 0; k < b->next_count; k++)
            goes_there = goes_there || b->next[k] == c->loops[i].header;
        if (goes_there && c->loops[i].meets)
            print_turn(c, b, (int)i);
    }
}

/* Adds the path to the arguments, or parameters, that follow the name of a function. */
static void print_with_path(converge *c, span line, span name, const char *count, unsigned v) {
    const char *open = name.at + name.bytes, *close = open;
    for (int depth = 0; depth > 0 || close == open; close++)
        depth += (*close == '(') - (*close == ')');
    close--;
    fprintf(c->out, "%.*s%sptr %%assay.path, i32 %%assay.%s", (int)(close - line.at), line.at,
            close - open > 1 ? ", " : "", count);
    if (v)
        fprintf(c->out, "%u", v);
    fprintf(c->out, "%.*s\n", (int)(line.at + line.bytes - close), close);
}

/* A line, and where the paths are arguments, what it hands over. v: of %assay.d.; 0: as this function got it. */
static void print_line(converge *c, const function *f, size_t n, unsigned v) {
    const span line = c->lines[n];
    const function *callee = n > 0 ? find_site(c, line) : f->is_called ? f : NULL;
    const char *asks_path = ir_find(line, " @_ZN5assay9find_pathEv("),
               *asks_count = ir_find(line, " @_ZN5assay10count_pathEv(");
    span name, value, rest = line;
    /* Where no lane meets another, none is waited for. */
    if (!c->in_state && !c->has_meetings && ir_find(line, "call ") &&
        (ir_find(line, " @_ZN5assay12wait_for_allEv(") ||
         ir_find(line, " @_ZN5assay15meet_for_matrixEv(")))
        return;
    if (c->in_state || !f->meets)
        fprintf(c->out, "%.*s\n", SPELL(line));
    else if ((asks_path || asks_count) && ir_split_definition(line, &name, &value))
        fprintf(c->out, "  %.*s = %s\n", SPELL(name),
                asks_path ? "getelementptr i8, ptr %assay.path, i32 0" : "add i32 %assay.count, 0");
    else if (callee) {
        while ((name = ir_take_callee(&rest)).bytes && !ir_is_same(name, callee->name))
            ;
        print_with_path(c, line, name, v ? "d." : "count", v);
    } else
        fprintf(c->out, "%.*s\n", SPELL(line));
}

static void rewrite_function(converge *c, const function *f) {
    if (f->meets && !f->is_meeting && f->sites) {
        read_blocks(c);
        find_loops(c);
    }
    const bool is_same =
        !f->meets || f->is_meeting || !f->sites || (!find_sites(c) && f->sites == 1);
    const block *b = c->blocks;
    for (size_t i = 0; i < c->line_count; i++) {
        unsigned v = 0;
        while (c->block_count && b + 1 < c->blocks + c->block_count && i >= b[1].begin)
            b++;
        const bool is_inside = c->block_count && i >= b->begin && i < b->end;
        if (is_inside && i == c->blocks[0].begin && (!is_same || !f->is_called))
            print_begin(c, !f->is_called);
        if (is_inside && !is_same &&
            (ir_begins(c->lines[i], "  br ") || ir_begins(c->lines[i], "  switch ")))
            print_turns(c, b);
        if (is_inside && !is_same)
            v = print_path(c, b, i);
        print_line(c, f, i, v);
    }
    for (size_t i = 0; i < c->block_count; i++)
        free(c->blocks[i].next);
    c->block_count = c->loop_count = 0;
}

/* What is `used` was for us: now it is called, or need not be compiled. */
static bool is_list_of_used(span line) {
    return ir_begins(line, "@llvm.used = ") || ir_begins(line, "@llvm.compiler.used = ");
}

static char *keep_paths(const char *module, bool in_state) {
    converge c = {.in_state = in_state};
    char *text = NULL;
    size_t bytes;
    c.out = open_memstream(&text, &bytes);
    if (!c.out)
        abort();
    read_functions(&c, module);
    for (const char *p = module; *p;) {
        span line = ir_take_line(&p);
        c.line_count = 0;
        *ARRAY_ADD(c.lines, c.line_count, c.line_room) = line;
        const bool is_function = ir_begins(line, "define ");
        while (is_function && *p && c.lines[c.line_count - 1].at[0] != '}') {
            const span next = ir_take_line(&p);
            *ARRAY_ADD(c.lines, c.line_count, c.line_room) = next;
        }
        const function *f = is_function ? find_function(&c, ir_take_callee(&line)) : NULL;
        if (f)
            rewrite_function(&c, f);
        else if (!in_state || !is_list_of_used(line))
            for (size_t i = 0; i < c.line_count; i++)
                fprintf(c.out, "%.*s\n", SPELL(c.lines[i]));
    }
    fclose(c.out);
    free(c.functions);
    free(c.calls);
    free(c.lines);
    free(c.blocks);
    free(c.loops);
    if (!c.is_too_deep)
        return text;
    free(text);
    return NULL;
}

char *keep_paths_in_state(const char *module) {
    return keep_paths(module, true);
}

char *keep_paths_in_arguments(const char *module) {
    return keep_paths(module, false);
}
