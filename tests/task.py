"""Problem files by KernelBench's contract, from what differs between them."""

from __future__ import annotations

from textwrap import dedent, indent

_FILE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
{init}    def forward(self, {inputs}):
{forward}

def get_inputs():
    return [{drawn}]

def get_init_inputs():
    return [{given}]
"""
_INIT = """    def __init__({arguments}):
        super().__init__()
{body}

"""


def task(
    forward: str, *, init: str = "", sizes: dict[str, str] | None = None, **inputs: str
) -> str:
    """A file whose `Model` has these bodies of `__init__` and `forward`.

    `inputs` are forward's, by name, and how each is drawn; `sizes` are the constructor's arguments,
    by name, and their values.
    """
    sizes = sizes or {}
    constructor = ""
    if init or sizes:
        constructor = _INIT.format(arguments=", ".join(["self", *sizes]), body=_body(init))
    return _FILE.format(
        init=constructor,
        inputs=", ".join(inputs),
        forward=_body(forward),
        drawn=", ".join(inputs.values()),
        given=", ".join(sizes.values()),
    )


def as_candidate(source: str) -> str:
    """The module of a problem file under the name of a candidate's, without the rest."""
    return source.split("def get_inputs")[0].replace("class Model(", "class ModelNew(")


def _body(text: str) -> str:
    return indent(dedent(text).strip("\n"), " " * 8)
