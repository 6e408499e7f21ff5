/* Tests of runner/gguf: files crafted byte by byte, right and wrong, and files that it writes. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "craft.h"
#include "harness/base/os.h"
#include "runner/gguf/write.h"

SUITE(gguf_suite);

static crafted file;
static err e;

static gguf *read_crafted(void) {
    memset(&e, 0, sizeof e);
    return gguf_read(file.data, file.bytes, "crafted", &e);
}

/* --- right files --- */

static enum greatest_test_res check_valid(const gguf *g, uint32_t version) {
    ASSERT_EQ(version, g->version);
    ASSERT_EQ(25, g->value_count);
    ASSERT_EQ(3, g->tensor_count);
    ASSERT_EQ(32, g->alignment);
    ASSERT_EQ(0, g->data_at % 32);
    const gguf_tensor *t = gguf_find_tensor(g, "matrix");
    ASSERT(t && strcmp(t->type->name, "Q4_0") == 0 && t->dims == 2 && t->bytes == 54);
    ASSERT(t->dim[0] == 32 && t->dim[1] == 3 && t->dim[2] == 1 && t->elements == 96);
    ASSERT(t->offset == g->data_at + 32 && t->data == g->map + t->offset);
    t = gguf_find_tensor(g, "all");
    ASSERT(t && t->dims == 4 && t->elements == 12 && t->bytes == 24);
    ASSERT(!gguf_find_tensor(g, "al") && !gguf_find_tensor(g, ""));
    PASS();
}

TEST versions_2_and_3_are_read(void) {
    for (uint32_t version = 2; version <= 3; version++) {
        craft_valid(&file, version);
        gguf *g = read_crafted();
        ASSERTm(e.text, g);
        CHECK_CALL(check_valid(g, version));
        gguf_free(g);
    }
    PASS();
}

/* The bytes of an element are 1, 2, 3, ... */
TEST every_type_of_value_is_read_alone_and_in_arrays(void) {
    const int64_t first[GGUF_VALUE_TYPES] = {
        [GGUF_U8] = 1,
        [GGUF_I8] = 1,
        [GGUF_U16] = 0x0201,
        [GGUF_I16] = 0x0201,
        [GGUF_U32] = 0x04030201,
        [GGUF_I32] = 0x04030201,
        [GGUF_BOOL] = 1,
        [GGUF_U64] = 0x0807060504030201,
        [GGUF_I64] = 0x0807060504030201,
    };
    craft_valid(&file, 3);
    gguf *g = read_crafted();
    ASSERTm(e.text, g);
    for (uint32_t t = 0; t < GGUF_VALUE_TYPES; t++) {
        char one[] = "one.?", two[] = "two.?";
        one[4] = two[4] = (char)('a' + t);
        const gguf_value *v = gguf_find_value(g, one), *w = gguf_find_value(g, two);
        if (t == GGUF_ARRAY) {
            ASSERT(!v && !w);
            continue;
        }
        ASSERT(v && w && v->type == (gguf_value_type)t && v->element == (gguf_value_type)t);
        ASSERT(v->count == 1 && w->count == 2);
        ASSERT(w->type == GGUF_ARRAY && w->element == (gguf_value_type)t);
        if (t == GGUF_STRING) {
            ASSERT(gguf_text_equals(v->texts[0], "two words"));
            ASSERT(gguf_text_equals(w->texts[0], "two words") && w->texts[1].bytes == 0);
        } else if (t == GGUF_F32 || t == GGUF_F64) {
            float f;
            memcpy(&f, file.data + (w->data - file.data) + 4, sizeof f);
            ASSERT(gguf_value_get_number(v, 0) > 0 && gguf_value_get_number(v, 0) < 1);
            ASSERT(t == GGUF_F64 || gguf_value_get_number(w, 1) == (double)f);
        } else {
            ASSERT(gguf_value_get_integer(v, 0) == first[t]);
            ASSERT(gguf_value_get_integer(w, 0) == first[t]);
            ASSERT(gguf_value_get_number(v, 0) == (double)first[t]);
        }
    }
    ASSERT_EQ(0, gguf_find_value(g, "empty")->count);
    gguf_free(g);
    PASS();
}

TEST values_are_asked_for_by_their_own_type(void) {
    craft_valid(&file, 3);
    gguf *g = read_crafted();
    ASSERTm(e.text, g);
    uint32_t u = 7;
    float f;
    bool b = false, found = true;
    gguf_text t;
    ASSERT(gguf_get_u32(g, "one.e", &u, NULL, &e) && u == 0x04030201);
    ASSERT(gguf_get_bool(g, "one.h", &b, NULL, &e) && b);
    ASSERT(gguf_get_f32(g, "one.g", &f, &found, &e) && found);
    ASSERT(gguf_get_text(g, "one.i", &t, &found, &e) && gguf_text_equals(t, "two words"));
    ASSERT(gguf_get_u32(g, "none", &u, &found, &e) && !found && u == 0x04030201);
    ASSERT(!gguf_get_u32(g, "none", &u, NULL, &e));
    ASSERT(strstr(e.text, "none is missing") && e.code == EXIT_USAGE);
    ASSERT(!gguf_get_u32(g, "one.f", &u, &found, &e)); /* i32 is not u32 */
    ASSERT(strstr(e.text, "one.f is of type i32 where u32 is needed"));
    ASSERT(!gguf_get_u32(g, "two.e", &u, NULL, &e)); /* nor is an array */
    gguf_free(g);
    PASS();
}

TEST a_file_without_tensors_needs_no_padding(void) {
    craft_header(&file, 3, 0, 1);
    craft_key(&file, "k", GGUF_U8);
    craft_bytes(&file, "x", 1);
    gguf *g = read_crafted();
    ASSERTm(e.text, g);
    ASSERT(g->tensor_count == 0 && g->data_at == file.bytes);
    gguf_free(g);
    PASS();
}

TEST the_alignment_of_a_file_moves_its_tensors(void) {
    const uint64_t dim[] = {1};
    craft_header(&file, 3, 2, 1);
    craft_key(&file, "general.alignment", GGUF_U32);
    craft_u32(&file, 128);
    craft_tensor(&file, "a", 1, dim, 0, 0);
    craft_tensor(&file, "b", 1, dim, 0, 128);
    craft_pad(&file, 128, 132);
    gguf *g = read_crafted();
    ASSERTm(e.text, g);
    ASSERT(g->data_at % 128 == 0 && g->tensors[1].offset == g->data_at + 128);
    gguf_free(g);
    PASS();
}

TEST types_are_found_by_id_by_format_and_by_name(void) {
    for (uint32_t id = 0; id < 64; id++) {
        const gguf_type *t = gguf_find_type(id);
        if (!t)
            continue;
        ASSERT(gguf_find_type_name(t->name) == t && t->values > 0 && t->bytes > 0);
        if (!t->format)
            continue;
        ASSERT(gguf_find_format(t->format) == t);
        ASSERT_STR_EQ(t->format->name, t->name);
        ASSERT(t->format->values == t->values && t->format->bytes == t->bytes);
    }
    ASSERT(gguf_find_type_name("q4_0") == gguf_find_type(2));
    ASSERT(!gguf_find_type_name("q4") && !gguf_find_type_name("q4_00") && !gguf_find_type(4));
    PASS();
}

/* --- wrong files --- */

TEST every_way_to_be_wrong_is_one_sentence(void) {
    const craft_case *c;
    for (size_t i = 0; (c = craft_get_wrong(i)); i++) {
        c->make(&file);
        gguf *g = read_crafted();
        ASSERTm(c->name, !g);
        ASSERT_EQm(c->name, EXIT_USAGE, e.code);
        ASSERTm(e.text, strstr(e.text, c->answer));
        ASSERTm(e.text, strstr(e.text, "crafted: ") == e.text && !strchr(e.text, '\n'));
    }
    PASS();
}

/* A copy of just that length, so that a byte too far is seen by a sanitizer. */
TEST a_file_cut_anywhere_is_refused(void) {
    craft_valid(&file, 3);
    for (size_t bytes = 0; bytes < file.bytes; bytes++) {
        uint8_t *copy = malloc(bytes ? bytes : 1);
        ASSERT(copy);
        memcpy(copy, file.data, bytes);
        gguf *g = gguf_read(copy, bytes, "cut", &e);
        ASSERT(!g && e.code == EXIT_USAGE);
        free(copy);
    }
    PASS();
}

/* Whatever a byte is changed to, reading ends and what is read can be looked at. */
TEST a_file_with_a_changed_byte_does_no_harm(void) {
    static const uint8_t changes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    craft_valid(&file, 3);
    static crafted changed;
    for (size_t at = 0; at < file.bytes; at++)
        for (size_t k = 0; k < sizeof changes; k++) {
            changed = file;
            changed.data[at] = changes[k];
            gguf *g = gguf_read(changed.data, changed.bytes, "changed", &e);
            if (!g)
                continue;
            for (size_t i = 0; i < g->tensor_count; i++) {
                const gguf_tensor *t = &g->tensors[i];
                ASSERT(t->offset >= g->data_at && t->offset + t->bytes <= g->bytes);
            }
            gguf_free(g);
        }
    PASS();
}

#if !defined(ASSAY_SANITIZED) && !defined(__APPLE__)
/* With 64 MB more than there are now nothing large can be allocated: a count that lies must not
 * even try. The values are zeros, so the first record ends it. */
TEST counts_that_lie_allocate_nothing(void) {
    struct rlimit before, tight;
    const size_t bytes = 32 << 20;
    uint8_t *data = calloc(1, bytes);
    ASSERT(data && getrlimit(RLIMIT_AS, &before) == 0);
    craft_header(&file, 3, 1000000, 2000000);
    memcpy(data, file.data, file.bytes);
    tight = before;
    char *pages = os_read_file("/proc/self/statm", NULL, &e);
    ASSERT(pages);
    tight.rlim_cur =
        (rlim_t)(strtoul(pages, NULL, 10) * (unsigned long)sysconf(_SC_PAGESIZE) + (4 << 20));
    free(pages);
    ASSERT(setrlimit(RLIMIT_AS, &tight) == 0);
    gguf *g = gguf_read(data, bytes, "lie", &e);
    setrlimit(RLIMIT_AS, &before);
    ASSERT(!g);
    ASSERTm(e.text, strstr(e.text, "is empty")); /* and not: no memory */
    free(data);
    PASS();
}
#else
TEST counts_that_lie_allocate_nothing(void) {
    SKIPm("a limit on memory does not go with this system or a sanitizer");
}
#endif

TEST ten_thousand_names_are_no_trouble(void) {
    enum { COUNT = 10000 };
    crafted *part = calloc(1, sizeof *part);
    uint8_t *data = malloc(COUNT * 32);
    ASSERT(part && data);
    craft_header(part, 3, 0, COUNT);
    memcpy(data, part->data, part->bytes);
    size_t bytes = part->bytes;
    for (int i = 0; i < COUNT; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        part->bytes = 0;
        craft_key(part, key, GGUF_U32);
        craft_u32(part, (uint32_t)i);
        memcpy(data + bytes, part->data, part->bytes);
        bytes += part->bytes;
    }
    gguf *g = gguf_read(data, bytes, "many", &e);
    ASSERTm(e.text, g);
    for (int i = 0; i < COUNT; i += 7) {
        char key[16];
        uint32_t value;
        snprintf(key, sizeof key, "k%d", i);
        ASSERT(gguf_get_u32(g, key, &value, NULL, &e) && value == (uint32_t)i);
    }
    gguf_free(g);
    free(data);
    free(part);
    PASS();
}

TEST what_is_no_file_is_refused(void) {
    ASSERT(!gguf_open("/", &e) && e.code == EXIT_USAGE && strstr(e.text, "a folder"));
    ASSERT(!gguf_open("/dev/null", &e) && strstr(e.text, "not a file"));
    ASSERT(!gguf_open("/no/such/file", &e) && e.code == EXIT_USAGE &&
           strstr(e.text, "/no/such/file"));
    char path[64];
    snprintf(path, sizeof path, "/tmp/assay-test-%ld.gguf", (long)getpid());
    ASSERT(os_write_file(path, "", 0, &e));
    ASSERT(!gguf_open(path, &e) && strstr(e.text, "an empty file"));
    ASSERT(os_write_file(path, "GG", 2, &e));
    ASSERT(!gguf_open(path, &e) && strstr(e.text, "ends at byte 2"));
    unlink(path);
    PASS();
}

/* --- writing --- */

static char path[64];

static gguf_writer *start_writing(void) {
    snprintf(path, sizeof path, "/tmp/assay-test-%ld.gguf", (long)getpid());
    return gguf_writer_new(path, &e);
}

/* In a process of its own: it ends. */
TEST a_file_that_shrinks_while_it_is_read_ends_with_a_sentence(void) {
    char model[300], said[300];
    snprintf(model, sizeof model, "/tmp/assay-test-%ld-shrinks.gguf", (long)getpid());
    snprintf(said, sizeof said, "/tmp/assay-test-%ld-said", (long)getpid());
    craft_valid(&file, 3);
    ASSERT(os_write_file(model, file.data, file.bytes, &e));
    fflush(NULL);
    pid_t child = fork();
    ASSERT(child >= 0);
    if (child == 0) {
        gguf *g = gguf_open(model, &e);
        bool ok = g && freopen(said, "w", stderr) && truncate(model, 0) == 0;
        _exit(ok ? 100 + *(const volatile uint8_t *)g->map % 2 : 99);
    }
    int status = -1;
    ASSERT_EQ_FMT(child, waitpid(child, &status, 0), "%d");
    ASSERT(WIFEXITED(status));
    ASSERT_EQ_FMT((int)EXIT_CANNOT, WEXITSTATUS(status), "%d");
    char *text = os_read_file(said, NULL, &e);
    ASSERT(text && strstr(text, "shrinks.gguf became shorter while it was being read"));
    free(text);
    ASSERT(unlink(model) == 0 && unlink(said) == 0);
    PASS();
}

TEST what_is_written_is_read_back(void) {
    const gguf_text texts[] = {{"a", 1}, {"", 0}, {"\xff\0z", 3}};
    const int32_t numbers[] = {-1, 2};
    const uint64_t row[] = {3}, matrix[] = {32, 2};
    const float values[] = {1, 2, 3};
    block_q8_0 blocks[2] = {{.d = 7}, {.d = 9}};
    gguf_writer *w = start_writing();
    ASSERTm(e.text, w);
    gguf_writer_add_u32(w, "u", 5);
    gguf_writer_add_f32(w, "f", 0.5f);
    gguf_writer_add_bool(w, "b", true);
    gguf_writer_add_texts(w, "t", texts, 3);
    gguf_writer_add_i32s(w, "i", numbers, 2);
    gguf_writer_add_tensor(w, "row", gguf_find_format(&format_f32), row, 1);
    gguf_writer_add_tensor(w, "matrix", gguf_find_format(&format_q8_0), matrix, 2);
    ASSERTm(e.text, gguf_writer_finish_header(w, &e));
    ASSERT(gguf_writer_write(w, values, 5, &e)); /* pieces of any size */
    ASSERT(gguf_writer_write(w, (const char *)values + 5, 7, &e));
    ASSERT(gguf_writer_write(w, blocks, sizeof blocks, &e));
    ASSERTm(e.text, gguf_writer_finish(w, &e));
    gguf_writer_free(w);
    gguf *g = gguf_open(path, &e);
    ASSERTm(e.text, g);
    float f = 0;
    const gguf_value *t = gguf_find_value(g, "t"), *i = gguf_find_value(g, "i");
    ASSERT(gguf_get_f32(g, "f", &f, NULL, &e) && f == 0.5f);
    ASSERT(t->count == 3 && t->texts[2].bytes == 3 && memcmp(t->texts[2].data, "\xff\0z", 3) == 0);
    ASSERT(i->count == 2 && gguf_value_get_integer(i, 0) == -1);
    ASSERT(memcmp(gguf_find_tensor(g, "row")->data, values, sizeof values) == 0);
    ASSERT(memcmp(gguf_find_tensor(g, "matrix")->data, blocks, sizeof blocks) == 0);
    ASSERT_EQ(0, g->bytes % 32);
    gguf_free(g);
    unlink(path);
    PASS();
}

TEST an_unfinished_file_is_removed(void) {
    const uint64_t row[] = {3};
    gguf_writer *w = start_writing();
    ASSERTm(e.text, w);
    gguf_writer_add_tensor(w, "row", gguf_find_format(&format_f32), row, 1);
    ASSERT(gguf_writer_finish_header(w, &e));
    ASSERT(gguf_writer_write(w, row, 8, &e));
    ASSERT(!gguf_writer_finish(w, &e) && strstr(e.text, "tensor 1 are missing"));
    gguf_writer_free(w);
    ASSERT_RUN("ls \"$T\".gguf* 2> /dev/null", 2);
    ASSERT(!gguf_writer_new("/tmp", &e) && strstr(e.text, "a folder"));
    ASSERT(!gguf_writer_new("/dev/null", &e) && strstr(e.text, "not a file"));
    w = gguf_writer_new("/no/such/folder/x.gguf", &e);
    ASSERT(w && !gguf_writer_finish_header(w, &e) && e.code == EXIT_USAGE);
    gguf_writer_free(w);
    PASS();
}

SUITE(gguf_suite) {
    RUN_TEST(versions_2_and_3_are_read);
    RUN_TEST(every_type_of_value_is_read_alone_and_in_arrays);
    RUN_TEST(values_are_asked_for_by_their_own_type);
    RUN_TEST(a_file_without_tensors_needs_no_padding);
    RUN_TEST(the_alignment_of_a_file_moves_its_tensors);
    RUN_TEST(types_are_found_by_id_by_format_and_by_name);
    RUN_TEST(every_way_to_be_wrong_is_one_sentence);
    RUN_TEST(a_file_cut_anywhere_is_refused);
    RUN_TEST(a_file_with_a_changed_byte_does_no_harm);
    RUN_TEST(counts_that_lie_allocate_nothing);
    RUN_TEST(ten_thousand_names_are_no_trouble);
    RUN_TEST(what_is_no_file_is_refused);
    RUN_TEST(a_file_that_shrinks_while_it_is_read_ends_with_a_sentence);
    RUN_TEST(what_is_written_is_read_back);
    RUN_TEST(an_unfinished_file_is_removed);
}
