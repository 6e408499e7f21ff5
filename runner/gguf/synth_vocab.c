/* synth_vocab: an invented vocabulary that any bytes can be written with; see synth.h.
 *
 * Two letters make a token, and two of those make one of four: as all are of one length, no two
 * merges make the same token. Frequent letters are merged first, so English comes out shorter. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/size.h"
#include "runner/tokenizer/bpe.h"
#include "runner/tokenizer/unicode.h"
#include "synth.h"

enum { LETTERS = 26, FIRSTS = LETTERS + 1, PAIRS = FIRSTS * LETTERS };
enum { TOKEN_ROOM = 8, MERGE_ROOM = 2 * TOKEN_ROOM + 1 }; /* bytes; a symbol has at most two */

static const char letters[] = " etaoinshrdlcumwfgypbvkjxqz"; /* a space can only be the first */

static char *put_byte(char *at, unsigned byte) {
    return at + unicode_encode(bpe_map_byte((unsigned char)byte), at);
}

static char *put_text(char *at, gguf_text text) {
    memcpy(at, text.data, text.bytes);
    return at + text.bytes;
}

/* Cell k of a table of rows and columns that is walked along its diagonals: (0, 0), (0, 1), (1, 0),
 * (0, 2), ... */
static void find_cell(size_t k, size_t rows, size_t columns, size_t *row, size_t *column) {
    for (size_t sum = 0;; sum++) {
        size_t first = sum < columns ? 0 : sum - columns + 1, last = sum < rows ? sum : rows - 1;
        assert(first <= last);
        if (k <= last - first) {
            *row = first + k;
            *column = sum - *row;
            return;
        }
        k -= last - first + 1;
    }
}

/* Byte tokens are in the order of their characters. */
static void add_bytes(synth_vocab *v, char **at) {
    for (int round = 0; round < 2; round++)
        for (unsigned byte = 0; byte < 256; byte++) {
            bool is_moved = bpe_map_byte((unsigned char)byte) != byte;
            if (is_moved != (round > 0))
                continue;
            char *start = *at;
            *at = put_byte(*at, byte);
            v->types[v->count] = 1;
            v->tokens[v->count++] = (gguf_text){start, (size_t)(*at - start)};
        }
}

static void add_merge(synth_vocab *v, gguf_text a, gguf_text b, char **at) {
    char *start = *at;
    *at = put_text(*at, a);
    *(*at)++ = ' ';
    *at = put_text(*at, b);
    v->merges[v->merge_count++] = (gguf_text){start, (size_t)(*at - start)};
    start = *at;
    *at = put_text(put_text(start, a), b);
    v->types[v->count] = 1;
    v->tokens[v->count++] = (gguf_text){start, (size_t)(*at - start)};
}

static void add_merges(synth_vocab *v, size_t count, char **at) {
    gguf_text symbols[FIRSTS], pairs[PAIRS], seconds[PAIRS];
    char written[FIRSTS][UNICODE_BYTES];
    size_t inner = 0, i, j;
    for (i = 0; i < FIRSTS; i++) {
        char *end = put_byte(written[i], (unsigned char)letters[i]);
        symbols[i] = (gguf_text){written[i], (size_t)(end - written[i])};
    }
    for (size_t k = 0; v->count < count && k < PAIRS; k++) {
        find_cell(k, FIRSTS, LETTERS, &i, &j);
        add_merge(v, symbols[i], symbols[1 + j], at);
        pairs[k] = v->tokens[v->count - 1];
        if (i > 0)
            seconds[inner++] = pairs[k];
    }
    for (size_t k = 0; v->count < count; k++) {
        find_cell(k, PAIRS, inner, &i, &j);
        add_merge(v, pairs[i], seconds[j], at);
    }
}

/* Room for `count` tokens and merges. */
static bool make_room(synth_vocab *v, uint32_t count, err *e) {
    *v = (synth_vocab){.count = 0};
    v->tokens = calloc(count, sizeof *v->tokens);
    v->merges = calloc(count, sizeof *v->merges);
    v->types = calloc(count, sizeof *v->types);
    v->letters = malloc(size_multiply(count, TOKEN_ROOM + MERGE_ROOM));
    if (!v->tokens || !v->merges || !v->types || !v->letters) {
        synth_vocab_free(v);
        return err_set(e, EXIT_CANNOT, "no memory for a vocabulary of %u tokens", count);
    }
    return true;
}

bool synth_vocab_make(synth_vocab *v, uint32_t count, err *e) {
    static const char *const specials[SYNTH_SPECIALS] = {"<|endoftext|>", "<|im_start|>",
                                                         "<|im_end|>"};
    assert(count >= SYNTH_MIN_VOCAB && count <= SYNTH_MAX_VOCAB);
    if (!make_room(v, count, e))
        return false;
    for (; v->count < SYNTH_SPECIALS; v->count++) {
        v->tokens[v->count] = gguf_to_text(specials[v->count]);
        v->types[v->count] = 3; /* control */
    }
    char *at = v->letters;
    add_bytes(v, &at);
    add_merges(v, count, &at);
    return true;
}

/* --- a World vocabulary --- */

static void add_world(synth_vocab *v, int32_t type, char *at, int bytes) {
    v->types[v->count] = type;
    v->tokens[v->count++] = (gguf_text){at, (size_t)bytes};
}

/* As Python writes bytes. */
static int print_byte(char *at, unsigned byte) {
    switch (byte) {
    case '\t':
        return sprintf(at, "\\t");
    case '\n':
        return sprintf(at, "\\n");
    case '\r':
        return sprintf(at, "\\r");
    case '\\':
        return sprintf(at, "\\\\");
    default:
        return byte >= ' ' && byte <= '~' ? sprintf(at, "%c", (int)byte)
                                          : sprintf(at, "\\x%02x", byte);
    }
}

bool synth_vocab_make_world(synth_vocab *v, uint32_t count, err *e) {
    assert(count >= SYNTH_WORLD_MIN + SYNTH_WORLD_PADDING && count <= SYNTH_MAX_VOCAB);
    if (!make_room(v, count, e))
        return false;
    char *at = v->letters, pairs[PAIRS][2], seconds[PAIRS][2];
    size_t words = count - SYNTH_WORLD_MIN - SYNTH_WORLD_PADDING, inner = 0, i, j;
    int bytes = sprintf(at, "<s>");
    add_world(v, 3, at, bytes);
    at += bytes;
    for (unsigned byte = 0; byte < 256; byte++, at += bytes)
        add_world(v, 1, at, bytes = print_byte(at, byte));
    for (size_t k = 0; k < PAIRS; k++) {
        find_cell(k, FIRSTS, LETTERS, &i, &j);
        memcpy(pairs[k], (char[2]){letters[i], letters[1 + j]}, 2);
        if (i > 0)
            memcpy(seconds[inner++], pairs[k], 2);
    }
    for (size_t k = 0; k < words; k++, at += bytes) {
        bytes = k < PAIRS ? 2 : 4;
        if (k >= PAIRS)
            find_cell(k - PAIRS, PAIRS, inner, &i, &j);
        memcpy(at, pairs[k < PAIRS ? k : i], 2);
        if (k >= PAIRS)
            memcpy(at + 2, seconds[j], 2);
        add_world(v, 1, at, bytes);
    }
    for (; v->count < count; at += bytes)
        add_world(v, 5, at, bytes = sprintf(at, "[PAD%zu]", v->count));
    return true;
}

void synth_vocab_free(synth_vocab *v) {
    free(v->tokens);
    free(v->merges);
    free(v->types);
    free(v->letters);
    *v = (synth_vocab){.count = 0};
}
