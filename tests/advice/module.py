"""A candidate's file around CUDA code, and what it will ask of the builder."""

from __future__ import annotations

import re
from typing import Any

from evaluator.ipc.build_request import BuildRequest

FORWARD = """
    def forward(self, *inputs):
        return ext.run(*inputs)
"""
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
{forward}'''


def module(name: str, cuda: str, forward: str = FORWARD) -> str:
    """The file of a candidate whose extension has `run`."""
    declaration = re.search(r"^torch::Tensor run\([^)]*\)", cuda, re.MULTILINE)
    if declaration is None:
        raise ValueError(f"{name}: no `torch::Tensor run(...)` in the source")
    return _MODULE.format(
        name=name,
        cuda=cuda.lstrip("\n"),
        declaration=" ".join(declaration[0].split()),
        forward=forward.lstrip("\n"),
    )


def build_request(source: str) -> BuildRequest:
    """Nothing but the arguments of `load_inline` is evaluated."""
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
