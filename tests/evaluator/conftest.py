from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from evaluator.builder.builder import Builder
from evaluator.evaluation import Backend, Evaluation
from evaluator.executor.local import LocalExecutor
from evaluator.judge.judge import Judge
from tests.evaluator.made_requests import SCALE_AND_BIAS, evaluation_request

Evaluate = Callable[..., Evaluation]


@pytest.fixture(scope="session")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor("cpu") as running:
        yield running


@pytest.fixture(scope="module")
def judge(shared_cache: Path) -> Iterator[Judge]:
    """One in this process, where parts of it can be replaced."""
    started = Judge(torch.device("cpu"), Builder(shared_cache))
    yield started
    started.close()


@pytest.fixture
def evaluate(executor: LocalExecutor) -> Evaluate:
    """Judge a candidate on the small scale-and-bias problem, or on another reference."""

    def judged(
        source: str,
        reference: str = SCALE_AND_BIAS,
        backend: Backend = Backend.CPP,
        hidden: tuple[str, ...] = (),
        **settings: object,
    ) -> Evaluation:
        chosen: dict[str, object] = {
            "timing_seconds": 0.2,
            "import_timeout_s": 10.0,
            "call_timeout_s": 5.0,
            # On a problem as small as this one, `auto` would depend on the machine's mood.
            "audit": "never",
        }
        request = evaluation_request(
            source, reference, backend=backend, hidden=hidden, **(chosen | settings)
        )
        return executor.evaluate(request)

    return judged
