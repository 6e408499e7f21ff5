/* Kernels that are wrong at one edge only, each an edit of the registry's own text: check must fail
 * every one of them. And the numbers that shapes.h makes. */
#include <greatest.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cases.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/check/check.h"
#include "harness/check/mutants.h"
#include "harness/check/shapes.h"
#include "kernels/kernels.h"
#include "support.h"

SUITE(edges_suite);

/* `from` is looked for after "kernel void NAME(", and if it is not there in the whole file. No edit leads out of a buffer: they run in this process. */
typedef struct {
    const char *kernel, *file, *from, *to;
} wrong_kernel;

/* clang-format off */
static const wrong_kernel wrong_kernels[] = {
    /* one row of a cache */
    {"kv_cache_copy", "kv_cache_copy.metal", "size_t(row_idx)", "size_t(row_idx - (row_idx == 64))"},
    {"kv_cache_copy", "kv_cache_copy.metal", "size_t(row_idx)", "size_t(row_idx - (row_idx == 129))"},
    {"kv_cache_copy", "kv_cache_copy.metal", "size_t(row_idx)", "size_t(row_idx - (row_idx == 255))"},
    {"kv_cache_copy", "kv_cache_copy.metal", "k_src[i]", "k_src[min(i, kv_dim - 2)]"},
    {"kv_cache_copy_tokens", "kv_cache_copy.metal", "size_t(row_idx)", "size_t(row_idx - (row_idx == 127))"},
    {"kv_cache_copy_tokens", "kv_cache_copy.metal", "n_tokens * kv_dim)", "n_tokens * kv_dim - (n_tokens == 256))"},
    {"qkv_rope_append_q4_0", "product/qkv_rope_append.metal", "size_t(pos) * kv_dim", "size_t(pos - (pos == 256)) * kv_dim"},
    {"qkv_rope_append_q4_0", "product/qkv_rope_append.metal", "float(pos)", "float(pos - (pos == 63))"},
    /* one id of a vocabulary */
    {"embedding_lookup_f32", "embedding_lookup.metal", "size_t(id)", "size_t(ushort(id))"},
    {"embedding_lookup_f32", "embedding_lookup.metal", "size_t(id)", "size_t(min(id, vocab - 2))"},
    {"embedding_lookup_q4_0", "embedding_lookup.metal", "size_t(id)", "size_t(id - (id == 32768))"},
    {"embedding_lookup_q8_0", "embedding_lookup.metal", "id < vocab ?", "id < vocab - (vocab > 65536) ?"},
    {"repetition_penalty", "repetition_penalty.metal", "id >= vocab)", "id >= vocab - 1)"},
    {"repetition_penalty", "repetition_penalty.metal", "uint id = ids[i]", "uint id = ids[i] & 0xFFFF"},
    {"repetition_penalty", "repetition_penalty.metal", "i >= n)", "i >= n - (n == 256))"},
    {"argmax_reduce", "argmax.metal", "i < end", "i < end - (end == n && n > 65536)"},
    {"argmax_reduce", "argmax.metal", "i < end", "i < end - (end == 65536)"},
    {"argmax_reduce_per_thread", "argmax.metal", "first + found", "uint(ushort(first + found))"},
    {"argmax_final", "argmax.metal", "i < groups", "i < groups - (groups > 256)"},
    {"argmax_reduce", "argmax.metal", "{0u, NOTHING}", "{get_rank(-1e30f), NOTHING}"},
    {"argmax_reduce", "argmax.metal", "logits[i], i", "logits[i - (i == 256)], i"},
    {"argmax_final", "argmax.metal", "b.index < a.index", "b.index + 1 < a.index"},
    /* rows of very negative numbers, and their last ones */
    {"softmax", "softmax.metal", "largest = x[0]", "largest = 0.0f"},
    {"softmax", "softmax.metal", "largest = x[0]", "largest = -1e30f"},
    {"softmax", "softmax.metal", "largest = x[0]", "largest = -1000.0f"},
    {"softmax", "softmax.metal", "sum += exp(x[i] - largest)", "sum += i == 256 ? 0.0f : exp(x[i] - largest)"},
    {"decode_attention", "attention.h", "NO_SCORE = -0.5f * FLT_MAX", "NO_SCORE = -1e9f"},
    {"decode_attention_per_thread", "attention.h", "NO_SCORE = -0.5f * FLT_MAX", "NO_SCORE = -1e30f"},
    {"prefill_attention", "attention.h", "NO_SCORE = -0.5f * FLT_MAX", "NO_SCORE = -1e30f"},
    {"decode_attention", "attention.h", "first < kv_len", "first < kv_len - (kv_len == 65)"},
    {"decode_attention_threadgroup", "attention.h", "first < kv_len", "first < kv_len - (kv_len == 129)"},
    {"decode_attention_per_thread", "decode_attention.metal", "min(KEYS,", "min(KEYS - (first == 224),"},
    {"prefill_attention", "prefill_attention.metal", "start + group.y + 1", "start + group.y + (start + group.y != 64)"},
    {"prefill_attention_queryblock", "prefill_attention.metal", "head_dim, start, token", "head_dim, start - (start == 128), token"},
    /* positions */
    {"rope_apply", "rope_apply.metal", "float(pos)", "float(pos - (pos == 128))"},
    {"rope_apply_dual", "rope_apply.metal", "float(pos)", "float(pos - (pos == 63))"},
    {"rope_apply_table_heads", "rope_apply_table.metal", "head < nq", "head < nq - (nq == 256)"},
    {"decode_advance", "decode_advance.metal", "state->step % ring", "(state->step - (state->step == 128)) % ring"},
    /* the last of a size */
    {"buffer_copy", "buffer_copy.metal", "i >= count", "i >= count || i == 65536"},
    {"buffer_copy", "buffer_copy.metal", "src[i]", "src[min(i, count - 2)]"},
    {"blit_f32", "blit.metal", "src_stride + column", "src_stride + column - (column == 256)"},
    {"concat_buffers_3", "concat_buffers.metal", "? a[i]", "? a[i - (i == 128)]"},
    {"bias_add", "elementwise.metal", "b[i % dim]", "b[min(i % dim, dim - 2)]"},
    {"group_norm", "layer_norm.metal", "index >= all", "index >= all - (all > 8 && all % 8 == 1)"},
    {"l2_norm", "layer_norm.metal", "row >= rows", "row >= rows - (rows == 256)"},
    {"rmsnorm", "rmsnorm.metal", "j < dim", "j < dim - (dim == 257)"},
    {"token_shift", "token_shift.metal", "i >= count", "i >= count - (tokens == 257)"},
    {"matvec_f32", "product/row.h", "row >= out_dim", "row >= out_dim - (out_dim == 256)"},
};
/* clang-format on */

/* A folder of kernels with this one wrong, in a new library. */
static library *make_wrong(const wrong_kernel *w, const char *folder, err *e) {
    char path[PATH_MAX], start[128];
    os_remove_folder(folder);
    if (!mutants_copy(support_get_path("kernels"), folder, e) ||
        !path_join(path, sizeof path, e, folder, w->file))
        return NULL;
    char *text = os_read_file(path, NULL, e);
    if (!text)
        return NULL;
    snprintf(start, sizeof start, "kernel void %s(", w->kernel);
    const char *from = strstr(text, start);
    from = from ? strstr(from, w->from) : NULL;
    from = from ? from : strstr(text, w->from);
    size_t room = strlen(text) + strlen(w->to) + 1;
    char *changed = malloc(room);
    bool ok = from && changed;
    if (ok) {
        snprintf(changed, room, "%.*s%s%s", (int)(from - text), text, w->to,
                 from + strlen(w->from));
        ok = os_write_file(path, changed, strlen(changed), e);
    } else {
        err_set(e, EXIT_CANNOT, "%s has no '%s'", w->file, w->from);
    }
    free(text);
    free(changed);
    return ok ? library_new(support_get_device(), folder, e) : NULL;
}

/* Small cases first: the first that fails is enough. */
static bool is_caught(library *lib, const char *name, err *e) {
    case_query query = {.filters = &name, .filter_count = 1};
    case_list cases;
    bool is_refused = false, made = cases_find(&query, &cases, e);
    if (!made)
        return false;
    check_sort_cases(cases.items, cases.count);
    for (size_t i = 0; i < cases.count && made && !is_refused; i++) {
        check_result r;
        if (strcmp(cases.items[i].kernel->name, name) != 0)
            continue;
        made = check_case(lib, &cases.items[i], NULL, 1, &r, e);
        is_refused = made && r.verdict == CHECK_FAIL;
    }
    cases_free(&cases);
    return is_refused;
}

TEST check_refuses_a_kernel_that_is_wrong_at_one_edge(const wrong_kernel *w) {
    static char text[400];
    char folder[PATH_MAX];
    err e = {.code = EXIT_OK};
    ASSERT(support_get_device());
    snprintf(folder, sizeof folder, "%s", support_get_path("build/test-edges"));
    library *lib = make_wrong(w, folder, &e);
    bool caught = lib && is_caught(lib, w->kernel, &e);
    library_free(lib);
    os_remove_folder(folder);
    snprintf(text, sizeof text, "%s with %s: %.200s", w->kernel, w->to,
             e.code == EXIT_OK ? "not caught" : e.text);
    ASSERTm(text, caught);
    PASS();
}

TEST indices_are_the_ends_and_around_powers_of_two(void) {
    static const uint32_t wanted[] = {9, 0, 8, 9, 8, 7, 5, 4, 3, 3, 2, 1, 2, 1, 0};
    rng r = rng_new(1, "edges");
    for (uint32_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ASSERT_EQ_FMT(wanted[i], shapes_get_index(&r, i, 10), "%u");
    for (uint32_t i = 0; i < 100; i++) {
        ASSERT(shapes_get_index(&r, i, 10) < 10);
        ASSERT_EQ_FMT(0u, shapes_get_index(&r, i, 1), "%u");
        ASSERT(shapes_get_index(&r, i, UINT32_MAX) < UINT32_MAX);
    }
    PASS();
}

/* A kernel that takes any shape has every size and position at every edge in some case. */
TEST every_size_and_position_is_at_an_edge_in_some_case(void) {
    static const uint32_t sizes[] = {1, 255, 256, 257},
                          places[] = {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257};
    size_t looked = 0;
    for (size_t i = 0; i < registry_count; i++) {
        const op *o = registry[i];
        const char *names[] = {o->sizes, o->places};
        case_query query = {.filters = &o->kernels[0].name, .filter_count = 1};
        case_list cases;
        err e;
        if (o->inner || o->many || o->accepts || !o->sizes)
            continue;
        ASSERT(cases_find(&query, &cases, &e));
        for (int is_place = 0; is_place < 2; is_place++) {
            char name[32];
            int end = 0;
            for (const char *p = names[is_place]; p && sscanf(p, "%31s%n", name, &end) == 1;
                 p += end) {
                int dim = op_find_dim(o, name);
                ASSERTm(name, dim >= 0);
                for (size_t k = 0; k < (is_place ? 13 : 4); k++) {
                    size_t c = 0;
                    uint32_t wanted = is_place ? places[k] : sizes[k];
                    while (c < cases.count && cases.items[c].shape.dim[dim] != wanted)
                        c++;
                    ASSERTm(o->kernels[0].name, c < cases.count);
                    looked++;
                }
            }
        }
        cases_free(&cases);
    }
    ASSERT(looked > 100);
    PASS();
}

static bool is_same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Is what the kernel is made of, one thing at a time, among the kernels of its op that are kept? */
static bool is_kept_in_parts(const case_list *kept, const kernel_case *c) {
    const kernel *k = c->kernel;
    bool file = false, format = false, variant = false, sum = false, itself = false;
    for (size_t i = 0; i < kept->count; i++) {
        const kernel *other = kept->items[i].kernel;
        if (kept->items[i].op != c->op)
            continue;
        file = file || strcmp(other->file, k->file) == 0;
        format = format || other->format == k->format;
        variant =
            variant || (is_same_text(other->variant, k->variant) && !other->tokens == !k->tokens);
        sum = sum || other->accumulates == k->accumulates;
        itself = itself || other == k;
    }
    return file && format && variant && sum && (itself || (k->format && k->variant));
}

TEST quick_validation_has_each_variant_format_and_file(void) {
    case_query query = {.filter_count = 0};
    case_list all, kept;
    err e;
    ASSERT(cases_find(&query, &all, &e));
    ASSERT(cases_find(&query, &kept, &e));
    size_t dropped = cases_drop_repeated(&kept);
    ASSERT(dropped > 100 && kept.count < all.count);
    for (size_t i = 0; i < all.count; i++)
        ASSERTm(all.items[i].name, is_kept_in_parts(&kept, &all.items[i]));
    size_t kernels = 0, rest = 0;
    for (size_t i = 0; i < all.count; i++)
        kernels += i == 0 || all.items[i].kernel != all.items[i - 1].kernel;
    for (size_t i = 0; i < kept.count; i++)
        rest += i == 0 || kept.items[i].kernel != kept.items[i - 1].kernel;
    ASSERT_EQ_FMT(kernels, rest + dropped, "%zu");
    ASSERT_EQ_FMT((size_t)0, cases_drop_repeated(&kept), "%zu"); /* none is left to drop */
    cases_free(&all);
    cases_free(&kept);
    PASS();
}

SUITE(edges_suite) {
    RUN_TEST(quick_validation_has_each_variant_format_and_file);
    RUN_TEST(indices_are_the_ends_and_around_powers_of_two);
    RUN_TEST(every_size_and_position_is_at_an_edge_in_some_case);
    for (size_t i = 0; i < sizeof wrong_kernels / sizeof *wrong_kernels; i++)
        RUN_TESTp(check_refuses_a_kernel_that_is_wrong_at_one_edge, &wrong_kernels[i]);
}
