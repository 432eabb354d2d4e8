"""A study in rounds whose cells share their first drafts, answered by a script."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from agent.record.turn_log import read_turns
from evaluator.command.command_line import AWAITING, serve
from experiments import matrix
from tests.agent.quick_task import QUICK_ANSWERS, QUICK_TASK
from tests.evaluator.processes import descendants, still_running

CELLS = ("sample-relay-s0", "refine-g+e-relay-s0", "refine-none-relay-s0")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a plan for three cells with a shared draft and one more call each."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (tmp_path / "doubled.py").write_text(QUICK_TASK)
    plan = {
        "question": "Which?",
        "share": "drafts",
        "settings": {
            "problem": [str(tmp_path / "doubled.py")],
            "device": "cpu",
            "budget": 2,
            "confirm": 1,
            "audit": "never",
            "timing_seconds": 0.1,
        },
        "models": [
            {"model": f"relay/{tmp_path / 'relay'}", "args": {"wait": 0}, "name": "relay"},
        ],
        "conditions": ["sample", "refine G+E", "refine none"],
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    return tmp_path


def words(study: Path) -> list[str]:
    return [str(study / "plan.yaml"), "--output", str(study / "out")]


def prompts(study: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in (study / "relay").rglob("*.prompt.md")}


def answer(study: Path) -> int:
    """Answer all prompts that wait; all drafts are one kernel."""
    due = [
        (prompt, reply)
        for prompt in sorted((study / "relay").rglob("*.prompt.md"))
        if not (reply := prompt.with_name(prompt.name.replace(".prompt.", ".answer."))).exists()
    ]
    for prompt, reply in due:
        cell = prompt.parent.name
        text = QUICK_ANSWERS[CELLS.index(cell) if cell in CELLS else 0]
        reply.write_text(text)
        os.utime(reply, (0, 0))  # long ago: it is whole
    return len(due)


def turns_of(study: Path) -> dict[str, list[TurnRecord]]:
    return {name: list(read_turns(study / "out" / name)) for name in CELLS}


def see_that_drafts_were_shared(study: Path) -> None:
    turns = turns_of(study)
    assert {name: len(found) for name, found in turns.items()} == dict.fromkeys(CELLS, 2)
    drafts = [found[0] for found in turns.values()]
    assert len({draft.prompt for draft in drafts}) == 1
    assert {draft.candidate for draft in drafts} == {turns[CELLS[0]][1].candidate}
    assert len({draft.evaluation.model_dump_json() for draft in drafts}) == 1
    # Two drafts, one of which is the sample cell's alone, and two second turns.
    assert len(prompts(study)) == 4
    kernels = {turn.candidate for found in turns.values() for turn in found}
    verdicts = list((study / "out" / "shared" / "evaluation").iterdir())
    seconds = sum(len(RunFiles(study / "out" / name).confirmations("doubled")) for name in CELLS)
    assert len(kernels) == 3
    assert len(kernels) < len(verdicts) <= len(kernels) + seconds
    assert sum(turn.repeated for found in turns.values() for turn in found) <= 10


@pytest.mark.thorough
def test_a_draft_is_one_answer_in_all_cells(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = []
    for code in (AWAITING, AWAITING, 0):
        assert serve(matrix.command, "experiments.matrix", words(study)) == code
        waits.append(capsys.readouterr().out)
        answer(study)
    for said in waits[:2]:
        assert f"2 prompts wait for answers in {study / 'relay'}; then" in said
    for draft in (study / "relay" / "drafts-s0").glob("*.prompt.md"):
        assert "may be refined afterwards" in draft.read_text()
    see_that_drafts_were_shared(study)


@pytest.mark.slow
def test_killed_at_ten_places_it_asks_and_judges_nothing_twice(study: Path) -> None:
    seen: dict[Path, str] = {}
    chance, kills = random.Random(), 0
    while True:
        process = subprocess.Popen(
            [sys.executable, "-m", "experiments.matrix", *words(study)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            if kills < 10:
                time.sleep(chance.uniform(1, 12))
                family = descendants(process.pid)
                process.kill()
                assert not still_running(family)
                kills += 1
            said, _ = process.communicate(timeout=400)
        assert seen.items() <= prompts(study).items()
        seen = prompts(study)
        if chance.random() < 0.5 or kills == 10:
            answer(study)
        if process.returncode == 0:
            break
        assert process.returncode in (-9, AWAITING), said
    see_that_drafts_were_shared(study)
