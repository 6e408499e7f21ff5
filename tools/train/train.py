"""Trains the small model: corpus, tokens, steps, checkpoint.

Owns the data on the device, the schedule and the log. Does not own the architecture (llama.py,
rwkv7.py) or the GGUF (export.py). Half of the training windows begin at the beginning of a
document, because that is where a prompt begins.

    python3 train.py --family llama --vocab vocab.json --out weights.npz
"""

import argparse
import math
import multiprocessing
import time

import numpy as np
import torch
from torch.nn import functional as F

import bpe
import corpus
import families

VALIDATION_SEED = 10**6
VALIDATION_BATCHES = 8
ROUND_FROM, ROUND_FULL = 0.5, 0.6
WARMUP = 0.03
FINAL_RATE = 0.02
LOG_STEPS = 100


def parse_options():
    parser = argparse.ArgumentParser(description="train the small model")
    parser.add_argument("--family", choices=families.NAMES, default="llama")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=2_400_000)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--steps", type=int, default=11_000)
    parser.add_argument(
        "--seconds", type=float, help="train for this long instead of a number of steps"
    )
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--eager", action="store_true", help="do not compile the model")
    return parser.parse_args()


def encode_part(task):
    """The tokens of one part of the corpus, each document ended by the end token."""
    vocab, seed, count = task
    encoder = bpe.load(vocab)
    end = encoder.ids[corpus.END]
    ids = []
    for text in corpus.documents(seed, count):
        ids += encoder.encode(text)
        ids.append(end)
    return np.array(ids, dtype=np.int16)


def make_tokens(options):
    count = options.documents // options.processes
    seeds = range(options.seed * 1000, options.seed * 1000 + options.processes)
    tasks = [(options.vocab, seed, count) for seed in seeds]
    with multiprocessing.Pool(options.processes) as pool:
        return np.concatenate(pool.map(encode_part, tasks))


class Windows:
    """Random windows of the token stream, cut on the device."""

    def __init__(self, tokens, length, device, seed):
        self.tokens = torch.from_numpy(tokens).to(device)
        self.last = len(tokens) - length - 1
        starts = np.flatnonzero(tokens == 0) + 1
        self.starts = torch.from_numpy(starts[starts < self.last]).to(device)
        self.span = torch.arange(length + 1, device=device)
        self.rng = torch.Generator(device).manual_seed(seed)

    def draw(self, limit, count):
        return torch.randint(limit, (count,), generator=self.rng, device=self.tokens.device)

    def batch(self, size):
        """Inputs and targets, each (size, length)."""
        documents = self.starts[self.draw(len(self.starts), size // 2)]
        anywhere = self.draw(self.last, size - size // 2)
        window = self.tokens[torch.cat((documents, anywhere))[:, None] + self.span].long()
        return window[:, :-1], window[:, 1:]


def make_optimizer(model, rate):
    matrices = [weight for weight in model.parameters() if weight.dim() == 2]
    norms = [weight for weight in model.parameters() if weight.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": norms, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), fused=True)


def rate_at(progress):
    """The fraction of the full learning rate: a short rise, then a cosine."""
    if progress < WARMUP:
        return progress / WARMUP
    fall = (progress - WARMUP) / (1 - WARMUP)
    return FINAL_RATE + (1 - FINAL_RATE) * 0.5 * (1 + math.cos(math.pi * fall))


def rounding_at(progress):
    """How much of the rounding of the file is in force."""
    return min(1.0, max(0.0, (progress - ROUND_FROM) / (ROUND_FULL - ROUND_FROM)))


def loss_of(model, inputs, targets, rounded):
    with torch.autocast(inputs.device.type, dtype=torch.bfloat16):
        logits = model(inputs, rounded)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


@torch.no_grad()
def validate(model, windows, size, rounded):
    losses = [loss_of(model, *windows.batch(size), rounded) for _ in range(VALIDATION_BATCHES)]
    return torch.stack(losses).mean().item()


class Schedule:
    """How far training is, by steps or by time; time starts after the first step, which compiles."""

    def __init__(self, options):
        self.steps, self.seconds = options.steps, options.seconds
        self.began = time.time()

    def progress(self, step):
        if step == 1:
            self.began = time.time()
        if self.seconds is None:
            return step / self.steps
        return min(1.0, self.elapsed() / self.seconds) if step else 0.0

    def elapsed(self):
        return time.time() - self.began


def step_once(model, optimizer, loss_fn, batch, rounded):
    loss = loss_fn(model, *batch, rounded)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss


def train(model, windows, options):
    optimizer = make_optimizer(model, options.rate)
    loss_fn = loss_of if options.eager else torch.compile(loss_of)
    rounded = torch.zeros((), device=options.device)
    schedule, step, progress = Schedule(options), 0, 0.0
    while progress < 1:
        progress = schedule.progress(step)
        for group in optimizer.param_groups:
            group["lr"] = options.rate * rate_at(progress)
        rounded.fill_(rounding_at(progress))
        loss = step_once(model, optimizer, loss_fn, windows.batch(options.batch), rounded)
        if step == 0 or step % LOG_STEPS == 0 or progress == 1:
            print(
                f"step {step} loss {loss.item():.4f} rounded {rounded.item():.2f} "
                f"seconds {schedule.elapsed():.0f}",
                flush=True,
            )
            if not math.isfinite(loss.item()):
                raise SystemExit("the loss is not finite")
        step += 1


def save(model, path):
    arrays = {name: weight.detach().cpu().numpy() for name, weight in model.named_parameters()}
    np.savez(path, **arrays)


def main():
    options = parse_options()
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    family = families.load(options.family)
    shape = family.Shape()
    began = time.time()
    tokens = make_tokens(options)
    unseen = encode_part((options.vocab, VALIDATION_SEED, max(400, options.documents // 100)))
    print(f"{len(tokens)} tokens in {time.time() - began:.0f} s, {len(unseen)} unseen", flush=True)
    model = family.Model(shape).to(options.device)
    print(f"{sum(weight.numel() for weight in model.parameters())} parameters", flush=True)
    train(model, Windows(tokens, shape.context, options.device, options.seed), options)
    save(model, options.out)
    for amount in (0.0, 1.0):
        windows = Windows(unseen, shape.context, options.device, VALIDATION_SEED)
        rounded = torch.tensor(amount, device=options.device)
        loss = validate(model, windows, options.batch, rounded)
        print(f"unseen text: loss {loss:.4f} with rounding {amount:.0f}", flush=True)


if __name__ == "__main__":
    main()
