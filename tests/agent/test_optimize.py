from pathlib import Path

import pytest
import torch

from agent.optimize import optimize
from agent.record.result import Stop
from evaluator.evaluation import Status
from problems.errors import UsageError
from tests.agent.module_at_hand import Doubled
from tests.agent.relay_answers import answering

NO_KERNEL = "I can't write kernels today."


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty relay, in a working directory of its own, on a machine without a GPU."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    folder = tmp_path / "relay"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_problem_by_name(relay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(relay, NO_KERNEL):
        result = optimize("level1_7_rms_norm", model=f"relay/{relay}", budget=2)
    assert (result.best_source, result.best_path, result.speedup) == (None, None, None)
    assert [turn.turn for turn in result.turns] == [0, 1]
    assert {turn.evaluation.status for turn in result.turns} == {Status.NO_CODE}
    assert result.details.stop is Stop.CALLS
    assert result.run.parent == Path("runs")
    assert capsys.readouterr().out == ""


@pytest.mark.thorough
def test_a_module_becomes_a_problem_of_its_own(relay: Path) -> None:
    with answering(relay, NO_KERNEL) as asked:
        options = {"model": f"relay/{relay}", "budget": 1}
        first = optimize(Doubled(), [torch.ones(3, 4)], **options)
        again = optimize(Doubled(), [torch.ones(3, 4)], **options)
    (file,) = (Path("runs") / "problems").iterdir()
    assert first.details.problem == file.stem
    assert "return x * 2.0" in (relay / f"{file.stem}-0-0.prompt.md").read_text()
    assert again.turns == first.turns
    assert len(asked) == 1


def test_mistakes_are_usage_errors(relay: Path) -> None:
    with pytest.raises(UsageError, match="unknown option 'bugdet': did you mean 'budget'"):
        optimize("level1_7_rms_norm", bugdet=3)
    with pytest.raises(UsageError, match="no problem 'nope'"):
        optimize("nope")
    with pytest.raises(UsageError, match="needs inputs="):
        optimize(Doubled())
    assert not Path("runs").exists()
