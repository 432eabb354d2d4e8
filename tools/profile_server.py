"""Profiles where it runs, for an agent that runs elsewhere: `python -m tools.profile_server FD`."""

from __future__ import annotations

import sys
from contextlib import closing
from functools import partial

from evaluator.collect.ncu import NcuSession
from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.ipc.service import leave_with, serve
from evaluator.record import Record
from tools.profile import profile


class ProfileRequest(Record):
    """A candidate that was judged correct, and what the judge said."""

    request: EvaluationRequest
    evaluation: Evaluation


def answer(session: NcuSession, question: bytes) -> bytes:
    """The `Profile` of a `ProfileRequest`, both as JSON. Raises `ProfilerError`."""
    asked = ProfileRequest.model_validate_json(question)
    return profile(asked.request, asked.evaluation, session=session).model_dump_json().encode()


if __name__ == "__main__":
    leave_with(int(sys.argv[1]))
    with closing(NcuSession()) as session:
        serve(int(sys.argv[1]), partial(answer, session))
