/* fuzz_gguf: feeds arbitrary files to the model reader, its tokenizer and `model info`.
 *
 * Built with libFuzzer (make fuzz), the fuzzer supplies the files. Built without, it has a main of
 * its own: `fuzz_gguf FILE...` replays files, such as one that crashed, and `fuzz_gguf --seeds
 * FOLDER` writes the files that the fuzzer starts from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/open_model.h"
#include "craft.h"
#include "harness/base/os.h"
#include "runner/gguf/convert.h"
#include "runner/gguf/synth.h"
#include "runner/gguf/write.h"
#include "runner/model/model.h"
#include "runner/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Read, so that a sanitizer sees accesses outside; kept, so that the reads are not removed. */
static volatile unsigned sum;

static void touch(const void *data, size_t bytes) {
    const uint8_t *p = data;
    if (bytes > 0)
        sum += (unsigned)p[0] + (unsigned)p[bytes - 1];
}

static void touch_values(const gguf *g) {
    for (size_t i = 0; i < g->value_count; i++) {
        const gguf_value *v = &g->values[i];
        touch(v->key.data, v->key.bytes);
        touch(v->data, v->bytes);
        for (size_t k = 0; k < v->count; k++) {
            if (v->texts)
                touch(v->texts[k].data, v->texts[k].bytes);
            else
                sum += gguf_value_get_number(v, k) > 0;
        }
    }
}

static void touch_tensors(const gguf *g) {
    convert_options o = {.type = gguf_find_format(&format_q4_0)};
    for (size_t i = 0; i < g->tensor_count; i++) {
        const gguf_tensor *t = &g->tensors[i];
        touch(t->data, t->bytes);
        if (gguf_find_tensor(g, t->name) != t || t->offset + t->bytes > g->bytes)
            abort();
        sum += convert_choose_type(g, t, &o) == t->type;
    }
}

/* The file itself is the text, from its end, where tests and fuzzers put things. */
static void touch_tokenizer(const gguf *g) {
    err e;
    tokenizer *t = tokenizer_new(g, &e);
    if (!t)
        return;
    size_t bytes = g->bytes < 200 ? g->bytes : 200;
    token_list ids = {0};
    tokenizer_encode(t, (const char *)g->map + g->bytes - bytes, bytes,
                     TOKENIZE_ADD_SPECIAL | TOKENIZE_PARSE_SPECIAL, &ids);
    for (size_t i = 0; i < ids.count; i++)
        if (ids.items[i] >= tokenizer_get_count(t))
            abort();
    token_list_free(&ids);
    for (uint32_t id = 0; id < tokenizer_get_count(t); id++) {
        gguf_text piece = tokenizer_get_piece(t, id, true);
        touch(piece.data, piece.bytes);
        sum += tokenizer_is_end(t, id);
    }
    tokenizer_free(t);
}

static void touch_facts(const gguf *g) {
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    if (nowhere)
        model_info_print_json(nowhere, g, true, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static err e;
    gguf *g = gguf_read(data, bytes, "fuzz", &e);
    if (!g) {
        if (e.code != EXIT_USAGE || !e.text[0])
            abort();
        return 0;
    }
    model_shape shape_read;
    touch_values(g);
    touch_tensors(g);
    touch_tokenizer(g);
    sum += model_read_shape(g, &shape_read, &e) && model_check_file(g, &e);
    touch_facts(g);
    gguf_free(g);
    return 0;
}

#if !defined(ASSAY_LIBFUZZER)

static bool write_seed(const char *folder, const char *name, size_t number, const void *data,
                       size_t bytes, err *e) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s-%zu", folder, name, number);
    return os_write_file(path, data, bytes, e);
}

/* The same small model with each pre-tokenizer's name in its metadata. */
static bool write_vocabularies(const char *folder, const gguf *g, err *e) {
    static const char *const names[] = {"smollm", "gpt-2", "llama-bpe", "qwen2", "default"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/vocabulary-%zu", folder, i);
        gguf_writer *w = gguf_writer_new(path, e);
        if (!w)
            return false;
        for (size_t k = 0; k < g->value_count; k++)
            if (gguf_text_equals(g->values[k].key, "tokenizer.ggml.pre"))
                gguf_writer_add_text(w, "tokenizer.ggml.pre",
                                     (gguf_text){names[i], strlen(names[i])});
            else
                gguf_writer_add_copy(w, &g->values[k]);
        bool ok = gguf_writer_finish_header(w, e) && gguf_writer_finish(w, e);
        gguf_writer_free(w);
        if (!ok)
            return false;
    }
    return true;
}

static bool write_models(const char *folder, err *e) {
    const synth_shape small = {"small", "", 1, 32, 2, 1, 32, 270, 64, 1e-5f, 1e4f, true, {0}};
    synth_options o = {.seed = 1, .type = gguf_find_format(&format_q4_0)};
    char path[1024];
    snprintf(path, sizeof path, "%s/model", folder);
    if (!synth_write_model(&small, path, &o, e))
        return false;
    const synth_shape recurrent = {"recurrent", "", 1,     64,   1,     1,           64,
                                   270,         64, 1e-5f, 1e4f, false, {8, 8, 8, 8}};
    char other[1024];
    snprintf(other, sizeof other, "%s/rwkv7", folder);
    if (!synth_write_model(&recurrent, other, &o, e))
        return false;
    gguf *g = gguf_open(path, e);
    bool ok = g && write_vocabularies(folder, g, e);
    gguf_free(g);
    return ok;
}

static bool write_seeds(const char *folder, err *e) {
    static crafted file;
    const craft_case *c;
    if (!os_make_folder(folder, e))
        return false;
    for (uint32_t version = 2; version <= 3; version++) {
        craft_valid(&file, version);
        if (!write_seed(folder, "valid", version, file.data, file.bytes, e))
            return false;
    }
    for (size_t i = 0; (c = craft_get_wrong(i)); i++) {
        c->make(&file);
        if (!write_seed(folder, "wrong", i, file.data, file.bytes, e))
            return false;
    }
    return write_models(folder, e);
}

int main(int argc, char **argv) {
    static err e;
    if (argc == 3 && strcmp(argv[1], "--seeds") == 0) {
        if (!write_seeds(argv[2], &e))
            fprintf(stderr, "fuzz_gguf: %s\n", e.text);
        return (int)e.code;
    }
    for (int i = 1; i < argc; i++) {
        size_t bytes;
        char *text = os_read_file(argv[i], &bytes, &e);
        uint8_t *data =
            text ? malloc(bytes ? bytes : 1) : NULL; /* exactly as many: no NUL after them */
        if (!data) {
            fprintf(stderr, "fuzz_gguf: %s\n", text ? "no memory" : e.text);
            return EXIT_USAGE;
        }
        memcpy(data, text, bytes);
        LLVMFuzzerTestOneInput(data, bytes);
        printf("%s: no crash\n", argv[i]);
        free(data);
        free(text);
    }
    return EXIT_OK;
}

#endif
