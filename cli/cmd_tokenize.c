/* cmd_tokenize: `assay tokenize`. Text to token ids with the vocabulary of a model file, and back.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/record.h"
#include "input.h"
#include "runner/model/model.h"
#include "runner/tokenizer/tokenizer.h"
#include "runner/tokenizer/unicode.h"
#include "verb.h"

static struct {
    const char *model;
    bool special, bos, exact, detokenize, pieces;
} settings;

static const option options[] = {
    TEXT_OPTION("m|model", &settings.model, "FILE",
                "GGUF file with the vocabulary (default: the model that comes with Assay)"),
    FLAG_OPTION("special", &settings.special,
                "parse special tokens such as <|im_start|> (default: plain text)"),
    FLAG_OPTION("bos", &settings.bos,
                "add BOS and EOS where the file asks for them (default: none)"),
    FLAG_OPTION("exact", &settings.exact,
                "keep bytes that are not UTF-8 (default: replaced by U+FFFD, as in llama.cpp)"),
    FLAG_OPTION("detokenize", &settings.detokenize,
                "ids to bytes; control tokens are left out unless --special is given"),
    FLAG_OPTION("pieces", &settings.pieces, "print a table of ids and their bytes"),
};

/* --- input --- */

static bool read_text(const tokenizer *t, const char *name, token_list *ids, err *e) {
    size_t bytes = strlen(name);
    char *input = NULL;
    if (strcmp(name, "-") == 0 && !(input = input_read(TOKENIZER_TEXT_MAX, &bytes, e)))
        return false;
    unsigned flags = (settings.special ? TOKENIZE_PARSE_SPECIAL : 0) |
                     (settings.bos ? TOKENIZE_ADD_SPECIAL : 0) |
                     (settings.exact ? TOKENIZE_EXACT : 0);
    tokenizer_encode(t, input ? input : name, bytes, flags, ids);
    free(input);
    return true;
}

static bool is_separator(char c) {
    return c != 0 && strchr(" ,\t\r\n", c) != NULL;
}

static bool read_ids(const tokenizer *t, const char *text, size_t bytes, token_list *ids, err *e) {
    for (size_t i = 0; i < bytes;) {
        if (is_separator(text[i])) {
            i++;
            continue;
        }
        size_t begin = i;
        uint64_t id = 0;
        bool number = true;
        for (; i < bytes && !is_separator(text[i]); i++) {
            number = number && text[i] >= '0' && text[i] <= '9';
            if (number && id <= UINT32_MAX)
                id = 10 * id + (uint64_t)(text[i] - '0');
        }
        int shown = i - begin < 40 ? (int)(i - begin) : 40;
        if (!number)
            return err_set(e, EXIT_USAGE, "'%.*s' is not a token id; ids are whole numbers", shown,
                           text + begin);
        if (id >= tokenizer_get_count(t))
            return err_set(e, EXIT_USAGE, "there is no token %.*s; the largest id is %zu", shown,
                           text + begin, tokenizer_get_count(t) - 1);
        token_list_add(ids, (uint32_t)id);
    }
    return true;
}

static bool read_all_ids(const tokenizer *t, const char *const *names, size_t count,
                         token_list *ids, err *e) {
    if (count == 1 && strcmp(names[0], "-") == 0) {
        size_t bytes;
        char *input = input_read(SIZE_MAX / 4, &bytes, e);
        bool ok = input && read_ids(t, input, bytes, ids, e);
        free(input);
        return ok;
    }
    for (size_t i = 0; i < count; i++)
        if (!read_ids(t, names[i], strlen(names[i]), ids, e))
            return false;
    return true;
}

/* --- output --- */

static void print_ids(const token_list *ids) {
    for (size_t i = 0; i < ids->count; i++)
        printf("%s%" PRIu32, i ? " " : "", ids->items[i]);
    putchar('\n');
}

/* Characters are shown as they are; incomplete or invisible ones as \n, \xE4. */
static void escape(gguf_text piece, char *out, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < piece.bytes && used + 8 < size;) {
        uint32_t point;
        char again[UNICODE_BYTES];
        size_t length = unicode_decode(piece.data + i, piece.bytes - i, &point);
        bool whole =
            length == unicode_encode(point, again) && memcmp(piece.data + i, again, length) == 0;
        unsigned char c = (unsigned char)piece.data[i];
        if (c == '"' || c == '\\')
            used += (size_t)snprintf(out + used, size - used, "\\%c", c);
        else if (c == '\n' || c == '\t' || c == '\r')
            used += (size_t)snprintf(out + used, size - used, "\\%c",
                                     c == '\n'   ? 'n'
                                     : c == '\t' ? 't'
                                                 : 'r');
        else if (whole && (point >= 0xA0 || (c >= ' ' && c < 0x7F)))
            used += (size_t)snprintf(out + used, size - used, "%.*s", (int)length, piece.data + i);
        else {
            used += (size_t)snprintf(out + used, size - used, "\\x%02X", c);
            length = 1;
        }
        i += length;
    }
}

typedef struct {
    uint32_t id;
    char text[1026];
} piece_view;

static const field piece_fields[] = {
    FIELD(piece_view, id, FIELD_COUNT, NULL, "id", .width = 6),
    FIELD(piece_view, text, FIELD_CHARS, NULL, "piece"),
};

static void print_pieces(const tokenizer *t, const token_list *ids) {
    sink s = {.record = RECORD(piece_fields), .out = stdout, .streams = true};
    for (size_t i = 0; i < ids->count; i++) {
        char piece[1024] = "";
        piece_view v = {.id = ids->items[i]};
        escape(tokenizer_get_piece(t, v.id, true), piece, sizeof piece);
        snprintf(v.text, sizeof v.text, "\"%s\"", piece);
        sink_add(&s, &v, PAINT_NONE);
    }
    sink_end(&s);
}

static void print_bytes(const tokenizer *t, const token_list *ids) {
    for (size_t i = 0; i < ids->count; i++) {
        gguf_text piece = tokenizer_get_piece(t, ids->items[i], settings.special);
        fwrite(piece.data, 1, piece.bytes, stdout);
    }
}

static bool tokenize(const tokenizer *t, const char *const *names, size_t count, err *e) {
    token_list ids = {0};
    bool ok = settings.detokenize ? read_all_ids(t, names, count, &ids, e)
                                  : read_text(t, names[0], &ids, e);
    if (ok && settings.pieces)
        print_pieces(t, &ids);
    else if (ok && settings.detokenize)
        print_bytes(t, &ids);
    else if (ok)
        print_ids(&ids);
    token_list_free(&ids);
    return ok;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    char path[PATH_MAX];
    if (count == 0)
        err_set(e, EXIT_USAGE,
                "give a text (or ids with --detokenize), or - to read it from stdin");
    else if (count > 1 && !settings.detokenize)
        err_set(e, EXIT_USAGE, "expected one argument, got %zu: put the text in quotes", count);
    if (e->code || !model_file_find(settings.model, path, sizeof path, e))
        return e->code;
    gguf *g = gguf_open(path, e);
    tokenizer *t = g ? tokenizer_new(g, e) : NULL;
    bool ok = t && tokenize(t, names, count, e);
    tokenizer_free(t);
    gguf_free(g);
    return ok ? EXIT_OK : e->code;
}

VERB(verb_tokenize, "tokenize", .names = "TEXT|-|IDS...",
     .about = "convert text to token ids, and back",
     .notes =
         "The ids are those of llama.cpp, by default of `llama-tokenize --ids --no-bos\n"
         "--no-parse-special`. UTF-8 text survives the round trip byte for byte if the vocabulary\n"
         "has all 256 bytes (bytes it lacks are dropped). Bytes that are not UTF-8 become U+FFFD;\n"
         "with --exact they survive too.\n",
     VERB_OPTIONS(options));
