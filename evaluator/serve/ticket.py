"""A candidate's place in a server: which batch it is of, and where its answer goes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.serve.batch_request import one_line


@dataclass(eq=False)
class Batch:
    """Candidates of one request over HTTP, and the lines that answer them as they come."""

    client: str = ""
    answers: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    """Lines of JSON. Each ticket of the batch leads to one, unless the batch was dropped."""

    @property
    def owner(self) -> object:
        """Whose turns its candidates take: the named client's, or its own."""
        return self.client or self


@dataclass(frozen=True, eq=False)
class Ticket:
    batch: Batch
    index: int
    """In the batch."""
    request: EvaluationRequest

    def verdict(self, evaluation: Evaluation) -> bytes:
        told = evaluation.model_dump(mode="json", by_alias=True)
        return _line({"index": self.index, "evaluation": told})

    def failure(self, text: str) -> bytes:
        """The line that answers with a failure of ours, of which the candidate is not guilty."""
        return _line({"index": self.index, "error": one_line(text)})


def _line(answer: dict[str, object]) -> bytes:
    return json.dumps(answer).encode() + b"\n"
