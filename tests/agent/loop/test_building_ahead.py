"""Kernels that are built while the model goes on writing, and what is recorded by then."""

import queue
from dataclasses import replace
from pathlib import Path

import pytest

from agent.llm.client import LiteLLMClient
from evaluator.evaluation import EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.device_lock import device_lock
from experiments.bench.speed.catalogue import catalogue
from problems.loader import load_problem
from tests.agent.llm.provider_server import ProviderServer, answer
from tests.agent.stand_in import Listener, StandInExecutor, kernel_answer
from tests.agent.world import World

AFTER = "That is the kernel."


class Watched(LocalExecutor):
    """Tells of each early build."""

    begun: queue.Queue[EvaluationRequest]

    def build_ahead(self, request: EvaluationRequest) -> None:
        with device_lock("cpu"):  # this answer is quicker than the end of the problem's set-up
            pass
        super().build_ahead(request)
        self.begun.put(request)


class Looking(StandInExecutor):
    """Looks at the run directory whenever it is asked to build."""

    folder: Path
    seen: list[dict[str, bytes]]

    def build_ahead(self, request: EvaluationRequest) -> None:
        super().build_ahead(request)
        self.seen.append(files(self.folder))


def asked(server: ProviderServer, **settings: object) -> dict[str, object]:
    model = {"model": "openai/test-model", "model_args": {"api_base": server.url}}
    return {"problems": ("first",), "budget": 1, "feedback": "E", **model, **settings}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.thorough
def test_a_kernel_is_built_before_its_answer_ends(
    server: ProviderServer,
    world: World,
    tmp_path: Path,
    shared_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERNEL_REFINERY_LOCKS", str(tmp_path))  # nobody else has this CPU
    # Nobody has built its library; what each library needs of PyTorch is compiled already.
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "objects").symlink_to(shared_cache / "objects")
    kernel = next(each for each in catalogue() if each.name == "cpp/swish_openmp")
    text = f"First I think.\n\n```python\n{kernel.source}```\n\n{AFTER} It is quick."
    libraries: list[Path] = []
    stored: list[int] = []
    with Watched("cpu", cache=tmp_path / "cache") as executor:
        executor.begun = queue.Queue()

        def wait_for_the_library() -> None:
            executor.begun.get(timeout=60)
            # One at a time: what comes behind the early build begins when that has ended.
            executor._builders._early.submit(lambda: None).result()
            libraries.extend((tmp_path / "cache" / "libraries").glob("*/*.so"))
            stored.append(len(list((tmp_path / "run" / "completions").glob("*"))))

        server.will(replace(answer(text), midway=(AFTER, wait_for_the_library)))
        world.client, world.executor, world.problem = LiteLLMClient(), executor, load_problem
        judged = {"device": "cpu", "backend": "cpp", "timing_seconds": 0.1}
        world.run(**asked(server, problems=(kernel.problem.id,), **judged))
    assert len(libraries) == 1
    assert stored == [0]
    (turn,) = world.files.turns()
    assert turn.evaluation.status is Status.CORRECT
    assert turn.evaluation.build is not None and turn.evaluation.build.cached


def test_a_kernel_that_was_judged_is_not_built_again(server: ProviderServer, world: World) -> None:
    server.will(answer(kernel_answer(6)))
    world.client = LiteLLMClient()
    world.run(**asked(server, budget=3))
    assert [turn.judged_with for turn in world.files.turns()] == ["", "first.0.0", "first.0.0"]
    assert list(world.diary.count("build").values()) == [1]


def test_nothing_is_written_before_the_answer_is_stored(
    server: ProviderServer, world: World, tmp_path: Path
) -> None:
    executor = Looking(world.diary)
    executor.folder, executor.seen = tmp_path / "run", []
    before: list[dict[str, bytes]] = []
    started = "I am about to write."
    server.will(
        replace(
            answer(f"{started}\n\n{kernel_answer(6)}Well."),
            midway=(started, lambda: before.append(files(executor.folder))),
        )
    )
    world.client, world.executor, world.listener = LiteLLMClient(), executor, Listener()
    world.run(**asked(server))
    assert executor.seen == before
    assert not any("/completions/" in name or "/kernels/" in name for name in before[0])
