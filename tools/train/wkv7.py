"""The recurrence of RWKV-7 as an operation of PyTorch, with gradients.

Owns the binding of wkv7.cu and the same two passes in plain PyTorch for machines without a GPU. Vectors
are (batch, time, heads, 64), f32; time is a multiple of CHUNK. Built by nvcc at the first use on a
GPU, into a folder that WKV7_BUILD names.

    python3 wkv7.py --device cuda      compares outputs and gradients with a pass in double
"""

import argparse
import ctypes
import os
import pathlib
import subprocess
import tempfile

import torch

HERE = pathlib.Path(__file__).parent
CHUNK = 8
TOLERANCE = 2e-4
LIBRARY = []


def library():
    """The built wkv7.cu."""
    if not LIBRARY:
        folder = os.environ.get("WKV7_BUILD") or tempfile.mkdtemp()
        path = os.path.join(folder, "wkv7.so")
        major, minor = torch.cuda.get_device_capability()
        command = ["nvcc", "-O3", f"-arch=sm_{major}{minor}", "-shared", "-Xcompiler", "-fPIC"]
        subprocess.run(command + ["-o", path, str(HERE / "wkv7.cu")], check=True)
        LIBRARY.append(ctypes.CDLL(path))
    return LIBRARY[0]


def call(function, shape, tensors):
    batch, time, heads, n = shape
    if n != 64 or time % CHUNK or any(x.dtype != torch.float32 for x in tensors):
        raise ValueError(f"heads of 64, a multiple of {CHUNK} tokens and f32 are needed")
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
    failed = function(stream, batch, time, heads, *pointers)
    if failed:
        raise RuntimeError(f"CUDA error {failed}")


def outer(rows, columns):
    return rows[..., :, None] * columns[..., None, :]


def plain_forward(r, w, k, v, a, b):
    """y, sa, and the state (value, key) after each chunk."""
    batch, time, heads, n = r.shape
    state = r.new_zeros(batch, heads, n, n)
    ys, removed, states = [], [], []
    for t in range(time):
        sa = (state * a[:, t, :, None]).sum(-1)
        state = state * w[:, t, :, None] + outer(v[:, t], k[:, t]) + outer(sa, b[:, t])
        ys.append((state * r[:, t, :, None]).sum(-1))
        removed.append(sa)
        if t % CHUNK == CHUNK - 1:
            states.append(state)
    return torch.stack(ys, 1), torch.stack(removed, 1), torch.stack(states, 2)


def plain_backward(dy, r, w, k, v, a, b, sa, states):
    """The gradients of r, w, k, v, a and b, from the last token to the first."""
    gradients = [torch.empty_like(r) for _ in range(6)]
    gradient = torch.zeros_like(states[:, :, 0])
    for t in reversed(range(r.shape[1])):
        if t % CHUNK == CHUNK - 1:
            state = states[:, :, t // CHUNK]
        rt, wt, kt, vt, at, bt, st, dt = (x[:, t] for x in (r, w, k, v, a, b, sa, dy))
        gradient = gradient + outer(dt, rt)
        dr = (state * dt[..., None]).sum(-2)
        state = (state - outer(vt, kt) - outer(st, bt)) / wt[..., None, :]
        dsa = (gradient * bt[..., None, :]).sum(-1)
        values = (
            dr,
            (gradient * state).sum(-2),
            (gradient * vt[..., None]).sum(-2),
            (gradient * kt[..., None, :]).sum(-1),
            (state * dsa[..., None]).sum(-2),
            (gradient * st[..., None]).sum(-2),
        )
        for out, value in zip(gradients, values):
            out[:, t] = value
        gradient = gradient * wt[..., None, :] + outer(dsa, at)
    return gradients


def state_shape(r):
    batch, time, heads, n = r.shape
    return batch, heads, time // CHUNK, n, n


@torch.library.custom_op("assay::wkv7_forward", mutates_args=())
def forward_op(
    r: torch.Tensor,
    w: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if not r.is_cuda:
        return plain_forward(r, w, k, v, a, b)
    inputs = [x.contiguous() for x in (r, w, k, v, a, b)]
    y, sa = torch.empty_like(inputs[0]), torch.empty_like(inputs[0])
    states = r.new_empty(state_shape(r))
    call(library().wkv7_forward, r.shape, inputs + [y, sa, states])
    return y, sa, states


@forward_op.register_fake
def _(r, w, k, v, a, b):
    return r.new_empty(r.shape), r.new_empty(r.shape), r.new_empty(state_shape(r))


@torch.library.custom_op("assay::wkv7_backward", mutates_args=())
def backward_op(
    dy: torch.Tensor,
    r: torch.Tensor,
    w: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    sa: torch.Tensor,
    states: torch.Tensor,
) -> list[torch.Tensor]:
    if not r.is_cuda:
        return plain_backward(dy, r, w, k, v, a, b, sa, states)
    inputs = [x.contiguous() for x in (r, w, k, v, a, b, sa, states, dy)]
    gradients = [torch.empty_like(inputs[0]) for _ in range(6)]
    call(library().wkv7_backward, r.shape, inputs + gradients)
    return gradients


@backward_op.register_fake
def _(dy, r, w, k, v, a, b, sa, states):
    return [r.new_empty(r.shape) for _ in range(6)]


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs, *output[1:])


def gradients_of(ctx, dy, _sa, _states):
    return tuple(backward_op(dy, *ctx.saved_tensors))


forward_op.register_autograd(gradients_of, setup_context=keep)


def wkv7(r, w, k, v, a, b):
    return forward_op(r, w, k, v, a, b)[0]


def example(batch, time, heads, n, rng):
    """Inputs as a model makes them: keys of length one, decays in their range."""
    r, k, v, kk, rate, decay = (
        torch.randn(batch, time, heads, n, generator=rng, dtype=torch.double) for _ in range(6)
    )
    kk = torch.nn.functional.normalize(kk, dim=-1)
    w = torch.exp(-0.606531 * torch.sigmoid(2 * decay))
    return r, w, k, v, -kk, kk * torch.sigmoid(rate)


def run_pass(function, inputs, dy):
    inputs = [x.detach().requires_grad_() for x in inputs]
    y = function(*inputs)
    return [y, *torch.autograd.grad(y, inputs, dy.to(y))]


def compare(device, batch=3, time=64, heads=2, n=64):
    """Outputs and gradients against automatic differentiation in double; raises on a difference."""
    rng = torch.Generator().manual_seed(1)
    inputs = example(batch, time, heads, n, rng)
    dy = torch.randn(batch, time, heads, n, generator=rng, dtype=torch.double)
    expected = run_pass(lambda *x: plain_forward(*x)[0], inputs, dy)
    got = run_pass(wkv7, [x.float().to(device) for x in inputs], dy)
    for name, good, value in zip(("y", "dr", "dw", "dk", "dv", "da", "db"), expected, got):
        off = ((value.cpu().double() - good).abs().max() / good.abs().max()).item()
        print(f"wkv7 {name} off by {off:.1e} of its largest value", flush=True)
        if not off <= TOLERANCE:
            raise SystemExit(f"{name} differs by {off}, allowed is {TOLERANCE}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="compare the recurrence with a pass in double")
    parser.add_argument("--device", default="cuda")
    compare(parser.parse_args().device)
