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
from tests.agent.stand_in import kernel_answer
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


def asked(server: ProviderServer, **settings: object) -> dict[str, object]:
    model = {"model": "openai/test-model", "model_args": {"api_base": server.url}}
    return {"problems": ("first",), "budget": 1, "feedback": "E", **model, **settings}


@pytest.mark.thorough
def test_a_kernel_is_built_before_its_answer_ends_and_nothing_is_written(
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
    written: list[str] = []
    with Watched("cpu", cache=tmp_path / "cache") as executor:
        executor.begun = queue.Queue()

        def wait_for_the_library() -> None:
            executor.begun.get(timeout=60)
            # One at a time: what comes behind the early build begins when that has ended.
            executor._builders._early.submit(lambda: None).result()
            libraries.extend((tmp_path / "cache" / "libraries").glob("*/*.so"))
            written.extend(path.parent.name for path in (tmp_path / "run").rglob("*"))

        server.will(replace(answer(text), midway=(AFTER, wait_for_the_library)))
        world.client, world.executor, world.problem = LiteLLMClient(), executor, load_problem
        judged = {"device": "cpu", "backend": "cpp", "timing_seconds": 0.1}
        world.run(**asked(server, problems=(kernel.problem.id,), **judged))
    assert len(libraries) == 1
    assert "prompts" in written and not {"completions", "kernels"} & {*written}
    (turn,) = world.files.turns()
    assert turn.evaluation.status is Status.CORRECT
    assert turn.evaluation.build is not None and turn.evaluation.build.cached


def test_a_kernel_that_was_judged_is_not_built_again(server: ProviderServer, world: World) -> None:
    server.will(answer(kernel_answer(6)))
    world.client = LiteLLMClient()
    world.run(**asked(server, budget=3))
    assert [turn.judged_with for turn in world.files.turns()] == ["", "first.0.0", "first.0.0"]
    assert list(world.diary.count("build").values()) == [1]
