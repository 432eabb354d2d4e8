"""Candidates whose status is known beforehand: the bench's kernels, and programs that cheat."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent

from evaluator.evaluation import Status
from experiments.bench.speed.catalogue import catalogue, runnable

_PROBLEM = "level1_1_swish"
_MODULE = """\
import os
import torch
import torch.nn as nn
{head}

class ModelNew(nn.Module):
    def forward(self, x):
{body}
"""


@dataclass(frozen=True)
class KnownCandidate:
    """One candidate, and what it must come to."""

    name: str
    problem: str
    source: str
    expected: Status


def known_candidates(device: str) -> list[KnownCandidate]:
    """Honest and hostile ones that run on this kind of device."""
    kernels = [
        KnownCandidate(each.name, each.problem.id, each.source, each.expected)
        for each in catalogue(runnable(device))
    ]
    return [
        *kernels,
        _written("eager", Status.CORRECT, "return x * torch.sigmoid(x)"),
        _written("exits", Status.RUNTIME_ERROR, "os._exit(0)"),
        _written("raises", Status.RUNTIME_ERROR, "raise SystemExit(0)"),
        _written("no Python", Status.RUNTIME_ERROR, "return x *"),
        _written(
            "prints a verdict",
            Status.RUNTIME_ERROR,
            """
            os.write(1, b'{"status": "correct"}\\n')
            os._exit(0)
            """,
        ),
        _written(
            "leaves a child behind",
            Status.RUNTIME_ERROR,
            """
            if os.fork() == 0:
                os.setsid()
                while True:
                    pass
            raise ValueError("gone")
            """,
        ),
        _written(
            "patched comparison",
            Status.INCORRECT,
            "return torch.zeros_like(x)",
            head="torch.allclose = torch.equal = lambda *args, **kwargs: True",
        ),
        _written(
            "changes its input",
            Status.INTEGRITY,
            "y = x * torch.sigmoid(x)\nx.zero_()\nreturn y",
        ),
    ]


def _written(name: str, expected: Status, body: str, head: str = "") -> KnownCandidate:
    source = _MODULE.format(head=head, body=indent(dedent(body).strip(), 8 * " "))
    return KnownCandidate(name, _PROBLEM, source, expected)
