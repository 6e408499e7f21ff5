/* Tests of the mutation engine, and of the checks by a small sample of mutants. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cases.h"
#include "cli/mutant_known.h"
#include "command.h"
#include "harness/base/array.h"
#include "kernels/kernels.h"
#include "support.h"
#include "transcript.h"

SUITE(mutants_suite);

#define BODY(text) "kernel void f() {\n    " text "\n}\n"

/* Is there a mutation of this kind that turns the line into `after`? How many of the kind? */
static bool has_edit(const char *source, mutate_kind kind, const char *after, size_t *count) {
    mutation_list l;
    bool is_there = false;
    *count = 0;
    if (!mutate_find("test.metal", source, &l, NULL))
        return false;
    for (size_t i = 0; i < l.count; i++) {
        char *from, *to;
        mutate_describe(source, &l.items[i], &from, &to);
        *count += l.items[i].kind == kind;
        is_there = is_there || (l.items[i].kind == kind && strcmp(to, after) == 0);
        free(from);
        free(to);
    }
    mutate_free(&l);
    return is_there;
}

TEST each_operator_makes_its_edit(void) {
    static const struct {
        mutate_kind kind;
        const char *source, *after;
        size_t count;
    } cases[] = {
        {MUTATE_BOUND, BODY("if (i < n) y[i] = 0;"), "if (i <= n) y[i] = 0;", 1},
        {MUTATE_BOUND, BODY("if (i <= n) y[i] = 0;"), "if (i < n) y[i] = 0;", 1},
        {MUTATE_BOUND, BODY("if (i >= n) return;"), "if (i > n) return;", 1},
        {MUTATE_GUARD, BODY("if (i >= n) return;"), ";", 1},
        {MUTATE_GUARD, BODY("if (i >= n)\n        return;"), ";", 1},
        {MUTATE_GUARD, BODY("if (row < n) { y[row] = s; }"), "if (true) { y[row] = s; }", 1},
        {MUTATE_GUARD, BODY("if (a) { x = 1; } else x = 2;"), "", 0},
        {MUTATE_BARRIER, BODY("threadgroup_barrier(mem_flags::mem_threadgroup);"), ";", 1},
        {MUTATE_INDEX, BODY("y[i] = x[row * dim + col];"), "y[i] = x[col * dim + row];", 1},
        {MUTATE_INDEX, BODY("y[i] = x[32 * b + j];"), "y[i] = x[32 * j + b];", 1},
        {MUTATE_INDEX, BODY("y[i] = m[a][b];"), "y[i] = m[b][a];", 1},
        {MUTATE_INDEX, BODY("y[i] = v.x;"), "y[i] = v.y;", 1},
        {MUTATE_NIBBLE, BODY("q = n & 15u;"), "q = n >> 4u;", 1},
        {MUTATE_NIBBLE, BODY("q = n & 0xF;"), "q = n >> 4;", 1},
        {MUTATE_NIBBLE, BODY("q = n >> 4;"), "q = n & 15;", 1},
        {MUTATE_PLUS, BODY("y[i] = a + b;"), "y[i] = a - b;", 1},
        {MUTATE_MINUS, BODY("y[i] = a - b;"), "y[i] = a + b;", 1},
        {MUTATE_MINUS, BODY("y[i] = -a;"), "y[i] = a;", 1},
        {MUTATE_TIMES, BODY("y[i] = a * b;"), "y[i] = a + b;", 1},
        {MUTATE_TIMES, BODY("device float *p = y; *p = 0;"), "", 0},
        {MUTATE_TERM, BODY("sum += a;"), "sum = a;", 1},
        {MUTATE_TERM, BODY("y[i] = a * b + c * d;"), "y[i] = a * b ;", 1},
        {MUTATE_TERM, BODY("for (uint i = 0; i < n; i += 2) {}"), "", 0},
        {MUTATE_CONSTANT, BODY("y[i] = x[3u];"), "y[i] = x[4u];", 2},
        {MUTATE_CONSTANT, BODY("y[i] = x[3u];"), "y[i] = x[2u];", 2},
        {MUTATE_CONSTANT, BODY("y[i] = 3.0f;"), "", 0},
        {MUTATE_CONSTANT, BODY("threadgroup float p[32];"), "threadgroup float p[31];", 1},
        {MUTATE_CONSTANT, BODY("threadgroup float p[2 * N];"), "threadgroup float p[1 * N];", 1},
        {MUTATE_CONSTANT, "constant uint N = 8;\n", "constant uint N = 9;", 2},
        {MUTATE_LANE, BODY("if (lane == 0) y[0] = s;"), "if (lane == 1) y[0] = s;", 1},
        {MUTATE_LANE, BODY("s = simd_sum(s);"), "s = simd_max(s);", 1},
        {MUTATE_UNSET, BODY("float sum = 0.0f;"), "float sum ;", 1},
        {MUTATE_UNSET, BODY("float4 s = float4(0.0f);"), "float4 s ;", 1},
        {MUTATE_UNSET, BODY("const float zero = 0.0f;"), "", 0},
        {MUTATE_UNSET, BODY("float a = b;"), "", 0},
        {MUTATE_EDGE, BODY("if (i < n) y = 0;"), "if (i + 1 < n) y = 0;", 2},
        {MUTATE_EDGE, BODY("if (i < n) y = 0;"), "if (i < (n & ~31u)) y = 0;", 2},
        {MUTATE_EDGE, BODY("if (i >= 4) return;"), "if (i + 1 >= 4) return;", 1},
        {MUTATE_EDGE, BODY("y[i] = 0;"), "y[i - (i == 4)] = 0;", 2},
        {MUTATE_EDGE, BODY("y[i] = 0;"), "y[i + (i == 0)] = 0;", 2},
        {MUTATE_EDGE, BODY("a = size_t(row);"), "a = size_t(row - (row == 64));", 1},
        {MUTATE_EDGE, BODY("threadgroup float p[n]; y[N] = 0;"), "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count;
        bool is_there = has_edit(cases[i].source, cases[i].kind, cases[i].after, &count);
        ASSERT_EQ_FMTm(cases[i].source, cases[i].count, count, "%zu");
        ASSERT_EQ_FMTm(cases[i].source, cases[i].count > 0, is_there, "%d");
    }
    PASS();
}

TEST what_is_no_code_has_no_mutants(void) {
    static const char source[] = "#define N 8\n"
                                 "struct block { half d; uchar qs[16]; };\n"
                                 "// if (i < 3) return;\n"
                                 "kernel void f(device float *x [[buffer(3)]],\n"
                                 "              uint i [[thread_position_in_grid]]) {\n"
                                 "    *x = as_type<float>(i);\n"
                                 "}\n";
    mutation_list l;
    ASSERT(mutate_find("test.metal", source, &l, NULL));
    ASSERT_EQ_FMT((size_t)0, l.count, "%zu");
    mutate_free(&l);
    PASS();
}

TEST a_mutation_keeps_lines_in_their_place(void) {
    static const char source[] =
        "kernel void f() {\n    if (i >= n)\n        return;\n    x();\n}\n";
    mutation_list l;
    ASSERT(mutate_find("test.metal", source, &l, NULL));
    ASSERT_EQ_FMT((size_t)4, l.count, "%zu");
    for (size_t i = 0; i < l.count; i++) {
        char *text = mutate_apply(source, &l.items[i]);
        size_t lines = 0;
        for (const char *p = text; *p; p++)
            lines += *p == '\n';
        ASSERT_EQ_FMT((size_t)5, lines, "%zu");
        ASSERT(strstr(text, "\n    x();\n}\n"));
        free(text);
    }
    ASSERT_STR_EQ("f", l.items[0].where);
    mutate_free(&l);
    PASS();
}

TEST a_kernel_is_made_of_what_it_mentions(void) {
    static const char *const sources[] = {
        "#include \"b.h\"\n"
        "constant uint SIZE = 4;\n"
        "constant uint OTHER = 4;\n"
        "kernel void one() { helper(SIZE); }\n"
        "kernel void two() { OTHER; }\n"
        "template [[host_name(\"three_f32\")]] kernel void three<float>();\n"
        "template <typename T> kernel void three() { deep(); }\n",
        "inline void deep() {}\n"
        "inline void helper(uint n) { deep(); }\n",
    };
    mutate_parts one, three;
    ASSERT(mutate_find_parts(sources, 2, "one", &one, NULL));
    ASSERT(mutate_find_parts(sources, 2, "three_f32", &three, NULL));
    ASSERT(mutate_has_part(&one, "one") && mutate_has_part(&one, "helper"));
    ASSERT(mutate_has_part(&one, "deep") && mutate_has_part(&one, "SIZE"));
    ASSERT(!mutate_has_part(&one, "two") && !mutate_has_part(&one, "OTHER"));
    ASSERT(mutate_has_part(&three, "three") && mutate_has_part(&three, "deep"));
    ASSERT(!mutate_has_part(&three, "helper"));
    ASSERT(mutate_has_part(&three, ""));
    mutate_free_parts(&one);
    mutate_free_parts(&three);
    PASS();
}

static bool find_all(mutant_list *out) {
    const case_query all = {.filters = NULL};
    case_list cases;
    if (!cases_find(&all, &cases, NULL))
        return false;
    bool ok = cases_keep_offered(&cases, device_get_facts(support_get_device()), NULL) &&
              mutants_find(support_get_path("kernels"), &cases, out, NULL);
    cases_free(&cases);
    return ok;
}

static bool is_same_list(const mutant_list *a, const mutant_list *b) {
    bool is_same = a->count == b->count;
    for (size_t i = 0; is_same && i < a->count; i++) {
        const mutant *x = &a->items[i], *y = &b->items[i];
        is_same = strcmp(x->file->name, y->file->name) == 0 && x->edit->begin == y->edit->begin &&
                  x->edit->bytes == y->edit->bytes && strcmp(x->edit->with, y->edit->with) == 0 &&
                  x->kernel_count == y->kernel_count && x->kernels[0] == y->kernels[0];
    }
    return is_same;
}

/* Another list of the same mutants; the files stay those of `l`. */
static mutant_list copy_list(const mutant_list *l) {
    mutant_list copy = {.items = array_new(l->count, sizeof *l->items), .count = l->count};
    for (size_t i = 0; i < l->count; i++) {
        mutant *m = &copy.items[i];
        *m = l->items[i];
        m->kernels = array_new(m->kernel_count, sizeof *m->kernels);
        memcpy(m->kernels, l->items[i].kernels, m->kernel_count * sizeof *m->kernels);
    }
    return copy;
}

static const kernel *find_without(const mutant_list *l) {
    for (size_t i = 0; i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++) {
            bool has_one = registry[i]->kernels[k].needs != 0; /* not for this device */
            for (size_t m = 0; m < l->count && !has_one; m++)
                for (size_t j = 0; j < l->items[m].kernel_count; j++)
                    has_one = has_one || l->items[m].kernels[j] == &registry[i]->kernels[k];
            if (!has_one)
                return &registry[i]->kernels[k];
        }
    return NULL;
}

/* To find them all takes seconds: one test of all that is asked of them. */
TEST every_kernel_has_mutants_and_samples_are_the_same_every_time(void) {
    mutant_list a, b;
    ASSERT(find_all(&a) && find_all(&b));
    ASSERT(a.count >= 300);
    ASSERT(is_same_list(&a, &b));
    const kernel *without = find_without(&a);
    ASSERTm(without ? without->name : NULL, !without);
    mutant_list c = copy_list(&a);
    mutants_sample(&a, 40, 7);
    mutants_sample(&b, 40, 7);
    mutants_sample(&c, 40, 8);
    ASSERT_EQ_FMT((size_t)40, a.count, "%zu");
    ASSERT(is_same_list(&a, &b));
    ASSERT(!is_same_list(&a, &c));
    ASSERT(a.all > a.count);
    mutants_free(&c);
    mutants_free(&a);
    mutants_free(&b);
    PASS();
}

TEST a_known_mutant_is_found_by_its_text(void) {
    static char text[] = "# a comment\n"
                         "@ k.metal f\n"
                         "- y[i] = a - b;\n"
                         "+ y[i] = a + b;\n"
                         "= another line\n"
                         "@ k.metal f\n"
                         "-  y[i]  = a + b;\n"
                         "+ y[i] = a - b;\n"
                         "= b is always 0\n";
    mutant_file f = {.name = "k.metal", .source = BODY("y[i] = a + b;")};
    ASSERT(mutate_find(f.name, f.source, &f.edits, NULL));
    size_t found = 0;
    for (size_t i = 0; i < f.edits.count; i++) {
        const mutant m = {.file = &f, .edit = &f.edits.items[i]};
        char *reason = mutant_find_known(text, &m);
        ASSERT_EQ(f.edits.items[i].kind == MUTATE_PLUS, reason != NULL);
        found += reason != NULL;
        if (reason)
            ASSERT_STR_EQ("= b is always 0", reason);
        free(reason);
    }
    ASSERT_EQ_FMT((size_t)1, found, "%zu");
    mutate_free(&f.edits);
    PASS();
}

SUITE(mutants_suite) {
    RUN_TEST(each_operator_makes_its_edit);
    RUN_TEST(what_is_no_code_has_no_mutants);
    RUN_TEST(a_mutation_keeps_lines_in_their_place);
    RUN_TEST(a_kernel_is_made_of_what_it_mentions);
    RUN_TEST(every_kernel_has_mutants_and_samples_are_the_same_every_time);
    RUN_TEST(a_known_mutant_is_found_by_its_text);
    transcript_run("mutants");
}
