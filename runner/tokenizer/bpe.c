/* bpe: byte-pair encoding, see bpe.h: the tables from a file that may be wrong, the symbols of one word,
 * and the kind of vocabulary "gpt2", which cuts a text into words first.
 *
 * Text goes through code points on its way, so that bytes which are not UTF-8 come out as U+FFFD and
 * overlong forms as the short ones. A normal token may hold characters that stand for no byte: they
 * are written out as [UNK_BYTE_0xe4b8ad], so that a broken vocabulary is seen. */
#include "bpe.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "unicode.h"

#define NO_MERGE UINT32_MAX
#define END UINT32_MAX /* in previous and next: there is no neighbour */

/* Bytes that are printable by themselves are written as they are; the others, in their order, with
 * the characters from U+0100 on. */
enum { MAPPED = 0x100, LOW = 0x21, HIGH = 0x7F, HIGH_END = 0xA1, SOFT_HYPHEN = 0xAD };
enum { MAPPED_HIGH = MAPPED + LOW, MAPPED_HYPHEN = MAPPED_HIGH + HIGH_END - HIGH };

uint32_t bpe_map_byte(unsigned char byte) {
    if (byte < LOW)
        return MAPPED + (uint32_t)byte;
    if (byte >= HIGH && byte < HIGH_END)
        return MAPPED_HIGH + (uint32_t)byte - HIGH;
    return byte == SOFT_HYPHEN ? MAPPED_HYPHEN : byte;
}

int bpe_unmap_byte(uint32_t point) {
    if (point < MAPPED)
        return bpe_map_byte((unsigned char)point) == point ? (int)point : -1;
    if (point < MAPPED_HIGH)
        return (int)point - MAPPED;
    if (point < MAPPED_HYPHEN)
        return (int)point - MAPPED_HIGH + HIGH;
    return point == MAPPED_HYPHEN ? SOFT_HYPHEN : -1;
}

static size_t find_slot(const bpe *b, uint32_t left, uint32_t right) {
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    size_t mask = b->slot_count - 1, i = (size_t)(h ^ h >> 32) & mask;
    for (; b->slots[i] != NO_MERGE; i = (i + 1) & mask) {
        const bpe_merge *m = &b->merges[b->slots[i]];
        if (m->left == left && m->right == right)
            break;
    }
    return i;
}

/* The rank of a pair: its place in the list of merges, or NO_MERGE. */
static uint32_t find_merge(const bpe *b, uint32_t left, uint32_t right) {
    return b->slots[find_slot(b, left, right)];
}

static void add_bytes(bpe *b) {
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[UNICODE_BYTES];
        size_t length = unicode_encode(bpe_map_byte((unsigned char)byte), text);
        b->bytes[byte] = text_set_add_copy(&b->texts->set, (gguf_text){text, length});
    }
}

/* "A B": A may begin with a space, so the first character is never the one between. */
static bool split_merge(gguf_text merge, gguf_text *left, gguf_text *right) {
    const char *space = merge.bytes > 2 ? memchr(merge.data + 1, ' ', merge.bytes - 2) : NULL;
    if (!space)
        return false;
    *left = (gguf_text){merge.data, (size_t)(space - merge.data)};
    *right = (gguf_text){space + 1, merge.bytes - left->bytes - 1};
    return true;
}

static void add_merge(bpe *b, gguf_text left, gguf_text right, char *joined) {
    memcpy(joined, left.data, left.bytes);
    memcpy(joined + left.bytes, right.data, right.bytes);
    bpe_merge m = {
        .left = text_set_add(&b->texts->set, left),
        .right = text_set_add(&b->texts->set, right),
        .result = text_set_add_copy(&b->texts->set, (gguf_text){joined, left.bytes + right.bytes})};
    uint32_t rank = b->merge_count++;
    b->merges[rank] = m;
    size_t slot = find_slot(b, m.left, m.right);
    if (b->slots[slot] == NO_MERGE) /* else the pair came before, and that is its rank */
        b->slots[slot] = rank;
}

static bool add_merges(bpe *b, const gguf_value *merges, err *e) {
    if (merges->count > TOKEN_TEXTS_MAX)
        return err_set(e, EXIT_USAGE,
                       "tokenizer.ggml.merges has %zu merges; at most %d are possible",
                       merges->count, (int)TOKEN_TEXTS_MAX);
    size_t longest = 0;
    for (size_t i = 0; i < merges->count; i++)
        if (merges->texts[i].bytes > longest)
            longest = merges->texts[i].bytes;
    for (b->slot_count = 2; b->slot_count < 2 * merges->count;)
        b->slot_count *= 2;
    b->slots = array_new(b->slot_count, sizeof *b->slots);
    b->merges = array_new(merges->count + 1, sizeof *b->merges);
    char *joined = array_new(1, longest + 1);
    memset(b->slots, 0xFF, b->slot_count * sizeof *b->slots);
    bool ok = true;
    for (size_t i = 0; i < merges->count && ok; i++) {
        gguf_text left, right;
        char shown[48];
        ok = split_merge(merges->texts[i], &left, &right);
        if (ok)
            add_merge(b, left, right, joined);
        else
            err_set(e, EXIT_USAGE,
                    "merge %zu of tokenizer.ggml.merges is '%s', which is not two texts with a "
                    "space between them",
                    i, gguf_print_text(merges->texts[i], shown, sizeof shown));
    }
    free(joined);
    return ok;
}

bool bpe_build(bpe *b, token_texts *texts, const gguf_value *merges, bool whole_words, err *e) {
    *b = (bpe){.texts = texts, .whole_words = whole_words};
    add_bytes(b);
    return add_merges(b, merges, e);
}

void bpe_free(bpe *b) {
    free(b->merges);
    free(b->slots);
    *b = (bpe){0};
}

/* --- the symbols of one word ---
 *
 * The heap holds numbers made of the rank of a merge and the place of its left symbol, so that the
 * smallest is the merge that comes next: lowest rank, then leftmost. Entries are never taken back:
 * one is good if the pair that stands at its place now has the same rank. */

void bpe_work_free(bpe_work *w) {
    free(w->symbols);
    free(w->previous);
    free(w->next);
    free(w->heap);
    free(w->text);
    *w = (bpe_work){0};
}

static void *grow(void *array, size_t count, size_t size) {
    array = realloc(array, count * size);
    assert(array);
    return array;
}

/* A merge leaves one symbol fewer and adds at most two pairs, so 3n entries are enough. */
static void reserve(bpe_work *w, size_t bytes) {
    if (bytes <= w->capacity)
        return;
    w->capacity = bytes < 64 ? 64 : 2 * bytes;
    w->symbols = grow(w->symbols, w->capacity, sizeof *w->symbols);
    w->previous = grow(w->previous, w->capacity, sizeof *w->previous);
    w->next = grow(w->next, w->capacity, sizeof *w->next);
    w->heap = grow(w->heap, w->capacity, 3 * sizeof *w->heap);
}

static void push(bpe_work *w, uint64_t value) {
    assert(w->heap_count < 3 * w->capacity);
    size_t i = w->heap_count++;
    for (size_t up; i > 0 && w->heap[up = (i - 1) / 2] > value; i = up)
        w->heap[i] = w->heap[up];
    w->heap[i] = value;
}

static uint64_t pop(bpe_work *w) {
    uint64_t top = w->heap[0], value = w->heap[--w->heap_count];
    size_t i = 0;
    for (size_t down; (down = 2 * i + 1) < w->heap_count; i = down) {
        if (down + 1 < w->heap_count && w->heap[down + 1] < w->heap[down])
            down++;
        if (w->heap[down] >= value)
            break;
        w->heap[i] = w->heap[down];
    }
    w->heap[i] = value;
    return top;
}

/* The rank of the pair whose left symbol is at `left`. */
static uint32_t find_rank(const bpe *b, const bpe_work *w, uint32_t left) {
    if (left == END || w->symbols[left] == TEXT_NONE || w->next[left] == END)
        return NO_MERGE;
    return find_merge(b, w->symbols[left], w->symbols[w->next[left]]);
}

static void push_pair(const bpe *b, bpe_work *w, uint32_t left) {
    uint32_t rank = find_rank(b, w, left);
    if (rank != NO_MERGE)
        push(w, (uint64_t)rank << 32 | left);
}

static void start(const bpe *b, bpe_work *w, const char *word, uint32_t bytes) {
    reserve(w, bytes);
    w->heap_count = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        w->symbols[i] = b->bytes[(unsigned char)word[i]];
        w->previous[i] = i ? i - 1 : END;
        w->next[i] = i + 1 < bytes ? i + 1 : END;
    }
    for (uint32_t i = 0; i + 1 < bytes; i++)
        push_pair(b, w, i);
}

static void join(const bpe *b, bpe_work *w, uint32_t left, uint32_t rank) {
    uint32_t right = w->next[left], after = w->next[right];
    w->symbols[left] = b->merges[rank].result;
    w->symbols[right] = TEXT_NONE;
    w->next[left] = after;
    if (after != END)
        w->previous[after] = left;
    push_pair(b, w, w->previous[left]);
    push_pair(b, w, left);
}

static void emit(const bpe *b, uint32_t symbol, token_list *out) {
    if (symbol < b->texts->count) {
        token_list_add(out, symbol);
        return;
    }
    gguf_text text = b->texts->set.items[symbol];
    for (size_t i = 0; i < text.bytes; i++) {
        uint32_t token = token_texts_find(b->texts, (gguf_text){text.data + i, 1});
        if (token != TOKEN_NONE)
            token_list_add(out, token);
    }
}

/* The token that is the whole word, or TOKEN_NONE. */
static uint32_t find_whole(const bpe *b, bpe_work *w, const char *word, size_t bytes) {
    if (2 * bytes > w->text_capacity) { /* no byte is written with more than two */
        w->text_capacity = bytes < 64 ? 128 : 4 * bytes;
        w->text = grow(w->text, w->text_capacity, 1);
    }
    size_t length = 0;
    for (size_t i = 0; i < bytes; i++)
        length += unicode_encode(bpe_map_byte((unsigned char)word[i]), w->text + length);
    return token_texts_find(b->texts, (gguf_text){w->text, length});
}

void bpe_encode(const bpe *b, bpe_work *w, const char *word, size_t bytes, token_list *out) {
    assert(bytes > 0 && bytes <= TOKENIZER_TEXT_MAX);
    uint32_t whole = b->whole_words ? find_whole(b, w, word, bytes) : TOKEN_NONE;
    if (whole != TOKEN_NONE) {
        token_list_add(out, whole);
        return;
    }
    start(b, w, word, (uint32_t)bytes);
    while (w->heap_count > 0) {
        uint64_t entry = pop(w);
        uint32_t left = (uint32_t)entry, rank = (uint32_t)(entry >> 32);
        if (find_rank(b, w, left) == rank)
            join(b, w, left, rank);
    }
    for (uint32_t i = 0; i != END; i = w->next[i])
        emit(b, w->symbols[i], out);
}

/* --- words ---
 *
 * White space: a run of it leaves its last character to the word that follows, but only if one
 * does. */

static const pretokenizer all[] = {
    {.name = "smollm", .lone_numbers = true},
    {.name = "gpt-2"},
    {.name = "llama-bpe", .newer = true, .most_digits = 3, .whole_words = true, .add_bos = true},
    {.name = "qwen2", .newer = true, .most_digits = 1},
};
const char pretokenizer_names[] = "smollm, gpt-2, llama-bpe, qwen2";

const pretokenizer *pretokenizer_find(const char *name, size_t bytes) {
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i].name) == bytes && memcmp(all[i].name, name, bytes) == 0)
            return &all[i];
    return NULL;
}

/* Where a word is looked for: numbers end the text where they are words of their own. */
typedef struct {
    const code_points *text;
    bool stop_at_numbers;
} view;

static bool is_inside(const view *v, size_t i) {
    return i < v->text->count && !(v->stop_at_numbers && v->text->classes[i] == UNICODE_NUMBER);
}

static bool is_class(const view *v, size_t i, unicode_class c) {
    return is_inside(v, i) && v->text->classes[i] == c;
}

/* The code point at i; past the end one that no rule matches. */
static uint32_t get_point(const view *v, size_t i) {
    return is_inside(v, i) ? v->text->points[i] : UNICODE_LAST;
}

static size_t skip_class(const view *v, size_t i, unicode_class c) {
    while (is_class(v, i, c))
        i++;
    return i;
}

static bool is_line_end(uint32_t point) {
    return point == '\r' || point == '\n';
}

static uint32_t to_lower(uint32_t point) {
    return point >= 'A' && point <= 'Z' ? point + ('a' - 'A') : point;
}

/* The end of 's 't 'm 'd 're 've 'll at `at`, or `at` where there is none. */
static size_t find_contraction(const view *v, size_t at, bool any_case) {
    if (get_point(v, at) != '\'')
        return at;
    uint32_t a = get_point(v, at + 1), b = get_point(v, at + 2);
    if (any_case) {
        a = to_lower(a);
        b = to_lower(b);
    }
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return at + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return at + 3;
    return at;
}

/* `at` is white space. */
static size_t find_space_end(const view *v, size_t at) {
    size_t end = skip_class(v, at, UNICODE_SPACE);
    return end - at > 1 && is_inside(v, end) ? end - 1 : end;
}

static size_t find_gpt2(const view *v, size_t at) {
    size_t end = find_contraction(v, at, false);
    if (end > at)
        return end;
    size_t from = at + (get_point(v, at) == ' ');
    if (is_inside(v, from) && v->text->classes[from] != UNICODE_SPACE)
        return skip_class(v, from, (unicode_class)v->text->classes[from]);
    return find_space_end(v, at);
}

/* `at` is white space: up to the last line end of the run, if there is one in it. */
static size_t find_newer_space_end(const view *v, size_t at) {
    size_t last = at;
    for (size_t i = at; is_class(v, i, UNICODE_SPACE); i++)
        if (is_line_end(get_point(v, i)))
            last = i + 1;
    return last > at ? last : find_space_end(v, at);
}

static size_t find_newer(const view *v, size_t at, size_t most_digits) {
    size_t end = find_contraction(v, at, true);
    if (end > at)
        return end;
    uint32_t point = get_point(v, at);
    bool number = is_class(v, at, UNICODE_NUMBER);
    if (!is_line_end(point) && !number &&
        (is_class(v, at, UNICODE_LETTER) || is_class(v, at + 1, UNICODE_LETTER)))
        return skip_class(v, at + 1, UNICODE_LETTER);
    if (number) {
        for (end = at + 1; end - at < most_digits && is_class(v, end, UNICODE_NUMBER);)
            end++;
        return end;
    }
    size_t from = at + (point == ' ');
    if (is_class(v, from, UNICODE_OTHER)) {
        end = skip_class(v, from, UNICODE_OTHER);
        while (is_line_end(get_point(v, end)))
            end++;
        return end;
    }
    return find_newer_space_end(v, at);
}

size_t pretokenizer_find_end(const pretokenizer *p, const code_points *text, size_t at) {
    assert(at < text->count);
    view v = {text, p->lone_numbers};
    if (!is_inside(&v, at))
        return at + 1;
    return p->newer ? find_newer(&v, at, p->most_digits) : find_gpt2(&v, at);
}

/* --- the kind of vocabulary --- */

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
    *w = (work){.points = array_new(bytes, sizeof *w->points),
                .classes = array_new(bytes, 1),
                .word = array_new(bytes, UNICODE_BYTES)};
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
