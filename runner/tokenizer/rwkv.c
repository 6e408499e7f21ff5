/* tokenizer/rwkv: the World vocabulary of RWKV models, see vocabulary.h: at every place the
 * longest token that the text goes on with. No words, no merges, any bytes.
 *
 * The file writes the bytes of a token as Python writes a literal, without the quotes. The
 * tokens are sorted by their bytes, which is a trie without nodes: those that begin with the
 * same bytes are neighbours, the shortest first. Only normal tokens are in it, so that text
 * which looks like a control or padding token stays text. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "vocabulary.h"

typedef struct {
    gguf_text bytes;
    uint32_t id;
} entry;

typedef struct {
    entry *entries; /* sorted; no two have the same bytes */
    size_t count;
    size_t first[257]; /* where those that begin with a byte begin */
    char *pool;
    uint32_t unknown; /* for a byte that no token begins with; TOKEN_NONE: it is left out */
} world;

/* --- the bytes of a token --- */

static int read_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* \t, \n, \r and \xhh; before any other character a backslash means that character. Returns how
 * many characters of the text it took. */
static size_t read_escape(const char *text, size_t bytes, char *out) {
    static const char names[] = "tnr", values[] = "\t\n\r";
    const char *name = bytes > 1 ? memchr(names, text[1], sizeof names - 1) : NULL;
    int high = bytes > 3 ? read_digit(text[2]) : -1, low = bytes > 3 ? read_digit(text[3]) : -1;
    if (name) {
        *out = values[name - names];
        return 2;
    }
    if (bytes > 3 && text[1] == 'x' && high >= 0 && low >= 0) {
        *out = (char)(high << 4 | low);
        return 4;
    }
    *out = bytes > 1 ? text[1] : text[0];
    return bytes > 1 ? 2 : 1;
}

static size_t unescape(gguf_text text, char *out) {
    size_t count = 0;
    for (size_t i = 0; i < text.bytes; count++) {
        char byte = text.data[i];
        i += byte == '\\' ? read_escape(text.data + i, text.bytes - i, &byte) : 1;
        if (out)
            out[count] = byte;
    }
    return count;
}

/* --- the table --- */

static int compare_bytes(gguf_text a, gguf_text b) {
    size_t shorter = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = memcmp(a.data, b.data, shorter);
    return order ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static int compare_entries(const void *left, const void *right) {
    const entry *a = left, *b = right;
    int order = compare_bytes(a->bytes, b->bytes);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

static void collect(world *w, const token_texts *texts, const special_tokens *s) {
    size_t total = 0;
    for (uint32_t id = 0; id < texts->count; id++)
        total += unescape(token_texts_get(texts, id), NULL);
    w->pool = array_new(1, total + 1);
    w->entries = array_new(texts->count + 1, sizeof *w->entries);
    char *at = w->pool;
    for (uint32_t id = 0; id < texts->count; id++) {
        if (!(s->kinds[id] & KIND_NORMAL))
            continue;
        size_t bytes = unescape(token_texts_get(texts, id), at);
        if (bytes > 0)
            w->entries[w->count++] = (entry){{at, bytes}, id};
        at += bytes;
    }
}

/* Of two ways to write the same bytes the later token counts, as in llama.cpp. */
static void sort(world *w) {
    size_t kept = 0, i = 0;
    qsort(w->entries, w->count, sizeof *w->entries, compare_entries);
    for (size_t k = 0; k < w->count; k++)
        if (k + 1 == w->count || compare_bytes(w->entries[k].bytes, w->entries[k + 1].bytes) != 0)
            w->entries[kept++] = w->entries[k];
    w->count = kept;
    for (int byte = 0; byte <= 256; byte++) {
        while (i < w->count && (unsigned char)w->entries[i].bytes.data[0] < byte)
            i++;
        w->first[byte] = i;
    }
}

static void close_world(void *own) {
    world *w = own;
    free(w->entries);
    free(w->pool);
    free(w);
}

static void *open_world(const gguf *g, token_texts *texts, const special_tokens *s,
                        special_defaults *defaults, err *e) {
    world *w = array_new(1, sizeof *w);
    bool found;
    w->unknown = TOKEN_NONE;
    *defaults = (special_defaults){0, 0, false}; /* token 0 ends a text */
    if (!gguf_get_u32(g, "tokenizer.ggml.unknown_token_id", &w->unknown, &found, e)) {
        close_world(w);
        return NULL;
    }
    if (w->unknown >= texts->count)
        w->unknown = TOKEN_NONE;
    collect(w, texts, s);
    sort(w);
    return w;
}

/* --- text to tokens --- */

/* The first of entries from low to high whose byte at `depth` is `byte` or more. All of them are at
 * least so long, except that the first may end before it. */
static size_t find_byte(const world *w, size_t low, size_t high, size_t depth, unsigned byte) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        gguf_text t = w->entries[middle].bytes;
        if (t.bytes <= depth || (unsigned char)t.data[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest entry that the text begins with; NULL: none. */
static const entry *match(const world *w, const char *text, size_t bytes) {
    const entry *best = NULL;
    size_t low = w->first[(unsigned char)text[0]], high = w->first[(unsigned char)text[0] + 1];
    for (size_t depth = 1; low < high; depth++) {
        if (w->entries[low].bytes.bytes == depth)
            best = &w->entries[low];
        if (depth == bytes)
            break;
        unsigned byte = (unsigned char)text[depth];
        low = find_byte(w, low, high, depth, byte);
        high = find_byte(w, low, high, depth, byte + 1);
    }
    return best;
}

static void encode(const void *own, const char *text, size_t bytes, bool exact, token_list *out) {
    const world *w = own;
    (void)exact; /* bytes are always as they are */
    for (size_t at = 0; at < bytes;) {
        const entry *found = match(w, text + at, bytes - at);
        if (found)
            token_list_add(out, found->id);
        else if (w->unknown != TOKEN_NONE)
            token_list_add(out, w->unknown);
        at += found ? found->bytes.bytes : 1;
    }
}

const tokenizer_kind tokenizer_rwkv = {.model = "rwkv",
                                       .about = "the World vocabulary of RWKV",
                                       .open = open_world,
                                       .close = close_world,
                                       .encode = encode,
                                       .spell = unescape};
