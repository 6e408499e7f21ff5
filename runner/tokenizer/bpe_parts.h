/* bpe_parts: what the files of bpe share. */
#pragma once

#include "bpe.h"

#define BPE_NO_MERGE UINT32_MAX

/* The rank of a pair: its place in the list of merges, or BPE_NO_MERGE. */
uint32_t bpe_find_merge(const bpe *b, uint32_t left, uint32_t right);
