/* Tests of runner/gguf/convert and synth, of the verbs `model convert`, `model synth` and
 * `model info`, and of the JSON that is printed. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/sha256.h"
#include "runner/gguf/synth.h"
#include "runner/gguf/write.h"
#include "transcript.h"

SUITE(convert_suite);

static err e;
static char from[64], to[64], again[64];
static gguf *opened[24];
static size_t opened_count;

static void name_files(void *unused) {
    (void)unused;
    snprintf(from, sizeof from, "/tmp/assay-test-%ld-from.gguf", (long)getpid());
    snprintf(to, sizeof to, "/tmp/assay-test-%ld-to.gguf", (long)getpid());
    snprintf(again, sizeof again, "/tmp/assay-test-%ld-again.gguf", (long)getpid());
}

static void remove_files(void *unused) {
    (void)unused;
    while (opened_count)
        gguf_free(opened[--opened_count]);
    unlink(from);
    unlink(to);
    unlink(again);
}

static gguf *open_file(const char *path) {
    return opened[opened_count++] = gguf_open(path, &e);
}

/* A model of one matrix, one head, one norm and one vector, all F32. */
static bool write_small(const char *head, const float *matrix, size_t columns) {
    const uint64_t dim[] = {columns, 1}, square[] = {columns, 2}, row[] = {3};
    const gguf_type *f32 = gguf_find_format(&format_f32);
    float twice[2 * 64];
    memcpy(twice, matrix, columns * sizeof *matrix);
    memcpy(twice + columns, matrix, columns * sizeof *matrix);
    gguf_writer *w = gguf_writer_new(from, &e);
    gguf_writer_add_u32(w, "general.file_type", 0);
    gguf_writer_add_text(w, "general.name", (gguf_text){"small", 5});
    gguf_writer_add_tensor(w, head, f32, square, 2);
    gguf_writer_add_tensor(w, "blk.0.attn_q.weight", f32, square, 2);
    gguf_writer_add_tensor(w, "blk.0.attn_norm.weight", f32, square, 2);
    gguf_writer_add_tensor(w, "blk.0.attn_q.bias", f32, row, 1);
    gguf_writer_add_tensor(w, "blk.0.one.weight", f32, dim, 2);
    size_t bytes = 2 * columns * sizeof *twice;
    bool ok = gguf_writer_finish_header(w, &e) && gguf_writer_write(w, twice, bytes, &e) &&
              gguf_writer_write(w, twice, bytes, &e) && gguf_writer_write(w, twice, bytes, &e) &&
              gguf_writer_write(w, twice, 3 * sizeof *twice, &e) &&
              gguf_writer_write(w, twice, bytes / 2, &e) && gguf_writer_finish(w, &e);
    gguf_writer_free(w);
    return ok;
}

static gguf *convert(const char *type, bool is_pure) {
    gguf *g = open_file(from);
    convert_options o = {.type = convert_find_type(type, &e), .is_pure = is_pure};
    return g && convert_model(g, to, &o, &e) ? open_file(to) : NULL;
}

static const char *get_type(const gguf *g, const char *name) {
    const gguf_tensor *t = gguf_find_tensor(g, name);
    return t ? t->type->name : "missing";
}

/* The largest is -4, so d is 0.5 and value v is nibble trunc(2 v + 8.5): worked by hand. */
TEST the_bytes_of_q4_0_are_those_worked_by_hand(void) {
    static const uint8_t expected[18] = {
        0x00, 0x38, /* 0.5 */
        0x80,       /* -4 is 0; value 16 is 0: 8 */
        0x8f,       /* 3.5 is 15 */
        0x8f,       /* 4 would be 16: 15 */
        0x8a,       /* 0.75 is 1.5 + 8.5: 10 */
        0x88,       /* 0.2 is 0.4 + 8.5: 8 */
        0x78,       /* 0; value 21, -0.26, is -0.52 + 8.5: 7 */
        0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0xc8, /* value 31, 2, is 12 */
    };
    float values[32] = {-4, 3.5f, 4, 0.75f, 0.2f};
    values[21] = -0.26f;
    values[31] = 2;
    ASSERTm(e.text, write_small("output.weight", values, 32));
    gguf *g = convert("q4_0", false);
    ASSERTm(e.text, g);
    const gguf_tensor *t = gguf_find_tensor(g, "blk.0.attn_q.weight");
    ASSERT(t && t->bytes == 2 * sizeof expected);
    ASSERT_MEM_EQ(expected, t->data, sizeof expected);
    ASSERT_MEM_EQ(expected, (const uint8_t *)t->data + sizeof expected, sizeof expected);
    PASS();
}

TEST a_block_of_zeros_has_a_negative_zero_as_its_scale(void) {
    float values[32] = {0};
    block_q4_0 b;
    format_q4_0.encode(values, &b);
    ASSERT_EQ_FMT(0x8000u, (unsigned)b.d, "%x"); /* 0 / -8 */
    ASSERT_EQ_FMT(0x88u, (unsigned)b.nibbles[0], "%x");
    PASS();
}

TEST matrices_change_and_vectors_and_norms_stay(void) {
    float values[64] = {1, -2};
    ASSERTm(e.text, write_small("token_embd.weight", values, 64));
    const struct {
        const char *type;
        bool is_pure;
        const char *head, *matrix;
        uint32_t file_type;
    } cases[] = {{"q4_0", false, "Q8_0", "Q4_0", 2},  {"q4_0", true, "Q4_0", "Q4_0", 2},
                 {"q8_0", false, "Q8_0", "Q8_0", 7},  {"q4_1", false, "Q8_0", "Q4_1", 3},
                 {"q5_0", true, "Q5_0", "Q5_0", 8},   {"Q5_1", false, "Q8_0", "Q5_1", 9},
                 {"q4_k", false, "Q8_0", "Q5_0", 14}, /* rows of 64 are no blocks of 256 */
                 {"q5_k", true, "Q5_1", "Q5_1", 16},  {"q6_k", false, "Q8_0", "Q8_0", 18},
                 {"f16", false, "F16", "F16", 1},     {"F32", false, "F32", "F32", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf *g = convert(cases[i].type, cases[i].is_pure);
        uint32_t file_type = 99, version = 99;
        ASSERTm(e.text, g);
        ASSERT_STR_EQ(cases[i].head, get_type(g, "token_embd.weight"));
        ASSERT_STR_EQ(cases[i].matrix, get_type(g, "blk.0.attn_q.weight"));
        ASSERT_STR_EQ("F32", get_type(g, "blk.0.attn_norm.weight"));
        ASSERT_STR_EQ("F32", get_type(g, "blk.0.attn_q.bias"));
        ASSERT_STR_EQ("F32", get_type(g, "blk.0.one.weight")); /* one row is a vector */
        ASSERT(gguf_get_u32(g, "general.file_type", &file_type, NULL, &e));
        ASSERT(gguf_get_u32(g, "general.quantization_version", &version, NULL, &e));
        ASSERT(file_type == cases[i].file_type && version == 2);
        ASSERT(gguf_text_equals(gguf_find_value(g, "general.name")->texts[0], "small"));
    }
    PASS();
}

TEST only_the_head_is_an_exception(void) {
    float values[64] = {1};
    ASSERTm(e.text, write_small("output.weight", values, 64));
    gguf *g = convert("q4_0", false);
    ASSERTm(e.text, g);
    ASSERT_STR_EQ("Q8_0", get_type(g, "output.weight"));
    gguf_tensor embedding = *gguf_find_tensor(g, "blk.0.attn_q.weight");
    strcpy(embedding.name, "token_embd.weight");
    convert_options o = {.type = gguf_find_format(&format_q4_0)};
    ASSERT_STR_EQ("Q4_0", convert_choose_type(g, &embedding, &o)->name); /* there is a head */
    const char *const kept[] = {"blk.*", "token_*.weight"};
    convert_options careful = {
        .type = gguf_find_format(&format_f16), .kept = kept, .kept_count = 2};
    ASSERT_STR_EQ("Q4_0", convert_choose_type(g, &embedding, &careful)->name); /* kept by name */
    ASSERT_STR_EQ("F16",
                  convert_choose_type(g, gguf_find_tensor(g, "output.weight"), &careful)->name);
    embedding.dim[0] = 33;
    ASSERT_STR_EQ("F16", convert_choose_type(g, &embedding, &o)->name); /* no whole blocks */
    PASS();
}

TEST values_that_are_not_finite_are_refused_by_name(void) {
    float values[64] = {1, 2, 3, 4, 5, INFINITY};
    ASSERTm(e.text, write_small("token_embd.weight", values, 64));
    ASSERT_EQ(NULL, convert("q4_0", false));
    ASSERT_EQ_FMT(EXIT_WRONG, e.code, "%d");
    ASSERTm(e.text, strstr(e.text, "token_embd.weight: value 5 is not finite (inf)"));
    gguf *g = convert("f16", false); /* which has an infinity */
    ASSERTm(e.text, g);
    PASS();
}

TEST a_matrix_of_whole_blocks_gets_a_k_type(void) {
    ASSERT_STR_EQ("Q4_K", convert_fit_type(convert_find_type("q4_k", &e), 512)->name);
    ASSERT_STR_EQ("Q5_0", convert_fit_type(convert_find_type("q4_k", &e), 576)->name);
    ASSERT_STR_EQ("F16", convert_fit_type(convert_find_type("q6_k", &e), 33)->name);
    PASS();
}

static synth_options tiny_options(const gguf_type *type) {
    return (synth_options){.seed = 1, .type = type};
}

/* q4_0 to f32 and back is the same file: what is on the grid stays there. */
TEST a_model_survives_the_way_to_f32_and_back(void) {
    synth_options o = tiny_options(gguf_find_format(&format_q4_0));
    ASSERTm(e.text, synth_write_model(synth_get_shape(0), from, &o, &e));
    gguf *first = open_file(from), *second = convert("f32", false);
    ASSERTm(e.text, first && second);
    convert_options back = {.type = gguf_find_format(&format_q4_0)};
    ASSERTm(e.text, convert_model(second, again, &back, &e));
    gguf *third = open_file(again);
    ASSERTm(e.text, third && third->tensor_count == first->tensor_count);
    ASSERT_EQ(first->value_count, third->value_count);
    for (size_t i = 0; i < first->tensor_count; i++) {
        ASSERT_EQ(first->tensors[i].bytes, third->tensors[i].bytes);
        ASSERT_MEM_EQ(first->tensors[i].data, third->tensors[i].data, first->tensors[i].bytes);
    }
    PASS();
}

static bool stop_at_once(void *context, uint64_t done, uint64_t total) {
    *(uint64_t *)context = total;
    return done > total;
}

TEST a_conversion_can_be_stopped_and_leaves_nothing(void) {
    synth_options o = tiny_options(gguf_find_format(&format_q4_0));
    uint64_t total = 0;
    ASSERT(synth_write_model(synth_get_shape(0), from, &o, &e));
    gguf *g = open_file(from);
    convert_options c = {
        .type = gguf_find_format(&format_f16), .watch = stop_at_once, .context = &total};
    ASSERT(g && !convert_model(g, to, &c, &e) && strstr(e.text, "stopped"));
    ASSERT(total > 80000 && access(to, F_OK) != 0);
    o.watch = stop_at_once;
    o.context = &total;
    ASSERT(!synth_write_model(synth_get_shape(0), to, &o, &e) && access(to, F_OK) != 0);
    ASSERT_RUN("ls \"$T\"-to* 2> /dev/null", 2);
    PASS();
}

/* --- synth --- */

/* The head of 28 million numbers, in Q8_0: the second million is the first from its second block on, with the first
 * block last; the 17th million is drawn anew; the last piece is a part. */
TEST a_large_matrix_repeats_what_is_drawn_block_by_block(void) {
    synth_options o = tiny_options(gguf_find_format(&format_q4_0));
    o.layers = 1;
    ASSERTm(e.text, synth_write_model(synth_find_shape("smollm-135m", &e), from, &o, &e));
    gguf *g = open_file(from);
    const gguf_tensor *t = g ? gguf_find_tensor(g, "token_embd.weight") : NULL;
    ASSERTm(e.text, t && t->elements == 49152 * 576);
    const size_t block = t->type->bytes, piece = WEIGHT_PIECE / t->type->values * block;
    const uint8_t *first = t->data, *second = first + piece, *last = first + t->bytes - block;
    ASSERT_MEM_EQ(first + block, second, piece - block);
    ASSERT_MEM_EQ(first, second + piece - block, block);
    ASSERT(memcmp(first, first + 16 * piece, block) != 0 && memcmp(last, last - block, block) != 0);
    PASS();
}

TEST a_seed_gives_the_same_bytes_on_every_machine(void) {
    synth_options o = tiny_options(gguf_find_format(&format_q4_0));
    size_t bytes;
    char hex[65];
    ASSERTm(e.text, synth_write_model(synth_find_shape("tiny", &e), from, &o, &e));
    char *data = os_read_file(from, &bytes, &e);
    ASSERT(data);
    sha256_of(data, bytes, hex);
    ASSERT_STR_EQ("40dd540c78839df75aa77ee9bfa91336628130f3ce07bb5105a199c2b393c294", hex);
    free(data);
    o.seed = 2;
    ASSERT(synth_write_model(synth_find_shape("tiny", &e), to, &o, &e));
    char *other = os_read_file(to, &bytes, &e);
    sha256_of(other, bytes, hex);
    ASSERT(strncmp(hex, "40dd540c", 8) != 0);
    free(other);
    PASS();
}

static double get_spread(const gguf_tensor *t) {
    double values[BLOCK_MAX_VALUES], magnitudes[BLOCK_MAX_VALUES], sum = 0;
    for (size_t i = 0; i < t->elements; i += t->type->values) {
        t->type->format->decode((const char *)t->data + i / t->type->values * t->type->bytes,
                                values, magnitudes);
        for (size_t k = 0; k < t->type->values; k++)
            sum += values[k] * values[k];
    }
    return sqrt(sum / (double)t->elements);
}

TEST random_weights_have_a_sensible_spread_and_no_row_twice(void) {
    synth_options o = tiny_options(gguf_find_format(&format_q4_0));
    o.layers = 3;
    ASSERTm(e.text, synth_write_model(synth_get_shape(0), from, &o, &e));
    gguf *g = open_file(from);
    ASSERTm(e.text, g);
    double q = get_spread(gguf_find_tensor(g, "blk.2.attn_q.weight")) * sqrt(64);
    double down = get_spread(gguf_find_tensor(g, "blk.0.ffn_down.weight")) * sqrt(160);
    double norm = get_spread(gguf_find_tensor(g, "output_norm.weight"));
    ASSERT(fabs(q - 1) < 0.05 && fabs(down - 1) < 0.05 && fabs(norm - 1) < 0.05);
    const gguf_tensor *t = gguf_find_tensor(g, "token_embd.weight");
    size_t row = t->bytes / t->dim[1];
    for (size_t i = 1; i < t->dim[1]; i++)
        for (size_t k = 0; k < i; k++)
            ASSERT(memcmp((const char *)t->data + i * row, (const char *)t->data + k * row, row));
    ASSERT(!gguf_find_tensor(g, "blk.3.attn_q.weight"));
    PASS();
}

static int compare_texts(const void *a, const void *b) {
    const gguf_text *x = a, *y = b;
    size_t shorter = x->bytes < y->bytes ? x->bytes : y->bytes;
    int order = memcmp(x->data, y->data, shorter);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

TEST an_invented_vocabulary_has_just_so_many_tokens_and_none_twice(void) {
    const uint32_t counts[] = {SYNTH_MIN_VOCAB, 512, 1000, 49152, SYNTH_MAX_VOCAB};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        synth_vocab v;
        synth_vocab_make(&v, counts[i]);
        ASSERT_EQ(counts[i], v.count);
        ASSERT_EQ(counts[i] - SYNTH_MIN_VOCAB, v.merge_count);
        for (size_t k = 0; k < v.merge_count; k++) { /* a merge makes its token */
            gguf_text m = v.merges[k], t = v.tokens[SYNTH_MIN_VOCAB + k];
            const char *space = memchr(m.data, ' ', m.bytes);
            size_t left = (size_t)(space - m.data);
            ASSERT(m.bytes == t.bytes + 1 && memcmp(m.data, t.data, left) == 0);
            ASSERT(memcmp(space + 1, t.data + left, t.bytes - left) == 0);
        }
        qsort(v.tokens, v.count, sizeof *v.tokens, compare_texts);
        for (size_t k = 1; k < v.count; k++)
            ASSERT(compare_texts(&v.tokens[k - 1], &v.tokens[k]) != 0);
        synth_vocab_free(&v);
    }
    PASS();
}

TEST an_invented_world_vocabulary_has_the_parts_of_a_real_one(void) {
    const uint32_t counts[] = {SYNTH_WORLD_MIN + SYNTH_WORLD_PADDING, 512, 65536};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        synth_vocab v;
        synth_vocab_make_world(&v, counts[i]);
        ASSERT_EQ(counts[i], v.count);
        ASSERT_EQ(0, v.merge_count);
        ASSERT(gguf_text_equals(v.tokens[0], "<s>") && v.types[0] == 3);
        ASSERT(gguf_text_equals(v.tokens[1], "\\x00") && gguf_text_equals(v.tokens[11], "\\n"));
        ASSERT(gguf_text_equals(v.tokens[1 + '\\'], "\\\\") && v.types[1] == 1);
        for (uint32_t k = counts[i] - SYNTH_WORLD_PADDING; k < counts[i]; k++)
            ASSERT_EQ(5, v.types[k]);
        qsort(v.tokens, v.count, sizeof *v.tokens, compare_texts);
        for (size_t k = 1; k < v.count; k++)
            ASSERT(compare_texts(&v.tokens[k - 1], &v.tokens[k]) != 0);
        synth_vocab_free(&v);
    }
    PASS();
}

/* --- verbs --- */

TEST every_shape_of_the_table_is_in_the_help(void) {
    const synth_shape *s;
    ASSERT_RUN("\"$A\" model synth --help", 0);
    for (size_t i = 0; (s = synth_get_shape(i)); i++) {
        ASSERT_SAYS(s->name);
        ASSERTm(s->name, s->hidden % s->heads == 0 && s->heads % s->kv_heads == 0);
        ASSERTm(s->name, s->vocab >= SYNTH_MIN_VOCAB && s->vocab <= SYNTH_MAX_VOCAB);
    }
    PASS();
}

static enum greatest_test_res check_json(const char *bytes, size_t count, const char *expected) {
    char text[256] = "";
    FILE *out = tmpfile();
    ASSERT(out);
    json_print_text(out, bytes, count);
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = 0;
    fclose(out);
    ASSERT_STR_EQ(expected, text);
    PASS();
}

TEST any_bytes_become_a_json_string(void) {
    CHECK_CALL(check_json("plain", 5, "\"plain\""));
    CHECK_CALL(check_json("a\"\\\n\t\0\x1b", 7, "\"a\\\"\\\\\\n\\t\\u0000\\u001b\""));
    CHECK_CALL(check_json("\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80", 9,
                          "\"\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80\""));
    CHECK_CALL(check_json("\x7f\xc2\x9b", 3, "\"\\u007f\\u009b\""));
    CHECK_CALL(
        check_json("\xff\xc0\x80\xc3", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""));
    CHECK_CALL(check_json("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""));
    CHECK_CALL(
        check_json("\xf4\x90\x80\x80", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""));
    PASS();
}

SUITE(convert_suite) {
    SET_SETUP(name_files, NULL);
    SET_TEARDOWN(remove_files, NULL);
    RUN_TEST(the_bytes_of_q4_0_are_those_worked_by_hand);
    RUN_TEST(a_block_of_zeros_has_a_negative_zero_as_its_scale);
    RUN_TEST(matrices_change_and_vectors_and_norms_stay);
    RUN_TEST(only_the_head_is_an_exception);
    RUN_TEST(values_that_are_not_finite_are_refused_by_name);
    RUN_TEST(a_matrix_of_whole_blocks_gets_a_k_type);
    RUN_TEST(a_model_survives_the_way_to_f32_and_back);
    RUN_TEST(a_conversion_can_be_stopped_and_leaves_nothing);
    RUN_TEST(a_large_matrix_repeats_what_is_drawn_block_by_block);
    RUN_TEST(a_seed_gives_the_same_bytes_on_every_machine);
    RUN_TEST(random_weights_have_a_sensible_spread_and_no_row_twice);
    RUN_TEST(an_invented_vocabulary_has_just_so_many_tokens_and_none_twice);
    RUN_TEST(an_invented_world_vocabulary_has_the_parts_of_a_real_one);
    RUN_TEST(every_shape_of_the_table_is_in_the_help);
    RUN_TEST(any_bytes_become_a_json_string);
    transcript_run("convert");
}
