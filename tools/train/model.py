"""The llama architecture in PyTorch, small, with the rounding of the exported file built in.

Owns the shape, the forward pass and the fake quantisation. Does not own training or files.
RoPE turns consecutive pairs (2i, 2i+1), which is what a GGUF of this architecture means,
so nothing is permuted on export.
"""

import dataclasses

import torch
from torch import nn
from torch.nn import functional as F

BLOCK = 32


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


def round_q4_0(weight):
    """A matrix after Q4_0: in each block, the value farthest from zero becomes -8 steps."""
    x = weight.reshape(-1, BLOCK)
    largest = x.gather(1, x.abs().argmax(1, keepdim=True))
    step = largest / -8
    inverse = torch.where(step == 0, 0.0, 1 / step)
    levels = torch.clamp(torch.floor(x * inverse + 8.5), max=15) - 8
    return (levels * step.half().float()).reshape(weight.shape)


def round_q8_0(weight):
    """A matrix after Q8_0."""
    x = weight.reshape(-1, BLOCK)
    step = x.abs().amax(1, keepdim=True) / 127
    inverse = torch.where(step == 0, 0.0, 1 / step)
    return (torch.round(x * inverse) * step.half().float()).reshape(weight.shape)


def blend(weight, rounding, amount):
    """Moves a weight towards its rounded value; the gradient passes straight through."""
    return weight + amount * (rounding(weight.detach()) - weight.detach())


class Matrix(nn.Module):
    """A linear map without bias, used as it will be stored."""

    def __init__(self, rows, columns, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, columns) * scale)

    def forward(self, x, rounded):
        return F.linear(x, blend(self.weight, round_q4_0, rounded))


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
