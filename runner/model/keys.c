/* model/keys: whether a file holds anything that its family does not know, see family.h. What
 * is not known may change the result, so it is refused by name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"

/* Keys of every family. The lists of a family hold what comes after "llama." and the like. */
static const known_key tokenizer_keys[] = {
    {"model", NULL},
    {"pre", NULL},
    {"tokens", NULL},
    {"token_type", NULL},
    {"merges", NULL},
    {"*_token_id", NULL},
    {"add_bos_token", NULL},
    {"add_eos_token", NULL},
    /* Not for the kinds of vocabulary that are supported. */
    {"scores", NULL},
    {"token_type_count", NULL},
    {"add_sep_token", NULL},
    {"add_space_prefix", NULL},
    {"remove_extra_whitespaces", NULL},
    {"precompiled_charsmap", NULL},
    {"normalizer.*", NULL},
    {"eos_token_ids", NULL}, /* the texts of tokens say which ones end a text */
    {"suppress_tokens", ""}, /* their logits would have to be -infinity */
    {NULL, NULL},
};
static const known_key split_keys[] = {{"count", "0 1"}, {"*", NULL}, {NULL, NULL}};
static const known_key general_keys[] = {{"type", "model"}, {"*", NULL}, {NULL, NULL}};

static bool begins(gguf_text t, const char *text, size_t bytes) {
    return t.bytes >= bytes && memcmp(t.data, text, bytes) == 0;
}

/* One '*' in a name stands for any text. */
static bool matches(gguf_text key, const char *name) {
    size_t front = strcspn(name, "*");
    if (!name[front])
        return gguf_text_equals(key, name);
    size_t back = strlen(name + front + 1);
    return key.bytes >= front + back && begins(key, name, front) &&
           memcmp(key.data + key.bytes - back, name + front + 1, back) == 0;
}

static const known_key *find_key(const known_key *keys, gguf_text key) {
    while (keys->name && !matches(key, keys->name))
        keys++;
    return keys->name ? keys : NULL;
}

/* Element i is one of the words of the list. Numbers in files are single precision. */
static bool is_listed(const gguf_value *v, size_t i, const char *list) {
    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (v->element == GGUF_STRING) {
            if (v->texts[i].bytes == length && memcmp(v->texts[i].data, at, length) == 0)
                return true;
        } else {
            double want = strtod(at, NULL), got = gguf_value_get_number(v, i);
            if (fabs(got - want) <= 1e-6 * fabs(want))
                return true;
        }
        at += length;
    }
    return false;
}

static bool check_value(const gguf_value *v, const known_key *k, err *e) {
    char key[80], value[40];
    gguf_print_text(v->key, key, sizeof key);
    if (!k)
        return err_set(e, EXIT_USAGE,
                       "the file has %s, which is not known here and may change the result", key);
    for (size_t i = 0; k->neutral && i < v->count; i++) {
        if (is_listed(v, i, k->neutral))
            continue;
        if (v->element == GGUF_STRING)
            gguf_print_text(v->texts[i], value, sizeof value);
        else
            snprintf(value, sizeof value, "%g", gguf_value_get_number(v, i));
        return err_set(e, EXIT_USAGE, "%s is %s%s, which %s", key,
                       v->type == GGUF_ARRAY ? "a list with " : "", value,
                       begins(v->key, "split.", 6) ? "means several files: join them first"
                                                   : "changes the result and is not supported");
    }
    return true;
}

/* Other prefixes belong to the programs that wrote them. */
bool model_check_keys(const gguf *g, const model_family *f, err *e) {
    char own[40];
    snprintf(own, sizeof own, "%s.", f->name);
    const struct {
        const char *prefix;
        const known_key *keys;
    } lists[] = {{own, f->keys},
                 {"tokenizer.ggml.", tokenizer_keys},
                 {"split.", split_keys},
                 {"general.", general_keys}};
    for (size_t i = 0; i < g->value_count; i++)
        for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
            size_t bytes = strlen(lists[k].prefix);
            gguf_text key = g->values[i].key;
            if (!begins(key, lists[k].prefix, bytes))
                continue;
            gguf_text rest = {key.data + bytes, key.bytes - bytes};
            if (!check_value(&g->values[i], find_key(lists[k].keys, rest), e))
                return false;
        }
    return true;
}

bool model_check_tensors(const model *m, err *e) {
    for (size_t i = 0; i < m->file->tensor_count; i++)
        if (!m->is_claimed[i])
            return err_set(e, EXIT_USAGE,
                           "the file has the tensor %s, which is not known here and may change the "
                           "result",
                           m->file->tensors[i].name);
    return true;
}
