"""What a target is asked: a request, with what the target cannot find behind its walls."""

from __future__ import annotations

from pathlib import Path

from evaluator.evaluation import EvaluationRequest
from evaluator.pretrained import Configurations, imports_transformers, kept_for

REQUEST = "request.json"


class TargetRequest(EvaluationRequest):
    """What crosses to the process that runs a candidate for a profiler or a sanitizer."""

    configurations: Configurations | None = None
    """Of the Hugging Face models that the problem names; None where it names none."""


def write_request(folder: Path, request: EvaluationRequest) -> None:
    uses = imports_transformers(request.reference)
    known = kept_for(request.reference) if uses else None
    asked = TargetRequest(**dict(request), configurations=known)
    (folder / REQUEST).write_text(asked.model_dump_json())


def read_request(folder: Path) -> TargetRequest:
    return TargetRequest.model_validate_json((folder / REQUEST).read_text())
