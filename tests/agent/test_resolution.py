import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent import resolution
from agent.config.options import RunOptions
from agent.config.run_config import Strategy
from agent.resolution import choose_problems, resolve
from evaluator.evaluation import Backend
from evaluator.hardware import device_choice
from evaluator.hardware.devices import DeviceInfo
from evaluator.settings import BaselineName
from problems.errors import UsageError
from problems.loader import DEMO

GPU = DeviceInfo("NVIDIA H200", "cuda", (9, 0), sms=132, memory_bytes=141 * 10**9)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without a GPU, whatever this one has."""
    monkeypatch.setattr(device_choice, "list_gpus", list)
    monkeypatch.setattr(device_choice, "_torch_build", lambda: "2.13.0")
    monkeypatch.setattr(resolution, "missing_for", lambda backend: None)
    return monkeypatch


@pytest.fixture
def gpus(machine: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    machine.setattr(device_choice, "list_gpus", lambda: [GPU, GPU])
    return machine


@pytest.mark.usefixtures("machine")
def test_nothing_said_is_the_demo_on_the_cpu() -> None:
    with pytest.raises(UsageError, match="no GPU is visible here; use --device cpu"):
        resolve(RunOptions(device="cuda"))
    found = resolve(RunOptions()).config
    assert found.problems == DEMO
    assert (found.strategy, str(found.feedback), found.model) == (
        "refine",
        "G+E+P",
        "offline/tuner",
    )
    assert (found.device, found.backend, found.budget) == ("cpu", Backend.CPP, 10)
    assert found.output.parent == Path("runs")


@pytest.mark.usefixtures("machine")
def test_the_name_of_a_run_says_what_it_is() -> None:
    found = resolve(RunOptions(levels=(1, 3), seed=2)).config
    assert re.fullmatch(r"refine-g\+e\+p-tuner-cpp-level1\+3-s2-\w{8}", found.output.name)
    assert resolve(RunOptions(output=Path("x"))).config.output == Path("x")
    alone = resolve(RunOptions(problems=("level1_1_swish",), strategy="sample")).config
    assert alone.output.name.startswith("sample-tuner-cpp-level1_1_swish-s0-")


@pytest.mark.usefixtures("gpus")
def test_nothing_said_is_the_gpu_where_there_is_one() -> None:
    found = resolve(RunOptions()).config
    assert (found.device, found.backend) == ("cuda:0", Backend.CUDA)
    assert found.workers > 1


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("given", "device", "backend"),
    [
        ({"backend": "cpp"}, "cpu", Backend.CPP),
        ({"device": "cuda"}, "cuda:0", Backend.CUDA),
        ({"device": "cuda:1"}, "cuda:1", Backend.CUDA),
        ({"device": "cpu"}, "cpu", Backend.CPP),
        ({"backend": "triton", "model": "openai/x"}, "cuda:0", Backend.TRITON),
    ],
)
def test_device_and_backend_go_together(
    given: dict[str, str], device: str, backend: Backend
) -> None:
    found = resolve(RunOptions.model_validate(given)).config
    assert (found.device, found.backend) == (device, backend)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("asked", "devices"),
    [
        ("all", ("cuda:0", "cuda:1")),
        ("cuda:1,0", ("cuda:1", "cuda:0")),
        ("cuda:0,cuda:1", ("cuda:0", "cuda:1")),
        ("cuda:1,1", ("cuda:1",)),
    ],
)
def test_several_devices_are_one_run_of_their_kind(asked: str, devices: tuple[str, ...]) -> None:
    found = resolve(RunOptions(device=asked)).config
    assert found.devices == devices
    assert found.output == resolve(RunOptions(device="cuda:0")).config.output
    again = resolve(RunOptions(device=found.device)).config
    assert again == found, "the device in config.yaml can be given again"


def test_devices_of_several_kinds_are_refused_with_a_remedy(gpus: pytest.MonkeyPatch) -> None:
    other = replace(GPU, name="NVIDIA A100")
    gpus.setattr(device_choice, "list_gpus", lambda: [GPU, other, GPU])
    with pytest.raises(
        UsageError,
        match=r"^--device all: .* use one of --device cuda:0,2 \(NVIDIA H200\), --device cuda:1 ",
    ):
        resolve(RunOptions(device="all"))
    assert resolve(RunOptions(device="cuda:0,2")).config.devices == ("cuda:0", "cuda:2")


@pytest.mark.usefixtures("gpus")
def test_workers_enough_to_keep_every_device_busy() -> None:
    samples = {"strategy": Strategy.SAMPLE, "limit": 1, "budget": 100}
    assert resolve(RunOptions(**samples, device="cuda:0")).config.workers == 8
    assert resolve(RunOptions(**samples, device="all")).config.workers == 16
    assert resolve(RunOptions(**samples, device="cpu")).config.workers == 1
    assert resolve(RunOptions(limit=3, device="all")).config.workers == 3, "one a course at most"
    assert resolve(RunOptions(**samples, device="all", workers=5)).config.workers == 5


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"device": "cuda:0,2"}, "the GPUs here are cuda:0 to cuda:1"),
        ({"device": "cuda:2"}, "the GPUs here are cuda:0 to cuda:1"),
        ({"device": "cuda", "backend": "cpp"}, "add --device cpu"),
        ({"device": "cpu", "backend": "cuda"}, "needs an NVIDIA GPU"),
        ({"backend": "triton"}, "offline/tuner writes cuda and cpp"),
        ({"ray_address": "head:6379"}, "--ray-address is for --executor ray"),
        ({"executor": "ray", "device": "cuda:1"}, "say cuda, and Ray picks the GPUs"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        resolve(RunOptions.model_validate(given))


def test_a_cpu_build_of_torch_cannot_use_a_gpu(gpus: pytest.MonkeyPatch) -> None:
    gpus.setattr(device_choice, "_torch_build", lambda: "2.13.0+cpu")
    assert resolve(RunOptions()).config.device == "cpu"
    with pytest.raises(UsageError, match=r"torch 2\.13\.0\+cpu knows no CUDA"):
        resolve(RunOptions(device="cuda"))


def test_a_missing_compiler_is_told(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(resolution, "missing_for", lambda backend: "no C++ compiler found")
    with pytest.raises(UsageError, match=r"--backend cpp: no C\+\+ compiler found"):
        resolve(RunOptions())


@pytest.mark.usefixtures("machine")
def test_samples_at_temperature_zero_are_refused() -> None:
    for strategy in (Strategy.SAMPLE, Strategy.HYBRID):
        with pytest.raises(UsageError, match=f"{strategy} at .* same answer each time"):
            resolve(RunOptions(strategy=strategy, temperature=0.0))
    assert resolve(RunOptions(strategy=Strategy.REFINE, temperature=0.0)).config.temperature == 0


@pytest.mark.usefixtures("machine")
def test_samples_are_one_experiment_whatever_the_letters() -> None:
    plain = resolve(RunOptions(strategy=Strategy.SAMPLE))
    lettered = resolve(
        RunOptions(strategy=Strategy.SAMPLE, feedback="G+E", start_from="last", history="last")
    )
    assert lettered.config == plain.config
    assert not lettered.config.feedback
    assert "--feedback, --start-from, --history not used" in lettered.notes[0]
    assert plain.notes == ()


@pytest.mark.usefixtures("machine")
def test_a_hybrid_drafts_half_of_its_calls_and_refines_two() -> None:
    hybrid = {"strategy": Strategy.HYBRID}
    for budget, expected in ((10, (5, 2)), (5, (3, 2)), (2, (1, 1)), (1, (1, 1))):
        found = resolve(RunOptions(**hybrid, budget=budget))
        assert (found.config.drafts, found.config.refine_best) == expected
        assert f"--drafts {expected[0]}" in found.notes[0]
    given = resolve(RunOptions(**hybrid, budget=10, drafts=4, refine_best=3))
    assert (given.config.drafts, given.config.refine_best, given.notes) == (4, 3, ())


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("strategy", [Strategy.REFINE, Strategy.SAMPLE])
def test_only_a_hybrid_has_drafts_to_refine(strategy: Strategy) -> None:
    plain = resolve(RunOptions(strategy=strategy))
    given = resolve(RunOptions(strategy=strategy, drafts=3, refine_best=1))
    assert given.config == plain.config
    assert given.notes == (f"--strategy {strategy}: --drafts, --refine-best not used",)


@pytest.mark.usefixtures("machine")
def test_a_hybrid_cannot_refine_more_than_it_has() -> None:
    with pytest.raises(UsageError, match="--drafts 7 is more than --budget 6"):
        resolve(RunOptions(strategy=Strategy.HYBRID, budget=6, drafts=7))
    with pytest.raises(UsageError, match="--refine-best 4 is more than --drafts 3"):
        resolve(RunOptions(strategy=Strategy.HYBRID, budget=6, refine_best=4))


@pytest.mark.usefixtures("machine")
def test_eager_is_always_measured() -> None:
    found = resolve(RunOptions(baselines=(BaselineName.COMPILE,))).config
    assert found.baselines == (BaselineName.EAGER, BaselineName.COMPILE)


def test_problems_are_narrowed() -> None:
    level1 = choose_problems(RunOptions(levels=(1,)))
    assert {problem.level for problem in level1} == {1}
    assert len(choose_problems(RunOptions(levels=(1,), limit=2))) == 2
    assert [p.id for p in choose_problems(RunOptions(filter="7_RMS"))] == ["level1_7_rms_norm"]
    assert len(choose_problems(RunOptions(limit=2))) == 2
    twice = RunOptions(problems=("level1_7_rms_norm", "1/7"))
    assert [p.id for p in choose_problems(twice)] == ["level1_7_rms_norm"]
    with pytest.raises(UsageError, match="no problem is left"):
        choose_problems(RunOptions(levels=(9,)))


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    source = choose_problems(RunOptions(limit=1))[0].source
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(source)
    refs = (str(tmp_path / "a" / "mine.py"), str(tmp_path / "b" / "mine.py"))
    with pytest.raises(UsageError, match="share the id 'mine'"):
        choose_problems(RunOptions(problems=refs))


@pytest.mark.usefixtures("machine")
def test_a_cluster_may_have_what_this_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolution, "missing_for", lambda backend: "no compiler is here")
    found = resolve(RunOptions(executor="ray", ray_address="head:6379", device="cuda")).config
    assert (found.device, found.backend) == ("cuda:0", Backend.CUDA)
    assert found.workers == len(DEMO)
    assert resolve(RunOptions(executor="ray", device="cpu")).config.device == "cpu"
    assert resolve(RunOptions(executor="ray")).config.device == "cpu"
