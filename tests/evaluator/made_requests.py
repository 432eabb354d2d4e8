"""A small problem, an honest candidate for it, and requests from what differs between them."""

from __future__ import annotations

from evaluator.evaluation import Backend, Candidate, EvaluationRequest
from evaluator.settings import Settings

SCALE_AND_BIAS = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return torch.relu(x * self.scale + self.bias) * 2.0

ROWS, FEATURES = 256, 512

def get_inputs():
    return [torch.randn(ROWS, FEATURES)]

def get_init_inputs():
    return [FEATURES]
"""

HONEST = SCALE_AND_BIAS.split("ROWS,")[0].replace("class Model(", "class ModelNew(")


def forward(body: str, head: str = "") -> str:
    """A candidate whose forward is `body`."""
    indented = body.replace("\n", "\n        ")
    start = HONEST.split("    def forward")[0]
    return f"{head}\n{start}    def forward(self, x):\n        {indented}\n"


def evaluation_request(
    source: str = HONEST,
    reference: str = SCALE_AND_BIAS,
    *,
    backend: Backend = Backend.CPP,
    problem_id: str = "test",
    hidden: tuple[str, ...] = (),
    **settings: object,
) -> EvaluationRequest:
    """Judge this source against this reference, under these settings."""
    return EvaluationRequest(
        problem_id=problem_id,
        reference=reference,
        hidden_references=hidden,
        candidate=Candidate(source=source, backend=backend),
        settings=Settings.model_validate(settings),
    )
