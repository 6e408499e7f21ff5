"""The rounding of Q4_0 and Q8_0, for training with the weights as the file will hold them.

Owns the fake quantisation and the linear map that uses it. Does not own any architecture.
"""

import torch
from torch import nn
from torch.nn import functional as F

BLOCK = 32


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
