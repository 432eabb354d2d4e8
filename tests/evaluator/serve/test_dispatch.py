"""Who is answered what, with an executor that does what the test says."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from evaluator.errors import JudgeDiedError
from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.serve.batch import Batch
from evaluator.serve.dispatch import STOPPED, Dispatch, StoppingError
from tests.evaluator.made_evaluations import unbuilt
from tests.evaluator.made_requests import evaluation_request


class Gate:
    """An executor that tells the source back, one candidate a step."""

    def __init__(self) -> None:
        self.steps = threading.Semaphore(0)
        self.asked: list[str] = []

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        source = request.candidate.source
        self.asked.append(source)
        assert self.steps.acquire(timeout=60)
        if source == "ours":
            raise JudgeDiedError("the judge\nended")
        if source == "bug":
            raise ZeroDivisionError(f"a secret: {source}")
        return unbuilt(message=source)


def run(
    test: Callable[[Gate, Dispatch], Awaitable[None]], *, width: int = 1, room: int = 8
) -> None:
    async def main() -> None:
        gate = Gate()
        dispatch = Dispatch(gate, width=width, room=room)
        await asyncio.wait_for(test(gate, dispatch), 60)
        gate.steps.release(100)
        await dispatch.stop(60)

    asyncio.run(main())


def requests(*sources: str) -> list[EvaluationRequest]:
    return [evaluation_request(source) for source in sources]


async def answer(batch: Batch) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(await batch.answers.get())
    return told


@pytest.mark.parametrize("width", [1, 3])
def test_each_is_answered_under_its_index(width: int) -> None:
    async def test(gate: Gate, dispatch: Dispatch) -> None:
        batches = {name: Batch() for name in "abc"}
        for name, batch in batches.items():
            dispatch.admit(batch, requests(f"{name}0", f"{name}1"))
        gate.steps.release(6)
        for name, batch in batches.items():
            for _ in range(2):
                told = await answer(batch)
                assert told["evaluation"]["message"] == f"{name}{told['index']}"
        assert dispatch.answered == 6 and dispatch.failed == 0

    run(test, width=width)


def test_what_fails_on_our_side_is_no_verdict(capfd: pytest.CaptureFixture[str]) -> None:
    async def test(gate: Gate, dispatch: Dispatch) -> None:
        batch = Batch()
        dispatch.admit(batch, requests("ours", "bug", "kernel"))
        gate.steps.release(3)
        assert await answer(batch) == {"index": 0, "error": "JudgeDiedError: the judge ended"}
        told = await answer(batch)
        assert set(told) == {"index", "error"} and "secret" not in told["error"]
        assert (await answer(batch))["evaluation"]["status"] == "build_error"
        assert (dispatch.answered, dispatch.failed) == (1, 2)

    run(test)
    assert "a secret" in capfd.readouterr().err


def test_stopping_finishes_what_is_under_way() -> None:
    async def test(gate: Gate, dispatch: Dispatch) -> None:
        batch = Batch()
        dispatch.admit(batch, requests("a", "b"))
        stopping = asyncio.create_task(dispatch.stop(60))
        assert await answer(batch) == {"index": 1, "error": STOPPED}
        with pytest.raises(StoppingError):
            dispatch.admit(Batch(), requests("c"))
        gate.steps.release()
        assert await stopping
        assert (await answer(batch))["evaluation"]["message"] == "a"
        assert gate.asked == ["a"]

    run(test)
