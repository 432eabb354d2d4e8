"""What PyTorch itself reaches is measured once a problem, and stands in every prompt of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config.options import RunOptions
from agent.resolution import resolve
from agent.show import command as show
from evaluator.command.command_line import serve
from evaluator.rival import CheckRequest, Rival, RivalKernel
from tests.agent.stand_in import StandInExecutor
from tests.agent.world import World

ONE = {"problems": ("first",), "budget": 2, "rival": "compile"}
RIVAL = Rival(
    eager_us=110.0,
    compile_us=80.0,
    bound_us=40.0,
    bound_rates="published",
    attainable_us=50.0,
    kernels=(
        RivalKernel(name="gemm", launches=2, time_us=90.0, share=0.9),
        RivalKernel(name="relu", launches=1, time_us=9.6, share=0.096),
        RivalKernel(name="copy", launches=1, time_us=0.4, share=0.004),
    ),
)


class TimingExecutor(StandInExecutor):
    """Says what PyTorch reaches, as far as it is asked."""

    asked: list[CheckRequest]
    rival: Rival = RIVAL

    def check(self, request: CheckRequest) -> Rival:
        super().check(request)
        self.asked.append(request)
        compile_us = self.rival.compile_us if request.rival == "compile" else None
        return self.rival.model_copy(update={"compile_us": compile_us})


class RivalWorld(World):
    """A world in which eager runs three kernels."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.executor: TimingExecutor = TimingExecutor(self.diary)
        self.executor.asked = []

    def rival(self) -> Rival:
        found = self.files.rival("first")
        assert found is not None
        return found

    def prompts(self) -> list[str]:
        return [self.files.prompt(turn.prompt) for turn in self.files.turns()]


@pytest.fixture
def world(tmp_path: Path) -> RivalWorld:
    return RivalWorld(tmp_path)


def test_it_is_measured_first_and_stands_in_every_prompt(world: RivalWorld) -> None:
    world.run(**ONE)
    assert [request.rival for request in world.executor.asked] == ["compile"]
    # A later command is told of other times, and shows those of the first.
    world.executor.rival = RIVAL.model_copy(update={"eager_us": 112.0})
    world.run(**ONE | {"budget": 4})
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
    assert "torch.compile" not in world.prompts()[0].partition("## What counts")[0]
    assert "faster of the two" not in world.prompts()[0]


def test_nothing_is_told_unasked(world: RivalWorld) -> None:
    world.run(**ONE | {"rival": "none"})
    assert world.executor.asked[0].rival == "none"
    assert world.files.rival("first") is None
    assert "What PyTorch reaches" not in world.prompts()[0]


def test_times_are_shown_without_kernels(world: RivalWorld) -> None:
    world.executor.rival = RIVAL.model_copy(update={"kernels": ()})
    world.run(**ONE)
    assert "torch.compile: 80 us" in world.prompts()[0]
    assert "Where eager's time goes" not in world.prompts()[0]


def test_how_an_output_lies_in_memory_is_told(world: RivalWorld) -> None:
    world.executor.rival = RIVAL.model_copy(update={"strides": ((1, (8, 1, 4)),)})
    world.run(**ONE)
    assert "Output 1 of the reference lies in memory with strides (8, 1, 4)." in world.prompts()[0]


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
