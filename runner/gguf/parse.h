/* gguf/parse: fills a gguf from the bytes of a file; used by gguf.c alone. */
#pragma once

#include "gguf.h"

/* g has its map, bytes and name; the rest is filled. On failure what was filled is still g's to
 * free. */
bool gguf_parse(gguf *g, const char *name, err *e);
