"""The request that a target finds in its folder."""

from __future__ import annotations

from pathlib import Path

from evaluator.evaluation import EvaluationRequest

REQUEST = "request.json"


def write_request(folder: Path, request: EvaluationRequest) -> None:
    # The candidate reads it there: of the problem, it has what the prompt shows.
    shown = request.model_copy(update={"hidden_references": (), "weights": None})
    (folder / REQUEST).write_text(shown.model_dump_json())


def read_request(folder: Path) -> EvaluationRequest:
    return EvaluationRequest.model_validate_json((folder / REQUEST).read_text())
