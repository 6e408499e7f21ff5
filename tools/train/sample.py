"""Continues prompts with an exported GGUF, in NumPy: an independent check of what was exported.

Owns a reader for F32, Q4_0 and Q8_0 tensors and a plain forward pass in float32. Does not own
speed. The tokenizer splits words by ASCII rules (bpe.py), so prompts must be ASCII.

    python3 sample.py --model assay-tiny.gguf --prompt "Once upon a time" --temperature 0.7
"""

import argparse
import struct

import numpy as np

from bpe import SPECIALS, Encoder

SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
STRING, ARRAY = 8, 9
F32, Q4_0, Q8_0 = 0, 2, 8
BLOCK_BYTES = {F32: 4 * 32, Q4_0: 18, Q8_0: 34}
ALIGNMENT = 32


class Reader:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 4
        _, tensor_count, pair_count = self.take("<I"), self.take("<Q"), self.take("<Q")
        self.pairs = dict(self.pair() for _ in range(pair_count))
        infos = [self.info() for _ in range(tensor_count)]
        start = self.at + -self.at % ALIGNMENT
        self.tensors = {
            name: self.tensor(shape, kind, start + offset) for name, shape, kind, offset in infos
        }

    def take(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def string(self):
        length = self.take("<Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, count = self.take("<i"), self.take("<Q")
            return [self.value(kind) for _ in range(count)]
        return self.take(SCALARS[kind])

    def pair(self):
        return self.string(), self.value(self.take("<i"))

    def info(self):
        name = self.string()
        shape = [self.take("<Q") for _ in range(self.take("<I"))][::-1]
        return name, shape, self.take("<i"), self.take("<Q")

    def tensor(self, shape, kind, start):
        blocks = int(np.prod(shape)) // 32
        raw = np.frombuffer(self.data, np.uint8, blocks * BLOCK_BYTES[kind], start).reshape(
            blocks, -1
        )
        return expand(raw, kind).reshape(shape)


def expand(raw, kind):
    """Blocks of 32 values to float32."""
    if kind == F32:
        return raw.copy().view("<f4")
    step = raw[:, :2].copy().view("<f2").astype(np.float32)
    if kind == Q8_0:
        return step * raw[:, 2:].copy().view(np.int8)
    levels = np.concatenate((raw[:, 2:] & 15, raw[:, 2:] >> 4), axis=1).astype(np.float32)
    return step * (levels - 8)


class Network:
    """The forward pass, one token at a time."""

    def __init__(self, reader):
        self.weights = reader.tensors
        value = lambda key: reader.pairs["llama." + key]
        self.layers, self.heads = value("block_count"), value("attention.head_count")
        self.kv_heads, self.eps = value("attention.head_count_kv"), value(
            "attention.layer_norm_rms_epsilon"
        )
        self.head_dim = value("embedding_length") // self.heads
        self.context = value("context_length")
        self.frequencies = value("rope.freq_base") ** -(
            np.arange(0, self.head_dim, 2) / self.head_dim
        )
        self.cache = [([], []) for _ in range(self.layers)]

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x) + self.eps) * self.weights[name + ".weight"]

    def rotate(self, x, position):
        cos, sin = np.cos(position * self.frequencies), np.sin(position * self.frequencies)
        a, b = x[:, 0::2], x[:, 1::2]
        return np.stack((a * cos - b * sin, a * sin + b * cos), -1).reshape(x.shape)

    def attend(self, x, layer):
        apply = lambda name, heads: (self.weights[f"blk.{layer}.{name}.weight"] @ x).reshape(
            heads, -1
        )
        keys, values = self.cache[layer]
        position = len(keys)
        q = self.rotate(apply("attn_q", self.heads), position)
        keys.append(self.rotate(apply("attn_k", self.kv_heads), position))
        values.append(apply("attn_v", self.kv_heads))
        group = self.heads // self.kv_heads
        k, v = np.repeat(keys, group, axis=1), np.repeat(values, group, axis=1)
        scores = np.einsum("hd,thd->ht", q, k) / np.sqrt(self.head_dim)
        scores = np.exp(scores - scores.max(1, keepdims=True))
        out = np.einsum("ht,thd->hd", scores / scores.sum(1, keepdims=True), v)
        return self.weights[f"blk.{layer}.attn_output.weight"] @ out.reshape(-1)

    def logits(self, token):
        x = self.weights["token_embd.weight"][token]
        for layer in range(self.layers):
            part = lambda name: self.weights[f"blk.{layer}.{name}.weight"]
            x = x + self.attend(self.norm(x, f"blk.{layer}.attn_norm"), layer)
            y = self.norm(x, f"blk.{layer}.ffn_norm")
            gate = part("ffn_gate") @ y
            x = x + part("ffn_down") @ (gate / (1 + np.exp(-gate)) * (part("ffn_up") @ y))
        return self.weights["token_embd.weight"] @ self.norm(x, "output_norm")


def choose(logits, temperature, rng):
    if temperature == 0:
        return int(np.argmax(logits))
    weights = np.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(logits), p=weights / weights.sum()))


def generate(reader, prompt, count, temperature, rng):
    network = Network(reader)
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
