"""PyTorch's flags of one process that decide how products and convolutions in fp32 are computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass

import torch


@dataclass(frozen=True)
class BackendFlags:
    tf32_products: bool = False
    tf32_convolutions: bool = False
    cudnn_benchmark: bool = False

    @classmethod
    def of_pytorch(cls) -> BackendFlags:
        return cls(tf32_convolutions=True)

    @classmethod
    def current(cls) -> BackendFlags:
        cudnn = torch.backends.cudnn
        return cls(torch.backends.cuda.matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark)

    def set(self) -> None:
        torch.backends.cuda.matmul.allow_tf32 = self.tf32_products
        torch.backends.cudnn.allow_tf32 = self.tf32_convolutions
        torch.backends.cudnn.benchmark = self.cudnn_benchmark

    @contextmanager
    def added(self) -> Iterator[None]:
        """While this lasts, what they allow is allowed besides."""
        before = self.current()
        pairs = zip(astuple(self), astuple(before), strict=True)
        BackendFlags(*(mine or theirs for mine, theirs in pairs)).set()
        try:
            yield
        finally:
            before.set()
