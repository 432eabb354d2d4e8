"""Judges a client's problem behind walls: `python -m tools.serve.walled_judge FD DEVICE`.

The problem's code runs in the judge that this process starts, so what it answers is worth as much
as the client's word, to that client alone.
"""

from __future__ import annotations

import json
import sys
from functools import partial

from evaluator.check import request_for
from evaluator.errors import UnusableReferenceError
from evaluator.executor.local import LocalExecutor
from evaluator.ipc.service import leave_with
from evaluator.ipc.switchboard import serve_lines
from evaluator.record import Record
from evaluator.settings import Settings
from problems.errors import UsageError
from problems.loader import problem_of
from tools.serve.verdict import verdict


class Asked(Record):
    name: str
    problem: str
    """Its source."""
    candidate: str
    settings: Settings
    profiles: bool = False


def answer(executor: LocalExecutor, question: bytes) -> bytes:
    """The fields of an answer, as JSON; `refused` where the problem is no good."""
    asked = Asked.model_validate_json(question)
    try:
        problem = problem_of(asked.problem, asked.name)
        request = request_for(asked.candidate, problem, asked.settings)
        told = verdict(executor, request, profiles=asked.profiles)
    except (UsageError, UnusableReferenceError) as error:
        told = {"refused": f"problem {asked.name}: {error}"}
    return json.dumps(told).encode()


if __name__ == "__main__":
    leave_with(int(sys.argv[1]))
    with LocalExecutor(sys.argv[2]) as executor:
        serve_lines(int(sys.argv[1]), partial(answer, executor))
