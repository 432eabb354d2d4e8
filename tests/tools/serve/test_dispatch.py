"""What is answered where our side fails, with jobs that do what the test says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from evaluator.errors import JudgeDiedError
from tests.evaluator.made_evaluations import unbuilt
from tools.serve.batch import Batch, Job
from tools.serve.dispatch import Dispatch


def job(source: str) -> Job:
    def answer() -> dict[str, object]:
        if source == "ours":
            raise JudgeDiedError("the judge\nended")
        if source == "bug":
            raise ZeroDivisionError(f"a secret: {source}")
        return {"evaluation": unbuilt(message=source).as_json()}

    return Job("test", answer)


def test_what_fails_on_our_side_is_no_verdict(capfd: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        dispatch, batch = Dispatch(width=1, room=8), Batch()
        dispatch.admit(batch, [job(each) for each in ("ours", "bug", "kernel")])

        async def answer() -> dict[str, Any]:
            told: dict[str, Any] = json.loads(await asyncio.wait_for(batch.answers.get(), 60))
            return told

        assert await answer() == {"index": 0, "error": "JudgeDiedError: the judge ended"}
        told = await answer()
        assert set(told) == {"index", "error"} and "secret" not in told["error"]
        assert (await answer())["evaluation"]["status"] == "build_error"
        assert (dispatch.answered, dispatch.failed) == (1, 2)
        await dispatch.stop(60)

    asyncio.run(test())
    assert "a secret" in capfd.readouterr().err


def test_answers_that_nobody_reads_take_room() -> None:
    async def test() -> None:
        dispatch, batch, other = Dispatch(width=1, room=2), Batch(), Batch()
        assert dispatch.admit(batch, [job("kernel"), job("kernel")]) is None
        while dispatch.answered < 2:
            await asyncio.sleep(0.01)
        assert dispatch.admit(other, [job("kernel")]) is not None
        await batch.answers.get()
        assert dispatch.admit(other, [job("kernel")]) is None
        dispatch.drop(batch)
        assert (await other.answers.get()) and dispatch.admit(batch, [job("kernel")] * 2) is None
        await dispatch.stop(60)

    asyncio.run(test())
