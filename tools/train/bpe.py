"""A byte-level BPE: training on word counts, and encoding with the result.

Owns the 'smollm' pre-tokenisation (each digit stands alone), the byte alphabet of GPT-2 and the
vocabulary file. Does not own the GGUF (export.py). Letters and digits mean ASCII
here, which is exact for our corpus, but not for other text; the model reader must use the
Unicode classes.

    python3 bpe.py --out vocab.json                      trains on a sample of the corpus
    python3 bpe.py --gguf model.gguf --out vocab.json    takes the vocabulary of a model
"""

import argparse
import collections
import json
import re

import corpus
from gguf import Reader

VOCAB_SIZE = 2048
SPECIALS = (corpus.END, corpus.TURN_START, corpus.TURN_END)
WORD = re.compile(
    r"\d|'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[^\sA-Za-z\d]+|\s+(?=\d|$)|\s+(?!\S)|\s+"
)
SPECIAL = re.compile("(" + "|".join(re.escape(text) for text in SPECIALS) + ")")


def byte_alphabet():
    """The printable character of each byte: itself where it is printable, else U+0100 onwards."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        letters.setdefault(byte, chr(0x100 + len(letters) - len(printable)))
    return letters


LETTERS = byte_alphabet()


def spell(word):
    return "".join(LETTERS[byte] for byte in word.encode())


def count_words(texts):
    counts = collections.Counter()
    for text in texts:
        for part in SPECIAL.split(text):
            if part not in SPECIALS:
                counts.update(WORD.findall(part))
    return counts


def merge_pair(symbols, pair):
    """Joins every occurrence of the pair, from the left."""
    out, at = [], 0
    while at < len(symbols):
        if tuple(symbols[at : at + 2]) == pair:
            out.append(symbols[at] + symbols[at + 1])
            at += 2
        else:
            out.append(symbols[at])
            at += 1
    return out


class PairCounts:
    """How often each pair of neighbours occurs, and in which words."""

    def __init__(self):
        self.count = collections.Counter()
        self.words = collections.defaultdict(set)

    def add(self, word, symbols, weight):
        for pair in zip(symbols, symbols[1:]):
            self.count[pair] += weight
            self.words[pair].add(word)

    def best(self):
        """The most frequent pair; among equals the first in text order, so that runs repeat."""
        return min(self.count, key=lambda pair: (-self.count[pair], pair))


def train(counts, size):
    """Returns the tokens in the order of their ids, and the merges."""
    tokens = list(SPECIALS) + sorted(LETTERS.values())
    known, merges = set(tokens), []
    words = {word: list(spell(word)) for word in counts}
    pairs = PairCounts()
    for word, symbols in words.items():
        pairs.add(word, symbols, counts[word])
    while len(tokens) < size:
        pair = pairs.best()
        for word in list(pairs.words[pair]):
            pairs.add(word, words[word], -counts[word])
            words[word] = merge_pair(words[word], pair)
            pairs.add(word, words[word], counts[word])
        del pairs.count[pair]
        merges.append(pair)
        if "".join(pair) not in known:
            known.add("".join(pair))
            tokens.append("".join(pair))
    return tokens, merges


class Encoder:
    def __init__(self, vocab):
        self.tokens = vocab["tokens"]
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(vocab["merges"])}
        self.bytes = {letter: byte for byte, letter in LETTERS.items()}
        self.cache = {}

    def encode_word(self, word):
        symbols = list(spell(word))
        while len(symbols) > 1:
            pair = min(
                zip(symbols, symbols[1:]), key=lambda pair: self.ranks.get(pair, len(self.ranks))
            )
            if pair not in self.ranks:
                break
            symbols = merge_pair(symbols, pair)
        return [self.ids[symbol] for symbol in symbols]

    def encode(self, text):
        ids = []
        for part in SPECIAL.split(text):
            if part in SPECIALS:
                ids.append(self.ids[part])
                continue
            for word in WORD.findall(part):
                if word not in self.cache:
                    self.cache[word] = self.encode_word(word)
                ids += self.cache[word]
        return ids

    def decode(self, ids):
        letters = "".join(self.tokens[index] for index in ids if index >= len(SPECIALS))
        return bytes(self.bytes[letter] for letter in letters).decode(errors="replace")


def load(path):
    with open(path) as file:
        return Encoder(json.load(file))


def read_gguf(path):
    """The tokens and merges of a model file."""
    pairs = Reader(path).pairs
    return pairs["tokenizer.ggml.tokens"], [
        pair.split(" ") for pair in pairs["tokenizer.ggml.merges"]
    ]


def main():
    parser = argparse.ArgumentParser(description="train the vocabulary")
    parser.add_argument("--gguf", help="take the vocabulary of this model instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--documents", type=int, default=60000)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    if options.gguf:
        tokens, merges = read_gguf(options.gguf)
    else:
        counts = count_words(corpus.documents(options.seed, options.documents))
        tokens, merges = train(counts, VOCAB_SIZE)
    with open(options.out, "w") as file:
        json.dump({"tokens": tokens, "merges": merges}, file, ensure_ascii=False)
    print(f"{len(tokens)} tokens, {len(merges)} merges")


if __name__ == "__main__":
    main()
