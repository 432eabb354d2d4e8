"""A relay in rounds: each command takes the answers that are there, asks what is due, and ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import desk
from agent import run as agent_run
from agent.record.run_files import RunFiles
from agent.record.turn_log import read_turns
from evaluator.command.command_line import AWAITING, serve
from tests.agent.quick_task import QUICK_ANSWERS, QUICK_TASK

Told = Callable[[int], str]


@pytest.fixture
def a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Told:
    """Gives the same command again, which must end with that exit code; returns what it says."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (tmp_path / "doubled.py").write_text(QUICK_TASK)
    words = ["--problem", str(tmp_path / "doubled.py"), "--feedback", "G+E", "--budget", "2"]
    words += ["--confirm", "0", "--timing-seconds", "0.1", "--output", str(tmp_path / "run")]
    words += ["--model", f"relay/{tmp_path / 'relay'}", "--model-args", "wait=0"]

    def give(code: int) -> str:
        assert serve(agent_run.command, "agent.run", words) == code
        return capsys.readouterr().err

    return give


@pytest.fixture
def at_the_desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    def give(code: int) -> str:
        words = [str(tmp_path / "relay"), str(tmp_path / "desk")]
        assert serve(desk.command, "agent.desk", words) == code
        return "".join(capsys.readouterr())

    return give


def places(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "desk").iterdir())


@pytest.mark.thorough
def test_each_prompt_is_asked_once_and_each_answer_taken_once(
    tmp_path: Path, a_round: Told, at_the_desk: Told
) -> None:
    waits = f"1 prompt waits for its answer in {tmp_path / 'relay'}; then give the same command"
    assert waits in a_round(AWAITING)
    (prompt,) = (tmp_path / "relay").glob("*.prompt.md")
    written = prompt.stat().st_mtime_ns
    assert "answers taken: 0; prompts that wait" in at_the_desk(0)
    assert "answers taken: 0; prompts that wait" in at_the_desk(0)
    (place,) = places(tmp_path)
    assert re.fullmatch(r"[0-9a-f]{8}", place.name)
    assert (place / "prompt.md").read_bytes() == prompt.read_bytes()
    assert waits in a_round(AWAITING)
    assert prompt.stat().st_mtime_ns == written
    (place / "answer.md").write_text(QUICK_ANSWERS[0])
    assert "answers taken: 1" in at_the_desk(0)
    assert waits in a_round(AWAITING)  # for the second turn
    assert "answers taken: 0; prompts that wait" in at_the_desk(0)
    (second,) = set(places(tmp_path)) - {place}
    (second / "answer.md").write_text(QUICK_ANSWERS[-1])
    at_the_desk(0)
    assert "prompt waits" not in a_round(0)
    turns = list(read_turns(tmp_path / "run"))
    assert [(turn.turn, turn.repeated) for turn in turns] == [(0, 0), (1, 0)]
    files = RunFiles(tmp_path / "run")
    answers = [files.completion(turn.completion).completion.text for turn in turns]
    assert answers == [QUICK_ANSWERS[0].lstrip("\n"), QUICK_ANSWERS[-1].lstrip("\n")]


def test_an_answer_that_is_none_changes_nothing(
    tmp_path: Path, a_round: Told, at_the_desk: Told
) -> None:
    a_round(AWAITING)
    at_the_desk(0)
    (place,) = places(tmp_path)
    answer = place / "answer.md"
    answer.touch()
    assert f"not taken: {answer}: it is empty" in at_the_desk(1)
    answer.write_text("```python\nimport torch\n\nclass ModelNew(")
    assert f"not taken: {answer}: it ends within its code" in at_the_desk(1)
    answer.write_text(QUICK_ANSWERS[0])
    (place / "prompt.md").write_text("Another prompt.")
    assert "is not the prompt that was handed out" in at_the_desk(1)
    assert not list((tmp_path / "relay").glob("*.answer.md"))
    # Nor does an empty answer that lies in the relay itself.
    (prompt,) = (tmp_path / "relay").glob("*.prompt.md")
    prompt.with_name(prompt.name.replace(".prompt.", ".answer.")).touch()
    assert "1 prompt waits" in a_round(AWAITING)
    assert list(read_turns(tmp_path / "run")) == []


@pytest.mark.parametrize(
    ("asked", "why"), [("FUNCTION = 'double'", ""), ("", "it ends within its code")]
)
def test_a_function_is_whole_where_one_is_asked_for(tmp_path: Path, asked: str, why: str) -> None:
    for path in (tmp_path / "a.prompt.md", tmp_path / "prompt.md"):
        path.write_text(f"```python\n{asked}\n```\n")
    (tmp_path / "answer.md").write_text("```python\ndef double(x):\n    return 2 * x\n")
    content = desk.text_hash((tmp_path / "prompt.md").read_text())
    entry = desk.HandedOut(prompt="a.prompt.md", hash=content, folder=tmp_path)
    assert desk.take_back(tmp_path, entry) == why


def test_the_desk_lies_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relay = tmp_path / "relay"
    for words, why in (
        ([relay, tmp_path / "desk"], "there is no folder"),
        ([tmp_path, tmp_path / "desk"], "where all prompts can be seen"),
    ):
        assert serve(desk.command, "agent.desk", list(map(str, words))) == 2
        assert why in capsys.readouterr().err
