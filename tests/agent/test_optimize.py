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


@pytest.mark.thorough
def test_a_module_becomes_a_problem_of_its_own(relay: Path) -> None:
    with answering(relay, NO_KERNEL) as asked:
        options = {"model": f"relay/{relay}", "budget": 1}
        first = optimize(Doubled(), [torch.ones(3, 4)], **options)
        again = optimize(Doubled(), [torch.ones(3, 4)], **options)
    (file,) = (Path("runs") / "problems").iterdir()
    assert first.details.problem == file.stem and first.run.parent == Path("runs")
    assert (first.best_source, first.best_path, first.speedup) == (None, None, None)
    assert first.details.stop is Stop.CALLS
    assert [turn.evaluation.status for turn in first.turns] == [Status.NO_CODE]
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
