"""One kernel with a planted inefficiency and its fixed version, written as a unified diff.

In `cuda` a line that begins with `-` is in the planted kernel only, one that begins
with `+` in the fixed one only, and any other begins with a space and is in both. So what differs is
what is planted, and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from evaluator.ipc.build_request import BuildRequest

Side = Literal["planted", "fixed"]
SIDES: tuple[Side, ...] = ("planted", "fixed")
_MARKS = {"planted": "-", "fixed": "+"}
_MODULE = '''import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
{cuda}"""

ext = load_inline(
    name="{name}",
    cpp_sources="{declaration};",
    cuda_sources=cuda_source,
    functions=["run"],
)


class ModelNew(torch.nn.Module):
    def forward(self, *inputs):
        return ext.run(*inputs)
'''


@dataclass(frozen=True)
class Case:
    """A function to compute, a slow way with one fault, and the same without it."""

    name: str
    fault: str
    """What is planted."""
    reference: str
    """The problem, by KernelBench's contract."""
    cuda: str
    """The kernels and `run`, a diff."""

    def source(self, side: Side) -> str:
        """The candidate's file."""
        cuda = _only(self.cuda, side)
        declaration = re.search(r"^torch::Tensor run\([^)]*\)", cuda, re.MULTILINE)
        assert declaration is not None, self.name
        return _MODULE.format(
            name=f"{self.name}_{side}",
            cuda=cuda,
            declaration=" ".join(declaration[0].split()),
        )

    def build_request(self, side: Side) -> BuildRequest:
        """What the candidate will ask of the builder; only its `load_inline` is evaluated."""
        source = self.source(side)
        asked: dict[str, Any] = {}
        scope = {"load_inline": lambda **given: asked.update(given)}
        begin = source.index("cuda_source = ")
        exec(source[begin : source.index("class ModelNew", begin)], scope)
        return BuildRequest(
            name=asked["name"],
            cpp_sources=(asked["cpp_sources"],),
            cuda_sources=(asked["cuda_sources"],),
            functions=tuple((name, name) for name in asked["functions"]),
            with_cuda=True,
        )


def _only(diff: str, side: Side) -> str:
    kept = {" ", _MARKS[side]}
    lines = diff.strip("\n").split("\n")
    return "".join(f"{line[1:]}\n" for line in lines if not line or line[0] in kept)
