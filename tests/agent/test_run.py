"""The command itself, in processes of its own, as its user types it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent import run as agent_run
from agent.show import command as show
from evaluator.command.command_line import serve
from tests.agent.quick_task import QUICK_TASK
from tests.agent.relay_answers import answering
from tests.waiting import once

PROBLEM = "level1_7_rms_norm"
ROOT = Path(__file__).parents[2]


def environment(**extra: str) -> dict[str, str]:
    """Ours, without a GPU and without any provider's key."""
    kept = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    return {**kept, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT), **extra}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "agent.run", *map(str, arguments)]


def run(*arguments: object, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), env=environment(**extra), capture_output=True, text=True, timeout=120
    )


def refused(result: subprocess.CompletedProcess[str]) -> str:
    """The one line on stderr of a command that left with code 2 and did nothing."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_draw_prints_the_state_machine() -> None:
    result = run("--draw")
    assert result.returncode == 0
    assert "propose" in result.stdout
    assert "graph TD" in result.stdout


CASES: list[tuple[list[str], str]] = [
    (["--problem", "level1_7_rms_nrom"], "did you mean level1_7_rms_norm"),
    (["--problem", "{tmp}/no_model.py"], "no_model.py defines no Model"),
    (["--problem", "{tmp}/broken.py"], "broken.py"),
    (["--device", "cuda"], "no GPU is visible here; use --device cpu"),
    (["--executor", "ray", "--ray-address", "127.0.0.1:9"], "127.0.0.1:9: nothing answers there"),
    (["--budgte", "3"], "No such option: --budgte"),
    (["-o", "{tmp}/full"], "is not a run"),
    (["-o", "{tmp}/other", "--redo"], "is not that of a run, so nothing is removed"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("arguments", "told"), CASES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_one_line_and_touches_nothing(
    tmp_path: Path,
    arguments: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In this process, where what takes long is imported once. Others in this file are refused in
    processes of their own."""
    for name in os.environ.keys() - environment().keys():
        monkeypatch.delenv(name)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (tmp_path / "no_model.py").write_text("def get_inputs():\n    return []\n")
    (tmp_path / "broken.py").write_text("class Model(:\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    (tmp_path / "other" / "kernels").mkdir(parents=True)
    (tmp_path / "other" / "config.yaml").write_text("of: another program")
    before = sorted(tmp_path.rglob("*"))
    given = [argument.format(tmp=tmp_path) for argument in arguments]
    output = [] if "-o" in given else ["-o", str(tmp_path / "run")]
    code = serve(agent_run.command, "python -m agent.run", [*given, *output])
    line = refused(subprocess.CompletedProcess(given, code, *capfd.readouterr()))
    assert told in line
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "full" / "thesis.tex").read_text() == "mine"


def test_a_dry_run_asks_and_writes_nothing(tmp_path: Path) -> None:
    result = run("--problem", PROBLEM, "--dry-run", "-o", tmp_path / "run", "--budget", "3")
    assert result.returncode == 0, result.stderr
    for text in ("budget: 3", PROBLEM, "## Reference", "class Model(nn.Module)", "3 calls", "free"):
        assert text in result.stdout
    machine = run("--problem", PROBLEM, "--dry-run", "--json", "-o", tmp_path / "run")
    plan = json.loads(machine.stdout)
    assert plan["config"]["problems"] == [PROBLEM]
    assert (plan["calls"], plan["most_usd"]) == (10, 0.0)
    assert "## Reference" in plan["prompt"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_a_run_is_shown_again_extended_and_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    relay, folder = tmp_path / "relay", tmp_path / "run"
    relay.mkdir()
    problem = tmp_path / "doubled.py"
    problem.write_text(QUICK_TASK)
    common = ["--problem", str(problem), "-m", f"relay/{relay}", "-o", str(folder)]

    def told(code: int, *arguments: str) -> tuple[str, str]:
        """In this process, which has imported by now what takes long."""
        assert serve(agent_run.command, "agent.run", [*common, *arguments]) == code
        return capsys.readouterr()

    with answering(relay, "I can't write kernels today.") as answered:
        first = run(*common, "--budget", "1", "--json", "--require-correct")
        assert first.returncode == 1, first.stderr
        found = json.loads(first.stdout)
        assert found["all_correct"] is False
        assert found["problems"][0]["turns"] == 1
        assert found["problems"][0]["last"]["evaluation"]["status"] == "no_code"
        assert "1/1" in first.stderr
        where = f"read {relay}/doubled-0-0.prompt.md and write the answer to"
        assert first.stderr.count(where) == 1
        assert "no correct kernel" in first.stderr
        out, err = told(0, "--budget", "1")
        assert out == ""
        assert "no correct kernel" in err
        assert answered == ["doubled-0-0.prompt.md"]
        out, _ = told(0, "--budget", "2", "--dry-run", "--json")
        assert json.loads(out)["recorded"] == 1
        out, _ = told(0, "--budget", "2", "--json")
        assert json.loads(out)["problems"][0]["turns"] == 2
        assert len(answered) == 2
        out, _ = told(0, "--budget", "1", "--json", "--redo")
        assert json.loads(out)["problems"][0]["turns"] == 1
    assert len((folder / "turns.jsonl").read_text().splitlines()) == 1
    assert serve(show, "agent.show", [str(folder)]) == 0
    assert "turn 0: no_code" in capsys.readouterr().out


@pytest.mark.thorough
def test_the_first_interruption_drains_and_saves(tmp_path: Path) -> None:
    relay = tmp_path / "relay"
    relay.mkdir()
    process = subprocess.Popen(
        command("--problem", PROBLEM, "-m", f"relay/{relay}", "-o", tmp_path / "run"),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        once(lambda: list(relay.glob("*.prompt.md")))
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, told
    assert "interrupted: finishing what is in flight and saving; Ctrl-C again ends at once" in told
    assert "Traceback" not in told
