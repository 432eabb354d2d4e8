"""Calling a module without a trace: what a call does to its buffers is undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def buffers_kept(module: torch.nn.Module) -> Iterator[None]:
    """Running statistics move in train mode; a judged call must not depend on earlier ones."""
    saved = [buffer.detach().clone() for buffer in module.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(module.buffers(), saved, strict=True):
                buffer.copy_(value)
