/* vocabulary: see vocabulary.h. The tables list what is in use. */
#include "vocabulary.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

/* --- the texts of tokens --- */

const gguf_value *token_texts_find_array(const gguf *g, const char *key, err *e) {
    const gguf_value *v = gguf_find_value(g, key);
    if (!v)
        err_set(e, EXIT_USAGE, "%s is missing: the file has no vocabulary to tokenize with", key);
    else if (v->type != GGUF_ARRAY || v->element != GGUF_STRING)
        err_set(e, EXIT_USAGE, "%s is not an array of strings", key);
    else
        return v;
    return NULL;
}

/* A token without a text is written [EMPTY_7], so that every token has a text of its own. */
bool token_texts_read(token_texts *t, const gguf *g, err *e) {
    const gguf_value *tokens = token_texts_find_array(g, "tokenizer.ggml.tokens", e);
    if (!tokens)
        return false;
    if (tokens->count == 0 || tokens->count > TOKEN_TEXTS_MAX)
        return err_set(e, EXIT_USAGE, "tokenizer.ggml.tokens has %zu tokens; 1 to %d are possible",
                       tokens->count, (int)TOKEN_TEXTS_MAX);
    for (uint32_t id = 0; id < tokens->count; id++) {
        gguf_text text = tokens->texts[id];
        char empty[24], shown[48];
        int length = snprintf(empty, sizeof empty, "[EMPTY_%" PRIu32 "]", id);
        uint32_t number = text.bytes > 0
                              ? text_set_add(&t->set, text)
                              : text_set_add_copy(&t->set, (gguf_text){empty, (size_t)length});
        if (number != id)
            return err_set(e, EXIT_USAGE,
                           "tokens %" PRIu32 " and %" PRIu32 " of tokenizer.ggml.tokens are both "
                           "'%s'; no two may be the same",
                           number, id, gguf_print_text(t->set.items[number], shown, sizeof shown));
    }
    t->count = (uint32_t)tokens->count;
    return true;
}

void token_texts_free(token_texts *t) {
    text_set_free(&t->set);
    t->count = 0;
}

gguf_text token_texts_get(const token_texts *t, uint32_t id) {
    assert(id < t->count);
    return t->set.items[id];
}

uint32_t token_texts_find(const token_texts *t, gguf_text text) {
    uint32_t number = text_set_find(&t->set, text);
    return number < t->count ? number : TOKEN_NONE;
}

/* --- special tokens --- */

/* Tokens that end a turn or a text, by their text. */
static const char *const ends[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "[e~[",
    "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>",
};

/* Roles of which a vocabulary has one token: the file names it, or it has one of these texts. */
typedef struct {
    const char *key;
    bool is_end;
    const char *texts[8];
} role;

#define WIDE_FIM(name) "<\357\275\234fim\342\226\201" name "\357\275\234>"
static const role roles[] = {
    {"tokenizer.ggml.eot_token_id", true, {NULL}}, /* its texts are all in `ends` */
    {"tokenizer.ggml.eom_token_id", true, {NULL}},
    {"tokenizer.ggml.fim_pad_token_id",
     true,
     {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {"tokenizer.ggml.fim_rep_token_id",
     true,
     {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {"tokenizer.ggml.fim_sep_token_id", true, {"<|file_sep|>"}},
    {"tokenizer.ggml.fim_pre_token_id",
     false,
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", WIDE_FIM("begin"), "<PRE>",
      "\342\226\201<PRE>", "<|code_prefix|>", "<|prefix|>"}},
    {"tokenizer.ggml.fim_suf_token_id",
     false,
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", WIDE_FIM("hole"), "<SUF>",
      "\342\226\201<SUF>", "<|code_suffix|>", "<|suffix|>"}},
    {"tokenizer.ggml.fim_mid_token_id",
     false,
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", WIDE_FIM("end"), "<MID>",
      "\342\226\201<MID>", "<|code_middle|>", "<|middle|>"}},
};

/* Shown to the reader although the file calls them control tokens. */
static const char *const visible[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static uint32_t find(const token_texts *t, const char *text) {
    return token_texts_find(t, gguf_to_text(text));
}

static bool is_end(const special_tokens *s, uint32_t id) {
    return id != TOKEN_NONE && (s->kinds[id] & KIND_END);
}

/* An id that the file gives for a role. One that is not a token is ignored. */
static bool read_id(const gguf *g, const token_texts *t, const char *key, uint32_t *id, err *e) {
    bool found;
    uint32_t given = 0;
    if (*id >= t->count)
        *id = TOKEN_NONE;
    if (!gguf_get_u32(g, key, &given, &found, e))
        return false;
    if (found && given < t->count)
        *id = given;
    return true;
}

bool special_read_kinds(special_tokens *s, const gguf *g, const token_texts *t, err *e) {
    static const char key[] = "tokenizer.ggml.token_type";
    static const uint8_t kinds[] = {
        0,         KIND_NORMAL, KIND_UNKNOWN, KIND_CONTROL,
        KIND_USER, 0,           KIND_BYTE}; /* 5 is a token that is never used */
    s->kinds = array_new(1, t->count);
    memset(s->kinds, KIND_NORMAL, t->count);
    const gguf_value *v = gguf_find_value(g, key);
    if (!v)
        return true;
    if (v->type != GGUF_ARRAY || v->element != GGUF_I32)
        return err_set(e, EXIT_USAGE, "%s is not an array of 32-bit integers", key);
    if (v->count < t->count)
        return err_set(e, EXIT_USAGE, "%s has %zu entries for %" PRIu32 " tokens", key, v->count,
                       t->count);
    for (uint32_t id = 0; id < t->count; id++) {
        int64_t type = gguf_value_get_integer(v, id);
        s->kinds[id] = type >= 0 && type < (int64_t)COUNT(kinds) ? kinds[type] : 0;
    }
    return true;
}

static bool read_roles(special_tokens *s, const gguf *g, const token_texts *t, err *e) {
    for (size_t r = 0; r < COUNT(roles); r++) {
        uint32_t id = TOKEN_NONE;
        if (!read_id(g, t, roles[r].key, &id, e))
            return false;
        uint8_t kind = roles[r].is_end ? KIND_END : 0;
        for (size_t i = 0; id == TOKEN_NONE && i < COUNT(roles[r].texts) && roles[r].texts[i];
             i++) {
            id = find(t, roles[r].texts[i]);
            if (id != TOKEN_NONE)
                kind |= KIND_CONTROL;
        }
        if (id != TOKEN_NONE)
            s->kinds[id] |= kind;
    }
    return true;
}

static void mark_ends(special_tokens *s, const token_texts *t) {
    for (size_t i = 0; i < COUNT(ends); i++) {
        uint32_t id = find(t, ends[i]);
        if (id != TOKEN_NONE)
            s->kinds[id] |= KIND_CONTROL | KIND_END;
    }
    for (size_t i = 0; i < COUNT(visible); i++) {
        uint32_t id = find(t, visible[i]);
        if (id != TOKEN_NONE)
            s->kinds[id] = (uint8_t)(KIND_USER | (s->kinds[id] & KIND_END));
    }
    if (s->eos != TOKEN_NONE)
        s->kinds[s->eos] |= KIND_END;
}

/* In some vocabularies a text of the list does not end anything, as its neighbours tell. */
static void unmark_ends(special_tokens *s, const token_texts *t) {
    bool call = is_end(s, find(t, "<|call|>")) || is_end(s, find(t, "<|calls|>"));
    bool other = is_end(s, find(t, "<|return|>")) || is_end(s, find(t, "<|flush|>"));
    uint32_t end = find(t, "<|end|>"), sentence = find(t, "</s>");
    if (call && other && is_end(s, end))
        s->kinds[end] = KIND_USER;
    if (is_end(s, find(t, "<|tool_response>")) && is_end(s, sentence))
        s->kinds[sentence] = KIND_NORMAL;
}

bool special_read(special_tokens *s, const gguf *g, const token_texts *t,
                  const special_defaults *defaults, err *e) {
    bool found;
    s->bos = defaults->bos;
    s->eos = defaults->eos;
    s->add_bos = defaults->add_bos;
    if (!read_id(g, t, "tokenizer.ggml.bos_token_id", &s->bos, e) ||
        !read_id(g, t, "tokenizer.ggml.eos_token_id", &s->eos, e) ||
        !gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &s->add_bos, &found, e) ||
        !gguf_get_bool(g, "tokenizer.ggml.add_eos_token", &s->add_eos, &found, e) ||
        !read_roles(s, g, t, e))
        return false;
    mark_ends(s, t);
    unmark_ends(s, t);
    return true;
}

void special_free(special_tokens *s) {
    free(s->kinds);
    *s = (special_tokens){0};
}

/* --- in a text --- */

static bool is_wanted(const special_index *x, uint32_t id) {
    uint8_t kind = x->s->kinds[id];
    return (kind & x->any) && !(kind & x->none);
}

static int longest_first(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x < y) - (x > y);
}

/* The lengths of all tokens that are wanted, each once; the caller frees them. */
static size_t *collect_lengths(const special_index *x, size_t *count) {
    size_t *lengths = array_new(x->texts->count, sizeof *lengths), all = 0, kept = 0;
    for (uint32_t id = 0; id < x->texts->count; id++)
        if (is_wanted(x, id))
            lengths[all++] = token_texts_get(x->texts, id).bytes;
    qsort(lengths, all, sizeof *lengths, longest_first);
    for (size_t i = 0; i < all; i++)
        if (kept == 0 || lengths[kept - 1] != lengths[i])
            lengths[kept++] = lengths[i];
    *count = kept;
    return lengths;
}

static special_length *find_length(special_index *x, size_t bytes) {
    size_t low = 0, high = x->count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (x->lengths[middle].bytes >= bytes)
            low = middle;
        else
            high = middle;
    }
    return &x->lengths[low];
}

void special_index_build(special_index *x, const token_texts *texts, const special_tokens *s,
                         uint8_t any, uint8_t none) {
    *x = (special_index){.texts = texts, .s = s, .any = any, .none = none};
    size_t *lengths = collect_lengths(x, &x->count);
    x->lengths = array_new(x->count + 1, sizeof *x->lengths);
    for (size_t i = 0; i < x->count; i++)
        x->lengths[i].bytes = lengths[i];
    free(lengths);
    for (uint32_t id = 0; id < texts->count; id++) {
        gguf_text text = token_texts_get(texts, id);
        if (is_wanted(x, id))
            find_length(x, text.bytes)->first[(unsigned char)text.data[0]] = true;
    }
}

void special_index_free(special_index *x) {
    free(x->lengths);
    *x = (special_index){0};
}

static void add(fragment_list *list, size_t begin, size_t end, uint32_t token) {
    if (begin == end)
        return;
    *ARRAY_ADD(list->items, list->count, list->capacity) = (fragment){begin, end, token};
}

/* Cuts one piece of plain text at the tokens of one length. */
static void cut(const special_index *x, const special_length *l, const char *text, fragment f,
                fragment_list *out) {
    size_t from = f.begin;
    for (size_t i = f.begin; i < f.end && f.end - i >= l->bytes;) {
        uint32_t id = TOKEN_NONE;
        if (l->first[(unsigned char)text[i]])
            id = token_texts_find(x->texts, (gguf_text){text + i, l->bytes});
        if (id == TOKEN_NONE || !is_wanted(x, id)) {
            i++;
            continue;
        }
        add(out, from, i, TOKEN_NONE);
        add(out, i, i + l->bytes, id);
        from = i += l->bytes;
    }
    add(out, from, f.end, TOKEN_NONE);
}

fragment_list fragments_find(const special_index *x, const char *text, size_t bytes) {
    fragment_list list = {0};
    add(&list, 0, bytes, TOKEN_NONE);
    for (size_t l = 0; l < x->count; l++) {
        if (x->lengths[l].bytes > bytes)
            continue;
        fragment_list next = {0};
        for (size_t i = 0; i < list.count; i++) {
            fragment f = list.items[i];
            if (f.token == TOKEN_NONE)
                cut(x, &x->lengths[l], text, f, &next);
            else
                add(&next, f.begin, f.end, f.token);
        }
        free(list.items);
        list = next;
    }
    return list;
}
