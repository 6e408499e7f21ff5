/* vocabulary: makes small GGUF vocabularies for tests: all 256 bytes, and what a test adds. */
#ifndef ASSAY_TESTS_VOCABULARY_H
#define ASSAY_TESTS_VOCABULARY_H

#include "runner/gguf/gguf.h"
#include "runner/gguf/write.h"
#include "runner/tokenizer/tokenizer.h"

enum { VOCABULARY_MOST = 4096 };

typedef struct {
    const char *model, *pre;
    gguf_text tokens[VOCABULARY_MOST], merges[VOCABULARY_MOST];
    int32_t types[VOCABULARY_MOST];
    size_t token_count, merge_count, type_count;
    /* What else is to be in the file; may be NULL. */
    void (*add_more)(gguf_writer *w);
} vocabulary;

/* Token n is byte n. The vocabulary belongs to the module and is used again by the next test. */
vocabulary *vocabulary_start(const char *pre);
/* Of the kind 'rwkv': token 0 is a control token, token n + 1 is byte n. */
vocabulary *vocabulary_start_world(void);
uint32_t vocabulary_add_token(vocabulary *v, const char *text, int32_t type);
void vocabulary_add_merge(vocabulary *v, const char *merge);
/* "A B": the merge, and AB as a token if it is none. Returns AB's id. */
uint32_t vocabulary_join(vocabulary *v, const char *merge);

bool vocabulary_write(const vocabulary *v, const char *path, err *e);
/* The same as a gguf; its file is removed. */
gguf *vocabulary_open(const vocabulary *v, err *e);
/* The tokenizer of a file, which it takes and which may be NULL; both stand until the next. NULL with e set. */
tokenizer *vocabulary_use(gguf *g, err *e);

#endif
