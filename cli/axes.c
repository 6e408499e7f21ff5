#include "axes.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "kernels/formats/formats.h"
#include "kernels/ops.h"
#include "options.h"

bool words_split(const char *text, const char *name, word_list *out, err *e) {
    out->count = 0;
    for (const char *p = text; p && *p;) {
        size_t length = strcspn(p, ",");
        if (length == 0 || length >= WORD_SIZE || out->count == WORDS_MAX)
            return err_set(e, EXIT_USAGE, "--%s takes a comma-separated list, not '%.60s'", name,
                           text);
        snprintf(out->words[out->count], WORD_SIZE, "%.*s", (int)length, p);
        out->used[out->count++] = false;
        p += length + (p[length] == ',');
    }
    return true;
}

shape axes_set_batch(const op *o, const shape *s, uint32_t batch) {
    shape sized = *s;
    int at = op_find_batch_dim(o);
    if (s->dim[at] != 0 || batch != 1)
        sized.dim[at] = batch;
    return sized;
}

/* Formats are written as in the names of kernels, in upper or lower case. */
static void lower(char *text) {
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

void axes_get_format(const kernel *k, char *text, size_t size) {
    snprintf(text, size, "%s", k->format ? k->format->name : "");
    lower(text);
}

/* Of all ops and kernels; to be freed. */
static const char **list_names(size_t *count) {
    const char **names = NULL;
    size_t room = 0;
    *count = 0;
    for (size_t i = 0; i < registry_count; i++) {
        *ARRAY_ADD(names, *count, room) = registry[i]->name;
        for (size_t k = 0; k < registry[i]->kernel_count; k++)
            *ARRAY_ADD(names, *count, room) = registry[i]->kernels[k].name;
    }
    return names;
}

bool axes_refuse_name(const char *what, const char *name, err *e) {
    size_t count;
    const char **names = list_names(&count);
    axes_refuse_word(what, name, names, count, e);
    free(names);
    return false;
}

bool axes_refuse_filter(const char *what, const char *filter, bool is_known, err *e) {
    if (!is_known)
        return axes_refuse_name(what, filter, e);
    return err_set(e, EXIT_USAGE,
                   "'%.60s' has no kernel with the given format, variant, accumulation and batch; "
                   "assay list shows what it has",
                   filter);
}

bool axes_refuse_word(const char *what, const char *word, const char *const *known, size_t count,
                      err *e) {
    const char *nearest = options_find_nearest(word, known, count);
    if (nearest)
        return err_set(e, EXIT_USAGE, "no %s is called '%.60s'; did you mean %s?", what, word,
                       nearest);
    return err_set(e, EXIT_USAGE, "no %s is called '%.60s'; assay list shows them all", what, word);
}

static bool has_word(const word_list *l, const char *word) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->words[i], word) == 0)
            return true;
    return false;
}

static bool has_variant(const word_list *l, const kernel *k) {
    return has_word(l, k->name) || (k->variant && has_word(l, k->variant));
}

bool axes_take_kernel(const axes *a, const kernel *k) {
    char format[32];
    axes_get_format(k, format, sizeof format);
    return (a->formats.count == 0 || has_word(&a->formats, format)) &&
           (!a->has_accumulate || k->accumulates == a->accumulates) &&
           (a->variants.count == 0 || has_variant(&a->variants, k));
}

static bool check_words(const word_list *l, const char *what, const char *const *known,
                        size_t count, err *e) {
    for (size_t i = 0; i < l->count; i++) {
        size_t k = 0;
        while (k < count && strcmp(known[k], l->words[i]) != 0)
            k++;
        if (k == count)
            return axes_refuse_word(what, l->words[i], known, count, e);
    }
    return true;
}

#define NAME(format, ...) #format,
static const char *const formats[] = {FORMATS(NAME)};

/* Variants and kernels, some of them more than once. */
static bool check_variants(const word_list *l, err *e) {
    const char *known[1024];
    size_t count = 0;
    for (size_t i = 0; i < registry_count; i++)
        for (size_t j = 0; j < registry[i]->kernel_count; j++) {
            const kernel *k = &registry[i]->kernels[j];
            assert(count + 2 <= sizeof known / sizeof *known);
            known[count++] = k->name;
            if (k->variant)
                known[count++] = k->variant;
        }
    return check_words(l, "kernel or variant", known, count, e);
}

static bool parse_batches(const char *text, axes *a, err *e) {
    word_list words;
    if (!words_split(text, "batch", &words, e))
        return false;
    for (size_t i = 0; i < words.count; i++) {
        char *end;
        unsigned long n = strtoul(words.words[i], &end, 10);
        if (!isdigit((unsigned char)words.words[i][0]) || *end || n < 1 || n > 65536)
            return err_set(e, EXIT_USAGE, "--batch takes numbers from 1 to 65536, not '%s'",
                           words.words[i]);
        a->batches[a->batch_count++] = (uint32_t)n;
    }
    return true;
}

static bool parse_accumulate(const char *text, axes *a, err *e) {
    if (!text)
        return true;
    a->has_accumulate = true;
    a->accumulates = strcmp(text, "yes") == 0;
    return a->accumulates || strcmp(text, "no") == 0 ||
           err_set(e, EXIT_USAGE, "--accumulate is yes or no, not '%.40s'", text);
}

bool axes_parse(const axes_query *q, axes *out, err *e) {
    memset(out, 0, sizeof *out);
    if (!words_split(q->formats, "format", &out->formats, e) ||
        !words_split(q->variants, "variant", &out->variants, e))
        return false;
    for (size_t i = 0; i < out->formats.count; i++)
        lower(out->formats.words[i]);
    return check_words(&out->formats, "weight format", formats, sizeof formats / sizeof *formats,
                       e) &&
           check_variants(&out->variants, e) && parse_accumulate(q->accumulate, out, e) &&
           parse_batches(q->batches, out, e);
}
