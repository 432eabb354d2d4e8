"""What a target is asked to run."""

from __future__ import annotations

from pathlib import Path

from evaluator.collect.target.target import REQUEST
from tests.evaluator.made_requests import evaluation_request
from tests.task import task

REFERENCE = task("return x + 1", x="torch.randn(64, 64)")


def request(source: str, folder: Path) -> None:
    """Lay it where the target finds it."""
    made = evaluation_request(source, REFERENCE, threads=1)
    (folder / REQUEST).write_text(made.model_dump_json())
