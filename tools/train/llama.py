"""The llama architecture in PyTorch, small, with the rounding of the exported file built in.

Owns the shape, the forward pass and the metadata. Does not own training or files.
RoPE turns consecutive pairs (2i, 2i+1), which is what a GGUF of this architecture means,
so nothing is permuted on export.
"""

import dataclasses

import torch
from torch import nn
from torch.nn import functional as F

from gguf import F32, STRING, U32
from rounding import Matrix, blend, round_q8_0

DESCRIPTION = "A very small model that tells short tales about metals, smiths and assayers."


@dataclasses.dataclass
class Shape:
    vocab: int = 2048
    dim: int = 192
    heads: int = 6
    kv_heads: int = 2
    hidden: int = 512
    layers: int = 11
    context: int = 512
    rope_base: float = 10000.0
    eps: float = 1e-5

    @property
    def head_dim(self):
        return self.dim // self.heads


class Norm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).type_as(x)


def rope_table(shape):
    """cos and sin, (context, head_dim / 2)."""
    exponents = torch.arange(0, shape.head_dim, 2) / shape.head_dim
    angles = torch.arange(shape.context)[:, None] * shape.rope_base**-exponents
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """x (batch, heads, time, head_dim)."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).type_as(x)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        scale, out_scale = shape.dim**-0.5, (2 * shape.layers * shape.dim) ** -0.5
        kv_dim = shape.kv_heads * shape.head_dim
        self.shape = shape
        self.attn_norm = Norm(shape.dim, shape.eps)
        self.attn_q = Matrix(shape.dim, shape.dim, scale)
        self.attn_k = Matrix(kv_dim, shape.dim, scale)
        self.attn_v = Matrix(kv_dim, shape.dim, scale)
        self.attn_output = Matrix(shape.dim, shape.dim, out_scale)
        self.ffn_norm = Norm(shape.dim, shape.eps)
        self.ffn_gate = Matrix(shape.hidden, shape.dim, scale)
        self.ffn_up = Matrix(shape.hidden, shape.dim, scale)
        self.ffn_down = Matrix(shape.dim, shape.hidden, out_scale)

    def split_heads(self, x, heads):
        return x.unflatten(-1, (heads, self.shape.head_dim)).transpose(1, 2)

    def attend(self, x, cos, sin, rounded):
        q = rotate(self.split_heads(self.attn_q(x, rounded), self.shape.heads), cos, sin)
        k = rotate(self.split_heads(self.attn_k(x, rounded), self.shape.kv_heads), cos, sin)
        v = self.split_heads(self.attn_v(x, rounded), self.shape.kv_heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.attn_output(y.transpose(1, 2).flatten(-2), rounded)

    def forward(self, x, cos, sin, rounded):
        x = x + self.attend(self.attn_norm(x), cos, sin, rounded)
        y = self.ffn_norm(x)
        return x + self.ffn_down(
            F.silu(self.ffn_gate(y, rounded)) * self.ffn_up(y, rounded), rounded
        )


class Model(nn.Module):
    """rounded is 0 for plain weights, 1 for those of the file; anything between is a blend."""

    def __init__(self, shape):
        super().__init__()
        self.token_embd = nn.Parameter(torch.randn(shape.vocab, shape.dim) * 0.02)
        self.blk = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.output_norm = Norm(shape.dim, shape.eps)
        cos, sin = rope_table(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, tokens, rounded):
        table = blend(self.token_embd, round_q8_0, rounded)
        x = F.embedding(tokens, table)
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        for layer in self.blk:
            x = layer(x, cos, sin, rounded)
        return F.linear(self.output_norm(x), table)


def metadata(shape):
    return [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, "assay-tiny"),
        ("general.description", STRING, DESCRIPTION),
        ("general.license", STRING, "mit"),
        ("general.file_type", U32, 0),
        ("llama.block_count", U32, shape.layers),
        ("llama.context_length", U32, shape.context),
        ("llama.embedding_length", U32, shape.dim),
        ("llama.feed_forward_length", U32, shape.hidden),
        ("llama.attention.head_count", U32, shape.heads),
        ("llama.attention.head_count_kv", U32, shape.kv_heads),
        ("llama.attention.layer_norm_rms_epsilon", F32, shape.eps),
        ("llama.rope.dimension_count", U32, shape.head_dim),
        ("llama.rope.freq_base", F32, shape.rope_base),
        ("llama.vocab_size", U32, shape.vocab),
    ]


def tensors(weights):
    """The tensors of the file from the parameters of the model, by name."""
    return {
        name if name.endswith(".weight") else name + ".weight": weight
        for name, weight in weights.items()
    }
