"""Forward passes in NumPy over an exported GGUF, one token at a time.

A check of what was exported that shares no code with the runner. Does not own speed.
"""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Llama:
    """Attention over all tokens so far."""

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


class Rwkv7:
    """A recurrent state instead of a cache: no limit on the number of tokens."""

    context = 1 << 30

    def __init__(self, reader):
        self.weights = reader.tensors
        value = lambda key: reader.pairs["rwkv7." + key]
        self.layers, self.size = value("block_count"), value("wkv.head_size")
        self.eps, dim = value("attention.layer_norm_epsilon"), value("embedding_length")
        self.shifts = np.zeros((self.layers, 2, dim), np.float32)
        self.states = np.zeros((self.layers, dim // self.size, self.size, self.size), np.float32)

    def norm(self, x, name, eps):
        """Over the last dimension; the affine part is over all."""
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
        return y.reshape(-1) * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def time_mix(self, x, layer, v_first):
        part = lambda name: self.weights[f"blk.{layer}.time_mix_{name}.weight"]
        heads = lambda y: y.reshape(-1, self.size)
        before = self.shifts[layer, 0] - x
        self.shifts[layer, 0] = x
        xr, xw, xk, xv, xa, xg = x + before * part("lerp_fused").reshape(6, -1)
        r, k, v = part("receptance") @ xr, part("key") @ xk, part("value") @ xv
        w = np.exp(-0.606531 * sigmoid(part("w0") + part("w2") @ np.tanh(part("w1") @ xw)))
        a = sigmoid(part("a0") + part("a2") @ (part("a1") @ xa))
        g = part("g2") @ sigmoid(part("g1") @ xg)
        if layer:
            v = v + (v_first - v) * sigmoid(part("v0") + part("v2") @ (part("v1") @ xv))
        else:
            v_first = v
        kk = heads(k * part("k_k"))
        kk = kk / np.maximum(np.linalg.norm(kk, axis=1, keepdims=True), 1e-12)
        k = k * (1 + (a - 1) * part("k_a"))
        r, w, k, v, a = (heads(y) for y in (r, w, k, v, a))
        state = self.states[layer]
        removed = -np.einsum("hij,hj->hi", state, kk)
        state[:] = (
            state * w[:, None] + v[:, :, None] * k[:, None] + removed[:, :, None] * (kk * a)[:, None]
        )
        y = np.einsum("hij,hj->hi", state, r)
        y = self.norm(y, f"blk.{layer}.time_mix_ln", 64e-5)
        bonus = (r * k * heads(part("r_k"))).sum(1, keepdims=True) * v
        return part("output") @ ((y + bonus.reshape(-1)) * g), v_first

    def channel_mix(self, x, layer):
        part = lambda name: self.weights[f"blk.{layer}.channel_mix_{name}.weight"]
        z = x + (self.shifts[layer, 1] - x) * part("lerp_k").reshape(-1)
        self.shifts[layer, 1] = x
        return part("value") @ np.square(np.maximum(part("key") @ z, 0))

    def logits(self, token):
        x = self.norm(self.weights["token_embd.weight"][token], "token_embd_norm", self.eps)
        v_first = None
        for layer in range(self.layers):
            n = self.norm(x, f"blk.{layer}.attn_norm", self.eps)
            y, v_first = self.time_mix(n, layer, v_first)
            x = x + y
            x = x + self.channel_mix(self.norm(x, f"blk.{layer}.attn_norm_2", self.eps), layer)
        return self.weights["output.weight"] @ self.norm(x, "output_norm", self.eps)


FAMILIES = {"llama": Llama, "rwkv7": Rwkv7}


def load(reader):
    return FAMILIES[reader.pairs["general.architecture"]](reader)
