"""Continues prompts with an exported GGUF, in NumPy: an independent check of what was exported.

Owns the choice of tokens. Does not own the reader (gguf.py) or the forward passes (networks.py). The
tokenizer splits words by ASCII rules (bpe.py), so prompts must be ASCII.

    python3 sample.py --model assay-tiny.gguf --prompt "Once upon a time" --temperature 0.7
"""

import argparse

import numpy as np

import networks
from bpe import SPECIALS, Encoder
from gguf import Reader


def choose(logits, temperature, rng):
    if temperature == 0:
        return int(np.argmax(logits))
    weights = np.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(logits), p=weights / weights.sum()))


def generate(reader, prompt, count, temperature, rng):
    network = networks.load(reader)
    for token in prompt:
        logits = network.logits(token)
    out = []
    while len(out) < min(count, network.context - len(prompt)):
        token = choose(logits, temperature, rng)
        out.append(token)
        if token < len(SPECIALS):
            break
        logits = network.logits(token)
    return out


def main():
    parser = argparse.ArgumentParser(description="continue a prompt")
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompt", action="append", required=True)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ids", action="store_true", help="print token ids instead of text")
    options = parser.parse_args()
    reader, rng = Reader(options.model), np.random.default_rng(options.seed)
    encoder = Encoder(
        {
            "tokens": reader.pairs["tokenizer.ggml.tokens"],
            "merges": [pair.split(" ") for pair in reader.pairs["tokenizer.ggml.merges"]],
        }
    )
    for text in options.prompt:
        prompt = encoder.encode(text)
        out = generate(reader, prompt, options.tokens, options.temperature, rng)
        if options.ids:
            print(*out)
        else:
            print(f"{text}|{encoder.decode(out)}\n")


if __name__ == "__main__":
    main()
