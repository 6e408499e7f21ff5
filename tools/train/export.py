"""Writes trained weights and vocabulary as an F32 GGUF.

Owns the metadata of the vocabulary. Does not own the container (gguf.py) or the names of tensors and
of the architecture's metadata (llama.py, rwkv7.py). Does not quantise: `assay model convert` does.

    python3 export.py --family llama --vocab vocab.json --weights weights.npz --out model-f32.gguf
"""

import argparse
import json

import numpy as np

import families
import gguf
from bpe import SPECIALS

NORMAL, CONTROL = 1, 3
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def vocab_metadata(vocab):
    kinds = [CONTROL if token in SPECIALS else NORMAL for token in vocab["tokens"]]
    return [
        ("tokenizer.ggml.model", gguf.STRING, "gpt2"),
        ("tokenizer.ggml.pre", gguf.STRING, "smollm"),
        ("tokenizer.ggml.tokens", gguf.STRING, vocab["tokens"]),
        ("tokenizer.ggml.token_type", gguf.I32, kinds),
        ("tokenizer.ggml.merges", gguf.STRING, [" ".join(pair) for pair in vocab["merges"]]),
        ("tokenizer.ggml.bos_token_id", gguf.U32, 0),
        ("tokenizer.ggml.eos_token_id", gguf.U32, 0),
        ("tokenizer.ggml.add_bos_token", gguf.BOOL, False),
        ("tokenizer.ggml.add_space_prefix", gguf.BOOL, False),
        ("tokenizer.chat_template", gguf.STRING, CHAT_TEMPLATE),
    ]


def load_weights(path):
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def main():
    parser = argparse.ArgumentParser(description="write the trained model as an F32 GGUF")
    parser.add_argument("--family", choices=families.NAMES, default="llama")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    family = families.load(options.family)
    with open(options.vocab) as file:
        vocab = json.load(file)
    gguf.write_gguf(
        options.out,
        family.metadata(family.Shape()) + vocab_metadata(vocab),
        family.tensors(load_weights(options.weights)),
    )


if __name__ == "__main__":
    main()
