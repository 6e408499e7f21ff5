/* tokenizer/gpt2: byte-level BPE, see kind.h: pretokenize cuts a text into words, bpe encodes
 * a word.
 *
 * Text goes through code points on its way, so that bytes which are not UTF-8 come out as U+FFFD and
 * overlong forms as the short ones. A normal token may hold characters that stand for no byte: they
 * are written out as [UNK_BYTE_0xe4b8ad], so that a broken vocabulary is seen. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe.h"
#include "harness/base/array.h"
#include "kind.h"
#include "pretokenize.h"
#include "unicode.h"

enum { DEFAULT_BOS_EOS = 11 }; /* what such a vocabulary means when it does not say */

typedef struct {
    bpe b;
    const pretokenizer *pre;
} gpt2;

static bool read_pre(const gguf *g, const pretokenizer **pre, err *e) {
    gguf_text name = {"", 0};
    bool found;
    char shown[48];
    if (!gguf_get_text(g, "tokenizer.ggml.pre", &name, &found, e))
        return false;
    if (!found)
        return err_set(
            e, EXIT_USAGE,
            "tokenizer.ggml.pre is missing, so nothing says how words are cut (supported: "
            "%s)",
            pretokenizer_names);
    *pre = pretokenizer_find(name.data, name.bytes);
    return *pre || err_set(e, EXIT_USAGE, "tokenizer.ggml.pre is '%s' (supported: %s)",
                           gguf_print_text(name, shown, sizeof shown), pretokenizer_names);
}

static void close_gpt2(void *own) {
    gpt2 *t = own;
    bpe_free(&t->b);
    free(t);
}

static void *open_gpt2(const gguf *g, token_texts *texts, const special_tokens *s,
                       special_defaults *defaults, err *e) {
    (void)s;
    gpt2 *t = array_new(1, sizeof *t);
    const gguf_value *merges;
    if (read_pre(g, &t->pre, e) &&
        (merges = token_texts_find_array(g, "tokenizer.ggml.merges", e)) &&
        bpe_build(&t->b, texts, merges, t->pre->whole_words, e)) {
        *defaults = (special_defaults){DEFAULT_BOS_EOS, DEFAULT_BOS_EOS, t->pre->add_bos};
        return t;
    }
    close_gpt2(t);
    return NULL;
}

/* --- text to tokens --- */

/* Room that the words of a text share. */
typedef struct {
    uint32_t *points;
    uint8_t *classes;
    char *word;
    bpe_work bpe;
} work;

static void work_init(work *w, size_t bytes) {
    *w = (work){.points = malloc(bytes * sizeof *w->points),
                .classes = malloc(bytes),
                .word = malloc(bytes * UNICODE_BYTES)};
    assert(w->points && w->classes && w->word);
}

static void work_free(work *w) {
    free(w->points);
    free(w->classes);
    free(w->word);
    bpe_work_free(&w->bpe);
}

static code_points decode(work *w, const char *text, size_t bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes; count++) {
        i += unicode_decode(text + i, bytes - i, &w->points[count]);
        w->classes[count] = (uint8_t)unicode_get_class(w->points[count]);
    }
    return (code_points){w->points, w->classes, count};
}

/* A word as code points again, which replaces what is not UTF-8, or as the bytes it was. */
static void encode_words(const gpt2 *t, work *w, const char *text, size_t bytes, bool exact,
                         token_list *out) {
    code_points points = decode(w, text, bytes);
    size_t read = 0; /* bytes of the text that the words so far took */
    for (size_t at = 0, end; at < points.count; at = end) {
        size_t length = 0, begin = read;
        uint32_t ignored;
        end = pretokenizer_find_end(t->pre, &points, at);
        for (size_t i = at; i < end; i++) {
            length += unicode_encode(points.points[i], w->word + length);
            read += unicode_decode(text + read, bytes - read, &ignored);
        }
        if (exact)
            bpe_encode(&t->b, &w->bpe, text + begin, read - begin, out);
        else
            bpe_encode(&t->b, &w->bpe, w->word, length, out);
    }
}

static void encode(const void *own, const char *text, size_t bytes, bool exact, token_list *out) {
    work w;
    work_init(&w, bytes);
    encode_words(own, &w, text, bytes, exact, out);
    work_free(&w);
}

/* --- tokens to text --- */

enum { UNKNOWN_ROOM = 32 };

static size_t print_unknown(uint32_t point, char out[UNKNOWN_ROOM]) {
    char utf8[UNICODE_BYTES];
    size_t bytes = unicode_encode(point, utf8);
    int length = snprintf(out, UNKNOWN_ROOM, "[UNK_BYTE_0x");
    for (size_t i = 0; i < bytes; i++)
        length += snprintf(out + length, UNKNOWN_ROOM - (size_t)length, "%02x",
                           (unsigned)(unsigned char)utf8[i]);
    length += snprintf(out + length, UNKNOWN_ROOM - (size_t)length, "]");
    return (size_t)length;
}

/* The bytes of a normal token into out (NULL: they are only counted). */
static size_t unmap_text(gguf_text text, char *out) {
    size_t count = 0;
    for (size_t i = 0; i < text.bytes;) {
        uint32_t point;
        char unknown[UNKNOWN_ROOM];
        i += unicode_decode(text.data + i, text.bytes - i, &point);
        int byte = bpe_unmap_byte(point);
        size_t length = byte < 0 ? print_unknown(point, unknown) : 1;
        if (out && byte < 0)
            memcpy(out + count, unknown, length);
        else if (out)
            out[count] = (char)byte;
        count += length;
    }
    return count;
}

const tokenizer_kind tokenizer_gpt2 = {.model = "gpt2",
                                       .about = "byte-level BPE",
                                       .open = open_gpt2,
                                       .close = close_gpt2,
                                       .encode = encode,
                                       .spell = unmap_text};
