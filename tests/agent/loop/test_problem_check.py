"""A problem that cannot be judged here costs nothing: it is found out before its first call."""

import json
from pathlib import Path

import pytest

from agent.record.events import TurnStarted, Waiting
from agent.record.result import Stop
from agent.run import command
from agent.show import command as show
from evaluator.command.command_line import serve
from evaluator.errors import DeviceError, JudgeDiedError, UnusableReferenceError
from tests.agent.llm.provider_server import ProviderServer, answer
from tests.agent.world import World
from tests.task import as_candidate, task

FORWARD = "return torch.relu(x) * self.scale"
GOOD = "import random\n" + task(
    FORWARD, init="self.scale = nn.Parameter(torch.ones(32))", x="torch.randn(16, 32)"
)
KERNEL = as_candidate(GOOD)
BROKEN = {
    "missing_package": ("import torch\n", "import torch, no_such_package\n", "no_such_package"),
    "constructor": ("super().__init__()", "raise OSError('no weights')", "no weights"),
    "forward": (FORWARD, "raise NotImplementedError('not here')", "not here"),
    "inputs": ("return [torch.randn(16, 32)]", "raise KeyError('rows')", "get_inputs() raised"),
    # Over many decades, or one pair in a hundred would be close by chance.
    "random": (FORWARD, "return x * 10 ** random.uniform(0, 18)", "the same random seed"),
    "memory": (FORWARD, "return x.expand(2**40, 16, 32).clone()", "memory"),
    # The judge has this variable, a worker has not: only the baseline's worker finds it out.
    "walled": (
        "super().__init__()",
        "super().__init__(); import os; os.environ['KERNEL_REFINERY_CACHE']",
        "baseline eager could not be run",
    ),
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite" / "level1"
    folder.mkdir(parents=True)
    for number, (name, (right, wrong, _)) in enumerate(BROKEN.items(), 1):
        assert right in GOOD
        (folder / f"{number}_{name}.py").write_text(GOOD.replace(right, wrong))
    (folder / "9_good.py").write_text(GOOD)
    return folder.parent


@pytest.mark.thorough
def test_only_the_problem_that_can_be_judged_is_billed(
    suite: Path,
    tmp_path: Path,
    server: ProviderServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "x")
    server.will(answer(f"```python\n{KERNEL}```"))
    run = tmp_path / "run"
    words = (
        f"--suite {suite} --level 1 --device cpu --output {run} --model hosted_vllm/test-model-2026"
        " --budget 2 --confirm 0 --strategy sample --timing-seconds 0.2 --no-audit --json"
        f" --display plain --model-args api_base={server.url}"
        " --model-args input_cost_per_token=1e-6 --model-args output_cost_per_token=1e-5"
    )
    code = serve(command, "agent.run", words.split())
    told = capsys.readouterr()
    assert code == 2, told.err
    *broken, good = json.loads(told.out)["problems"]
    for entry, (_, _, reason) in zip(broken, BROKEN.values(), strict=True):
        assert entry["stop"] == "error"
        assert reason in entry["error"]
        assert entry["spent"]["calls"] == entry["turns"] == 0
        assert f"{entry['problem']}\n  not judged: {entry['error']}\n" in told.err
    assert f"1 of 8 problems have a correct kernel, {len(broken)} could not be judged" in told.err
    assert serve(show, "agent.show", [str(run)]) == 0
    shown = capsys.readouterr().out
    assert all(
        f"{entry['problem']}: no turn was taken: {entry['error']}" in shown for entry in broken
    )
    assert (good["stop"], good["turns"], good["correct"]) == ("calls", 2, 2)
    assert len(server.requests) == 2, "only those of the good problem"
    assert good["spent"]["cost_usd"] == pytest.approx(2 * (1000 * 1e-6 + 500 * 1e-5))


def test_a_problem_is_checked_once_and_not_where_nothing_is_left_to_ask(world: World) -> None:
    world.run(strategy="sample", feedback="none", workers=4)
    assert world.diary.count("check") == {"first": 1, "second": 1}
    world.run(strategy="sample", feedback="none", workers=4)
    assert world.diary.count("check") == {"first": 1, "second": 1}


def test_a_reference_that_cannot_run_is_asked_about_once(world: World) -> None:
    world.executor.unusable = [UnusableReferenceError("no transformers")]
    result = world.run(strategy="sample", feedback="none", workers=4)
    first, second = result.problems
    failed, done = (first, second) if first.stop is Stop.ERROR else (second, first)
    assert failed.error == "no transformers"
    assert failed.spent.calls == failed.turns == 0
    assert done.turns == 4
    assert world.diary.count("check").total() == 2
    assert {event.problem for event in world.seen(TurnStarted)} == {done.problem}


def test_a_failure_that_may_pass_is_tried_again_before_anything_is_asked(world: World) -> None:
    world.executor.unusable = [JudgeDiedError("it ended"), DeviceError("busy")]
    result = world.run(problems=("first",), budget=1)
    assert result.problems[0].turns == 1
    assert [event.reason for event in world.seen(Waiting)] == ["it ended", "busy"]
    assert world.diary.count("check") == {"first": 3}


def test_a_failure_that_lasts_ends_the_problem_unbilled(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.executor.unusable = [DeviceError("gone")] * 3
    result = world.run(problems=("first",), budget=1)
    assert (result.problems[0].stop, result.problems[0].error) == (Stop.ERROR, "gone")
    assert not world.client.requests
    assert serve(show, "agent.show", [str(world.files.path)]) == 0
    assert capsys.readouterr().out == "first: no turn was taken: gone\n"
