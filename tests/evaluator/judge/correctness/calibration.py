"""Honest and dishonest implementations of common operators, to calibrate the accept rule on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from evaluator.judge.correctness.comparison import OutputVerdict, compare
from evaluator.settings import Precision


@dataclass
class Case:
    """One operator at one size, and what people and cheats make of it."""

    name: str
    inputs: list[Tensor]
    reference: Callable[..., Tensor]
    accumulation: int
    precision: Precision = Precision.FP32
    honest: dict[str, Callable[..., Tensor]] = field(default_factory=dict)
    dishonest: dict[str, Callable[..., Tensor]] = field(default_factory=dict)

    @cached_property
    def expected(self) -> Tensor:
        return self.reference(*self.inputs)

    @cached_property
    def exact(self) -> Tensor:
        wide = (t.double() if t.is_floating_point() else t for t in self.inputs)
        return self.reference(*wide)

    def judge(self, kernel: Callable[..., Tensor]) -> OutputVerdict:
        return compare(
            [kernel(*self.inputs).to(self.expected.dtype)],
            [self.expected],
            [self.exact],
            self.inputs,
            self.precision,
            accumulation=self.accumulation,
        )


def rounded(t: Tensor, bits: int) -> Tensor:
    """fp32 values with so many mantissa bits kept (tf32: 10), round to nearest."""
    drop = 23 - bits
    word = t.contiguous().view(torch.int32)
    return ((word + (1 << (drop - 1))) >> drop << drop).view(torch.float32)


def ulps(t: Tensor, most: float, seed: int = 1) -> Tensor:
    """fp32 values off by up to `most` units in the last place, as a fast approximation leaves."""
    noise = torch.rand(t.shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    return t * (1 + noise * most * 2.0**-23)


def sequential(t: Tensor, dim: int = -1) -> Tensor:
    """One fp32 accumulator an output, first to last."""
    partial = np.add.accumulate(t.numpy(), axis=dim, dtype=np.float32)
    return torch.from_numpy(np.asarray(np.take(partial, -1, axis=dim)))


def strided(t: Tensor, threads: int) -> Tensor:
    """Last dimension summed as a block of threads does: each a stride, then all partial sums."""
    return sequential(sequential(t.reshape(*t.shape[:-1], -1, threads), -2))


def matmul_sequential(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for i in range(a.shape[1]):
        total += a[:, i : i + 1] * b[i]
    return total


def matmul_blocked(a: Tensor, b: Tensor, block: int = 32) -> Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for i in range(0, a.shape[1], block):
        total += matmul_sequential(a[:, i : i + block], b[i : i + block])
    return total


def matmul_fused(a: Tensor, b: Tensor) -> Tensor:
    """Fused multiply-add: the product is not rounded before it is added."""
    total = torch.zeros(a.shape[0], b.shape[1])
    wide_a, wide_b = a.double(), b.double()
    for i in range(a.shape[1]):
        total = (total.double() + wide_a[:, i : i + 1] * wide_b[i]).float()
    return total


def off_by_one(a: Tensor, b: Tensor) -> Tensor:
    return a[:, :-1] @ b[:-1]


def one_element(kernel: Callable[..., Tensor], by: float = 1e-3) -> Callable[..., Tensor]:
    """Right but for one element, which is off by this part of the typical magnitude."""

    def wrong(*inputs: Tensor) -> Tensor:
        out = kernel(*inputs).clone()
        flat = out.view(-1)
        flat[flat.numel() // 3] += by * float(out.float().square().mean().sqrt())
        return out

    return wrong


def tail_dropped(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The last elements, fewer than a vector, stay zero."""

    def wrong(*inputs: Tensor) -> Tensor:
        out = kernel(*inputs).clone()
        out.view(-1)[-3:] = 0
        return out

    return wrong


def cheats(reference: Callable[..., Tensor]) -> dict[str, Callable[..., Tensor]]:
    """What must fail whatever the operator is."""
    return {
        "zeros": lambda *i: torch.zeros_like(reference(*i)),
        "mean": lambda *i: torch.full_like(reference(*i), float(reference(*i).float().mean())),
        "half of it": lambda *i: reference(*i) * 0.5,
        "scale 1.001": lambda *i: reference(*i) * 1.001,
        "bf16 inputs": lambda *i: reference(*(t.bfloat16().float() for t in i)),
        "fp16 inputs": lambda *i: reference(*(t.half().float() for t in i)),
        "tf32 inputs": lambda *i: reference(*(rounded(t, 10) for t in i)),
        "bf16 output": lambda *i: reference(*i).bfloat16().float(),
        "tail dropped": tail_dropped(reference),
        "one element": one_element(reference),
    }


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def matmul(k: int) -> Case:
    return Case(
        f"matmul k={k}",
        [randn(48, k), randn(k, 64, seed=1)],
        torch.mm,
        k,
        honest={
            "sequential": matmul_sequential,
            "blocked": matmul_blocked,
            "reversed": lambda a, b: matmul_sequential(a.flip(1), b.flip(0)),
            "fused multiply-add": matmul_fused,
            "split k": lambda a, b: a[:, ::2] @ b[::2] + a[:, 1::2] @ b[1::2],
        },
        dishonest=cheats(torch.mm)
        | {
            "half of k": lambda a, b: 2 * a[:, ::2] @ b[::2],
            "off by one": off_by_one,
            "swapped operands": lambda a, b: (b.mT @ a.mT).reshape(48, 64),
        },
    )


def softmax(n: int) -> Case:
    def online(x: Tensor, block: int = 64) -> Tensor:
        top = torch.full((x.shape[0], 1), -torch.inf)
        total = torch.zeros(x.shape[0], 1)
        for part in x.split(block, 1):
            new = torch.maximum(top, part.amax(1, keepdim=True))
            total = total * torch.exp(top - new) + torch.exp(part - new).sum(1, keepdim=True)
            top = new
        return torch.exp(x - top) / total

    def approximate(x: Tensor) -> Tensor:
        e = ulps(torch.exp(x - x.amax(1, keepdim=True)), 2)
        return e * (1 / sequential(e).unsqueeze(1))

    def reference(x: Tensor) -> Tensor:
        return torch.softmax(x, 1)

    return Case(
        f"softmax n={n}",
        [randn(48, n)],
        reference,
        n,
        honest={
            "online": online,
            "exp of 2 ulp, sequential": approximate,
            "no maximum taken off": lambda x: torch.exp(x) / torch.exp(x).sum(1, keepdim=True),
        },
        dishonest=cheats(reference)
        | {
            "last column left out": lambda x: (
                torch.exp(x) / torch.exp(x[:, :-1]).sum(1, keepdim=True)
            ),
            "other dimension": lambda x: torch.softmax(x, 0),
            "half of the sum": lambda x: (
                torch.exp(x) / torch.exp(x[:, ::2]).sum(1, keepdim=True) / 2
            ),
        },
    )


def layer_norm(n: int, scale: float) -> Case:
    weight, bias = rand(n, seed=2) + 0.5, rand(n, seed=3) - 0.5

    def reference(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (n,), weight.to(x.dtype), bias.to(x.dtype), eps=1e-5)

    def normalised(x: Tensor, mean: Tensor, var: Tensor, eps: float = 1e-5) -> Tensor:
        return (x - mean[:, None]) * ulps(torch.rsqrt(var + eps), 2)[:, None] * weight + bias

    def two_pass(x: Tensor) -> Tensor:
        mean = sequential(x) / n
        return normalised(x, mean, sequential((x - mean[:, None]) ** 2) / n)

    def naive(x: Tensor) -> Tensor:
        mean = sequential(x) / n
        return normalised(x, mean, sequential(x * x) / n - mean * mean)

    def welford(x: Tensor) -> Tensor:
        mean, squares = torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
        for i in range(n):
            delta = x[:, i] - mean
            mean = mean + delta / (i + 1)
            squares = squares + delta * (x[:, i] - mean)
        return normalised(x, mean, squares / n)

    return Case(
        f"layer norm n={n}, scale {scale:g}",
        [randn(96, n) * scale],
        reference,
        n,
        honest={"two-pass": two_pass, "naive variance": naive, "Welford": welford},
        dishonest=cheats(reference)
        | {
            "unbiased variance": lambda x: normalised(x, x.mean(1), x.var(1)),
            "eps 1e-6": lambda x: normalised(x, x.mean(1), x.var(1, correction=0), 1e-6),
            "no affine": lambda x: functional.layer_norm(x, (n,)),
            "input": lambda x: x,
        },
    )


def gelu() -> Case:
    return Case(
        "gelu",
        [randn(64, 1000) * 2],
        functional.gelu,
        1,
        honest={
            "erf of 2 ulp": lambda x: 0.5 * x * (1 + ulps(torch.erf(x * 0.70710678), 2)),
            "erfc": lambda x: 0.5 * x * torch.erfc(-x * 0.70710678),
        },
        dishonest=cheats(functional.gelu)
        | {
            "tanh form": lambda x: functional.gelu(x, approximate="tanh"),
            "sigmoid form": lambda x: x * torch.sigmoid(1.702 * x),
            "relu": functional.relu,
        },
    )


def positive_sum() -> Case:
    n = 2**24
    return Case(
        "sum of 2^24 uniform",
        [rand(n)],
        torch.sum,
        n,
        honest={
            "256 threads, sequential": lambda x: strided(x, 256),
            "65536 threads": lambda x: strided(x, 65536),
        },
        dishonest={
            "half": lambda x: 2 * x[: n // 2].sum(),
            "tail dropped": lambda x: x[: -(n // 1000)].sum(),
            "zero": lambda x: x.sum() * 0,
            "expected value": lambda x: torch.tensor(n * 0.5) * 1.0005,
        },
    )


def cumsum(n: int) -> Case:
    def reference(x: Tensor) -> Tensor:
        return x.cumsum(1)

    def scanned(x: Tensor, block: int = 256) -> Tensor:
        parts = torch.from_numpy(
            np.add.accumulate(x.reshape(x.shape[0], -1, block).numpy(), axis=2, dtype=np.float32)
        )
        before = torch.from_numpy(np.add.accumulate(parts[..., -1].numpy(), axis=1))
        parts[:, 1:] += before[:, :-1, None]
        return parts.reshape(x.shape)

    def in_order(x: Tensor) -> Tensor:
        return torch.from_numpy(np.add.accumulate(x.numpy(), axis=1, dtype=np.float32))

    return Case(
        f"cumsum n={n}",
        [randn(16, n)],
        reference,
        n,
        honest={"sequential": in_order, "block scan": scanned},
        dishonest=cheats(reference)
        | {
            "exclusive": lambda x: x.cumsum(1) - x,
            "restarts": lambda x: x.reshape(16, -1, n // 2).cumsum(2).reshape(16, n),
        },
    )


def half_matmul(k: int, dtype: torch.dtype, precision: Precision) -> Case:
    def in_fp32(a: Tensor, b: Tensor) -> Tensor:
        return matmul_sequential(a.float(), b.float()).to(dtype)

    def in_chunks(a: Tensor, b: Tensor) -> Tensor:
        total = torch.zeros(a.shape[0], b.shape[1], dtype=dtype)
        for i in range(0, k, 32):
            total = total + (a[:, i : i + 32].float() @ b[i : i + 32].float()).to(dtype)
        return total

    def e4m3(t: Tensor) -> Tensor:
        return t.to(torch.float8_e4m3fn).to(dtype)

    # On the CPU this is what the GPU's libraries do: accumulate in fp32, round once.
    def reference(a: Tensor, b: Tensor) -> Tensor:
        return a @ b if a.dtype is torch.float64 else (a.float() @ b.float()).to(dtype)

    return Case(
        f"{precision} matmul k={k}",
        [randn(48, k).to(dtype), randn(k, 64, seed=1).to(dtype)],
        reference,
        k,
        precision,
        honest={"fp32 accumulation, sequential": in_fp32},
        dishonest={
            "accumulated in 16 bits": in_chunks,
            "e4m3 inputs": lambda a, b: reference(e4m3(a), e4m3(b)),
            "half of k": lambda a, b: 2 * reference(a[:, ::2], b[::2]),
            "off by one": lambda a, b: reference(a[:, :-1], b[:-1]),
            "zeros": lambda a, b: torch.zeros(48, 64, dtype=dtype),
            "one element": one_element(reference, 0.5),
            "scale 1.01": lambda a, b: reference(a, b) * 1.01,
        },
    )


def half_softmax(dtype: torch.dtype, precision: Precision) -> Case:
    def reference(x: Tensor) -> Tensor:
        return torch.softmax(x, 1)

    return Case(
        f"{precision} softmax n=1024",
        [randn(48, 1024).to(dtype)],
        reference,
        1024,
        precision,
        honest={"fp32 inside": lambda x: torch.softmax(x.float(), 1).to(dtype)},
        dishonest={
            "scale 1.01": lambda x: (1.01 * torch.softmax(x.float(), 1)).to(dtype),
            "uniform": lambda x: torch.full_like(x, 1 / 1024),
            "zeros": torch.zeros_like,
        },
    )


def cases() -> list[Case]:
    """All of them, small enough for two cores."""
    return [
        matmul(1024),
        softmax(1000),
        layer_norm(768, 0.01),
        gelu(),
        positive_sum(),
        cumsum(32768),
        half_matmul(256, torch.float16, Precision.FP16),
        half_matmul(256, torch.bfloat16, Precision.BF16),
        half_softmax(torch.bfloat16, Precision.BF16),
    ]
