"""The RWKV-7 architecture in PyTorch, small, with the rounding of the exported file built in.

Owns the shape, the forward pass, the starting values and the metadata. Does not own the recurrence
(wkv7.py), training or files. Parameters have the names and shapes of the file. Layer 0 needs no
value residual; the file holds copies of a0, a1 and a2 in its place, as readers expect.
"""

import dataclasses

import torch
from torch import nn
from torch.nn import functional as F

from gguf import F32, STRING, U32
from rounding import Matrix, blend, round_q4_0
from wkv7 import wkv7

DESCRIPTION = "A very small recurrent model that tells short tales about metals, smiths and assayers."
DECAY = 0.606531
GROUP_EPS = 64e-5
KEY_EPS = 1e-12


@dataclasses.dataclass
class Shape:
    vocab: int = 2048
    dim: int = 256
    layers: int = 4
    head_size: int = 64
    hidden: int = 1024
    decay_rank: int = 32
    rate_rank: int = 32
    value_rank: int = 32
    gate_rank: int = 32
    context: int = 512
    eps: float = 1e-5

    @property
    def heads(self):
        return self.dim // self.head_size


class Norm(nn.Module):
    """Layer norm with bias over the last dimension of (batch, time, dim) or (batch, time, heads, n)."""

    def __init__(self, dim, eps, start=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((dim,), start))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        spread, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        y = (x - mean) * torch.rsqrt(spread + self.eps)
        return y.reshape(*y.shape[:2], -1) * self.weight + self.bias


def uniform(rows, columns, scale):
    matrix = Matrix(rows, columns, 0.0)
    nn.init.uniform_(matrix.weight, -scale, scale)
    return matrix


def down(rank, dim):
    return nn.Parameter(torch.zeros(rank, dim))


def up(dim, rank):
    return nn.Parameter(nn.init.orthogonal_(torch.empty(dim, rank), gain=0.1))


def vector(values):
    return nn.Parameter(values.clone())


def previous(x):
    """x of the token before, zero for the first."""
    return F.pad(x, (0, 0, 1, -1))


class TimeMix(nn.Module):
    """The parameters and the pass of the first half of a layer; their names start with time_mix_."""

    def __init__(self, shape, layer):
        super().__init__()
        dim, scale = shape.dim, 0.5 * shape.dim**-0.5
        depth, height = layer / max(1, shape.layers - 1), 1 - layer / shape.layers
        along = torch.arange(dim) / (dim - 1)
        lane = torch.arange(dim) % shape.head_size
        centred = (lane - (shape.head_size - 1) / 2) / ((shape.head_size - 1) / 2)
        zigzag, line = centred * centred.abs(), along - 0.5
        share = torch.arange(dim) / dim
        powers = (0.2, 0.9, 0.7, 0.7, 0.9, 0.2)
        mixes = torch.stack([1 - share ** (power * height) for power in powers])
        self.shape = shape
        self.lerp_fused = vector(mixes.reshape(6, 1, 1, dim))
        self.w0 = vector(-5.5 + 5 * along ** (1 + depth**0.3) + 2.5 * zigzag)
        self.w1, self.w2 = down(shape.decay_rank, dim), up(dim, shape.decay_rank)
        self.a0 = vector(-0.19 + 0.3 * zigzag + 0.4 * line)
        self.a1, self.a2 = down(shape.rate_rank, dim), up(dim, shape.rate_rank)
        if layer:
            self.v0 = vector(0.73 - 0.4 * line)
            self.v1, self.v2 = down(shape.value_rank, dim), up(dim, shape.value_rank)
        self.g1, self.g2 = down(shape.gate_rank, dim), up(dim, shape.gate_rank)
        self.k_k = vector(0.71 - 0.1 * line)
        self.k_a = vector(torch.full((dim,), 1.02))
        self.r_k = vector(torch.full((dim,), -0.04))
        self.receptance = uniform(dim, dim, scale)
        self.key = uniform(dim, dim, 0.1 * scale)
        self.value = uniform(dim, dim, scale)
        self.output = Matrix(dim, dim, 0.0)
        self.ln = Norm(dim, GROUP_EPS, ((1 + layer) / shape.layers) ** 0.7)

    def heads(self, x):
        return x.float().unflatten(-1, (-1, self.shape.head_size))

    def forward(self, x, v_first, rounded):
        before = previous(x) - x
        xr, xw, xk, xv, xa, xg = (x + before * mix for mix in self.lerp_fused.unbind())
        r, k = self.receptance(xr, rounded).float(), self.key(xk, rounded).float()
        v = self.value(xv, rounded).float()
        z = self.w0 + F.linear(torch.tanh(F.linear(xw, self.w1)), self.w2).float()
        w = torch.exp(-DECAY * torch.sigmoid(z))
        a = torch.sigmoid(self.a0 + F.linear(F.linear(xa, self.a1), self.a2).float())
        g = F.linear(torch.sigmoid(F.linear(xg, self.g1)), self.g2).float()
        if v_first is None:
            v_first = v
        else:
            share = torch.sigmoid(self.v0 + F.linear(F.linear(xv, self.v1), self.v2).float())
            v = v + (v_first - v) * share
        kk = F.normalize(self.heads(k * self.k_k), dim=-1, eps=KEY_EPS)
        k = k * (1 + (a - 1) * self.k_a)
        r, w, k, v, a = (self.heads(each) for each in (r, w, k, v, a))
        y = self.ln(wkv7(r, w, k, v, -kk, kk * a))
        bonus = (r * k * self.heads(self.r_k)).sum(-1, keepdim=True) * v
        return self.output((y + bonus.flatten(-2)) * g, rounded), v_first


class ChannelMix(nn.Module):
    """The second half of a layer; the names of its parameters start with channel_mix_."""

    def __init__(self, shape, layer):
        super().__init__()
        share = torch.arange(shape.dim) / shape.dim
        height = 1 - layer / shape.layers
        self.lerp_k = vector(1 - share ** (height**4))
        self.key = uniform(shape.hidden, shape.dim, 0.5 * shape.dim**-0.5)
        self.value = Matrix(shape.dim, shape.hidden, 0.0)

    def forward(self, x, rounded):
        z = x + (previous(x) - x) * self.lerp_k
        return self.value(torch.relu(self.key(z, rounded)).square(), rounded)


class Layer(nn.Module):
    def __init__(self, shape, layer):
        super().__init__()
        self.attn_norm = Norm(shape.dim, shape.eps)
        self.attn_norm_2 = Norm(shape.dim, shape.eps)
        self.time_mix = TimeMix(shape, layer)
        self.channel_mix = ChannelMix(shape, layer)

    def forward(self, x, v_first, rounded):
        y, v_first = self.time_mix(self.attn_norm(x), v_first, rounded)
        x = x + y
        return x + self.channel_mix(self.attn_norm_2(x), rounded), v_first


class Model(nn.Module):
    """rounded is 0 for plain weights, 1 for those of the file; anything between is a blend."""

    def __init__(self, shape):
        super().__init__()
        self.token_embd = nn.Parameter(torch.randn(shape.vocab, shape.dim) * 0.02)
        self.token_embd_norm = Norm(shape.dim, shape.eps)
        self.blk = nn.ModuleList(Layer(shape, layer) for layer in range(shape.layers))
        self.output_norm = Norm(shape.dim, shape.eps)
        self.output = nn.Parameter(torch.randn(shape.vocab, shape.dim) * 0.5 * shape.dim**-0.5)

    def forward(self, tokens, rounded):
        x = self.token_embd_norm(F.embedding(tokens, blend(self.token_embd, round_q4_0, rounded)))
        v_first = None
        for layer in self.blk:
            x, v_first = layer(x, v_first, rounded)
        return F.linear(self.output_norm(x), self.output)


def metadata(shape):
    return [
        ("general.architecture", STRING, "rwkv7"),
        ("general.name", STRING, "assay-tiny-rwkv7"),
        ("general.description", STRING, DESCRIPTION),
        ("general.license", STRING, "mit"),
        ("general.file_type", U32, 0),
        ("rwkv7.context_length", U32, 1048576),
        ("rwkv7.embedding_length", U32, shape.dim),
        ("rwkv7.block_count", U32, shape.layers),
        ("rwkv7.feed_forward_length", U32, shape.hidden),
        ("rwkv7.attention.layer_norm_epsilon", F32, shape.eps),
        ("rwkv7.attention.head_count", U32, 0),
        ("rwkv7.wkv.head_size", U32, shape.head_size),
        ("rwkv7.attention.decay_lora_rank", U32, shape.decay_rank),
        ("rwkv7.attention.iclr_lora_rank", U32, shape.rate_rank),
        ("rwkv7.attention.value_residual_mix_lora_rank", U32, shape.value_rank),
        ("rwkv7.attention.gate_lora_rank", U32, shape.gate_rank),
    ]


def tensor_name(name):
    name = name.replace("time_mix.", "time_mix_").replace("channel_mix.", "channel_mix_")
    return name if name.endswith((".weight", ".bias")) else name + ".weight"


def tensors(weights):
    """The tensors of the file from the parameters of the model, by name."""
    out = {tensor_name(name): weight for name, weight in weights.items()}
    for part in "012":
        out[f"blk.0.time_mix_v{part}.weight"] = out[f"blk.0.time_mix_a{part}.weight"]
    return out
