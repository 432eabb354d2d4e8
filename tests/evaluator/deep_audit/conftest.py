from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from evaluator.builder.builder import Builder
from evaluator.deep_audit.deep_audit import DeepAuditor
from evaluator.errors import DeviceError
from evaluator.judge.judge import Judge


@pytest.fixture
def auditor(shared_cache: Path) -> Iterator[DeepAuditor]:
    builder = Builder(shared_cache)
    judge = Judge(torch.device("cpu"), builder)
    auditor = DeepAuditor(judge, builder)
    yield auditor
    auditor.close()
    judge.close()


@pytest.fixture
def lost_device(auditor: DeepAuditor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loses the device after the verdict."""

    def lost(_: object) -> None:
        raise DeviceError("the device is gone")

    monkeypatch.setattr(auditor._judge, "context_for", lost)
