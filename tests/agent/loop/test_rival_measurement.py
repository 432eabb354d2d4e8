"""What PyTorch itself reaches is measured once a problem, and stands in every prompt of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config.options import RunOptions
from agent.record.rival import Rival
from agent.resolution import resolve
from agent.show import app as show
from evaluator.command.command_line import serve
from evaluator.errors import DeviceError, ProfilerError
from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.settings import BaselineName
from tests.agent.made_records import profile
from tests.agent.stand_in import StandInExecutor
from tests.agent.world import World
from tests.evaluator.made_evaluations import baseline, correct, timing
from tools.execute import own_module
from tools.profiling.profile_report import KernelShare, Profile

ONE = {"problems": ("first",), "budget": 2, "rival": "compile"}
KERNELS = (
    KernelShare(name="gemm", own=False, launches=2, time_us=90.0, share=0.9),
    KernelShare(name="relu", own=False, launches=1, time_us=9.6, share=0.096),
    KernelShare(name="copy", own=False, launches=1, time_us=0.4, share=0.004),
)


class OwnModuleExecutor(StandInExecutor):
    """Judges a problem's own module, too: eager takes 110 us, `torch.compile` 80."""

    asked: list[EvaluationRequest]

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        if request.candidate.source != own_module(request.reference):
            return super().evaluate(request)
        if self.failures:
            raise self.failures.pop(0)
        self.asked.append(request)
        rivals = {BaselineName.EAGER: baseline(1.1, 110.0)}
        if BaselineName.COMPILE in request.settings.baselines:
            rivals[BaselineName.COMPILE] = baseline(0.8, 80.0)
        times = timing(1.1, 100.0, bound_us=40.0, bound_rates="published", attainable_us=50.0)
        return correct().model_copy(
            update={"timing": times.model_copy(update={"baselines": rivals})}
        )


class RivalWorld(World):
    """A world in which eager runs three kernels."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.executor: OwnModuleExecutor = OwnModuleExecutor(self.diary)
        self.executor.asked = []
        self.can_profile = True
        self.profiler = self.profile_eager

    def profile_eager(self, request: EvaluationRequest, evaluation: Evaluation) -> Profile:
        if not self.can_profile:
            raise ProfilerError("no profiler here")
        return profile().model_copy(update={"kernels": KERNELS})

    def rival(self) -> Rival:
        found = self.files.rival("first")
        assert found is not None
        return found

    def prompts(self) -> list[str]:
        return [self.files.prompt(turn.prompt) for turn in self.files.turns()]


@pytest.fixture
def world(tmp_path: Path) -> RivalWorld:
    return RivalWorld(tmp_path)


def test_it_is_measured_once_and_stands_in_every_prompt(world: RivalWorld) -> None:
    world.run(**ONE)
    world.run(**ONE | {"budget": 4})
    assert len(world.executor.asked) == 1
    assert world.executor.asked[0].settings.baselines == (BaselineName.EAGER, BaselineName.COMPILE)
    assert world.rival().times_us == {"eager": 110, "torch.compile": 80}
    prompts = world.prompts()
    assert len(prompts) == 4
    for prompt in prompts:
        section = prompt.partition("## What PyTorch reaches")[2].partition("## What counts")[0]
        assert (
            "- eager: 110 us\n- torch.compile: 80 us\n- bound: 40 us at published rates" in section
        )
        assert "attainable: 50 us" in section
        assert "Beat the faster of the two" in section
        assert "100 us in 4 launches" in section
        assert "| gemm | 90 % | 2 | 90 us |\n| relu | 9.6 % | 1 | 9.60 us |" in section
        assert "copy" not in section


def test_samples_get_it_too(world: RivalWorld) -> None:
    world.run(**ONE, strategy="sample", feedback="none", workers=2)
    assert len(world.executor.asked) == 1
    assert all("torch.compile: 80 us" in prompt for prompt in world.prompts())


def test_eager_alone_is_no_race_of_two(world: RivalWorld) -> None:
    world.run(**ONE | {"rival": "eager"})
    assert world.executor.asked[0].settings.baselines == (BaselineName.EAGER,)
    assert "torch.compile" not in world.prompts()[0].partition("## What counts")[0]
    assert "faster of the two" not in world.prompts()[0]


def test_nothing_is_measured_unasked(world: RivalWorld) -> None:
    world.run(**ONE | {"rival": "none"})
    assert not world.executor.asked
    assert world.files.rival("first") is None
    assert "What PyTorch reaches" not in world.prompts()[0]


def test_times_are_shown_without_a_profile(world: RivalWorld) -> None:
    world.can_profile = False
    world.run(**ONE)
    assert world.rival().notes == ("no profile of eager: no profiler here",)
    assert "torch.compile: 80 us" in world.prompts()[0]
    assert "Where eager's time goes" not in world.prompts()[0]


def test_a_lasting_failure_ends_the_problem_before_a_call(world: RivalWorld) -> None:
    world.executor.failures = [DeviceError("the device fell off")] * 3
    result = world.run(**ONE)
    assert result.problems[0].error == "the device fell off"
    assert not list(world.files.turns())


def test_auto_leaves_it_out_on_a_cpu() -> None:
    assert resolve(RunOptions(device="cpu")).config.rival == "none"
    assert resolve(RunOptions(device="cpu", rival="eager")).config.rival == "eager"


def test_show_tells_of_it(world: RivalWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.run(**ONE)
    assert serve(show, "show", [str(world.folder / "run")]) == 0
    told = capsys.readouterr().out
    assert "- eager: 110 us" in told and "- torch.compile: 80 us" in told
    assert "| gemm | 90 % | 2 | 90 us |" in told
    said = world.prompts()[0].partition("## What PyTorch reaches")[2].partition("\n##")[0]
    assert all(line.strip() in told for line in said.splitlines())
