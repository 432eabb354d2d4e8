"""What a client posts: candidates, each with the name of its problem."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError

from evaluator.record import Record

_MOST_NAME = 200
"""Characters of a name. A misspelt one is compared with all that there are."""
_MOST_WORDS = 300


class MalformedError(Exception):
    """A client sent what is no request; its text is one line that says where and why."""


class CandidateRequest(Record):
    problem: Annotated[str, Field(max_length=_MOST_NAME)]
    """An id or alias of the suite, never a file."""
    source: str


class BatchRequest(Record):
    candidates: Annotated[tuple[CandidateRequest, ...], Field(min_length=1)]
    client: Annotated[str, Field(max_length=_MOST_NAME)] = ""
    """Batches of one name share that client's turns. Empty: a client of its own."""


def read_batch(body: bytes) -> BatchRequest:
    """Raises `MalformedError` for what is no JSON, or has other fields or types."""
    try:
        return BatchRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MalformedError(one_line(f"{where}: {first['msg']}" if where else first["msg"])) from (
            None
        )


def one_line(text: str) -> str:
    """`text` without line breaks and control characters, and not endless."""
    words = " ".join(text.split())[:_MOST_WORDS]
    return "".join(each if each.isprintable() else "?" for each in words)
